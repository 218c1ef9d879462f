package gputest

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api/gpu"
)

// Run tests a driver. It leaves nothing behind and makes no multicast object.
func Run(t *testing.T, d gpu.Driver) {
	before := d.Counts()
	for _, test := range []struct {
		name string
		run  func(*testing.T, gpu.Driver)
	}{
		{"devices", testDevices},
		{"memory", testMemory},
		{"refused memory", testRefusedMemory},
		{"modules", testModules},
		{"vector add", testVectorAdd},
		{"parameters", testParameters},
		{"refused launches", testRefusedLaunches},
		{"shared memory", testShared},
		{"pinned flag", testFlag},
		{"a kernel that waits", testAwait},
		{"a kernel's own deadline", testOwnDeadline},
		{"cooperative", testCooperative},
		{"events", testEvents},
		{"graph", testGraph},
		{"graph over two streams", testGraphFork},
		{"refused captures", testRefusedCaptures},
		{"virtual memory", testVirtualMemory},
		{"memory by file", testByFile},
		{"memory by fabric", testByFabric},
		{"peers", testPeers},
		{"goroutines", testGoroutines},
		{"multicast is off", testMulticastOff},
		{"leaks", testLeaks},
		{"locks", testLocks},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, d) })
	}
	require.Equal(t, before.Live, d.Counts().Live, "left behind: %v", d.Counts())
}

func testDevices(t *testing.T, d gpu.Driver) {
	require.NotEmpty(t, d.Name())
	require.NotEmpty(t, d.Devices())
	seen := map[gpu.UUID]bool{}
	for i, dev := range d.Devices() {
		info := dev.Info()
		t.Logf("%d: %s, %s, compute capability %d.%d, %d SMs, %d MHz, %d MiB, PCI %s", i, info.Name, info.UUID,
			info.Major, info.Minor, info.SMs, info.ClockKHz/1000, info.Memory>>20, info.PCI)
		require.Equal(t, i, dev.Ordinal())
		require.False(t, seen[info.UUID], "two devices have one UUID")
		seen[info.UUID] = true
		require.NotEmpty(t, info.Name)
		for name, v := range map[string]int{
			"SMs": info.SMs, "ClockKHz": info.ClockKHz, "MaxThreadsPerBlock": info.MaxThreadsPerBlock,
			"MaxThreadsPerSM": info.MaxThreadsPerSM, "MaxBlocksPerSM": info.MaxBlocksPerSM,
			"SharedPerBlock": info.SharedPerBlock, "RegistersPerSM": info.RegistersPerSM, "L2": info.L2,
		} {
			require.Positive(t, v, name)
		}
		require.Equal(t, 32, info.WarpSize)
		require.GreaterOrEqual(t, info.SharedPerBlockMax, info.SharedPerBlock)
		require.True(t, info.AtLeast(info.Major, info.Minor))
		require.False(t, info.AtLeast(info.Major+1, 0))
		self, err := dev.Peer(dev)
		require.NoError(t, err)
		require.True(t, self.Access)
	}
	r := newRig(t, d, 0)
	require.Positive(t, r.c.SMs())
	require.LessOrEqual(t, r.c.SMs(), r.c.Device().Info().SMs)
	free, total, err := r.c.MemInfo()
	require.NoError(t, err)
	require.LessOrEqual(t, free, total)
}

func testVectorAdd(t *testing.T, d gpu.Driver) {
	r := newRig(t, d, 0)
	for _, n := range []int{1, 63, 64, 65, 1000} {
		a, b, want := make([]uint32, n), make([]uint32, n), make([]uint32, n)
		for i := range n {
			x, y := float32(i)*1.25, 1/float32(i+1)
			a[i], b[i], want[i] = math.Float32bits(x), math.Float32bits(y), math.Float32bits(x+y)
		}
		out := r.words(make([]uint32, n+1))
		var args gpu.Args
		r.launch("vadd", n, args.Ptr(r.words(a)).Ptr(r.words(b)).Ptr(out).Uint32(uint32(n)))
		require.Equal(t, append(want, 0), r.read(out, n+1))
	}
}

// testGoroutines has goroutines use streams of their own at once, so that their
// calls land on whatever threads there are; on every device that there is.
func testGoroutines(t *testing.T, d gpu.Driver) {
	const each, rounds = 3, 10
	var rigs []*rig
	for i := range d.Devices() {
		rigs = append(rigs, newRig(t, d, i))
	}
	var wg sync.WaitGroup
	errs := make([]error, each*len(rigs))
	for g := range errs {
		r := rigs[g%len(rigs)]
		s, x, h := r.stream(), r.words(make([]uint32, 256)), r.host(1024)
		bump := r.function("bump")
		wg.Go(func() {
			var args gpu.Args
			for range rounds {
				errs[g] = errors.Join(errs[g],
					s.Launch(gpu.Launch{Function: bump, Grid: gpu.Dim3{X: 4}, Block: gpu.Dim3{X: 64}, Args: args.Reset().Ptr(x).Uint32(256).Uint32(uint32(g + 1))}),
					s.Copy(h.Ptr, x, 1024),
					gpu.Wait(context.Background(), d.Clock(), limit, s))
			}
			for i := range 256 {
				if got := h.Load32(4 * i); got != uint32(rounds*(g+1)) {
					errs[g] = errors.Join(errs[g], gpu.Refuse("bump", gpu.ErrDriver, "goroutine %d, word %d is %d", g, i, got))
				}
			}
		})
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
}

func testMulticastOff(t *testing.T, d gpu.Driver) {
	r := newRig(t, d, 0)
	_, err := r.c.Multicast()
	require.ErrorIs(t, err, gpu.ErrMulticastOff)
}

func testLeaks(t *testing.T, d gpu.Driver) {
	before := d.Counts()
	c, err := d.Devices()[0].Open()
	require.NoError(t, err)
	s, err := c.NewStream(gpu.StreamOptions{})
	require.NoError(t, err)
	p, err := c.Alloc(4096)
	require.NoError(t, err)
	var leak *gpu.LeakError
	require.ErrorAs(t, c.Close(), &leak)
	require.ErrorIs(t, leak, gpu.ErrLeaked)
	require.Equal(t, 1, leak.Left.Live[gpu.KindStream])
	require.Equal(t, 1, leak.Left.Live[gpu.KindMemory])
	require.ErrorAs(t, d.Close(), &leak, "the driver must stay open, too")
	require.NoError(t, s.Destroy())
	require.ErrorIs(t, s.Destroy(), gpu.ErrClosed)
	require.ErrorIs(t, s.Set8(p, 0, 1), gpu.ErrClosed)
	require.NoError(t, c.Free(p))
	require.NoError(t, c.Close())
	require.NoError(t, c.Close(), "closing again does nothing")
	_, err = c.Alloc(1)
	require.ErrorIs(t, err, gpu.ErrClosed)
	require.Equal(t, before.Live, d.Counts().Live)
}

func testLocks(t *testing.T, d gpu.Driver) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	dev := d.Devices()[0]
	outer, err := gpu.LockAll(ctx, dev, dev)
	require.NoError(t, err)
	inner, err := dev.Lock(ctx)
	require.NoError(t, err, "locks nest within one driver")
	require.NoError(t, inner())
	require.NoError(t, inner(), "unlocking again does nothing")
	require.NoError(t, outer())
}
