package tandem

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
	"example.com/tandem/sim"
)

func planOf(t require.TestingT, params string, c api.Call) *api.Plan {
	p, err := sim.New(Family{}).Plan(spec(t, params), c)
	require.NoError(t, err, "%v", c)
	return p
}

// TestPaths: the table at its edges.
func TestPaths(t *testing.T) {
	for _, c := range []struct {
		collective api.Collective
		ranks      int
		count      int64 // bytes
		params     string
		path       string
		ctas       int
	}{
		{api.AllReduce, 1, 1 << 30, "", pathLocal, 16},
		{api.AllReduce, 1, 0, "", pathEmpty, 1},
		{api.AllReduce, 2, 0, "?path=direct", pathEmpty, 1},
		{api.AllReduce, 2, 1, "", pathPush, 1},
		{api.AllReduce, 2, 256 << 10, "", pathPush, 16},
		{api.AllReduce, 2, 256<<10 + 1, "", pathDirect, 16},
		{api.AllReduce, 2, 1 << 20, "", pathDirect, 16},
		{api.AllReduce, 2, 1<<20 + 1, "", pathTwoShot, 16},
		{api.AllReduce, 8, 37440, "", pathPush, 3},
		{api.AllReduce, 8, 37441, "", pathDirect, 3},
		{api.AllReduce, 8, 86208, "", pathDirect, 6},
		{api.AllReduce, 8, 86209, "", pathTwoShot, 6},
		{api.AllReduce, 72, 3680, "", pathPush, 1},
		{api.AllReduce, 72, 6544, "", pathDirect, 1},
		{api.AllReduce, 72, 6545, "", pathTwoShot, 1},
		{api.AllReduce, 72, 1 << 30, "", pathTwoShot, 4},
		{api.Broadcast, 8, 1 << 20, "", pathTwoShot, 8},
		{api.AllGather, 8, 1 << 20, "", pathDirect, 8},
		{api.ReduceScatter, 8, 1 << 20, "", pathDirect, 8},
		{api.AllToAll, 8, 37440, "", pathPush, 3},
		{api.AllReduce, 8, 100, "?path=direct", pathDirect, 1},
		{api.AllReduce, 8, 100, "?path=two_shot", pathTwoShot, 1},
		{api.AllGather, 8, 100, "?path=two_shot", pathDirect, 1},
		{api.AllReduce, 8, 1 << 20, "?path=push", pathDirect, 8},
		{api.AllReduce, 8, 1 << 20, "?ctas=5", pathTwoShot, 5},
		{api.AllReduce, 8, 1 << 20, "?ctas=64", pathTwoShot, 64},
		{api.AllReduce, 8, 1 << 20, "?ctas=64&gpus=1", pathTwoShot, 16},
		{api.AllReduce, 72, 1 << 20, "?gpus=1", pathTwoShot, 1},
	} {
		call := api.Call{Collective: c.collective, DType: num.U8, Ranks: c.ranks, Count: c.count}
		if call.Collective.Reduces() {
			call.Op = num.Max
		}
		p := planOf(t, c.params, call)
		ctas := p.Kernels[0].CTAs
		require.Equal(t, c.path, ctas[0].Algorithm, "%+v: %s", c, ctas[0].Why)
		require.Equal(t, c.ctas, len(ctas), "%+v: %v", c, p.Notes)
		require.Equal(t, api.Exact, p.Contract())
		require.EqualValues(t, 1, p.Cost.Launches)
	}
}

// TestBytesDecide: B16, a threshold is compared in bytes.
func TestBytesDecide(t *testing.T) {
	for _, d := range api.DTypes() {
		most := boxBytes(2) / int64(d.Size())
		for n, want := range map[int64]string{most: pathPush, most + 1: pathDirect} {
			p := planOf(t, "", api.Call{Collective: api.AllGather, DType: d, Ranks: 2, Count: n})
			require.Equal(t, want, p.Kernels[0].CTAs[0].Algorithm, "%v %d", d, n)
		}
	}
}

// TestThresholds: each declared count is one at which something changes.
func TestThresholds(t *testing.T) {
	impl := Family{}.Implementations()[0]
	for _, ranks := range []int{2, 3, 8, 72} {
		for _, k := range []api.Collective{api.AllReduce, api.AllGather, api.ReduceScatter, api.Broadcast} {
			c := api.Call{Collective: k, DType: num.F32, Ranks: ranks}
			if k.Reduces() {
				c.Op = num.Sum
			}
			say := func(n int64) string {
				c.Count = n
				d := (&config{path: pathAuto, registered: true, stage: defaultStage}).decide(&c)
				return fmt.Sprint(d.path, d.grid, d.chunks, d.units == 1)
			}
			for _, n := range impl.Thresholds(c) {
				require.Positive(t, n)
				near := map[string]bool{say(n - 1): true, say(n): true, say(n + 1): true, say(n + unit/4): true}
				require.Greater(t, len(near), 1, "%v ranks %d at %d: %v", k.Name(), ranks, n, near)
			}
		}
	}
	require.Nil(t, impl.Thresholds(api.Call{}))
}

// covers requires that the plan names exactly one place for every destination
// element, sampled where ranges meet.
func covers(t require.TestingT, p *api.Plan) {
	c := &p.Call
	for lane := range c.Lanes() {
		n := c.DstElems(lane)
		edges := map[int64]bool{0: true, n - 1: true}
		total := make([]int64, c.Ranks)
		for _, k := range p.Kernels {
			if k.Lane != lane {
				continue
			}
			for _, cta := range k.CTAs {
				require.GreaterOrEqual(t, cta.Start, int64(0))
				require.GreaterOrEqual(t, cta.Count, int64(0))
				for r := range total {
					if len(cta.Slices) == 0 {
						total[r] += cta.Count
					}
					for _, s := range cta.Slices {
						total[r] += s.Count
					}
				}
				ends := []int64{cta.Start, cta.Start + cta.Count}
				for _, s := range cta.Slices {
					require.GreaterOrEqual(t, s.Start, int64(0))
					ends = append(ends, s.Start, s.Start+s.Count)
				}
				for _, e := range ends {
					edges[e], edges[e-1] = true, true
				}
			}
		}
		for r := range total {
			require.Equal(t, n, total[r], "%v: rank %d lane %d", c, r, lane)
			for i := range edges {
				_, ok := p.Locate(lane, r, i)
				require.Equal(t, i >= 0 && i < n, ok, "%v: rank %d lane %d element %d", c, r, lane, i)
			}
		}
	}
	require.Equal(t, make([]int64, c.Ranks), p.Unwritten)
}

// TestPlansCover: any call, up to the largest, in 64 bits and without memory;
// offsets and in-place forms change nothing.
func TestPlansCover(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCall(t)
		c.Ranks = rapid.IntRange(1, maxRanks).Draw(t, "world")
		c.Root = 0
		c.Count = rapid.OneOf(rapid.Int64Range(0, 100), rapid.Int64Range(0, 1<<22), rapid.Int64Range(0, api.MaxCount)).Draw(t, "n")
		v := drawVariant(t, &c)
		p := planOf(t, v.params, c)
		covers(t, p)
		moved := c
		moved.SrcOffset, moved.DstOffset, moved.InPlace = v.src, v.dst, v.inPlace
		q := planOf(t, v.params, moved)
		q.Call = p.Call
		require.Equal(t, p, q)
	})
	many := api.Call{Collective: api.ReduceScatterMany, DType: num.F16, Op: num.Sum, Ranks: 5}
	for i := range int64(300) {
		many.Many = append(many.Many, api.LaneShape{Count: i * i % 97, DType: api.DTypes()[i%14]})
	}
	for _, params := range []string{"", "?ctas=7", "?path=direct&ctas=64"} {
		covers(t, planOf(t, params, many))
	}
}

// B78, B79, B81: counts beyond 32 bits.
func TestLargePlans(t *testing.T) {
	for _, n := range []int64{1 << 31, 1<<32 + 4, 1<<35 + 5, api.MaxCount} {
		if testing.Short() && n != 1<<32+4 {
			continue
		}
		for _, k := range []api.Collective{api.AllReduce, api.AllGather, api.ReduceScatter, api.AllToAll, api.Broadcast} {
			for _, ranks := range []int{2, 8, 72} {
				if ranks == 72 && n != api.MaxCount {
					continue
				}
				c := api.Call{Collective: k, DType: num.F64, Ranks: ranks, Count: n}
				if k.Reduces() {
					c.Op = num.Sum
				}
				p := planOf(t, "?ctas=16", c)
				covers(t, p)
				require.Len(t, p.Kernels[0].CTAs, 16)
				require.Greater(t, p.Cost.Bytes, n)
				require.Positive(t, p.Cost.Trips)
			}
		}
	}
	c := api.Call{Collective: api.AllReduce, DType: num.F32, Op: num.Sum, Ranks: 8, Count: 1 << 28} // B79
	last := int64(-1)
	for _, r := range []int{0, 1, 2, 3, 4, 5, 6, 7} {
		for _, cta := range planOf(t, "", c).Kernels[0].CTAs {
			require.Equal(t, r, cta.Slices[r].Rank)
			require.Greater(t, cta.Slices[r].Start, last)
			last = cta.Slices[r].Start
		}
	}
}

// TestCost: exact counts of one call on each path.
func TestCost(t *testing.T) {
	c := api.Call{Collective: api.AllReduce, DType: num.BF16, Op: num.Sum, Ranks: 4, Count: 1 << 14} // 32 KiB, 2 CTAs
	for params, want := range map[string]api.Cost{
		"?path=push":                   {Launches: 1, Rounds: 1, RoundTrip: 1, Trips: 2, Bytes: 3*16 + 2*3<<15},
		"?path=direct":                 {Launches: 1, Rounds: 2, RoundTrip: 3, Trips: 2, Bytes: 3*16 + 3<<15},
		"?path=two_shot":               {Launches: 1, Rounds: 3, RoundTrip: 5, Trips: 2, Bytes: 3*16 + 6<<13},
		"?path=direct&buffers=staged":  {Launches: 1, Rounds: 3, RoundTrip: 4, Trips: 2, Bytes: 3*16 + 3<<15},
		"?path=direct&stage=16384":     {Launches: 1, Rounds: 3, RoundTrip: 5, Trips: 2, Bytes: 3*16 + 3<<15},
		"?path=two_shot&stage=1048576": {Launches: 1, Rounds: 3, RoundTrip: 5, Trips: 2, Bytes: 3*16 + 6<<13},
	} {
		require.Equal(t, want, planOf(t, params, c).Cost, params)
	}
}
