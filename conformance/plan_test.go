package conformance

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
	"example.com/tandem/conformance/inputs"
)

// with is a fake that plans one CTA a slice, all of one algorithm.
func with(f *fake, c api.Contract, slices ...api.Slice) *planned {
	return &planned{f, func(call api.Call) (*api.Plan, error) {
		p := &api.Plan{Algorithms: map[string]api.Algorithm{"two_shot": {Evidence: api.FromSource, Contract: c}}, Kernels: []api.Kernel{{}}}
		for i, s := range slices {
			for _, h := range s.Holes {
				if h.Cause.Unwritten() {
					s.Unwritten += h.Count
				}
			}
			p.Kernels[0].CTAs = append(p.Kernels[0].CTAs, api.CTA{CTA: i, Start: s.Start, Count: s.Count, Algorithm: "two_shot", Slices: []api.Slice{s}})
		}
		return p, nil
	}}
}

// TestPlansKnowTheirHoles: what a plan says comes before what positions and bits
// suggest, for elements that are not written and for those that are wrong.
func TestPlansKnowTheirHoles(t *testing.T) {
	noise := func(_ *execution, _, _ int, i int64, _ []uint64, v uint64) uint64 {
		if i >= 8 {
			return v + 12345
		}
		return v
	}
	skip := func(_ *api.Call, _, _ int, i int64) bool { return i == 3 || i == 7 }
	odd := []api.Hole{{Start: 3, Count: 1, Cause: api.OddSliceStart}}
	first := api.Slice{Count: 4, Holes: odd}
	second := api.Slice{Rank: 1, Start: 4, Count: 4, Holes: []api.Hole{{Start: 7, Count: 1, Cause: api.OddSliceStart}}}
	for cause, words := range map[api.Cause]string{
		api.CauseStale:   "left: scratch that nobody wrote for this call is reduced, by the implementation's own plan",
		api.CauseOffset:  "left: the inputs are read at the wrong offset, by the implementation's own plan",
		api.CauseForeign: "left: data that does not belong to the element is reduced into it, by the implementation's own plan",
		api.CauseRanks:   "left: the value is not that of the definition (rank_disagreement), by the implementation's own plan",
	} {
		wrong := api.Slice{Start: 8, Count: 4, Holes: []api.Hole{{Start: 8, Count: 4, Cause: cause}}}
		l := with(&fake{value: noise, skip: skip}, api.Exact, first, second, wrong)
		rep := run(t, &Runner{}, l.side(), (&fake{}).side(), call(api.AllReduce, api.U16, api.Max, 2, 12))
		require.Equal(t, map[api.Cause]int64{api.OddSliceStart: 4, cause: 8}, classes(rep))
		for _, c := range rep.Causes {
			if c.Class == cause {
				require.Equal(t, words, c.Explanation)
			} else {
				require.Contains(t, c.Explanation, "lost left by 2 CTAs, the first of them CTA 0 (4 elements from element 0, two_shot)")
				require.NotContains(t, c.Explanation, "positions")
			}
		}
		text := string(text(t, rep))
		require.Contains(t, text, "and 1 more CTA alike, up to CTA 1")
		require.Contains(t, text, "slice of rank 0: 4 elements from 0, no word of 16, 8 or 4 bytes fits, 1 unwritten (odd_slice_start)")
	}
}

// TestLocalSlices: a hole in one rank's destination is no hole in another's.
func TestLocalSlices(t *testing.T) {
	skip := func(_ *api.Call, rank, _ int, i int64) bool { return rank == 1 && i < 4 }
	local := api.Slice{Rank: 1, Count: 4, Local: true, Holes: []api.Hole{{Count: 4, Cause: api.OddCTAStart}}}
	rep := run(t, &Runner{}, with(&fake{skip: skip}, api.Exact, local).side(), (&fake{}).side(), call(api.ReduceScatter, api.U16, api.Max, 2, 4))
	require.Equal(t, []int64{0, 4}, rep.Differing.PerRank)
	require.Equal(t, map[api.Cause]int64{api.OddCTAStart: 4}, classes(rep))
	require.Contains(t, string(text(t, rep)), "4 unwritten over all ranks")
}

// TestReplayInPlaceWithHoles: in place an unwritten element holds the rank's own
// input, which no faithful set need contain; what both leave as it was is equal.
func TestReplayInPlaceWithHoles(t *testing.T) {
	skip := func(_ *api.Call, _, _ int, i int64) bool { return i >= 60 }
	side := func(r num.Rounding, skip func(*api.Call, int, int, int64) bool) Side {
		return with(&fake{scheme: num.Scheme{Acc: num.AccExact, Last: r}, skip: skip}, api.Faithful, api.Slice{Count: 100, Holes: []api.Hole{{Start: 60, Count: 40, Cause: api.OddCTAStart}}}).side()
	}
	c := allReduce(api.BF16, 4, 100)
	c.InPlace, c.SrcOffset, c.DstOffset = api.InPlaceOwn, api.Offsets{0}, api.Offsets{0}
	row := record(t, side(num.TowardZero, skip), inputs.Input{}, c)
	require.Equal(t, int64(40), *row.Unwritten[2])
	require.Equal(t, 1, replayOne(t, side(num.TowardZero, skip), row).Passed)
	require.Equal(t, 1, replayOne(t, side(num.AwayFromZero, skip), row).Passed, "the written part is faithful either way")
	rep := replayOne(t, side(num.AwayFromZero, nil), row)
	require.Equal(t, 1, rep.Failed, "writing what the library left is not the same")
	require.Equal(t, int64(60), *rep.Failures[0].FirstIndex)
	require.Equal(t, "CTA 0, two_shot, slice of rank 0", rep.Failures[0].Where)
}

// marked is a backend that plans and has its calls to itself.
type marked struct{ *planned }

func (marked) Exclusive() {}

// away is a backend whose plans are not to be had.
type away struct{ *fake }

func (away) Plan(api.Spec, api.Call) (*api.Plan, error) {
	return nil, &api.Unavailable{Reason: "no GPU"}
}

// TestAlone: who has calls to itself, and that a plan which cannot be made is none.
func TestAlone(t *testing.T) {
	plain := &fake{}
	plans := with(plain, api.Exact)
	for want, list := range map[bool][]api.Backend{true: {plain, marked{plans}}, false: {plans, away{plain}}} {
		for _, b := range list {
			require.Equal(t, want, Side{Backend: b}.Alone(), "%T", b)
		}
	}
	p, err := Side{Backend: away{plain}}.plan(&api.Call{})
	require.NoError(t, err)
	require.Nil(t, p)
	refused := &planned{plain, func(api.Call) (*api.Plan, error) { return nil, &api.Refused{} }}
	_, err = Side{Backend: refused}.plan(&api.Call{})
	require.ErrorIs(t, err, api.ErrRefused)
}
