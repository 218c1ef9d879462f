//go:build gpu

package tandem

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
	"example.com/tandem/hw/host"
)

// jury judges calls on all cores while the GPUs go on.
type jury struct {
	t    *testing.T
	gate chan struct{}
	wg   sync.WaitGroup
	mu   sync.Mutex
	bad  int
}

func newJury(t *testing.T) *jury {
	j := &jury{t: t, gate: make(chan struct{}, runtime.GOMAXPROCS(0))}
	t.Cleanup(j.wg.Wait)
	return j
}

// judge compares what a call left with what it must leave, at some time before
// verdict returns. The images stay as they are until then.
func (j *jury) judge(c config, call api.Call, before, after []api.Memory, what string) {
	j.gate <- struct{}{}
	j.wg.Add(1)
	go func() {
		defer func() { <-j.gate; j.wg.Done() }()
		if err := judge(&c, &call, before, after); err != nil {
			j.mu.Lock()
			defer j.mu.Unlock()
			if j.bad++; j.bad < 5 {
				j.t.Errorf("%s: %s: %v", what, call, err)
			}
		}
	}()
}

// verdict waits until all is judged.
func (j *jury) verdict() {
	j.wg.Wait()
	require.Zero(j.t, j.bad, "wrong calls")
}

// tour goes through every ordered pair of k states once, itself included, as one
// sequence: a de Bruijn sequence of order 2.
func tour(k int) []int {
	var out []int
	for i := range k {
		out = append(out, i)
		for j := i + 1; j < k; j++ {
			out = append(out, i, j)
		}
	}
	return append(out, 0)
}

// shape is what one call of the alternation has that the next has not.
type shape struct {
	path   string
	blocks int
	bytes  int64 // at most, of a block of the call
}

func shapes() []shape {
	var out []shape
	for _, path := range []string{"push", "direct", "two_shot", "staged", "auto"} {
		for _, blocks := range []int{0, 1, 2, 5} {
			for _, bytes := range []int64{16, 256, 4 << 10, 40 << 10} {
				out = append(out, shape{path, blocks, bytes})
			}
		}
	}
	return out
}

// TestAlternation changes path, grid, size and inputs from call to call on one
// team without a reset, every pair of them in a row, eager and from graphs.
func TestAlternation(t *testing.T) {
	m := machine(t)
	all := shapes()
	start, total, captured := time.Now(), 0, 0
	for _, c := range []struct{ ranks, most int }{{2, 6401}, {3, 1900}, {8, 1900}} {
		team, cfg := open(t, m, "hw:tandem", c.ranks, 2*time.Second, time.Second)
		e := team.Engine().(*Engine)
		rng, j := seeded(uint64(c.ranks)), newJury(t)
		order := tour(len(all))
		at := rng.IntN(len(order)) * min(1, len(order)-c.most)
		for k := range min(c.most, calls(t, c.most)) {
			s := all[order[(at+k)%len(order)]]
			e.config.path, e.config.blocks = s.path, s.blocks
			call := shaped(rng, c.ranks, s.bytes)
			mem, before := prepared(&call, rng)
			what := fmt.Sprintf("%d ranks, call %d", c.ranks, k)
			if rng.IntN(8) == 0 {
				g, err := team.Capture(context.Background(), []api.Call{call}, [][]api.Memory{mem})
				require.NoError(t, err, "%s: %s", what, call)
				require.NoError(t, g.Replay(context.Background()), "%s: %s", what, call)
				require.NoError(t, g.Close())
				captured++
			} else {
				_, err := api.Run(context.Background(), team, call, mem)
				require.NoError(t, err, "%s: %s", what, call)
			}
			j.judge(*cfg, call, before, mem, what)
			total++
		}
		j.verdict()
	}
	t.Logf("done when 5: %d calls, %d of them from graphs, in turn on %d paths, grids and sizes, at 2 ranks every pair of them; %v",
		total, captured, len(all), time.Since(start).Round(time.Second/10))
}

// shaped is a random call with blocks near a size.
func shaped(rng *rand.Rand, ranks int, bytes int64) api.Call {
	call := randomCall(rng, ranks, bytes)
	if !api.IsMany(call.Collective) {
		n := bytes / int64(call.DType.Size())
		call.Count = n/2 + rng.Int64N(n/2+1)
	}
	return call
}

// prepared is random memory for a call, and a copy of it.
func prepared(call *api.Call, rng *rand.Rand) (mem, before []api.Memory) {
	poison := []byte{0xff, 0x5a}[rng.IntN(2)]
	for r := range call.Ranks {
		mem = append(mem, newImages(call, r, rng, poison))
	}
	return mem, clone(mem)
}

// TestGraphs replays twenty calls with changing inputs, eager calls between.
func TestGraphs(t *testing.T) {
	m := machine(t)
	start, replays, between := time.Now(), 0, 0
	for _, ranks := range []int{2, 8} {
		team, c := open(t, m, "hw:tandem", ranks, 2*time.Second, time.Second)
		rng, j := seeded(uint64(ranks)), newJury(t)
		var list []api.Call
		var mem [][]api.Memory
		for range 20 {
			call := randomCall(rng, ranks, 2<<10)
			list = append(list, call)
			one, _ := prepared(&call, rng)
			mem = append(mem, one)
		}
		g, err := team.Capture(context.Background(), list, mem)
		require.NoError(t, err)
		for k := range calls(t, 500) {
			var before [][]api.Memory
			for i := range list {
				for r := range ranks {
					for l := range mem[i][r] {
						lane := &mem[i][r][l]
						if list[i].InPlace == api.OutOfPlace {
							clear(lane.Dst.Payload())
						}
						fill(list[i].Lane(l).DType, lane.Src.Payload(), rng)
					}
				}
				before = append(before, clone(mem[i]))
			}
			require.NoError(t, g.Replay(context.Background()))
			for i := range list {
				j.judge(*c, list[i], before[i], clone(mem[i]), fmt.Sprintf("%d ranks, replay %d, call %d", ranks, k, i))
			}
			replays++
			if k%7 == 0 {
				require.NoError(t, try(context.Background(), team, c, randomCall(rng, ranks, 1<<10), rng))
				between++
			}
		}
		j.verdict()
		require.NoError(t, team.Close(context.Background()))
		require.ErrorIs(t, g.Replay(context.Background()), api.ErrAborted)
	}
	t.Logf("done when 5: %d replays of a graph of 20 calls with changing inputs, every call judged, %d eager calls between; %v", replays, between, time.Since(start).Round(time.Second/10))
}

// setEpoch puts all ranks at an epoch.
func setEpoch(t *testing.T, team *host.Team, epoch uint64) {
	e := team.Engine().(*Engine)
	for r, p := range e.pages {
		c := e.on.GPU(r).Context
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

// TestEpochs passes the epochs at which lines could be mistaken for new, with
// lines last written just before.
func TestEpochs(t *testing.T) {
	m := machine(t)
	start, total := time.Now(), 0
	for _, at := range []uint64{1<<30 - 2, 1<<31 - 2, 1<<32 - 2, 1<<32 + 1<<30 - 2, 1<<33 - 3} {
		for _, ranks := range []int{2, 3, 8} {
			team, c := open(t, m, "hw:tandem", ranks, 2*time.Second, time.Second)
			// The calls that stamp every line come first, as they would have: a
			// jump alone would leave lines that are older than any can be.
			setEpoch(t, team, max(at&^(1<<30-1), 1))
			for k := range 4 {
				require.NoError(t, try(context.Background(), team, c, randomCall(seeded(uint64(k)), ranks, 8<<10), seeded(uint64(k))))
			}
			setEpoch(t, team, at-4)
			for k := range 16 {
				call := randomCall(seeded(uint64(k)+at), ranks, 8<<10)
				require.NoErrorf(t, try(context.Background(), team, c, call, seeded(uint64(k))), "epoch %#x + %d", at, k)
				total++
			}
		}
	}
	t.Logf("done when 5: %d calls across the epochs near 2^30, 2^31 and 2^32, and their multiples; %v", total, time.Since(start).Round(time.Second/10))
}

// TestSmall is what a sanitizer can take: every collective by every path, all
// ranks in one launch, eager and as a graph.
func TestSmall(t *testing.T) {
	m := machine(t)
	total := 0
	for _, ranks := range []int{2, 3} {
		for _, path := range []string{"push", "direct", "two_shot", "staged"} {
			team, c := open(t, m, "hw:tandem?gpus=1&ctas=2&path="+path, ranks, 5*time.Second, 5*time.Second)
			for i, k := range api.Collectives() {
				rng := seeded(uint64(i + ranks))
				call := randomCall(rng, ranks, 2<<10)
				for call.Collective != k {
					call = randomCall(rng, ranks, 2<<10)
				}
				require.NoError(t, try(context.Background(), team, c, call, rng))
				mem, before := prepared(&call, rng)
				g, err := team.Capture(context.Background(), []api.Call{call}, [][]api.Memory{mem})
				require.NoError(t, err)
				require.NoError(t, g.Replay(context.Background()))
				require.NoError(t, g.Close())
				require.NoError(t, judge(c, &call, before, mem), "%s", call)
				total += 2
			}
		}
	}
	t.Logf("%d calls", total)
}
