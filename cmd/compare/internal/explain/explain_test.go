package explain_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/cmd/compare/internal/explain"
	"example.com/tandem/cmd/compare/internal/term"
)

var update = flag.Bool("update", false, "rewrite the golden texts")

// golden holds got to testdata/NAME.txt.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".txt")
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o777))
		require.NoError(t, os.WriteFile(file, []byte(got), 0o666))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

func call(ranks int, count int64) api.Call {
	return api.Call{Collective: api.AllReduce, DType: api.BF16, Op: api.Sum, Ranks: ranks, Count: count}
}

// before and after are plans of 1048573 elements on 2 ranks, by hand.
func before() *api.Plan {
	p := &api.Plan{
		Spec: "sim:nvshmem@2dca770", Call: call(2, 1048573), Kernels: []api.Kernel{{}},
		Cost:       api.Cost{Launches: 1, Rounds: 4, Words: 0, Trips: 9, Bytes: 1966050},
		Algorithms: map[string]api.Algorithm{"segment": {Evidence: api.Recorded}, "two_shot": {Evidence: api.FromSource, Contract: api.Faithful}},
		Unwritten:  []int64{65548, 65548},
		Notes:      []string{"the threshold is at least 262144 bytes"},
	}
	for i := range 15 {
		p.Kernels[0].CTAs = append(p.Kernels[0].CTAs, api.CTA{CTA: i, Start: int64(i) * 65535, Count: 65535,
			Algorithm: "segment", Why: "byte length no multiple of 4", Rounds: 4})
	}
	hole := func(rank int, start int64) api.Slice {
		return api.Slice{Rank: rank, Start: start, Count: 32774, Unwritten: 32774,
			Holes: []api.Hole{{Start: start, Count: 32774, Cause: api.OddCTAStart}}}
	}
	p.Kernels[0].CTAs = append(p.Kernels[0].CTAs, api.CTA{CTA: 15, Start: 983025, Count: 65548, Algorithm: "two_shot", Why: "even count",
		Slices: []api.Slice{hole(0, 983025), hole(1, 1015799)}})
	return p
}

func after() *api.Plan {
	p := &api.Plan{
		Spec: "sim:nvshmem@pr131", Call: call(2, 1048573), Kernels: []api.Kernel{{}},
		Cost:       api.Cost{Launches: 1, Rounds: 5, Words: 4095},
		Algorithms: map[string]api.Algorithm{"segment": {Evidence: api.Recorded}, "two_shot": {Evidence: api.Reconstructed, Contract: api.Faithful}},
		Unwritten:  []int64{0, 0},
	}
	for i := range 15 {
		start := int64(i) * 65528
		p.Kernels[0].CTAs = append(p.Kernels[0].CTAs, api.CTA{CTA: i, Start: start, Count: 65528, Algorithm: "two_shot", Why: "aligned", Words: 8191,
			Slices: []api.Slice{
				{Rank: 0, Start: start, Count: 32764, Words: api.WordCount{W16: 4095, W8: 1}},
				{Rank: 1, Start: start + 32764, Count: 32764, Words: api.WordCount{W8: 8191}},
			}})
	}
	p.Kernels[0].CTAs = append(p.Kernels[0].CTAs, api.CTA{CTA: 15, Start: 982920, Count: 65653, Algorithm: "segment", Why: "byte length no multiple of 4", Rounds: 5})
	return p
}

func cause(c api.Cause) string { return "because of " + string(c) }

func TestText(t *testing.T) {
	golden(t, "before", explain.Text(before(), explain.Options{Cause: cause}))
	golden(t, "after", explain.Text(after(), explain.Options{}))
	golden(t, "coloured", explain.Text(before(), explain.Options{Style: term.Coloured(true)}))
}

// TestTextOfManyRanks has ranks that lose their slice and ranks that lose one
// element, slices of their own algorithm, several kernels, wrong values.
func TestTextOfManyRanks(t *testing.T) {
	p := &api.Plan{Spec: "sim:x@1", Call: call(8, 2056), Kernels: []api.Kernel{{Name: "reduce"}, {Name: "empty"}},
		Unwritten: []int64{1032, 1032, 1032, 1032, 1032, 1032, 1032, 1031}}
	c := api.CTA{Count: 2056, Algorithm: "two_shot", Why: "more than 2048 elements", Words: 129}
	for r := range 8 {
		s := api.Slice{Rank: r, Start: int64(r) * 257, Count: 257, Unwritten: 257, Holes: []api.Hole{{Start: int64(r) * 257, Count: 257, Cause: api.OddSliceStart}}}
		if r%2 == 0 {
			s.Unwritten, s.Words = 1, api.WordCount{W16: 32}
			s.Holes = []api.Hole{{Start: int64(r)*257 + 256, Count: 1, Cause: api.OddTail}}
		}
		c.Slices = append(c.Slices, s)
	}
	c.Slices = append(c.Slices,
		api.Slice{Rank: 3, Start: 0, Count: 9, Local: true, Algorithm: "p2p", Why: "odd length", Holes: []api.Hole{{Start: 0, Count: 4, Cause: api.CauseStale}, {Start: 4, Count: 5, Cause: api.CauseOffset}}})
	p.Kernels[0].CTAs = []api.CTA{c}
	golden(t, "ranks", explain.Text(p, explain.Options{}))
}

func TestTextOfEndings(t *testing.T) {
	p := before()
	p.Fault = &api.Fault{Kind: api.FaultMisaligned, Rank: 1, CTA: 2, Detail: "a 4-byte word at an address off by 2"}
	require.Contains(t, explain.Text(p, explain.Options{}), "Ends in a fault: misaligned_address on rank 1, CTA 2\n  a 4-byte word at an address off by 2\n")
	p = before()
	p.Unknown = "integer sums in the switch"
	require.Contains(t, explain.Text(p, explain.Options{}), "Refused when run: the values are not known\n  integer sums in the switch\n65548 of 1048573")
	p = &api.Plan{Spec: "sim:x", Call: call(3, 0), Kernels: []api.Kernel{{}}, Unwritten: []int64{0, 0, 0}}
	text := explain.Text(p, explain.Options{})
	require.Contains(t, text, "All 0 outputs are written on every rank\n\nNo CTA does anything.\n\nCost of the slowest rank: nothing.\nEvidence: none needed.\n")
}

func TestGroups(t *testing.T) {
	p := before()
	labels := func() (out []string) {
		for _, g := range explain.Groups(&p.Kernels[0]) {
			out = append(out, g.Label())
		}
		return out
	}
	require.Equal(t, []string{"0-14", "15"}, labels())
	p.Kernels[0].CTAs[7].Rounds++
	require.Equal(t, []string{"0-6", "7", "8-14", "15"}, labels())
	p = before()
	p.Kernels[0].CTAs[0].CTA = 99
	require.Equal(t, []string{"99", "1-14", "15"}, labels(), "only neighbours are one group")
	p = after()
	require.Equal(t, []string{"0-14", "15"}, labels())
	p.Kernels[0].CTAs[3].Slices[0].Words = api.WordCount{W4: 16382}
	p.Kernels[0].CTAs[3].Words = 16382
	require.Equal(t, []string{"0-14", "15"}, labels(), "words follow from where a CTA starts")
	require.Contains(t, explain.Text(p, explain.Options{}), "8191 to 16382 multicast words, each of the 15 CTAs\n       rank 0: slice of 32764, 4096 to 16382 words of 16 or 8 or 4 B\n")
	for name, change := range map[string]func(*api.Slice){
		"where it lies": func(s *api.Slice) { s.Start++ },
		"unwritten":     func(s *api.Slice) { s.Unwritten++ },
		"a hole":        func(s *api.Slice) { s.Holes = []api.Hole{{Start: s.Start, Count: 1, Cause: api.OddTail}} },
		"algorithm":     func(s *api.Slice) { s.Algorithm = "p2p" },
		"rank":          func(s *api.Slice) { s.Rank = 0 },
	} {
		p = after()
		change(&p.Kernels[0].CTAs[14].Slices[1])
		require.Equal(t, []string{"0-13", "14", "15"}, labels(), name)
	}
}

func TestDifference(t *testing.T) {
	l, r := before(), after()
	d := explain.Compare(l, r)
	require.Len(t, d.Changes, 2)
	require.Equal(t, explain.Change{Last: 14, Verdict: explain.Faster,
		Left:  &explain.Work{Algorithm: "segment", Why: "byte length no multiple of 4", Count: 65535, Rounds: 4},
		Right: &explain.Work{Algorithm: "two_shot", Why: "aligned", Count: 65528, Words: 8191}}, d.Changes[0])
	require.Equal(t, explain.Change{First: 15, Last: 15, Verdict: explain.Slower, Inverted: true,
		Left:  &explain.Work{Algorithm: "two_shot", Why: "even count", Count: 65548, Unwritten: 65548},
		Right: &explain.Work{Algorithm: "segment", Why: "byte length no multiple of 4", Count: 65653, Rounds: 5}}, d.Changes[1])
	require.Equal(t, explain.Mixed, d.Verdict, "the slowest CTA has a round more, all together far fewer")
	golden(t, "difference", explain.DiffText(l, r, d, explain.Options{Cause: cause}))

	back := explain.Compare(r, l)
	require.Equal(t, explain.Slower, back.Changes[0].Verdict)
	require.Equal(t, explain.Faster, back.Changes[1].Verdict)
	require.True(t, back.Changes[1].Inverted)

	same := explain.Compare(l, l)
	require.Equal(t, explain.Same, same.Verdict)
	for _, c := range same.Changes {
		require.Equal(t, explain.Same, c.Verdict)
		require.False(t, c.Inverted)
	}
	golden(t, "same", explain.DiffText(l, l, same, explain.Options{}))
}

func TestDifferenceOfSplits(t *testing.T) {
	l, r := before(), &api.Plan{Spec: "sim:nvshmem@pr131?nvls=off", Call: call(2, 1048573), Unwritten: []int64{0, 0}, Cost: api.Cost{Launches: 1, Rounds: 64},
		Kernels: []api.Kernel{{CTAs: []api.CTA{{Count: 1048573, Algorithm: "segment", Why: "no multicast", Rounds: 64}}}}}
	d := explain.Compare(l, r)
	require.Len(t, d.Changes, 3)
	for _, c := range d.Changes {
		require.Equal(t, explain.Regrouped, c.Verdict)
	}
	require.Nil(t, d.Changes[0].Right)
	require.Nil(t, d.Changes[2].Left)
	require.Equal(t, explain.Slower, d.Verdict)
	golden(t, "splits", explain.DiffText(l, r, d, explain.Options{}))
	empty := &api.Plan{Spec: "sim:x", Call: call(2, 0), Unwritten: []int64{0, 0}}
	require.Contains(t, explain.DiffText(l, empty, explain.Compare(l, empty), explain.Options{}), "nothing to do")
}

// TestCostDecidesBetweenEqualCTAs: a plan without rounds and words is judged by
// its trips, then by its round trips and launches; notes name their side.
func TestCostDecidesBetweenEqualCTAs(t *testing.T) {
	plan := func(c api.Cost, notes ...string) *api.Plan {
		call := api.Call{Collective: api.AllGather, DType: api.U8, Ranks: 2, Count: 9}
		return &api.Plan{Call: call, Unwritten: make([]int64, 2), Cost: c, Notes: notes, Kernels: []api.Kernel{{CTAs: []api.CTA{{Count: 9, Algorithm: "gather"}}}}}
	}
	l, r := plan(api.Cost{Trips: 1024, Launches: 1}, "inverted step", "shared"), plan(api.Cost{Trips: 1, Launches: 4}, "shared", "pending")
	require.Equal(t, explain.Faster, explain.Compare(l, r).Verdict)
	require.Equal(t, explain.Slower, explain.Compare(r, l).Verdict)
	require.Equal(t, explain.Same, explain.Compare(l, l).Verdict)
	require.Equal(t, explain.Slower, explain.Compare(plan(api.Cost{Launches: 1}), plan(api.Cost{Launches: 6})).Verdict)
	text := explain.DiffText(l, r, explain.Compare(l, r), explain.Options{})
	require.Contains(t, text, "By its counts the right plan is faster")
	require.Contains(t, text, "Note left  inverted step\nNote both  shared\nNote right pending\n")
}
