package nvshmem

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/sim/nvls"
)

// offSwitch counts the CTAs of which nothing goes through the switch, and the
// elements that do not.
func offSwitch(p *api.Plan) (ctas int, elements int64) {
	for _, c := range p.Kernels[0].CTAs {
		if c.Algorithm != algOneShot && c.Algorithm != algTwoShot {
			ctas++
			elements += c.Count
		}
		for r, s := range c.Slices {
			if r == p.Call.Ranks {
				elements += s.Count
			}
		}
	}
	return ctas, elements
}

// TestFollowUps: what stays on NVLS after the pull request and after the two
// follow-ups it names.
func TestFollowUps(t *testing.T) {
	for _, c := range []struct {
		ranks    int
		count    int64
		version  string
		ctas     int
		elements int64
	}{
		{8, 1048704, "pr131", 16, 1048704}, {8, 1048704, "pr131-team", 0, 0}, {8, 1048704, "pr131-tail", 0, 128},
		{6, 131136, "pr131", 15, 122880}, {6, 131136, "pr131-team", 0, 0}, {6, 131136, "pr131-tail", 0, 480},
		{4, 524292, "pr131", 1, 32772}, {4, 524292, "pr131-team", 1, 32772}, {4, 524292, "pr131-tail", 0, 4},
	} {
		p := plan(t, c.version, allReduce(c.ranks, c.count, 0))
		ctas, elements := offSwitch(p)
		require.Equal(t, c.ctas, ctas, "%v", c)
		require.Equal(t, c.elements, elements, "%v", c)
		require.Equal(t, every(c.ranks, 0), p.Unwritten)
	}
}

// TestTailSplitsOnlyForTheCount: misaligned calls, wide types and other
// operations go P2P as after the pull request, and what it keeps stays whole.
func TestTailSplitsOnlyForTheCount(t *testing.T) {
	wide := block(allReduce(4, 1001, 0))
	wide.DType = api.F32
	most := block(allReduce(4, 1001, 0))
	most.Op = api.Max
	for _, call := range []api.Call{block(allReduce(4, 1001, 1)), wide, most, block(allReduce(4, 31, 0)), block(allReduce(4, 4096, 0))} {
		a, b := plan(t, "pr131", call), plan(t, "pr131-tail", call)
		require.Equal(t, a.Kernels[0].CTAs, b.Kernels[0].CTAs, "%s", call)
	}
	p := plan(t, "pr131-tail", block(allReduce(4, 1001, 0)))
	cta := p.Kernels[0].CTAs[0]
	require.Equal(t, algOneShot, cta.Algorithm)
	tail := cta.Slices[4]
	require.Equal(t, api.Slice{Start: 992, Count: 9, Algorithm: algRecExch, Why: tail.Why}, tail)
	place, ok := p.Locate(0, 3, 995)
	require.True(t, ok)
	require.Equal(t, algRecExch, place.Algorithm)
}

// TestMinMaxAsTheTextHasIt: the pull request says that min and max share the
// path of sums, the source says that they do not.
func TestMinMaxAsTheTextHasIt(t *testing.T) {
	call := block(allReduce(4, 4096, 0))
	call.Op = api.Max
	require.Equal(t, algRecExch, plan(t, "pr131", call).Kernels[0].CTAs[0].Algorithm)
	require.Equal(t, algRecExch, plan(t, "pr131?minmax=source", call).Kernels[0].CTAs[0].Algorithm)
	p := plan(t, "pr131?minmax=pr", call)
	require.Equal(t, algTwoShot, p.Kernels[0].CTAs[0].Algorithm)
	require.Equal(t, api.Algorithm{Evidence: api.Assumed, Contract: api.Exact}, p.Algorithms[algTwoShot])
	call.DType = api.F32
	require.Equal(t, algSegment, plan(t, "pr131?minmax=pr&reduce_algo=9&fcollect_ll_threshold=0&reduce_scratch_size=1280", call).Kernels[0].CTAs[0].Algorithm, "there is no load-reduce for max of f32")
	require.NotEqual(t, algTwoShot, plan(t, "pr131?minmax=pr", call).Kernels[0].CTAs[0].Algorithm)
}

// TestTwoDomains: a team over two NVLink domains has no multicast base.
func TestTwoDomains(t *testing.T) {
	call := allReduce(8, 1048576, 0)
	require.Len(t, plan(t, "pr131?nvlink_domain=8", call).Kernels[0].CTAs, 16)
	p := plan(t, "pr131?nvlink_domain=4", call)
	require.Len(t, p.Kernels[0].CTAs, 1)
	require.Equal(t, algSegment, p.Kernels[0].CTAs[0].Algorithm)
	require.Contains(t, p.Kernels[0].CTAs[0].Why, "two NVLink domains of 4: no multicast base")
	require.Contains(t, joined(plan(t, "pr131", allReduce(80, 1048576, 0)).Notes), "none holds more than 72")
}

// TestPresetsInPlans: what a plan says of the arithmetic, and what is refused.
func TestPresetsInPlans(t *testing.T) {
	call := block(allReduce(4, 4096, 0))
	says := func(spec string) (api.Algorithm, string) {
		p := plan(t, spec, call)
		return p.Algorithms[algTwoShot], joined(p.Notes)
	}
	a, notes := says("pr131")
	require.Equal(t, api.Faithful, a.Contract)
	require.Contains(t, notes, "bw_half, last rounding seeded")
	require.Contains(t, notes, "no prediction")
	_, notes = says("pr131?rounding=rne")
	require.Contains(t, notes, "known not to round")
	a, _ = says("pr131?fabric=nvswitch3")
	require.Equal(t, []api.AnyOrder{{Acc: api.F32}}, a.AnyOrder)
	a, _ = says("pr131?preset=ideal_rne")
	require.Equal(t, api.Exact, a.Contract)
	for spec, want := range map[string]string{
		"pr131?preset=bw_wide":                    "not about bf16",
		"pr131?preset=hop_native&order=1-0":       "names 2 ranks",
		"2dca770?fabric=custom&preset=bw_half_g1": "",
	} {
		_, err := tryPlan(spec, call)
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, api.ErrRefused)
		require.ErrorContains(t, err, want)
	}
	_, err := parse("nvshmem@pr131?rounding=rz&dir=rz")
	require.ErrorContains(t, err, "use one of the two")
	_, err = parse("nvshmem@pr131?kind=exact")
	require.ErrorContains(t, err, "unknown to nvshmem@pr131")
	p, err := parse("nvshmem@pr131?dir=adversarial&seed=3")
	require.NoError(t, err)
	require.Equal(t, nvls.Adversarial, lastOf(t, p, api.F16))
}
