//go:build gpu && linux && cgo

package cuda

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api/gpu"
)

func TestOpenFake(t *testing.T) {
	t.Setenv("CUDA_MODULE_LOADING", "LAZY")
	t.Setenv("CUDA_DEVICE_MAX_CONNECTIONS", "")
	f := newFake(t, "")
	d := f.open(t, Options{})
	require.Equal(t, "CUDA 13.0", d.Name())
	require.Equal(t, "EAGER", os.Getenv("CUDA_MODULE_LOADING"))
	require.Equal(t, "32", os.Getenv("CUDA_DEVICE_MAX_CONNECTIONS"))
	require.Len(t, d.Devices(), 2)
	i := d.Devices()[1].Info()
	require.Equal(t, gpu.Info{
		Name: "Fake 1", UUID: gpu.UUID{17, 17, 17, 17, 17, 17, 17, 17, 17, 17, 17, 17, 17, 17, 17, 17}, PCI: "0000:01:00.0",
		Major: 9, Minor: 1, SMs: 1, ClockKHz: 1980000, Memory: 2 << 30, L2: 1, WarpSize: 1, MaxThreadsPerBlock: 1024,
		MaxThreadsPerSM: 1, MaxBlocksPerSM: 1, MaxBlock: gpu.Dim3{X: 1024, Y: 1024, Z: 1024}, MaxGrid: gpu.Dim3{X: 1024, Y: 1024, Z: 1024},
		RegistersPerSM: 1, SharedPerSM: 1, SharedPerBlock: 1, SharedPerBlockMax: 232448,
		CooperativeLaunch: true, VirtualMemory: true, FileHandles: true, FabricHandles: true, Multicast: true, HostMapping: true, UnifiedAddresses: true,
	}, i)
	require.Equal(t, "GPU-11111111-1111-1111-1111-111111111111", i.UUID.String())
	p, err := d.Devices()[0].Peer(d.Devices()[1])
	require.NoError(t, err)
	require.Equal(t, gpu.PeerInfo{Access: true, Atomics: true, Rank: 1}, p)
	require.Equal(t, 66, f.context(t, d, 0).SMs())
}

func TestOpenFails(t *testing.T) {
	for name, c := range map[string]struct {
		flag string
		set  func(*fake)
		want error
		text string
	}{
		"too old":        {set: func(f *fake) { f.version = 12030 }, want: gpu.ErrDriverTooOld, text: "supports CUDA 12.3, 12.4 or later is needed"},
		"no device code": {set: func(f *fake) { f.initCode = 100 }, want: gpu.ErrNoDevice, text: "CUDA_ERROR_NO_DEVICE (100)"},
		"no device":      {set: func(f *fake) { f.devices = 0 }, want: gpu.ErrNoDevice, text: "CUDA_VISIBLE_DEVICES"},
		"stub library":   {set: func(f *fake) { f.initCode = 34 }, want: gpu.ErrNoDriver, text: "stub"},
		"not ready":      {set: func(f *fake) { f.initCode = 802 }, want: gpu.ErrUnavailable, text: "fabric manager"},
		"mismatch":       {set: func(f *fake) { f.initCode = 803 }, want: gpu.ErrDriverTooOld, text: "kernel module"},
		"unknown":        {set: func(f *fake) { f.initCode = 999 }, want: gpu.ErrUnavailable, text: "CUDA_ERROR_UNKNOWN (999)"},
		"missing symbol": {flag: "-DcuFuncGetParamInfo=other", want: gpu.ErrDriverTooOld, text: "has no cuFuncGetParamInfo"},
		"missing cuInit": {flag: "-DcuInit=other", want: gpu.ErrNoDriver, text: "is no CUDA driver"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, c.flag)
			if c.set != nil {
				c.set(f)
			}
			_, err := Open(f.options())
			require.ErrorIs(t, err, c.want)
			require.ErrorIs(t, err, gpu.ErrUnavailable)
			require.ErrorContains(t, err, c.text)
			var e *gpu.Error
			require.ErrorAs(t, err, &e)
		})
	}
	t.Run("no library", func(t *testing.T) {
		_, err := Open(Options{Library: "libcuda-of-nowhere.so.1"})
		require.ErrorIs(t, err, gpu.ErrNoDriver)
		require.EqualError(t, err, "no CUDA driver: libcuda-of-nowhere.so.1: cannot open shared object file: No such file or directory")
	})
	t.Run("not a library", func(t *testing.T) {
		file := t.TempDir() + "/libcuda.so.1"
		require.NoError(t, os.WriteFile(file, []byte("text"), 0o600))
		_, err := Open(Options{Library: file})
		require.ErrorIs(t, err, gpu.ErrNoDriver)
	})
	t.Run("multicast may be missing", func(t *testing.T) {
		f := newFake(t, "-DWITHOUT_MULTICAST")
		c := f.context(t, f.open(t, Options{Multicast: true, Getenv: nothing}), 0)
		m, err := c.Multicast()
		require.NoError(t, err)
		_, err = m.Create(gpu.MulticastOptions{Devices: 2, Bytes: 1})
		require.ErrorIs(t, err, gpu.ErrUnsupported)
	})
}

// nothing is an empty environment.
func nothing(string) string { return "" }

func TestErrorMapping(t *testing.T) {
	f := newFake(t, "")
	c := f.context(t, f.open(t, Options{}), 0)
	_, err := c.Alloc(1 << 33)
	require.ErrorIs(t, err, gpu.ErrOutOfMemory)
	require.EqualError(t, err, "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (2): 8589934592 bytes on GPU 0 (Fake 0)")
	for code, want := range map[gpu.Code]error{1: gpu.ErrInvalid, 47: gpu.ErrOutOfMemory, 217: gpu.ErrUnsupported, 700: gpu.ErrContextLost, 716: gpu.ErrContextLost, 900: gpu.ErrCapture, 998: gpu.ErrDriver, 999: gpu.ErrDriver} {
		for _, call := range []uint32{1, 2} { // cuCtxSetCurrent, and the call itself
			f.fail(call, 1, code)
			_, _, err := c.MemInfo()
			var e *gpu.Error
			require.ErrorAs(t, err, &e)
			require.ErrorIs(t, err, want)
			require.Equal(t, code, e.Code)
			require.Equal(t, []string{"cuCtxSetCurrent before cuMemGetInfo", "cuMemGetInfo"}[call-1], e.Call)
		}
	}
	f.fail(2, 1, 999)
	_, _, err = c.MemInfo()
	require.EqualError(t, err, "cuMemGetInfo: CUDA_ERROR_UNKNOWN (999): unknown error: asking for free memory on GPU 0 (Fake 0)")
	_, err = c.LoadModule("k.ptx", []byte("bad"))
	require.ErrorIs(t, err, gpu.ErrBadImage)
	require.EqualError(t, err, "cuModuleLoadDataEx: CUDA_ERROR_INVALID_PTX (218): k.ptx for compute capability 9.1: line 3: a bad instruction on GPU 0 (Fake 0)")
	var e *gpu.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, "line 3: a bad instruction\nline 4: another\ncompiled for nothing", e.Log)
}

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

func TestRangesOfOthers(t *testing.T) {
	f := newFake(t, "")
	c := f.context(t, f.open(t, Options{}), 0)
	r, err := c.Range(0x5000010)
	require.NoError(t, err)
	require.Equal(t, gpu.Range{Base: 0x5000000, Bytes: 0x1000, Device: 1, Share: gpu.ByFile | gpu.ByFabric}, r)
	_, err = c.Range(0x4ffffff)
	require.ErrorIs(t, err, gpu.ErrInvalid)
	require.ErrorIs(t, c.Free(0x5000000), gpu.ErrInvalid, "another's to free")
}

// TestRefusedAddresses: what lies in no known allocation does not reach the
// driver, which would take it for pageable host memory.
func TestRefusedAddresses(t *testing.T) {
	f := newFake(t, "")
	c := f.context(t, f.open(t, Options{}), 0)
	s, err := c.NewStream(gpu.StreamOptions{})
	require.NoError(t, err)
	end(t, s.Destroy)
	p, err := c.Alloc(64)
	require.NoError(t, err)
	end(t, func() error { return c.Free(p) })
	local := new([64]byte)
	address := gpu.Ptr(uintptr(unsafe.Pointer(local)))
	for name, err := range map[string]error{
		"from Go memory":     s.Copy(p, address, 64),
		"to Go memory":       s.Copy(address, p, 64),
		"beyond the source":  s.Copy(0x5000000, p, 65),
		"beyond the target":  s.Copy(p, 0x5000000, 65),
		"bytes beyond":       s.Set8(p+1, 0, 64),
		"words beyond":       s.Set32(p+4, 0, 16),
		"misaligned words":   s.Set32(p+1, 0, 1),
		"words without end":  s.Set32(p, 0, 1<<62),
		"bytes without end":  s.Set8(p, 0, 1<<64-1),
		"bytes of Go memory": s.Set8(address, 0, 1),
	} {
		require.ErrorIs(t, err, gpu.ErrInvalid, name)
	}
	require.NoError(t, errors.Join(s.Copy(p, 0x5000000, 64), s.Copy(0x5000000, p, 64), s.Set8(p+1, 0, 63), s.Set32(p+4, 0, 15), s.Copy(address, address, 0)))
	runtime.KeepAlive(local)
}

func TestMapForDevices(t *testing.T) {
	f := newFake(t, "")
	d := f.open(t, Options{})
	c := f.context(t, d, 1)
	p, err := c.Create(1<<21, gpu.NotShared)
	require.NoError(t, err)
	end(t, p.Release)
	for want, others := range map[uint32][]gpu.Device{0b10: nil, 0b11: d.Devices()} {
		at, err := c.Map(p, others...)
		require.NoError(t, err)
		require.Equal(t, want, f.access)
		require.NoError(t, c.Unmap(at))
	}
}

func TestGlobals(t *testing.T) {
	f := newFake(t, "")
	d := f.open(t, Options{})
	c := f.context(t, d, 0)
	m, err := c.LoadModule("m", nil)
	require.NoError(t, err)
	for range 2 {
		p, n, err := m.Global("g")
		require.NoError(t, err)
		r, err := c.Range(p + 7)
		require.NoError(t, err)
		require.Equal(t, gpu.Range{Base: p, Bytes: n, Device: 0, Owned: true}, r)
		require.ErrorIs(t, c.Free(p), gpu.ErrInvalid)
	}
	require.NoError(t, m.Unload())
	require.Empty(t, d.(*driver).memory.list)
}

func TestBusyAndAbandon(t *testing.T) {
	f := newFake(t, "")
	d := f.open(t, Options{})
	c := f.context(t, d, 0)
	s, err := c.NewStream(gpu.StreamOptions{})
	require.NoError(t, err)
	p, err := c.Alloc(256)
	require.NoError(t, err)
	f.busy = 1
	require.ErrorIs(t, c.Free(p), gpu.ErrBusy)
	require.ErrorIs(t, s.Destroy(), gpu.ErrBusy)
	require.ErrorIs(t, gpu.Wait(context.Background(), d.Clock(), 5*time.Millisecond, s), gpu.ErrDeadline)
	other, err := d.Devices()[0].Open()
	require.NoError(t, err)
	q, err := other.Alloc(256)
	require.NoError(t, err)
	require.ErrorIs(t, other.Free(q), gpu.ErrBusy, "the work of another use of the same device is waited for, too")
	f.busy = 0
	require.NoError(t, other.Free(q))
	require.NoError(t, other.Close())
	require.NoError(t, c.Free(p))
	require.NoError(t, s.Destroy())

	// A context in which a kernel hangs for good.
	hung, err := d.Devices()[1].Open()
	require.NoError(t, err)
	s, err = hung.NewStream(gpu.StreamOptions{})
	require.NoError(t, err)
	p, err = hung.Alloc(256)
	require.NoError(t, err)
	f.busy = 1
	hung.Abandon()
	require.ErrorIs(t, hung.Free(p), gpu.ErrClosed)
	require.ErrorIs(t, s.Destroy(), gpu.ErrClosed)
	require.NoError(t, hung.Close())
	got := d.Counts()
	require.Equal(t, 1, got.Quarantined[gpu.KindContext])
	require.Equal(t, 1, got.Quarantined[gpu.KindStream])
	require.Equal(t, 1, got.Quarantined[gpu.KindMemory])
	// That much stays in the driver, and is meant to.
	require.Equal(t, [12]uint32{0: 2, 1: 1, 6: 1}, f.live)
	f.live[0], f.live[1], f.live[6] = 1, 0, 0
	f.busy = 0
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
