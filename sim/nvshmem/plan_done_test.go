package nvshmem

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/tandem/api"
)

func block(c api.Call) api.Call {
	c.Scope = api.Block
	return c
}

// mix counts the CTAs of each algorithm.
func mix(p *api.Plan) map[string]int {
	out := map[string]int{}
	for _, c := range p.Kernels[0].CTAs {
		out[c.Algorithm]++
	}
	return out
}

// causes sums the holes in the destination of one rank by cause.
func causes(p *api.Plan, rank int) map[api.Cause]int64 {
	out := map[api.Cause]int64{}
	for _, h := range p.Holes(0, rank) {
		out[h.Cause] += h.Count
	}
	return out
}

func TestMixesOfThePRsRows(t *testing.T) {
	type mixes = map[string]int
	for _, c := range []struct {
		ranks         int
		count, off    int64
		scope         api.Scope
		before, after mixes
	}{
		{2, 1048576, 0, api.OnStream, mixes{"two_shot": 16}, mixes{"two_shot": 16}},
		{2, 1048574, 0, api.OnStream, mixes{"segment": 16}, mixes{"two_shot": 15, "segment": 1}},
		{2, 1048573, 0, api.OnStream, mixes{"segment": 15, "two_shot": 1}, mixes{"two_shot": 15, "segment": 1}},
		{2, 1048575, 0, api.OnStream, mixes{"segment": 15, "two_shot": 1}, mixes{"two_shot": 15, "segment": 1}},
		{2, 131104, 0, api.OnStream, mixes{"two_shot": 16}, mixes{"two_shot": 16}},
		{2, 131105, 0, api.OnStream, mixes{"two_shot": 15, "segment": 1}, mixes{"two_shot": 15, "segment": 1}},
		{2, 1048574, 0, api.Block, mixes{"two_shot": 1}, mixes{"segment": 1}},
		{2, 1024, 1, api.OnStream, mixes{"one_shot": 1}, mixes{"recexch": 1}},
		{2, 1024, 1, api.Block, mixes{"one_shot": 1}, mixes{"recexch": 1}},
		{2, 131072, 1, api.OnStream, mixes{"two_shot": 16}, mixes{"recexch": 16}},
		{2, 131072, 1, api.Block, mixes{"two_shot": 1}, mixes{"segment": 1}},
		{4, 1048576, 0, api.OnStream, mixes{"two_shot": 16}, mixes{"two_shot": 16}},
		{4, 1048572, 0, api.OnStream, mixes{"segment": 16}, mixes{"two_shot": 15, "segment": 1}},
		{4, 1048573, 0, api.OnStream, mixes{"segment": 15, "two_shot": 1}, mixes{"two_shot": 15, "segment": 1}},
		{4, 524292, 0, api.OnStream, mixes{"two_shot": 16}, mixes{"two_shot": 15, "segment": 1}},
		{4, 131104, 0, api.OnStream, mixes{"segment": 16}, mixes{"two_shot": 16}},
		{4, 1048572, 0, api.Block, mixes{"two_shot": 1}, mixes{"segment": 1}},
		{4, 524292, 0, api.Block, mixes{"two_shot": 1}, mixes{"segment": 1}},
		{4, 1024, 1, api.OnStream, mixes{"one_shot": 1}, mixes{"recexch": 1}},
		{4, 1024, 1, api.Block, mixes{"one_shot": 1}, mixes{"recexch": 1}},
		{4, 131072, 1, api.OnStream, mixes{"two_shot": 16}, mixes{"segment": 16}},
		{4, 131072, 1, api.Block, mixes{"two_shot": 1}, mixes{"segment": 1}},
	} {
		call := allReduce(c.ranks, c.count, c.off)
		call.Scope = c.scope
		require.Equal(t, c.before, mix(plan(t, "2dca770", call)), "before: %s", call)
		require.Equal(t, c.after, mix(plan(t, "pr131", call)), "after: %s", call)
	}
}

func TestPlansLiterally(t *testing.T) {
	for _, c := range plan(t, "2dca770", allReduce(2, 131104, 0)).Kernels[0].CTAs {
		require.Equal(t, int64(8194), c.Count)
		require.Equal(t, "two_shot", c.Algorithm)
		var lost int64
		for _, s := range c.Slices {
			require.Equal(t, int64(4097), s.Count)
			lost += s.Unwritten
		}
		require.Equal(t, int64(4098), lost)
	}

	ctas := plan(t, "2dca770", allReduce(2, 1048573, 0)).Kernels[0].CTAs
	for _, c := range ctas[:15] {
		require.Equal(t, int64(65535), c.Count)
		require.Equal(t, "segment", c.Algorithm)
		require.Contains(t, c.Why, "byte length no multiple of 4")
	}
	require.Equal(t, "two_shot", ctas[15].Algorithm)
	require.Equal(t, int64(983025), ctas[15].Start)
	require.Equal(t, int64(65548), ctas[15].Count)
	require.Equal(t, int64(65548), ctas[15].Slices[0].Unwritten+ctas[15].Slices[1].Unwritten)
	require.Contains(t, ctas[15].Slices[0].Why, "no 16-, 8- or 4-byte word fits")

	last := plan(t, "pr131", allReduce(4, 524292, 0)).Kernels[0].CTAs[15]
	require.Equal(t, int64(32772), last.Count)
	require.Equal(t, "segment", last.Algorithm)
	require.Contains(t, last.Why, "8193 elements a rank is an odd slice")
}

func TestThresholdIsSaidAtTheThreshold(t *testing.T) {
	const text = ">= 262144 bytes"
	for _, version := range versions {
		at := plan(t, version, allReduce(2, 131072, 0))
		require.Len(t, at.Kernels[0].CTAs, 16)
		require.Contains(t, joined(at.Notes), text)
		require.Contains(t, joined(at.Notes), "says above")
		require.NotContains(t, joined(plan(t, version, allReduce(2, 131073, 0)).Notes), text)
		below := plan(t, version, allReduce(2, 131071, 0))
		require.Len(t, below.Kernels[0].CTAs, 1)
		require.NotContains(t, joined(below.Notes), text)
		require.NotContains(t, joined(plan(t, version, block(allReduce(2, 131072, 0))).Notes), text)
	}
}

func joined(notes []string) string {
	out := ""
	for _, n := range notes {
		out += n + "\n"
	}
	return out
}

func TestAfterThePRAllCTAsButTheLastStayOnNVLS(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		call := allReduce(rapid.SampledFrom([]int{2, 4}).Draw(rt, "ranks"), rapid.Int64Range(131072, 1<<31-1).Draw(rt, "count"), 0)
		call.DType = rapid.SampledFrom([]api.DType{api.BF16, api.F16}).Draw(rt, "dtype")
		p := plan(t, "pr131", call)
		require.Nil(t, p.Fault)
		require.Equal(t, every(call.Ranks, 0), p.Unwritten)
		ctas := p.Kernels[0].CTAs
		require.Len(t, ctas, 16)
		for _, c := range ctas[:15] {
			require.Zero(t, c.Start*2%16)
			require.Equal(t, "two_shot", c.Algorithm)
		}
	})
}

func TestCauses(t *testing.T) {
	type byCause = map[api.Cause]int64
	for _, c := range []struct {
		ranks      int
		count, off int64
		want       byCause
	}{
		{2, 1048573, 0, byCause{api.OddCTAStart: 65548}},
		{2, 1048575, 0, byCause{api.OddTail: 1, api.OddCTAStart: 32775}},
		{2, 131104, 0, byCause{api.OddTail: 16, api.OddSliceStart: 65552}},
		{2, 131105, 0, byCause{api.OddTail: 15, api.OddSliceStart: 61455}},
		{2, 1024, 1, byCause{api.OddPointer: 1024}},
		{2, 131072, 1, byCause{api.OddPointer: 131072}},
		{4, 1024, 1, byCause{api.OddPointer: 1024}},
		{4, 131072, 1, byCause{api.OddPointer: 131072}},
		{4, 1048573, 0, byCause{api.OddTail: 2, api.OddCTAStart: 32774}},
		{4, 524292, 0, byCause{api.OddTail: 2, api.OddSliceStart: 16386}},
	} {
		p := plan(t, "2dca770", allReduce(c.ranks, c.count, c.off))
		for r := range c.ranks {
			require.Equal(t, c.want, causes(p, r), "%s", p.Call)
		}
	}
}

func TestReportedCases(t *testing.T) {
	// B01 (a): forced two-shot.
	p := plan(t, "2dca770?reduce_algo=3", allReduce(2, 6, 0))
	require.Equal(t, []api.Hole{{Start: 2, Count: 1, Cause: api.OddTail}, {Start: 3, Count: 3, Cause: api.OddSliceStart}}, p.Holes(0, 0))
	require.Equal(t, every(2, 0), plan(t, "pr131?reduce_algo=3", allReduce(2, 6, 0)).Unwritten)

	for _, c := range []struct {
		ranks    int
		count    int64
		scope    api.Scope
		src, dst int64
		want     int64
	}{
		// B01 (b)
		{2, 2050, api.OnStream, 0, 0, 1026}, {4, 2052, api.OnStream, 0, 0, 1028}, {8, 2056, api.Block, 0, 0, 1032},
		// B02, each pointer alone too
		{2, 1024, api.OnStream, 1, 1, 1024}, {2, 1024, api.OnStream, 1, 0, 1024}, {2, 1024, api.OnStream, 0, 1, 1024},
		{2, 1024, api.Block, 1, 0, 1024}, {2, 1024, api.Block, 0, 1, 1024}, {2, 1024, api.Block, 2, 0, 0}, {2, 1024, api.Block, 0, 2, 0},
		// B03
		{2, 131074, api.OnStream, 0, 0, 4098}, {2, 131104, api.OnStream, 0, 0, 65568}, {2, 131105, api.OnStream, 0, 0, 61470},
		{2, 1048573, api.OnStream, 0, 0, 65548}, {2, 1048575, api.OnStream, 0, 0, 32776},
		{4, 131076, api.OnStream, 0, 0, 4100}, {4, 524292, api.OnStream, 0, 0, 16388}, {4, 1048573, api.OnStream, 0, 0, 32776},
		{8, 131080, api.OnStream, 0, 0, 4104},
	} {
		for _, dtype := range []api.DType{api.BF16, api.F16} {
			call := allReduce(c.ranks, c.count, 0)
			call.DType, call.Scope, call.SrcOffset, call.DstOffset = dtype, c.scope, offset(c.src), offset(c.dst)
			require.Equal(t, every(c.ranks, c.want), plan(t, "2dca770", call).Unwritten, "%s", call)
			require.Equal(t, every(c.ranks, 0), plan(t, "pr131", call).Unwritten, "%s", call)
		}
	}
}
