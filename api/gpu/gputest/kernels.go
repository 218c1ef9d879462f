package gputest

import (
	"context"
	"encoding/binary"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api/gpu"
)

func testModules(t *testing.T, d gpu.Driver) {
	r := newRig(t, d, 0)
	_, err := r.c.LoadModule("bad.ptx", []byte(".version 8.4\n.target sm_90\n.address_size 64\n.visible .entry k() { add.s32 nonsense; ret; }\n"))
	require.ErrorIs(t, err, gpu.ErrBadImage)
	require.ErrorContains(t, err, "bad.ptx")
	_, err = r.m.Function("missing")
	require.ErrorIs(t, err, gpu.ErrNotFound)
	require.ErrorContains(t, err, "missing")
	p, n, err := r.m.Global("answer")
	require.NoError(t, err)
	require.Equal(t, uint64(8), n)
	require.Equal(t, []uint32{42, 0}, r.read(p, 2))
	_, _, err = r.m.Global("question")
	require.ErrorIs(t, err, gpu.ErrNotFound)

	f := r.function("params")
	require.Equal(t, "params", f.Name())
	require.Equal(t, []gpu.Param{{Offset: 0, Size: 8}, {Offset: 8, Size: 1}, {Offset: 10, Size: 2}, {Offset: 12, Size: 4},
		{Offset: 16, Size: 8}, {Offset: 24, Size: 4}, {Offset: 32, Size: 8}, {Offset: 40, Size: 24}}, f.Params())
	require.Empty(t, r.function("nothing").Params())
	attr := f.Attributes()
	require.Positive(t, attr.Registers)
	require.Zero(t, attr.LocalBytes)
	require.Equal(t, r.c.Device().Info().MaxThreadsPerBlock, attr.MaxThreads)
	blocks, err := f.BlocksPerSM(64, 0)
	require.NoError(t, err)
	require.Positive(t, blocks)
	require.LessOrEqual(t, blocks, r.c.Device().Info().MaxBlocksPerSM)
	_, err = f.BlocksPerSM(0, 0)
	require.ErrorIs(t, err, gpu.ErrInvalid)

	m, err := r.c.LoadModule("again.ptx", Kernels)
	require.NoError(t, err)
	g, err := m.Function("nothing")
	require.NoError(t, err)
	require.NoError(t, m.Unload())
	require.ErrorIs(t, m.Unload(), gpu.ErrClosed)
	require.ErrorIs(t, r.s.Launch(gpu.Launch{Function: g}), gpu.ErrClosed)
}

func testParameters(t *testing.T, d gpu.Driver) {
	r := newRig(t, d, 0)
	out := r.words(make([]uint32, 18))
	s := make([]byte, 24)
	for i := range s {
		s[i] = byte(i + 1)
	}
	var args gpu.Args
	args.Ptr(out).Uint8(0xf1).Uint16(0xf2f3).Uint32(0xf4f5f6f7).Uint64(0xf8f9fafbfcfdfeff).Float32(-1.5).Float64(math.Pi).Struct(s, 8)
	require.NoError(t, r.s.Launch(r.one("params", &args)))
	args.Reset() // the launch has copied them
	var got []uint64
	words := r.read(out, 18)
	for i := 0; i < len(words); i += 2 {
		got = append(got, uint64(words[i])|uint64(words[i+1])<<32)
	}
	require.Equal(t, []uint64{0xf1, 0xf2f3, 0xf4f5f6f7, 0xf8f9fafbfcfdfeff, uint64(math.Float32bits(-1.5)), math.Float64bits(math.Pi),
		binary.LittleEndian.Uint64(s), binary.LittleEndian.Uint64(s[8:]), binary.LittleEndian.Uint64(s[16:])}, got)
}

func testRefusedLaunches(t *testing.T, d gpu.Driver) {
	r := newRig(t, d, 0)
	x := r.words([]uint32{5})
	info := r.c.Device().Info()
	good := func() *gpu.Args { return new(gpu.Args).Ptr(x).Uint32(1).Uint32(1) }
	bump := r.function("bump")
	for name, c := range map[string]struct {
		launch gpu.Launch
		want   error
	}{
		"no function":          {gpu.Launch{}, gpu.ErrInvalid},
		"no arguments":         {gpu.Launch{Function: bump}, gpu.ErrInvalid},
		"an argument too few":  {gpu.Launch{Function: bump, Args: new(gpu.Args).Ptr(x).Uint32(1)}, gpu.ErrInvalid},
		"an argument too many": {gpu.Launch{Function: bump, Args: good().Uint32(1)}, gpu.ErrInvalid},
		"a wrong size":         {gpu.Launch{Function: bump, Args: new(gpu.Args).Ptr(x).Uint32(1).Uint64(1)}, gpu.ErrInvalid},
		"too many threads":     {gpu.Launch{Function: bump, Block: gpu.Dim3{X: uint32(info.MaxThreadsPerBlock), Y: 2}, Args: good()}, gpu.ErrTooLarge},
		"too deep a block":     {gpu.Launch{Function: bump, Block: gpu.Dim3{Z: info.MaxBlock.Z + 1}, Args: good()}, gpu.ErrTooLarge},
		"too high a grid":      {gpu.Launch{Function: bump, Grid: gpu.Dim3{Y: info.MaxGrid.Y + 1}, Args: good()}, gpu.ErrTooLarge},
		"too much memory":      {gpu.Launch{Function: bump, Shared: info.SharedPerBlockMax + 1, Args: good()}, gpu.ErrTooLarge},
		"negative memory":      {gpu.Launch{Function: bump, Shared: -1, Args: good()}, gpu.ErrInvalid},
	} {
		require.ErrorIs(t, r.s.Launch(c.launch), c.want, name)
	}
	require.NoError(t, r.s.Launch(gpu.Launch{Function: bump, Args: good()}))
	require.Equal(t, []uint32{6}, r.read(x, 1), "the context is as good as new")
}

func testShared(t *testing.T, d gpu.Driver) {
	r := newRig(t, d, 0)
	f := r.function("reverse")
	const n = 96
	v, want := make([]uint32, n), make([]uint32, n)
	for i := range n {
		v[i], want[n-1-i] = uint32(i*i), uint32(i*i)
	}
	x := r.words(v)
	launch := gpu.Launch{Function: f, Block: gpu.Dim3{X: n}, Shared: 4 * n, Args: new(gpu.Args).Ptr(x)}
	require.NoError(t, r.s.Launch(launch))
	require.Equal(t, want, r.read(x, n))
	// And with as much of it as there is.
	most := r.c.Device().Info().SharedPerBlockMax
	require.ErrorIs(t, f.SetDynamicShared(most+1), gpu.ErrInvalid)
	require.NoError(t, f.SetDynamicShared(most))
	launch.Shared = most
	require.NoError(t, r.s.Launch(launch))
	require.Equal(t, v, r.read(x, n))
	blocks, err := f.BlocksPerSM(n, most)
	require.NoError(t, err)
	require.Equal(t, 1, blocks)
}

func testFlag(t *testing.T, d gpu.Driver) {
	r := newRig(t, d, 0)
	h := r.host(16)
	require.NoError(t, r.s.Launch(r.one("raise", new(gpu.Args).Ptr(h.Ptr.Add(8)).Uint32(0xcafe))))
	// Seen while nobody asks about the stream.
	require.NoError(t, gpu.Poll(context.Background(), d.Clock(), limit, func() (bool, error) { return h.Load32(8) == 0xcafe, nil }))
	require.Equal(t, uint64(0), h.Load64(0))
	r.wait(r.s)
}

func testAwait(t *testing.T, d gpu.Driver) {
	r := newRig(t, d, 0)
	h, e := r.host(8), r.event(false)
	out := r.words([]uint32{0})
	p := r.alloc(256)
	idle := r.stream()
	require.NoError(t, r.s.Launch(r.one("await", new(gpu.Args).Ptr(h.Ptr).Ptr(out).Uint64(r.cycles(10*time.Second)))))
	require.NoError(t, r.s.Record(e))
	// Nothing here may wait for the kernel.
	err := gpu.Wait(context.Background(), d.Clock(), 20*time.Millisecond, r.s)
	require.ErrorIs(t, err, gpu.ErrDeadline)
	done, err := e.Query()
	require.NoError(t, err)
	require.False(t, done)
	require.ErrorIs(t, r.c.Free(p), gpu.ErrBusy)
	require.ErrorIs(t, r.s.Destroy(), gpu.ErrBusy)
	require.ErrorIs(t, r.m.Unload(), gpu.ErrBusy)
	done, err = idle.Query()
	require.NoError(t, err)
	require.True(t, done, "another stream is free")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, gpu.Wait(ctx, d.Clock(), limit, r.s), context.Canceled)

	h.Store32(0, 123)
	r.wait(r.s, e)
	require.Equal(t, []uint32{123}, r.read(out, 1))
}

func testOwnDeadline(t *testing.T, d gpu.Driver) {
	r := newRig(t, d, 0)
	h := r.host(8)
	out := r.words([]uint32{9})
	require.NoError(t, r.s.Launch(r.one("await", new(gpu.Args).Ptr(h.Ptr).Ptr(out).Uint64(r.cycles(20*time.Millisecond)))))
	r.wait(r.s)
	require.Equal(t, []uint32{0}, r.read(out, 1), "the kernel gave up by itself")
}

func testCooperative(t *testing.T, d gpu.Driver) {
	r := newRig(t, d, 0)
	if !r.c.Device().Info().CooperativeLaunch {
		t.Skip("the device has no cooperative launch")
	}
	f := r.function("meet")
	per, err := f.BlocksPerSM(1, 0)
	require.NoError(t, err)
	most := per * r.c.SMs()
	count, out := r.words([]uint32{0}), r.words(make([]uint32, most))
	args := new(gpu.Args).Ptr(count).Ptr(out).Uint64(r.cycles(5 * time.Second))
	launch := gpu.Launch{Function: f, Grid: gpu.Dim3{X: uint32(most + 1)}, Cooperative: true, Args: args}
	require.ErrorIs(t, r.s.Launch(launch), gpu.ErrTooLarge)
	launch.Grid.X = uint32(most)
	require.NoError(t, r.s.Launch(launch))
	got := r.read(out, most)
	for i, v := range got {
		require.EqualValues(t, most, v, "block %d met too few", i)
	}
}
