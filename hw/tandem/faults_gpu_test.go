//go:build gpu

package tandem

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
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

// TestDeadlines stops or delays a rank at every step of every path and
// collective. All ranks end in time with an error that names it, or, where
// nobody had to wait for it any more, well.
func TestDeadlines(t *testing.T) {
	m := machine(t)
	const deadline = 20 * time.Millisecond
	ended, blamed := 0, 0
	for _, ranks := range []int{2, 3, 8} {
		if testing.Short() && ranks == 8 {
			continue
		}
		for _, path := range []string{"push", "direct", "two_shot", "staged"} {
			for _, k := range everyCollective {
				for _, step := range Steps() {
					for _, delay := range []time.Duration{0, 200 * time.Millisecond} {
						if ranks > 2 && (int(step)+len(path)+len(k.Name()))%4 != 0 || delay > 0 && (int(step)+len(k.Name()))%3 != 0 {
							continue
						}
						c, spec := mustRead(t, "hw:tandem?path="+path)
						team, err := Open(context.Background(), m, spec, api.TeamConfig{Ranks: ranks, Arrive: deadline, Progress: deadline})
						require.NoError(t, err)
						e := team.Engine().(*Engine)
						bad := ranks - 1
						e.Inject(&Fault{Rank: bad, Step: step, Delay: delay})
						start := time.Now()
						err = try(context.Background(), team, c, simple(k, ranks, 3000), seeded(3))
						took := time.Since(start)
						what := fmt.Sprintf("%d ranks, %s, %s, %v, delay %v: %v", ranks, path, k.Name(), step, delay, err)
						if err == nil {
							require.Positive(t, delay, "a rank that was stopped did not fail: %s", what)
							ended++
						} else {
							var a *api.Aborted
							require.ErrorAs(t, err, &a, what)
							require.Equal(t, bad, a.Cause, what)
							require.Less(t, took, deadline*2+delay+time.Second, what)
							blamed++
							_, err = api.Run(context.Background(), team, simple(k, ranks, 0), emptyMemory(ranks))
							require.ErrorIs(t, err, api.ErrAborted, "the team stays poisoned")
						}
						require.NoError(t, team.Close(context.Background()))
					}
				}
			}
		}
	}
	t.Logf("%d calls named the right rank, %d ended well in spite of a delay", blamed, ended)
	team, c := open(t, m, "hw:tandem", 3, 2*time.Second, time.Second)
	for k := range 50 {
		require.NoError(t, try(context.Background(), team, c, randomCall(seeded(uint64(k)), 3, 8<<10), seeded(uint64(k))))
	}
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

// setEpoch puts all ranks at an epoch.
func setEpoch(t *testing.T, team *host.Team, epoch uint64) {
	e := team.Engine().(*Engine)
	for r, p := range e.pages {
		c := e.gpus[e.place[r]].Context
		h, err := c.AllocHost(8)
		require.NoError(t, err)
		binary.LittleEndian.PutUint64(h.Bytes, epoch)
		s, err := c.NewStream(gpu.StreamOptions{})
		require.NoError(t, err)
		require.NoError(t, s.Copy(p.Device.Add(pageEpoch), h.Ptr, 8))
		require.NoError(t, gpu.Wait(context.Background(), e.machine.Driver.Clock(), time.Second, s))
		require.NoError(t, errors.Join(s.Destroy(), c.Free(h.Ptr)))
	}
}

// TestEpochs passes the epochs at which lines could be mistaken for new.
func TestEpochs(t *testing.T) {
	m := machine(t)
	for _, at := range []uint64{1<<30 - 2, 1<<31 - 2, 1<<32 - 2, 1<<32 + 1<<30 - 2, 1<<33 - 3} {
		for _, ranks := range []int{2, 3, 8} {
			team, c := open(t, m, "hw:tandem", ranks, 2*time.Second, time.Second)
			setEpoch(t, team, at)
			for k := range 12 {
				call := randomCall(seeded(uint64(k)+at), ranks, 8<<10)
				require.NoErrorf(t, try(context.Background(), team, c, call, seeded(uint64(k))), "epoch %#x + %d", at, k)
			}
		}
	}
}

// TestAlternation changes path, grid, size and inputs from call to call on one
// team, eager and from a graph.
func TestAlternation(t *testing.T) {
	m := machine(t)
	for _, ranks := range []int{2, 3, 8} {
		team, c := open(t, m, "hw:tandem", ranks, 2*time.Second, time.Second)
		e := team.Engine().(*Engine)
		rng := seeded(uint64(ranks))
		paths := []string{"push", "direct", "two_shot", "staged", "auto"}
		n := calls(t, 3400)
		for k := range n {
			e.config.path, e.config.blocks = paths[rng.IntN(len(paths))], rng.IntN(5)
			call := randomCall(rng, ranks, 1<<(4+rng.IntN(8)))
			require.NoErrorf(t, try(context.Background(), team, c, call, rng), "call %d", k)
		}
		t.Logf("%d ranks: %d calls", ranks, n)
	}
}

// TestGraphs replays twenty calls with changing inputs, eager calls between.
func TestGraphs(t *testing.T) {
	m := machine(t)
	for _, ranks := range []int{2, 8} {
		team, c := open(t, m, "hw:tandem", ranks, 2*time.Second, time.Second)
		rng := seeded(uint64(ranks))
		var list []api.Call
		var mem [][]api.Memory
		for range 20 {
			call := randomCall(rng, ranks, 2<<10)
			call.InPlace, call.DstOffset = api.OutOfPlace, call.SrcOffset
			list = append(list, call)
			var one []api.Memory
			for r := range ranks {
				one = append(one, newImages(&call, r, rng, 0xff))
			}
			mem = append(mem, one)
		}
		g, err := team.Capture(context.Background(), list, mem)
		require.NoError(t, err)
		n := calls(t, 500)
		for k := range n {
			var before [][]api.Memory
			for i := range list {
				for r := range ranks {
					for l := range mem[i][r] {
						fill(list[i].Lane(l).DType, mem[i][r][l].Src.Payload(), rng)
						clear(mem[i][r][l].Dst.Payload())
					}
				}
				before = append(before, clone(mem[i]))
			}
			require.NoError(t, g.Replay(context.Background()))
			for i := range list {
				if i%5 == k%5 { // judging takes longer than running
					require.NoErrorf(t, judge(c, &list[i], before[i], mem[i]), "replay %d call %d: %s", k, i, list[i])
				}
			}
			if k%7 == 0 {
				require.NoError(t, try(context.Background(), team, c, randomCall(rng, ranks, 1<<10), rng))
			}
		}
		t.Logf("%d ranks: %d replays", ranks, n)
		require.NoError(t, team.Close(context.Background()))
		require.ErrorIs(t, g.Replay(context.Background()), api.ErrAborted)
	}
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
		s, err := e.gpus[0].Context.NewStream(gpu.StreamOptions{})
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
