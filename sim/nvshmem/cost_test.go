package nvshmem

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/tandem/api"
)

// The PR's three long groups: what the slowest rank counts, against the
// published milliseconds.
func TestCostsExplainThePRsTimes(t *testing.T) {
	words := func(p *api.Plan) int64 { return p.Cost.Words }
	rounds := func(p *api.Plan) int64 { return p.Cost.Rounds }
	lastRounds := func(p *api.Plan) int64 { return p.Kernels[0].CTAs[15].Rounds }
	calls := []api.Call{allReduce(2, 1048574, 0), allReduce(4, 1048572, 0), allReduce(4, 524292, 0)}
	for _, g := range []struct {
		name, version string
		scope         api.Scope
		count         func(*api.Plan) int64
		want          [3]int64
		ms            [3]float64
	}{
		{"words of block two-shot before", "2dca770", api.Block, words, [3]int64{65537, 131071, 65536}, [3]float64{1.00, 1.92, 0.96}},
		{"rounds of block segment after", "pr131", api.Block, rounds, [3]int64{64, 192, 97}, [3]float64{3.25, 9.31, 4.62}},
		{"rounds of the last CTA after", "pr131", api.OnStream, lastRounds, [3]int64{5, 13, 7}, [3]float64{0.106, 0.268, 0.132}},
	} {
		t.Run(g.name, func(t *testing.T) {
			low, high := 0.0, 0.0
			for i, call := range calls {
				call.Scope = g.scope
				p := plan(t, g.version, call)
				n := g.count(p)
				require.Equal(t, g.want[i], n)
				if g.scope == api.OnStream {
					require.Equal(t, n, p.Cost.Rounds, "no other CTA has rounds")
					require.Equal(t, int64(1), p.Cost.Launches)
				}
				each := g.ms[i] / float64(n)
				if i == 0 || each < low {
					low = each
				}
				high = max(high, each)
			}
			require.LessOrEqual(t, high/low, 1.13, "ms per count")
		})
	}
}

// segmentRoundsSlow makes the puts one by one.
func segmentRoundsSlow(bytes, ranks, seg int64) int64 {
	var rounds int64
	for ; bytes >= seg; bytes -= seg {
		for peer := int64(1); peer < ranks; peer++ {
			rounds++
		}
	}
	for peer := int64(1); bytes > 0 && peer < ranks; rounds++ {
		for room := seg; room >= bytes && peer < ranks; peer++ {
			room -= bytes
		}
	}
	return rounds
}

func TestSegmentRounds(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		bytes, ranks := rapid.Int64Range(0, 1<<18).Draw(rt, "bytes"), rapid.Int64Range(1, 40).Draw(rt, "ranks")
		seg := rapid.SampledFrom([]int64{8, 4096, 32768}).Draw(rt, "seg")
		require.Equal(t, segmentRoundsSlow(bytes, ranks, seg), segmentRounds(bytes, ranks, seg))
	})
}

func TestBytes(t *testing.T) {
	wide := func(c api.Call) api.Call { c.DType = api.F32; return c }
	for _, c := range []struct {
		spec string
		call api.Call
		want int64
	}{
		// Segment: the range to every peer.
		{"3.4.5?nvls=off", block(allReduce(4, 5000, 0)), 3 * 10000},
		// Recursive exchange: once a phase; with 5 ranks the folder of step 1 sends back too.
		{"3.4.5?nvls=off", block(allReduce(4, 1000, 0)), 2 * 2000},
		{"3.4.5?nvls=off", block(allReduce(5, 1000, 0)), 3 * 2000},
		// LL: data and flags.
		{"3.4.5?nvls=off", wide(block(allReduce(4, 100, 0))), 2 * 3 * 400},
		// Two-shot: what a rank multicasts; one-shot sends nothing.
		{"2dca770", block(allReduce(4, 4096, 0)), 2048},
		{"2dca770", block(allReduce(4, 1024, 0)), 0},
		{"3.4.5", api.Call{Collective: api.AllGather, DType: api.F32, Ranks: 4, Count: 101, Scope: api.Block}, 404},
		{"3.4.5", api.Call{Collective: api.AllGather, DType: api.F32, Ranks: 4, Count: 100, Scope: api.Block}, 2 * 3 * 400},
		{"3.4.5?nvls=off", api.Call{Collective: api.AllGather, DType: api.F32, Ranks: 4, Count: 101, Scope: api.Block}, 3 * 404},
		{"3.4.5", api.Call{Collective: api.Broadcast, DType: api.F32, Ranks: 4, Count: 100, Root: 2}, 2 * 2 * 400},
		{"3.4.5", api.Call{Collective: api.Broadcast, DType: api.F32, Ranks: 4, Count: 101, Root: 2}, 3 * 404},
		{"3.4.5", api.Call{Collective: api.AllToAll, DType: api.F32, Ranks: 4, Count: 101}, 3 * 404},
		{"3.4.5?nvls=off", api.Call{Collective: api.ReduceScatter, DType: api.F32, Op: api.Sum, Ranks: 4, Count: 101}, 3 * 404},
	} {
		require.Equal(t, c.want, plan(t, c.spec, c.call).Cost.Bytes, "%s %s", c.spec, c.call)
	}
}
