//go:build gpu

package tandem

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
	"example.com/tandem/hw/host"
)

var everyCollective = []api.Collective{api.AllReduce, api.ReduceScatter, api.AllGather, api.Broadcast, api.AllToAll}

func simple(k api.Collective, ranks int, count int64) api.Call {
	call := api.Call{Collective: k, DType: api.BF16, Ranks: ranks, Count: count}
	if k.Reduces() {
		call.Op = api.Sum
	}
	return call
}

func emptyMemory(ranks int) []api.Memory {
	mem := make([]api.Memory, ranks)
	for r := range mem {
		mem[r] = api.Memory{{Src: api.Image{Addr: api.SrcBase}, Dst: api.Image{Addr: api.DstBase}}}
	}
	return mem
}

// TestMismatch: a rank that announces another call is found by its header.
func TestMismatch(t *testing.T) {
	m := machine(t)
	for _, ranks := range []int{2, 5} {
		team, c := open(t, m, "hw:tandem", ranks, time.Second, time.Second)
		team.Engine().(*Engine).Inject(&Fault{Rank: 1, Differ: true})
		err := try(context.Background(), team, c, simple(api.AllReduce, ranks, 100), seeded(1))
		var x *api.Mismatch
		require.ErrorAs(t, err, &x)
		require.Equal(t, uint64(1), max(x.CallHash, x.OtherHash)-min(x.CallHash, x.OtherHash))
		require.True(t, x.Rank == 1 || x.Other == 1, "%v", err)
	}
}

// TestMissingRank: a rank that never starts is named once the deadline passes.
func TestMissingRank(t *testing.T) {
	m := machine(t)
	team, _ := open(t, m, "hw:tandem", 2, 50*time.Millisecond, time.Second)
	call := simple(api.AllReduce, 2, 0)
	p, err := team.Members()[0].Start(call, emptyMemory(1)[0])
	require.NoError(t, err)
	start := time.Now()
	_, err = p.Wait(context.Background())
	var a *api.Aborted
	require.ErrorAs(t, err, &a)
	require.Equal(t, 1, a.Cause)
	require.Less(t, time.Since(start), time.Second)
}

// TestTwoStreams: two calls of one team at once poison it.
func TestTwoStreams(t *testing.T) {
	m := machine(t)
	team, _ := open(t, m, "hw:tandem?ctas=1&gpus=1", 2, time.Second, time.Second)
	e := team.Engine().(*Engine)
	call := simple(api.AllGather, 2, 0)
	mem := []host.Buffers{{{}}, {{}}}
	var streams []gpu.Stream
	for i := range 2 {
		if i == 0 {
			e.Inject(&Fault{Rank: 0, Step: StepHeader, Delay: 100 * time.Millisecond})
		} else {
			e.Inject(nil)
		}
		b, err := e.Bind(&call, mem, make([]gpu.Ptr, 1))
		require.NoError(t, err)
		s, err := e.on.GPUs[0].Context.NewStream(gpu.StreamOptions{})
		require.NoError(t, err)
		require.NoError(t, s.Launch(b[0][0]))
		streams = append(streams, s)
	}
	for _, s := range streams {
		require.NoError(t, gpu.Wait(context.Background(), e.machine.Driver.Clock(), 10*time.Second, s))
		require.NoError(t, s.Destroy())
	}
	errs := e.Verdicts(&call)
	require.NotNil(t, errs, "the device ran the two calls at once")
	require.ErrorContains(t, errs[0], "two calls of one team")
	_, err := api.Run(context.Background(), team, call, emptyMemory(2))
	require.ErrorIs(t, err, api.ErrAborted)
}

// TestMemoryComesBack: nothing lives after Close.
func TestMemoryComesBack(t *testing.T) {
	m := machine(t)
	for range 5 {
		team, c := open(t, m, "hw:tandem", 4, time.Second, time.Second)
		require.NoError(t, try(context.Background(), team, c, simple(api.AllReduce, 4, 5000), seeded(9)))
		require.NoError(t, team.Close(context.Background()))
		counts := m.Driver.Counts()
		require.Zero(t, counts.Live[gpu.KindMemory]+counts.Live[gpu.KindHostMemory]+counts.Live[gpu.KindStream]+counts.Live[gpu.KindGraphExec], "%v", counts)
	}
}
