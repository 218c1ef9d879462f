package gpufake_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api/gpu"
	"example.com/tandem/api/gpu/gpufake"
	"example.com/tandem/api/gpu/gputest"
)

const (
	limit = 5 * time.Second
	tick  = 2 * time.Millisecond
)

// bodies are the Go loops in the comments of gputest's kernels.
var bodies = map[string]gpufake.Kernel{
	"vadd": func(r *gpufake.Run) {
		for i := range uint64(min(r.Threads(), int(r.Uint(3)))) {
			a, b := math.Float32frombits(r.Load32(r.Ptr(0).Add(4*i))), math.Float32frombits(r.Load32(r.Ptr(1).Add(4*i)))
			r.Store32(r.Ptr(2).Add(4*i), math.Float32bits(a+b))
		}
	},
	"bump": func(r *gpufake.Run) {
		for i := range uint64(min(r.Threads(), int(r.Uint(1)))) {
			r.Add32(r.Ptr(0).Add(4*i), uint32(r.Uint(2)))
		}
	},
	"params": func(r *gpufake.Run) {
		out := r.Ptr(0)
		for i := range uint64(6) {
			r.Store64(out.Add(8*i), r.Uint(int(i)+1))
		}
		r.Write(out.Add(48), r.Bytes(7))
	},
	"reverse": func(r *gpufake.Run) {
		n := uint64(r.Block.X)
		if 4*n > uint64(r.Shared) {
			r.Fault(gpu.IllegalAddress, "shared memory")
		}
		x := r.Read(r.Ptr(0), 4*n)
		for i := range n {
			r.Write(r.Ptr(0).Add(4*(n-1-i)), x[4*i:4*i+4])
		}
	},
	"raise": func(r *gpufake.Run) { r.Store32(r.Ptr(0), uint32(r.Uint(1))) },
	"await": func(r *gpufake.Run) {
		for r.Load32(r.Ptr(0)) == 0 && r.Cycles() < r.Uint(2) {
			r.Yield()
		}
		r.Store32(r.Ptr(1), r.Load32(r.Ptr(0)))
	},
	"meet": func(r *gpufake.Run) {
		for i := range uint64(r.Grid.X) {
			r.Add32(r.Ptr(0), 1)
			r.Store32(r.Ptr(1).Add(4*i), r.Grid.X)
		}
	},
	"nothing": func(*gpufake.Run) {},
}

// TestSuite runs the suite for drivers on the fake: a test of both.
func TestSuite(t *testing.T) {
	for _, devices := range []int{1, 2} {
		d := gputest.Open(t, func() (gpu.Driver, error) {
			return gpufake.Open(gpufake.Options{Devices: devices, Kernels: bodies}), nil
		})
		gputest.Run(t, d)
	}
}

// TestFaults: a kernel that leaves its memory loses the context, and nothing
// hangs or leaks for that.
func TestFaults(t *testing.T) {
	for name, c := range map[string]struct {
		run  func(*gpufake.Run)
		code gpu.Code
	}{
		"beyond":     {func(r *gpufake.Run) { r.Store32(r.Ptr(0).Add(64), 1) }, gpu.IllegalAddress},
		"misaligned": {func(r *gpufake.Run) { r.Load64(r.Ptr(0).Add(4)) }, gpu.MisalignedAddress},
		"a trap":     {func(r *gpufake.Run) { r.Fault(gpu.Assert, "as asked") }, gpu.Assert},
	} {
		t.Run(name, func(t *testing.T) {
			d := gpufake.Open(gpufake.Options{Kernels: map[string]gpufake.Kernel{"k": c.run}})
			x, err := d.Devices()[0].Open()
			require.NoError(t, err)
			m, err := x.LoadModule("k.ptx", []byte(".visible .entry k(.param .u64 p) { ret; }"))
			require.NoError(t, err)
			k, err := m.Function("k")
			require.NoError(t, err)
			s, err := x.NewStream(gpu.StreamOptions{})
			require.NoError(t, err)
			e, err := x.NewEvent(gpu.EventOptions{})
			require.NoError(t, err)
			p, err := x.Alloc(64)
			require.NoError(t, err)
			require.NoError(t, s.Launch(gpu.Launch{Function: k, Args: new(gpu.Args).Ptr(p)}))
			_ = s.Record(e)
			err = gpu.Wait(t.Context(), d.Clock(), 0, s)
			require.ErrorIs(t, err, gpu.ErrContextLost)
			var fault *gpu.Error
			require.ErrorAs(t, err, &fault)
			require.Equal(t, c.code, fault.Code)
			_, err = x.Alloc(1)
			require.ErrorIs(t, err, gpu.ErrContextLost)
			require.Eventually(t, func() bool { return s.Destroy() == nil }, limit, tick)
			require.NoError(t, errors.Join(e.Destroy(), x.Free(p), m.Unload(), x.Close(), d.Close()))
		})
	}
}

// TestPeersNeedAccess: without EnablePeer another device's memory is a fault.
func TestPeersNeedAccess(t *testing.T) {
	d := gpufake.Open(gpufake.Options{Devices: 2, Kernels: map[string]gpufake.Kernel{"k": func(r *gpufake.Run) { r.Store32(r.Ptr(0), 7) }}})
	near, err := d.Devices()[0].Open()
	require.NoError(t, err)
	far, err := d.Devices()[1].Open()
	require.NoError(t, err)
	p, err := far.Alloc(4)
	require.NoError(t, err)
	m, err := near.LoadModule("k.ptx", []byte(".entry k(.param .u64 p) { ret; }"))
	require.NoError(t, err)
	k, err := m.Function("k")
	require.NoError(t, err)
	s, err := near.NewStream(gpu.StreamOptions{})
	require.NoError(t, err)
	require.NoError(t, s.Launch(gpu.Launch{Function: k, Args: new(gpu.Args).Ptr(p)}))
	err = gpu.Wait(t.Context(), d.Clock(), limit, s)
	require.ErrorIs(t, err, gpu.ErrContextLost)
	require.ErrorContains(t, err, "has no access")
	require.NoError(t, far.Free(p), "the other context lives on")
}

// TestFail: any call can be made to fail, and only once.
func TestFail(t *testing.T) {
	boom := errors.New("boom")
	var name string
	d := gpufake.Open(gpufake.Options{Fail: func(call string) error {
		if call != name {
			return nil
		}
		name = ""
		return boom
	}})
	c, err := d.Devices()[0].Open()
	require.NoError(t, err)
	name = "cuMemAlloc"
	_, err = c.Alloc(1)
	require.ErrorIs(t, err, boom)
	p, err := c.Alloc(1)
	require.NoError(t, err)
	name = "cuMemFree"
	require.ErrorIs(t, c.Free(p), boom)
	require.NoError(t, c.Free(p))
	require.NoError(t, errors.Join(c.Close(), d.Close()))
}

// TestAbandon: a hung kernel's context is given up with all that is in it.
func TestAbandon(t *testing.T) {
	stop := make(chan struct{})
	defer close(stop)
	d := gpufake.Open(gpufake.Options{Kernels: map[string]gpufake.Kernel{"k": func(*gpufake.Run) { <-stop }}})
	c, err := d.Devices()[0].Open()
	require.NoError(t, err)
	m, err := c.LoadModule("k.ptx", []byte(".entry k() { ret; }"))
	require.NoError(t, err)
	k, err := m.Function("k")
	require.NoError(t, err)
	s, err := c.NewStream(gpu.StreamOptions{})
	require.NoError(t, err)
	p, err := c.Alloc(8)
	require.NoError(t, err)
	require.NoError(t, s.Launch(gpu.Launch{Function: k}))
	require.ErrorIs(t, gpu.Wait(t.Context(), d.Clock(), tick, s), gpu.ErrDeadline)
	require.ErrorIs(t, c.Free(p), gpu.ErrBusy)
	require.ErrorIs(t, c.Close(), gpu.ErrLeaked)
	c.Abandon()
	require.NoError(t, errors.Join(c.Close(), d.Close()))
	require.Equal(t, "1 quarantined context, 1 quarantined allocation, 1 quarantined stream, 1 quarantined module", d.Counts().String())
}
