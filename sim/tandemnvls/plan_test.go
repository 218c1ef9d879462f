package tandemnvls_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/tandem/api"
	"example.com/tandem/sim/tandem"
	"example.com/tandem/sim/tandemnvls"
)

// TestPlans: what the plan says is off the switch is less than 16 bytes x ranks
// + 32, and everything else is tandem's, by name.
func TestPlans(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		call := rapid.SampledFrom(table()).Draw(rt, "cell")
		call.Collective = rapid.SampledFrom([]api.Collective{api.AllReduce, api.ReduceScatter}).Draw(rt, "collective")
		call.Ranks = rapid.IntRange(2, 72).Draw(rt, "ranks")
		call.Count = rapid.OneOf(rapid.Int64Range(0, 100000), rapid.Int64Range(0, api.MaxCount)).Draw(rt, "count")
		p, err := tandemnvls.Family{}.Plan(specOf(nil), call)
		require.NoError(rt, err)
		var off, all int64
		for _, cta := range p.Kernels[0].CTAs {
			all += cta.Count
			if cta.Algorithm == "tree" {
				off += cta.Count * int64(call.DType.Size())
			}
		}
		require.Equal(rt, call.Count, all, "the CTAs cover the call exactly")
		require.Less(rt, off, int64(16*call.Ranks+32))
		require.Equal(rt, make([]int64, call.Ranks), p.Unwritten)
		require.Contains(rt, p.Notes[0], fmt.Sprintf("off the switch: %d of", off))
		require.Equal(rt, "tandem_nvls", p.Kernels[0].Name)
	})
	for _, c := range []struct {
		params map[string]string
		call   api.Call
		says   string
	}{
		{nil, api.Call{Collective: api.Broadcast, DType: api.F32, Ranks: 4, Count: 9}, "broadcast has no form"},
		{nil, api.Call{Collective: api.AllReduce, DType: api.F32, Op: api.Max, Ranks: 4, Count: 9}, "no load-reduce does max of f32"},
		{nil, api.Call{Collective: api.AllReduce, DType: api.E4M3, Op: api.Sum, Ranks: 4, Count: 9}, "no load-reduce does sum of e4m3"},
		{nil, api.Call{Collective: api.AllReduce, DType: api.F32, Op: api.Avg, Ranks: 4, Count: 9}, "avg of f32"},
		{nil, api.Call{Collective: api.AllReduce, DType: api.BF16, Op: api.Sum, Ranks: 1, Count: 9}, "one rank"},
		{nil, api.Call{Collective: api.AllReduce, DType: api.BF16, Op: api.Sum, Ranks: 4, Count: 9, Mode: "f32"}, "mode other than node"},
		{map[string]string{"mode": "f32"}, api.Call{Collective: api.AllReduce, DType: api.BF16, Op: api.Sum, Ranks: 4, Count: 9}, "mode other than node"},
		{map[string]string{"nan": "propagate"}, api.Call{Collective: api.AllReduce, DType: api.BF16, Op: api.Max, Ranks: 4, Count: 9}, "drops NaNs"},
		{map[string]string{"nvlink_domain": "4"}, api.Call{Collective: api.AllReduce, DType: api.BF16, Op: api.Sum, Ranks: 5, Count: 9}, "no multicast base"},
		{map[string]string{"preset": "bw_half"}, api.Call{Collective: api.AllReduce, DType: api.F32, Op: api.Sum, Ranks: 4, Count: 9}, "not about f32"},
	} {
		p, err := tandemnvls.Family{}.Plan(specOf(c.params), c.call)
		require.NoError(t, err)
		require.Contains(t, p.Notes[0], "this call is tandem's")
		require.Contains(t, p.Notes[0], c.says)
		require.Contains(t, p.Kernels[0].Name, "tandem_")
		mine, theirs := api.Spec{Backend: "sim", Implementation: tandem.Name, Params: map[string]string{}}, c.params
		for k, v := range theirs {
			if k == "mode" || k == "nan" {
				mine.Params[k] = v
			}
		}
		want, err := tandem.Family{}.Plan(mine, c.call)
		require.NoError(t, err)
		require.Equal(t, want.Kernels, p.Kernels)
	}
	for _, params := range []map[string]string{{"nvlink_domain": "1"}, {"max_ctas": "4"}, {"dir": "up"}, {"path": "sideways"}} {
		_, err := tandemnvls.Family{}.Plan(specOf(params), api.Call{Collective: api.AllReduce, DType: api.F32, Op: api.Sum, Ranks: 2})
		require.ErrorIs(t, err, api.ErrInvalid)
	}
	_, err := tandemnvls.Family{}.Plan(specOf(nil), api.Call{Collective: api.AllReduce, DType: api.F32, Op: api.Sum, Ranks: 73})
	require.ErrorIs(t, err, api.ErrRefused)
}
