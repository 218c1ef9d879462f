//go:build gpu && linux && cgo

package cuda

import (
	"encoding/binary"
	"errors"
	"math"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api/gpu"
)

func TestLaunchArguments(t *testing.T) {
	f := newFake(t, "")
	c := f.context(t, f.open(t, Options{}), 0)
	m, err := c.LoadModule("m", nil)
	require.NoError(t, err)
	end(t, m.Unload)
	k, err := m.Function("p_8_1_2_4_8_4_8_24")
	require.NoError(t, err)
	s, err := c.NewStream(gpu.StreamOptions{})
	require.NoError(t, err)
	end(t, s.Destroy)
	by := []byte("a struct of 24 bytes....")
	var args gpu.Args
	args.Ptr(0x1122334455667788).Uint8(0x99).Uint16(0xaabb).Uint32(0xccddeeff).Int64(-2).Float32(1.5).Float64(math.Pi).Struct(by, 8)
	require.NoError(t, s.Launch(gpu.Launch{Function: k, Grid: gpu.Dim3{X: 3, Y: 4}, Block: gpu.Dim3{X: 32, Z: 2}, Shared: 100, Args: &args}))
	require.Equal(t, [3]uint32{3, 4, 1}, f.grid)
	require.Equal(t, [3]uint32{32, 1, 2}, f.block)
	require.EqualValues(t, 100, f.shared)
	require.Zero(t, f.cooperative)
	want := binary.LittleEndian.AppendUint64(nil, 0x1122334455667788)
	want = append(want, 0x99, 0xbb, 0xaa)
	want = binary.LittleEndian.AppendUint32(want, 0xccddeeff)
	want = binary.LittleEndian.AppendUint64(want, ^uint64(1))
	want = binary.LittleEndian.AppendUint32(want, math.Float32bits(1.5))
	want = binary.LittleEndian.AppendUint64(want, math.Float64bits(math.Pi))
	require.Equal(t, append(want, by...), f.param[:f.params])

	empty, err := m.Function("none")
	require.NoError(t, err)
	require.NoError(t, s.Launch(gpu.Launch{Function: empty, Grid: gpu.Dim3{X: 66}, Cooperative: true}))
	require.EqualValues(t, 1, f.cooperative)
	require.Zero(t, f.params)
	require.ErrorIs(t, s.Launch(gpu.Launch{Function: empty, Grid: gpu.Dim3{X: 67}, Cooperative: true}), gpu.ErrTooLarge)

	launches := f.launches
	require.ErrorIs(t, s.Launch(gpu.Launch{Function: k, Args: args.Reset().Ptr(1)}), gpu.ErrInvalid)
	require.Equal(t, launches, f.launches, "a refused launch does not reach the driver")
	for n, want := range map[int]error{gpu.MaxArgs: nil, gpu.MaxArgs + 1: gpu.ErrInvalid} {
		many, err := m.Function("p" + strings.Repeat("_4", n))
		require.NoError(t, err)
		args.Reset()
		for i := range n {
			args.Uint32(uint32(i))
		}
		require.ErrorIs(t, s.Launch(gpu.Launch{Function: many, Args: &args}), want)
	}
	require.EqualValues(t, gpu.MaxArgs-1, binary.LittleEndian.Uint32(f.param[4*gpu.MaxArgs-4:]))
	f.unloaded = 1
	_, err = m.Function("late")
	require.ErrorContains(t, err, "not loaded after cuFuncLoad")
}

// TestThreadAffinity has goroutines on threads of their own use both contexts
// in turn. The fake complains where the object's context is not current.
func TestThreadAffinity(t *testing.T) {
	f := newFake(t, "")
	d := f.open(t, Options{})
	var streams []gpu.Stream
	var hosts []gpu.Ptr
	for i := range 2 {
		c := f.context(t, d, i)
		s, err := c.NewStream(gpu.StreamOptions{})
		require.NoError(t, err)
		h, err := c.AllocHost(64)
		require.NoError(t, err)
		end(t, func() error { return c.Free(h.Ptr) })
		end(t, s.Destroy)
		streams, hosts = append(streams, s), append(hosts, h.Ptr)
	}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			runtime.LockOSThread()
			for i := range 500 {
				n := (i*7 + g) % 2
				if err := streams[n].Copy(hosts[n], hosts[1-n], 64); err != nil {
					t.Error(err)
				}
				if done, err := streams[n].Query(); !done || err != nil {
					t.Error(done, err)
				}
				runtime.Gosched()
			}
		})
	}
	wg.Wait()
}

// TestNothingAllocates: the calls of a launch loop cost no garbage.
func TestNothingAllocates(t *testing.T) {
	f := newFake(t, "")
	c := f.context(t, f.open(t, Options{}), 0)
	m, err := c.LoadModule("m", nil)
	require.NoError(t, err)
	end(t, m.Unload)
	k, err := m.Function("p_8_4")
	require.NoError(t, err)
	s, err := c.NewStream(gpu.StreamOptions{})
	require.NoError(t, err)
	end(t, s.Destroy)
	e, err := c.NewEvent(gpu.EventOptions{})
	require.NoError(t, err)
	end(t, e.Destroy)
	p, err := c.Alloc(4096)
	require.NoError(t, err)
	end(t, func() error { return c.Free(p) })
	var args gpu.Args
	launch := gpu.Launch{Function: k, Args: &args}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		args.Reset().Ptr(p).Uint32(1)
		err = errors.Join(err, s.Launch(launch), s.Copy(p, p+2048, 2048), s.Set8(p, 1, 2), s.Record(e), s.WaitEvent(e))
		_, _ = s.Query()
		_, _ = e.Query()
	}))
	require.NoError(t, err)
}

// BenchmarkLaunch is what this package adds to a launch: the checks, the
// packing and the way into C; the fake driver behind it does next to nothing.
func BenchmarkLaunch(b *testing.B) {
	f := newFake(b, "")
	c := f.context(b, f.open(b, Options{}), 0)
	m, err := c.LoadModule("m", nil)
	require.NoError(b, err)
	end(b, m.Unload)
	k, err := m.Function("p_8_8_4_4")
	require.NoError(b, err)
	s, err := c.NewStream(gpu.StreamOptions{})
	require.NoError(b, err)
	end(b, s.Destroy)
	var args gpu.Args
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Launch(gpu.Launch{Function: k, Args: args.Reset().Ptr(1).Ptr(2).Uint32(3).Uint32(4)}); err != nil {
			b.Fatal(err)
		}
	}
}

// TestRecordNode: a record in a graph needs a capture to be in.
func TestRecordNode(t *testing.T) {
	f := newFake(t, "")
	d := f.open(t, Options{})
	c := f.context(t, d, 0)
	s, err := c.NewStream(gpu.StreamOptions{})
	require.NoError(t, err)
	end(t, s.Destroy)
	e, err := c.NewEvent(gpu.EventOptions{Timing: true})
	require.NoError(t, err)
	end(t, e.Destroy)
	require.ErrorIs(t, s.(gpu.EventNodes).RecordNode(e), gpu.ErrCapture)
	handle, context, err := s.(gpu.NativeStream).Native()
	require.NoError(t, err)
	require.NotZero(t, handle)
	require.NotZero(t, context)
	require.NoError(t, s.BeginCapture())
	require.NoError(t, s.(gpu.EventNodes).RecordNode(e))
	g, err := s.EndCapture()
	require.NoError(t, err)
	require.NoError(t, g.Destroy())
}

// TestOverlap: only a launch right behind another one of the kind begins before
// that has ended, and none where the driver cannot.
func TestOverlap(t *testing.T) {
	for flag, can := range map[string]uint32{"": 1, "-DWITHOUT_LAUNCH_EX": 0} {
		f := newFake(t, flag)
		c := f.context(t, f.open(t, Options{}), 0)
		m, err := c.LoadModule("m", nil)
		require.NoError(t, err)
		end(t, m.Unload)
		k, err := m.Function("p_4_8")
		require.NoError(t, err)
		s, err := c.NewStream(gpu.StreamOptions{})
		require.NoError(t, err)
		end(t, s.Destroy)
		args := new(gpu.Args).Uint32(7).Uint64(8)
		launches := uint32(0)
		launch := func(overlap, cooperative bool) {
			require.NoError(t, s.Launch(gpu.Launch{Function: k, Grid: gpu.Dim3{X: 5}, Block: gpu.Dim3{X: 64}, Shared: 32, Cooperative: cooperative, Overlap: overlap, Args: args}))
			launches++
			require.Equal(t, launches, f.launches)
			require.Equal(t, cooperative, f.cooperative == 1)
			require.Equal(t, [3]uint32{5, 1, 1}, f.grid)
			require.Equal(t, [3]uint32{64, 1, 1}, f.block)
			require.EqualValues(t, 32, f.shared)
			require.EqualValues(t, 7, binary.LittleEndian.Uint32(f.param[:]))
			require.EqualValues(t, 8, binary.LittleEndian.Uint64(f.param[4:]))
		}
		steps := []struct{ overlap, cooperative, other, overlaps bool }{
			{overlap: true}, {overlap: true, overlaps: true}, {overlap: true, cooperative: true, overlaps: true},
			{}, {overlap: true}, {overlap: true, overlaps: true}, {overlap: true, other: true}, {overlap: true, overlaps: true},
		}
		want := uint32(0)
		for i, step := range steps {
			if step.other {
				require.NoError(t, s.Set8(1<<40, 0, 0))
			}
			launch(step.overlap, step.cooperative)
			if step.overlaps {
				want += can
			}
			require.Equal(t, want, f.overlaps, "step %d of a driver built with %q", i, flag)
		}
		require.NoError(t, s.BeginCapture())
		launch(true, true)
		require.Equal(t, want, f.overlaps, "the first launch of a graph")
		launch(true, true)
		require.Equal(t, want+can, f.overlaps)
		g, err := s.EndCapture()
		require.NoError(t, err)
		require.NoError(t, g.Destroy())
		require.Zero(t, f.violations, string(f.complaint[:]))
	}
}
