package nvshmem

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
)

// The predictions of the description's section 10, by number, as far as plans
// show them.

func scatter(ranks int, dtype api.DType, op api.Op, count int64) api.Call {
	return api.Call{Collective: api.ReduceScatter, DType: dtype, Op: op, Ranks: ranks, Count: count}
}

func gather(ranks int, dtype api.DType, count, off int64) api.Call {
	return api.Call{Collective: api.AllGather, DType: dtype, Ranks: ranks, Count: count, SrcOffset: offset(off), DstOffset: offset(off)}
}

func inPlace(c api.Call, form api.InPlace) api.Call {
	c.InPlace = form
	return c
}

func Test10_1EightRanks(t *testing.T) {
	stream, small := allReduce(8, 1048704, 0), block(allReduce(8, 2056, 0))
	for _, version := range []string{"2dca770", "3.4.5"} {
		require.Equal(t, every(8, 524416), plan(t, version, stream).Unwritten)
		require.Equal(t, every(8, 1032), plan(t, version, small).Unwritten)
	}
	after := plan(t, "pr131", stream)
	require.Equal(t, every(8, 0), after.Unwritten)
	require.Equal(t, map[string]int{"segment": 16}, mix(after))
}

func Test10_2ReduceScatterIgnoresTheOffset(t *testing.T) {
	p := plan(t, "3.4.5", scatter(2, api.BF16, api.Max, 262144))
	require.Equal(t, map[string]int{"linear": 16}, mix(p))
	require.Equal(t, every(2, 0), p.Unwritten)
	// Every CTA reads the wrong elements but CTA 0 of rank 0.
	require.Equal(t, map[api.Cause]int64{api.CauseOffset: 262144 - 16384}, causes(p, 0))
	require.Equal(t, map[api.Cause]int64{api.CauseOffset: 262144}, causes(p, 1))
	require.Empty(t, p.Kernels[0].CTAs[0].Slices[0].Holes)

	odd := plan(t, "3.4.5", scatter(2, api.BF16, api.Sum, 262145))
	require.Equal(t, map[string]int{"nvls": 15, "linear": 1}, mix(odd))
	require.Equal(t, map[api.Cause]int64{api.CauseOffset: 16385}, causes(odd, 0))

	// One CTA: right on every rank.
	require.Empty(t, causes(plan(t, "3.4.5", block(scatter(4, api.BF16, api.Max, 1024))), 3))
}

func Test10_3MisalignedByRank(t *testing.T) {
	for _, c := range []struct {
		ranks int
		count int64
		lost  int64
		odd   []int
	}{{2, 262145, 245760, []int{1}}, {4, 131073, 122880, []int{1, 3}}} {
		call := scatter(c.ranks, api.BF16, api.Sum, c.count)
		want := every(c.ranks, 0)
		for _, r := range c.odd {
			want[r] = c.lost
		}
		tail := c.count - c.lost
		for _, spec := range []string{"2dca770", "3.4.5", "pr131?rs_align=pointer"} {
			p := plan(t, spec, call)
			require.Equal(t, want, p.Unwritten, spec)
			require.Equal(t, map[api.Cause]int64{api.OddSliceStart: c.lost, api.CauseOffset: tail}, causes(p, 1), spec)
			require.Equal(t, map[api.Cause]int64{api.CauseOffset: tail}, causes(p, 0), spec)
		}

		shifted := plan(t, "pr131?rs_align=shifted", call)
		require.Equal(t, every(c.ranks, 0), shifted.Unwritten)
		require.Equal(t, map[api.Cause]int64{api.CauseStale: c.lost, api.CauseOffset: tail}, causes(shifted, 1))
		require.Equal(t, map[api.Cause]int64{api.CauseOffset: tail}, causes(shifted, 0))
		first := shifted.Kernels[0].CTAs[0]
		require.Equal(t, "nvls", first.Algorithm)
		require.Equal(t, "linear", first.Slices[1].Algorithm)
		require.Equal(t, "source not 4-byte aligned", first.Slices[1].Why)

		_, err := tryPlan("pr131", call)
		require.ErrorIs(t, err, api.ErrRefused)
		require.ErrorContains(t, err, "rs_align=pointer or rs_align=shifted")
	}
	// The readings agree: no need to choose.
	for _, call := range []api.Call{
		scatter(2, api.BF16, api.Sum, 262144), scatter(2, api.BF16, api.Max, 262145), scatter(4, api.F32, api.Sum, 262145),
		block(scatter(2, api.BF16, api.Sum, 262145)),
	} {
		a, b := plan(t, "pr131?rs_align=pointer", call), plan(t, "pr131?rs_align=shifted", call)
		p := plan(t, "pr131", call)
		require.Equal(t, a.Kernels, p.Kernels)
		require.Equal(t, b.Kernels, p.Kernels)
	}
	require.NotNil(t, plan(t, "pr131?nvls=off", scatter(2, api.BF16, api.Sum, 262145)))
}

func Test10_4FallbackIsRankInconsistent(t *testing.T) {
	for _, call := range []api.Call{allReduce(4, 524292, 0), block(allReduce(4, 1048572, 0))} {
		p := plan(t, "pr131", call)
		require.Positive(t, mix(p)["segment"])
		require.Contains(t, joined(p.Notes), "ranks may end with different bits")
		require.NotContains(t, joined(plan(t, "2dca770", call).Notes), "different bits")
	}
}

func Test10_5InPlaceSegment(t *testing.T) {
	const spoiled = "sends what it has already reduced"
	for _, c := range []struct {
		spec    string
		call    api.Call
		segment bool
		spoiled bool
	}{
		{"3.4.5?nvls=off", block(allReduce(4, 5461, 0)), true, false},
		{"3.4.5?nvls=off", block(allReduce(4, 5462, 0)), true, true},
		{"3.4.5?nvls=off", block(allReduce(4, 4681, 0)), false, false},
		{"3.4.5?nvls=off", block(allReduce(2, 1<<20, 0)), true, false},
		{"pr131", allReduce(4, 524292, 0), true, true},
		{"2dca770", allReduce(4, 524292, 0), false, false},
	} {
		p := plan(t, c.spec, inPlace(c.call, api.InPlaceOwn))
		require.Equal(t, c.segment, mix(p)["segment"] > 0, "%s", c.call)
		if c.spoiled {
			require.Contains(t, joined(p.Notes), spoiled)
		} else {
			require.NotContains(t, joined(p.Notes), spoiled)
		}
		require.NotContains(t, joined(plan(t, c.spec, c.call).Notes), spoiled)
	}
	require.Equal(t, every(4, 16388), plan(t, "2dca770", inPlace(allReduce(4, 524292, 0), api.InPlaceOwn)).Unwritten)
}

func Test10_6SplitBreaksDivisibility(t *testing.T) {
	for _, c := range []struct {
		ranks int
		count int64
		after map[string]int
	}{
		{6, 131136, map[string]int{"segment": 15, "two_shot": 1}},
		{3, 262176, map[string]int{"segment": 15, "two_shot": 1}},
		{7, 131264, map[string]int{"segment": 16}},
	} {
		call := allReduce(c.ranks, c.count, 0)
		require.Equal(t, map[string]int{"two_shot": 16}, mix(plan(t, "2dca770", call)))
		require.Equal(t, c.after, mix(plan(t, "pr131", call)))
	}
}

func Test10_7SmallInPlace(t *testing.T) {
	for _, c := range []struct {
		ranks       int
		count, lost int64
	}{{2, 6, 4}, {2, 1026, 514}, {4, 12, 8}} {
		p := plan(t, "2dca770", inPlace(allReduce(c.ranks, c.count, 0), api.InPlaceOwn))
		require.Equal(t, every(c.ranks, c.lost), p.Unwritten)
		require.Equal(t, map[string]int{"two_shot": 1}, mix(p))
		require.Equal(t, every(c.ranks, 0), plan(t, "2dca770", allReduce(c.ranks, c.count, 0)).Unwritten, "one-shot out of place")
	}
}

func Test10_8Fcollect(t *testing.T) {
	for _, c := range []struct {
		ranks int
		count int64
		lost  int64
	}{{2, 262145, 245760}, {2, 262173, 32796}, {4, 131073, 229376}, {8, 65537, 196608}} {
		for _, version := range versions {
			for _, dtype := range []api.DType{api.BF16, api.F16, api.I16, api.U16} {
				require.Equal(t, every(c.ranks, c.lost), plan(t, version, gather(c.ranks, dtype, c.count, 0)).Unwritten)
			}
		}
	}
	require.Equal(t, every(2, 2056), plan(t, "3.4.5", block(gather(2, api.BF16, 1028, 1))).Unwritten)
	// One-byte types too.
	require.Equal(t, every(2, 8192), plan(t, "3.4.5", block(gather(2, api.U8, 4096, 1))).Unwritten)

	// In place, a rank's own block holds its value whatever is stored.
	own := plan(t, "3.4.5", inPlace(gather(2, api.BF16, 262145, 0), api.InPlaceOwn))
	require.Equal(t, []int64{245760, 0}, own.Unwritten)
}

func Test10_8MisalignedLL8(t *testing.T) {
	for _, spec := range []string{"3.4.5", "3.4.5?nvls=off"} {
		for _, scope := range []api.Scope{api.Block, api.OnStream, api.Warp} {
			for _, c := range []struct {
				src, dst, count int64
				faults          bool
			}{
				{1, 1, 64, true}, {1, 1, 1024, true}, {1, 0, 64, true}, {0, 1, 64, true},
				{1, 1, 65, false}, {1, 1, 66, false}, {1, 1, 1028, false}, {2, 2, 64, false}, {0, 0, 64, false},
			} {
				call := gather(2, api.BF16, c.count, 0)
				call.Scope, call.SrcOffset, call.DstOffset = scope, offset(c.src), offset(c.dst)
				p := plan(t, spec, call)
				require.Equal(t, c.faults, p.Fault != nil, "%s", call)
				if c.faults {
					require.Equal(t, api.FaultMisaligned, p.Fault.Kind)
				}
			}
		}
	}
	thread := gather(2, api.BF16, 64, 1)
	thread.Scope = api.Thread
	require.Nil(t, plan(t, "3.4.5", thread).Fault, "thread scope is never on LL8")
}

func Test10_11And10_12IntegerWords(t *testing.T) {
	sum := plan(t, "3.4.5", block(scatter(2, api.I32, api.Sum, 1024)))
	require.Equal(t, api.WordCount{W16: 256}, sum.Kernels[0].CTAs[0].Slices[0].Words)
	require.Contains(t, joined(sum.Notes), "f32 patterns")
	shifted := block(scatter(2, api.I32, api.Sum, 1024))
	shifted.SrcOffset, shifted.DstOffset = offset(2), offset(2)
	require.Equal(t, api.WordCount{W8: 512}, plan(t, "3.4.5", shifted).Kernels[0].CTAs[0].Slices[0].Words)
	low := plan(t, "3.4.5", block(scatter(2, api.U32, api.Min, 1024)))
	require.Equal(t, api.WordCount{W8: 512}, low.Kernels[0].CTAs[0].Slices[0].Words)
	require.Contains(t, joined(low.Notes), "64-bit pairs")
	double := plan(t, "3.4.5", block(scatter(2, api.F64, api.Sum, 1024)))
	require.Equal(t, api.WordCount{W8: 1024}, double.Kernels[0].CTAs[0].Slices[0].Words)
	require.NotContains(t, joined(double.Notes), "integer")
}

func Test10_14ManyCTAs(t *testing.T) {
	mixed := plan(t, "2dca770?max_ctas=64", allReduce(8, 131080, 0))
	require.Equal(t, map[string]int{"one_shot": 63, "two_shot": 1}, mix(mixed))

	call := allReduce(2, 32768, 0)
	call.DType = api.F64
	p := plan(t, "3.4.5?max_ctas=128", call)
	require.Equal(t, map[string]int{"ll": 128}, mix(p))
	require.Contains(t, p.Unknown, "race: 128 CTAs are on the LL algorithm")
	require.Empty(t, plan(t, "3.4.5?max_ctas=64", call).Unknown)
	require.Contains(t, plan(t, "3.4.5?max_ctas=2&fcollect_ll_threshold=131072", call).Unknown, "race: 2 CTAs")
	require.Empty(t, plan(t, "3.4.5", block(allReduce(2, 256, 0))).Unknown)
}

func Test10_15ScratchAssert(t *testing.T) {
	for _, ranks := range []int{2, 4, 8} {
		fits := int64(262144 / (2 * ranks))
		require.Nil(t, plan(t, "3.4.5?nvls=off", scatter(ranks, api.BF16, api.Sum, fits)).Fault)
		over := scatter(ranks, api.BF16, api.Sum, fits+1)
		fault := plan(t, "3.4.5?nvls=off", over).Fault
		require.NotNil(t, fault)
		require.Equal(t, api.FaultAssert, fault.Kind)
		require.Contains(t, fault.Detail, "reduce_scratch_size")
		require.Nil(t, plan(t, "3.4.5?nvls=off&reduce_scratch_size=1048576", over).Fault)
	}
}

func Test10_17InPlaceScatterIsNoted(t *testing.T) {
	const lost = "lose their own contribution"
	call := block(scatter(4, api.F64, api.Max, 100))
	require.Contains(t, joined(plan(t, "3.4.5", inPlace(call, api.InPlaceOwn)).Notes), lost)
	require.NotContains(t, joined(plan(t, "3.4.5", inPlace(call, api.InPlaceStart)).Notes), lost)
	require.NotContains(t, joined(plan(t, "3.4.5", call).Notes), lost)
	call.Ranks = 2
	require.NotContains(t, joined(plan(t, "3.4.5", inPlace(call, api.InPlaceOwn)).Notes), lost)
}

func Test10_18LL8InSeveralCTAs(t *testing.T) {
	p := plan(t, "3.4.5?max_ctas=64", gather(8, api.BF16, 65536, 0))
	require.Equal(t, map[string]int{"ll8": 64}, mix(p))
	require.Equal(t, every(8, 516096), p.Unwritten)
	require.Contains(t, p.Unknown, "race")
	require.Contains(t, p.Unknown, "the first 8192 of 524288 elements are raced by 64 CTAs")
	require.Equal(t, map[api.Cause]int64{api.CauseOffset: 516096}, causes(p, 0))
	for _, h := range p.Holes(0, 0) {
		require.GreaterOrEqual(t, h.Start, int64(8192))
	}
	require.Empty(t, plan(t, "3.4.5", gather(8, api.BF16, 65536, 0)).Unknown)
}
