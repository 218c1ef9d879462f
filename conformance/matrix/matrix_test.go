package matrix

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/tandem/api"
	"example.com/tandem/conformance/inputs"
)

// TestPairwiseHoldsEveryPair compares with the dumb answer: a pair must occur
// if and only if some row of the whole product holds it.
func TestPairwiseHoldsEveryPair(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		sizes := rapid.SliceOfN(rapid.IntRange(1, 4), 2, 5).Draw(rt, "sizes")
		bad := rapid.SliceOfN(rapid.IntRange(0, 3), 0, 6).Draw(rt, "forbidden")
		possible := func(row []int) bool { // axes 0 and last must not both be in bad
			a, b := row[0], row[len(row)-1]
			for i := 0; i+1 < len(bad); i += 2 {
				if a == bad[i] && b == bad[i+1] {
					return false
				}
			}
			return true
		}
		want := pairsOf(product(sizes, possible))
		rows := pairwise(sizes, possible)
		require.Equal(rt, want, pairsOf(rows))
		for _, r := range rows {
			require.True(rt, possible(r))
		}
		require.LessOrEqual(rt, len(rows), len(product(sizes, possible)))
	})
}

func pairsOf(rows [][]int) map[string]bool {
	out := map[string]bool{}
	for _, r := range rows {
		for a := range r {
			for b := a + 1; b < len(r); b++ {
				out[fmt.Sprint(a, r[a], b, r[b])] = true
			}
		}
	}
	return out
}

func TestPairwiseIsSmall(t *testing.T) {
	always := func([]int) bool { return true }
	sizes := []int{5, 8, 6, 4, 3, 3, 2, 4}
	require.Len(t, product(sizes, always), 5*8*6*4*3*3*2*4)
	require.LessOrEqual(t, len(pairwise(sizes, always)), 80)
	require.Equal(t, pairwise(sizes, always), pairwise(sizes, always))
}

func TestExpandFull(t *testing.T) {
	a := Axes{Collectives: []api.Collective{api.AllReduce, api.AllGather}, DTypes: []api.DType{api.BF16, api.I32},
		Ops: []api.Op{api.Sum, api.And}, Counts: []int64{1, 2}}
	var got []string
	for _, c := range a.Expand(true) {
		require.NoError(t, c.Call.Validate())
		got = append(got, c.Call.String()+" "+c.Input.String())
	}
	require.Equal(t, []string{
		"--collective all_reduce --dtype bf16 --op sum --ranks 2 --count 1 --input normal --seed 1",
		"--collective all_reduce --dtype bf16 --op sum --ranks 2 --count 2 --input normal --seed 1",
		"--collective all_reduce --dtype i32 --op sum --ranks 2 --count 1 --input bits --seed 1",
		"--collective all_reduce --dtype i32 --op sum --ranks 2 --count 2 --input bits --seed 1",
		"--collective all_reduce --dtype i32 --op and --ranks 2 --count 1 --input bits --seed 1",
		"--collective all_reduce --dtype i32 --op and --ranks 2 --count 2 --input bits --seed 1",
		"--collective all_gather --dtype bf16 --ranks 2 --count 1 --input normal --seed 1",
		"--collective all_gather --dtype bf16 --ranks 2 --count 2 --input normal --seed 1",
		"--collective all_gather --dtype i32 --ranks 2 --count 1 --input bits --seed 1",
		"--collective all_gather --dtype i32 --ranks 2 --count 2 --input bits --seed 1",
	}, got)
}

func TestExpandAroundThresholds(t *testing.T) {
	a := Axes{Ranks: []int{2, 4}, Seeds: []uint64{1, 2}, Thresholds: func(c api.Call) []int64 { return []int64{int64(c.Ranks), 100} }}
	counts := map[int64]bool{}
	for _, c := range a.Expand(false) {
		counts[c.Call.Count] = true
	}
	require.Equal(t, map[int64]bool{1: true, 2: true, 3: true, 4: true, 5: true, 99: true, 100: true, 101: true}, counts)
	a.Thresholds = func(api.Call) []int64 { return []int64{0} }
	require.Len(t, a.Expand(false), 2*2*2, "0 and 1: a count of -1 is no call")
	a.Thresholds = nil
	require.Len(t, a.Expand(false), 2*2*5)
}

// TestEveryCaseIsSound draws axes of everything.
func TestEveryCaseIsSound(t *testing.T) {
	a := Axes{
		Collectives: api.Collectives(), DTypes: api.DTypes(), Ops: api.Ops(), Ranks: []int{1, 2, 3},
		Counts: []int64{0, 1, 7}, SrcOffsets: []api.Offsets{{0}, {1}, {5}, {0, 3, 1}}, DstOffsets: []api.Offsets{{0}, {1}, {0, 3, 1}},
		InPlace: []api.InPlace{api.OutOfPlace, api.InPlaceOwn, api.InPlaceStart},
		Scopes:  []api.Scope{api.OnStream, api.Block, api.Warp, api.Thread},
		Inputs:  []inputs.Input{{}, {Kind: inputs.Finite}, {Kind: inputs.Bits}, {Kind: inputs.Ones}, {Kind: inputs.OrderFree}, {Kind: inputs.Uniform, Lo: -1, Hi: 1}, Special},
		Seeds:   []uint64{1, 2, 3},
	}
	cases := a.Expand(false)
	seen := map[string]bool{}
	for _, c := range cases {
		require.NoError(t, c.Call.Validate(), "%s", c.Call)
		_, err := c.Input.Open(&c.Call)
		require.NoError(t, err, "%s %s", c.Call, c.Input)
		key := c.Call.String() + c.Input.String()
		require.False(t, seen[key])
		seen[key] = true
	}
	require.Less(t, len(cases), 400)
	for _, want := range []string{"all_gather_many", "u64", "xor", "start"} {
		found := false
		for _, c := range cases {
			found = found || c.Call.Collective.Name() == want || c.Call.DType.String() == want || c.Call.Op.String() == want || c.Call.InPlace.String() == want
		}
		require.True(t, found, want)
	}
}

// TestSpecialValues: over a few calls every special value is met, and in pairs.
func TestSpecialValues(t *testing.T) {
	for _, d := range api.DTypes() {
		seen := map[uint64]bool{}
		pairs := map[[2]uint64]bool{}
		a := Axes{DTypes: []api.DType{d}, Ranks: []int{2}, Inputs: []inputs.Input{Special}, Seeds: make([]uint64, 400), Counts: []int64{3}}
		for i := range a.Seeds {
			a.Seeds[i] = uint64(i)
		}
		for _, c := range a.Expand(true) {
			_, err := c.Input.Open(&c.Call)
			require.NoError(t, err, "%s", c)
			for _, v := range c.Input.Values {
				seen[v] = true
			}
			pairs[[2]uint64(c.Input.Values)] = true
		}
		all := specials(d)
		require.Len(t, seen, len(all), d)
		require.Greater(t, len(pairs), len(all)*len(all)/2, d)
	}
}
