package conformance

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/tandem/api"
)

// TestIntervalsAgainstPoison holds the two ways of finding unwritten elements to
// each other: a backend that tells its intervals, and the same one that does not
// and is run twice.
func TestIntervalsAgainstPoison(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.SampledFrom(api.Collectives()[:5]).Draw(t, "collective")
		d := rapid.SampledFrom(api.DTypes()).Draw(t, "dtype")
		ranks := rapid.IntRange(1, 5).Draw(t, "ranks")
		call := call(c, d, api.NoOp, ranks, int64(rapid.IntRange(0, 200).Draw(t, "count")))
		if c.Reduces() {
			call.Op = api.Sum
		}
		call.SrcOffset = api.Offsets{int64(rapid.IntRange(0, 9).Draw(t, "src"))}
		call.DstOffset = api.Offsets{int64(rapid.IntRange(0, 9).Draw(t, "dst"))}
		every := int64(rapid.IntRange(1, 70).Draw(t, "every"))
		width := int64(rapid.IntRange(0, 69).Draw(t, "width"))
		skip := func(_ *api.Call, rank, _ int, i int64) bool { return (i+int64(rank))%every < width }
		var want []int64
		for rank := range ranks {
			var n int64
			for i := range call.DstElems(0) {
				if skip(nil, rank, 0, i) {
					n++
				}
			}
			want = append(want, n)
		}
		for _, blind := range []bool{false, true} {
			f := &fake{skip: skip, blind: blind}
			var r Runner // the function Run compares no call without elements
			rep, err := r.Run(context.Background(), f.side(), (&fake{}).side(), call)
			require.NoError(t, err)
			require.NoError(t, r.Close(context.Background()))
			require.Equal(t, want, counts(&rep.Left, func(r *RankReport) int64 { return *r.Unwritten }))
			var total int64
			for _, n := range want {
				total += n
			}
			require.Equal(t, total, rep.Differing.Elements)
		}
	})
}

// TestInPlaceCoverage has what in place changes: elements that were right before
// need no store, and a backend that cannot tell leaves elements unreduced.
func TestInPlaceCoverage(t *testing.T) {
	nothing := func(*api.Call, int, int, int64) bool { return true }
	for _, c := range []struct {
		call      api.Call
		unwritten []int64 // where intervals are known
		unreduced []int64 // where they are not
	}{
		{call(api.AllReduce, api.I32, api.Sum, 3, 50), []int64{50, 50, 50}, []int64{50, 50, 50}},
		{call(api.AllGather, api.I32, api.NoOp, 3, 50), []int64{100, 100, 100}, []int64{100, 100, 100}},
		{call(api.Broadcast, api.I32, api.NoOp, 3, 50), []int64{0, 50, 50}, []int64{0, 50, 50}},
		{call(api.ReduceScatter, api.I32, api.Sum, 3, 50), []int64{50, 50, 50}, []int64{50, 50, 50}},
		{call(api.AllReduce, api.I32, api.Sum, 1, 50), []int64{0}, []int64{0}},
	} {
		c.call.InPlace = api.InPlaceOwn
		rep := run(t, &Runner{}, (&fake{skip: nothing}).side(), Definition(), c.call)
		require.Equal(t, c.unwritten, counts(&rep.Left, func(r *RankReport) int64 { return *r.Unwritten }), c.call.String())
		rep = run(t, &Runner{}, (&fake{skip: nothing, blind: true}).side(), Definition(), c.call)
		require.Equal(t, c.unreduced, counts(&rep.Left, func(r *RankReport) int64 { return *r.Unreduced }), c.call.String())
		require.Nil(t, rep.Left.Ranks[0].Unwritten)
	}
}

// TestPartOfAnElement: a store to one of its bytes reached an element.
func TestPartOfAnElement(t *testing.T) {
	c := allReduce(api.F64, 1, 4)
	sets, err := fromIntervals(&c, [][]api.Interval{{{Start: 9, End: 10}, {Start: 23, End: 25}, {Start: 3, End: 3}}})
	require.NoError(t, err)
	var un []int64
	sets[0][0].each(func(i int64) { un = append(un, i) })
	require.Equal(t, []int64{0}, un)
}

func TestBitset(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := int64(rapid.IntRange(1, 300).Draw(t, "n"))
		b, ref := newBitset(n), make([]bool, n)
		for range rapid.IntRange(0, 6).Draw(t, "steps") {
			from := rapid.Int64Range(0, n).Draw(t, "from")
			to := rapid.Int64Range(from, n).Draw(t, "to")
			on := rapid.Bool().Draw(t, "on")
			if on {
				b.setRange(from, to)
			} else {
				b.clearRange(from, to)
			}
			for i := from; i < to; i++ {
				ref[i] = on
			}
		}
		var want, got []int64
		for i, on := range ref {
			require.Equal(t, on, b.has(int64(i)))
			if on {
				want = append(want, int64(i))
			}
		}
		b.each(func(i int64) { got = append(got, i) })
		require.Equal(t, want, got)
		require.Equal(t, int64(len(want)), b.count())
	})
}
