//go:build gpu && linux && cgo

package cuda

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api/gpu"
)

// scene uses everything that a driver offers, and stops at the first error. It
// releases what it made, last first, each as often as it takes.
type scene struct {
	undo []func() error
}

func (s *scene) later(f func() error) { s.undo = append(s.undo, f) }

// releaseTries is more than the longest burst of failures in these tests.
const releaseTries = 40

func (s *scene) cleanUp() (err error) {
	for i := len(s.undo) - 1; i >= 0; i-- {
		for range releaseTries {
			if err = s.undo[i](); err == nil || errors.Is(err, gpu.ErrClosed) || errors.Is(err, gpu.ErrInvalid) || gone(err) {
				break
			}
		}
	}
	return err
}

// play gives the context of device 0 of a driver everything to do.
func (s *scene) play(d gpu.Driver) error {
	dev := d.Devices()
	if _, err := dev[0].Peer(dev[1]); err != nil {
		return err
	}
	c, err := dev[0].Open()
	if err != nil {
		return err
	}
	s.later(c.Close)
	far, err := dev[1].Open()
	if err != nil {
		return err
	}
	s.later(far.Close)
	if err := c.EnablePeer(far); err != nil {
		return err
	}
	for _, part := range []func(gpu.Driver, gpu.Context) error{s.work, s.graphs, s.virtual, s.multicast} {
		if err := part(d, c); err != nil {
			return err
		}
	}
	return nil
}

func (s *scene) work(d gpu.Driver, c gpu.Context) error {
	st, err := c.NewStream(gpu.StreamOptions{})
	if err != nil {
		return err
	}
	s.later(st.Destroy)
	p, err := c.Alloc(4096)
	if err != nil {
		return err
	}
	s.later(func() error { return c.Free(p) })
	h, err := c.AllocHost(4096)
	if err != nil {
		return err
	}
	s.later(func() error { return c.Free(h.Ptr) })
	m, err := c.LoadModule("m", nil)
	if err != nil {
		return err
	}
	s.later(m.Unload)
	k, err := m.Function("p_8")
	if err != nil {
		return err
	}
	e, err := c.NewEvent(gpu.EventOptions{Timing: true})
	if err != nil {
		return err
	}
	s.later(e.Destroy)
	_, errGlobal := func() (gpu.Ptr, error) { p, _, err := m.Global("g"); return p, err }()
	_, _, errInfo := c.MemInfo()
	_, errRange := c.Range(0x5000000)
	_, errBlocks := k.BlocksPerSM(32, 0)
	launch := gpu.Launch{Function: k, Args: new(gpu.Args).Ptr(p)}
	plain := st.Launch(launch)
	over := launch
	over.Overlap = true // the second of them begins while the first one runs
	overlapping := errors.Join(st.Launch(over), st.Launch(over))
	launch.Cooperative = true
	_, errSince := e.Since(e)
	return errors.Join(errGlobal, errInfo, errRange, errBlocks, k.SetDynamicShared(100), plain, overlapping, st.Launch(launch), st.Copy(h.Ptr, p, 8), st.Set8(p, 1, 8), st.Set32(p, 1, 2),
		st.Record(e), st.WaitEvent(e), gpu.Wait(context.Background(), d.Clock(), limitOfTests, st, e), errSince)
}

func (s *scene) graphs(_ gpu.Driver, c gpu.Context) error {
	st, err := c.NewStream(gpu.StreamOptions{})
	if err != nil {
		return err
	}
	s.later(st.Destroy)
	e, err := c.NewEvent(gpu.EventOptions{Timing: true})
	if err != nil {
		return err
	}
	s.later(e.Destroy)
	if err := st.BeginCapture(); err != nil {
		return err
	}
	if err := st.(gpu.EventNodes).RecordNode(e); err != nil {
		return err // for Destroy to end
	}
	g, err := st.EndCapture()
	if err != nil {
		return err
	}
	s.later(g.Destroy)
	x, err := g.Instantiate()
	if err != nil {
		return err
	}
	s.later(x.Destroy)
	if err := errors.Join(x.Upload(st), x.Launch(st)); err != nil {
		return err
	}
	return st.BeginCapture() // for Destroy to end
}

func (s *scene) virtual(d gpu.Driver, c gpu.Context) error {
	n, err := c.Granularity(gpu.ByFile | gpu.ByFabric)
	if err != nil {
		return err
	}
	p, err := c.Create(n, gpu.ByFile|gpu.ByFabric)
	if err != nil {
		return err
	}
	s.later(p.Release)
	at, err := c.Map(p, d.Devices()[1])
	if err != nil {
		return err
	}
	s.later(func() error { return c.Unmap(at) })
	fd, err := p.ExportFile()
	if err != nil {
		return err
	}
	s.later(fd.Close)
	q, err := c.ImportFile(fd.FD(), n)
	if err != nil {
		return err
	}
	s.later(q.Release)
	h, err := p.ExportFabric()
	if err != nil {
		return err
	}
	r, err := c.ImportFabric(h, n)
	if err != nil {
		return err
	}
	s.later(r.Release)
	return nil
}

func (s *scene) multicast(d gpu.Driver, c gpu.Context) error {
	m, err := c.Multicast()
	if err != nil {
		return err
	}
	o := gpu.MulticastOptions{Devices: 1, Bytes: 1 << 21, Share: gpu.ByFile}
	if _, o.Bytes, err = m.Granularity(o); err != nil {
		return err
	}
	mc, err := m.Create(o)
	if err != nil {
		return err
	}
	s.later(mc.Release)
	p, err := c.Create(o.Bytes, gpu.NotShared)
	if err != nil {
		return err
	}
	s.later(p.Release)
	ctx := context.Background()
	if err := errors.Join(mc.AddDevice(d.Devices()[0]), mc.Bind(ctx, 0, p, 0, o.Bytes)); err != nil {
		return err
	}
	at, err := mc.Map(ctx, c)
	if err != nil {
		return err
	}
	s.later(func() error { return c.Unmap(at) })
	if err := mc.Unbind(d.Devices()[0], 0, o.Bytes); err != nil {
		return err
	}
	fd, err := mc.ExportFile()
	if err != nil {
		return err
	}
	s.later(fd.Close)
	in, err := m.ImportFile(fd.FD(), o)
	if err != nil {
		return err
	}
	s.later(in.Release)
	return nil
}

const limitOfTests = 5e9

func descriptors(t *testing.T) int {
	list, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(list)
}

// TestInjectedFailures makes every single call of the scene fail, alone and
// with those after it, and counts what is left: nothing, in our table and in
// the driver's.
func TestInjectedFailures(t *testing.T) {
	f := newFake(t, "")
	d := f.open(t, Options{Multicast: true, Getenv: nothing})
	run := func() (played, cleaned error) {
		var s scene
		played = s.play(d)
		return played, s.cleanUp()
	}
	start := f.calls
	played, cleaned := run()
	require.NoError(t, played)
	require.NoError(t, cleaned)
	calls := f.calls - start
	require.Greater(t, calls, uint32(100))
	require.NotZero(t, f.multicastCalls)
	fds, failed := descriptors(t), map[string]bool{}
	for _, times := range []uint32{1, 2, 3, 7, 30} {
		for n := uint32(1); n <= calls; n++ {
			clear(f.failed[:])
			f.fail(n, times, gpu.Unknown)
			played, cleaned := run()
			for range releaseTries {
				d.(*driver).ledger.UndoAll() // as Close does
			}
			name := cString(f.failed[:])
			failed[name] = true
			what := fmt.Sprintf("%d failures from call %d, %s: %v", times, n, name, played)
			require.NoError(t, cleaned, what)
			require.True(t, d.Counts().None(), "%s: %v", what, d.Counts())
			require.Empty(t, d.(*driver).memory.list, what)
			require.Equal(t, [12]uint32{}, f.live, what)
			require.Zero(t, f.violations, "%s: %s", what, cString(f.complaint[:]))
			require.Equal(t, fds, descriptors(t), what)
		}
	}
	for _, s := range symbols() {
		switch s {
		case "cuInit", "cuDriverGetVersion", "cuGetErrorName", "cuGetErrorString", "cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetName",
			"cuDeviceGetUuid_v2", "cuDeviceGetPCIBusId", "cuDeviceTotalMem_v2", "cuDeviceGetAttribute": // TestOpenInjected
		default:
			require.True(t, failed[s], "%s was never made to fail", s)
		}
	}
}

// TestStickyFailures kills the context at every call: all that follow fail too.
// Then there is nothing to release, and nothing is counted.
func TestStickyFailures(t *testing.T) {
	for n := uint32(1); ; n += 3 {
		f := newFake(t, "")
		o := f.options()
		o.Multicast, o.Getenv = true, nothing
		d, err := Open(o)
		require.NoError(t, err)
		var s scene
		f.fail(n, math32, gpu.IllegalAddress)
		played := s.play(d)
		_ = s.cleanUp()
		require.True(t, d.Counts().None(), "from call %d, %s: %v", n, cString(f.failed[:]), d.Counts())
		require.NoError(t, d.Close())
		if played == nil {
			require.Greater(t, n, uint32(50))
			return
		}
		require.ErrorIs(t, played, gpu.ErrContextLost)
	}
}

const math32 = 1 << 30

// TestOpenInjected makes every call of Open fail.
func TestOpenInjected(t *testing.T) {
	f := newFake(t, "")
	d, err := Open(f.options())
	require.NoError(t, err)
	require.NoError(t, d.Close())
	for n, calls := uint32(1), f.calls; n <= calls; n++ {
		f.fail(n, 1, gpu.Unknown)
		_, err := Open(f.options())
		var e *gpu.Error
		require.ErrorAs(t, err, &e, "call %d, %s", n, cString(f.failed[:]))
		require.Equal(t, gpu.Unknown, e.Code)
	}
	f.clean(t)
}
