package nvls

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/tandem/api"
	"example.com/tandem/hw/hwtest"
)

func planned(t require.TestingT, text string, call api.Call) (*api.Plan, error) {
	s, err := api.ParseSpec(text)
	require.NoError(t, err)
	return Plan(nil, s, call)
}

// TestPlansCover: every element has its place, and those that the plan keeps off
// the switch are those that OffSwitch counts.
func TestPlansCover(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		collective := rapid.SampledFrom([]api.Collective{api.AllReduce, api.ReduceScatter, api.AllGather, api.Broadcast, api.AllToAll}).Draw(t, "collective")
		call := api.Call{Collective: collective, DType: rapid.SampledFrom(api.DTypes()).Draw(t, "dtype"), Ranks: rapid.IntRange(1, 9).Draw(t, "ranks"),
			Count: rapid.OneOf(rapid.Int64Range(0, 100), rapid.Int64Range(0, 1<<20)).Draw(t, "count")}
		if collective.Reduces() {
			call.Op = rapid.SampledFrom([]api.Op{api.Sum, api.Max, api.Prod}).Draw(t, "op")
		}
		p, err := planned(t, "hw:tandem-nvls?table=any", call)
		require.NoError(t, err)
		require.NoError(t, hwtest.Covers(p), "%v", &call)
		if _, _, ok := inSwitch(&call); !ok {
			require.Contains(t, p.Notes[0], "it is tandem's")
			require.Equal(t, api.Exact, p.Contract())
			return
		}
		off := int64(0)
		for _, c := range p.Kernels[0].CTAs {
			if c.Algorithm == algTree {
				off += c.Count
			}
		}
		require.Equal(t, OffSwitch(&call), off, "%v", &call)
		_, through := p.Algorithms[algSwitch]
		require.Equal(t, through && call.Op == api.Sum && call.DType.Float(), p.Contract() == api.Faithful)
	})
}

// TestPlanFigures are words, barriers and blocks literally.
func TestPlanFigures(t *testing.T) {
	for _, c := range []struct {
		text   string
		call   api.Call
		ctas   int // with the rest
		words  int64
		rounds int64
		rest   int64
	}{
		{"hw:tandem-nvls", api.Call{Collective: api.AllReduce, DType: api.BF16, Op: api.Sum, Ranks: 2, Count: 1000001}, 65, 62500, 3, 1},
		{"hw:tandem-nvls", api.Call{Collective: api.AllReduce, DType: api.BF16, Op: api.Sum, Ranks: 8, Count: 3}, 1, 0, 3, 3},
		{"hw:tandem-nvls?ctas=1", api.Call{Collective: api.AllReduce, DType: api.F32, Op: api.Sum, Ranks: 2, Count: 1 << 20}, 1, 131072, 7, 0},
		{"hw:tandem-nvls?ctas=1", api.Call{Collective: api.ReduceScatter, DType: api.F32, Op: api.Sum, Ranks: 3, Count: 1 << 20}, 1, 262144, 19, 0},
		{"hw:tandem-nvls?ctas=2", api.Call{Collective: api.AllGather, DType: api.U8, Ranks: 4, Count: 1<<20 + 1}, 2, 65537, 4, 0},
	} {
		p, err := planned(t, c.text, c.call)
		require.NoError(t, err)
		require.Len(t, p.Kernels[0].CTAs, c.ctas, "%v", &c.call)
		require.Equal(t, api.Cost{Launches: 1, Words: c.words, Rounds: c.rounds}, p.Cost, "%v", &c.call)
		last := p.Kernels[0].CTAs[c.ctas-1]
		if c.rest > 0 {
			require.Equal(t, []any{algTree, c.rest}, []any{last.Algorithm, last.Count})
		}
	}
	_, err := planned(t, "hw:tandem-nvls", api.Call{Collective: api.Broadcast, DType: api.U8, Ranks: 4, Count: 5})
	require.ErrorIs(t, err, api.ErrUnavailable)
	_, err = planned(t, "hw:tandem-nvls?table=Voodoo", api.Call{Collective: api.AllGather, DType: api.U8, Ranks: 4, Count: 5})
	require.ErrorIs(t, err, api.ErrInvalid)
	_, err = planned(t, "hw:tandem-nvls", api.Call{Collective: api.AllGather, DType: api.U8, Ranks: 73, Count: 5})
	require.ErrorIs(t, err, api.ErrRefused)
}
