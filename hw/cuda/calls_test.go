//go:build gpu && linux && cgo

package cuda

import (
	"os"
	"testing"

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
