package conformance

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
)

// ordered is a side that folds the inputs of a rank's elements in an order of
// its own, and whose plan says that nobody knows which.
func ordered(kinds []api.AnyOrder, fitted bool, order ...int) *planned {
	return &planned{
		fake: &fake{value: func(_ *execution, _, _ int, _ int64, in []uint64, _ uint64) uint64 {
			turned := make([]uint64, len(in))
			for i, from := range order {
				turned[i] = in[from]
			}
			return num.Eval(api.BF16, num.Scheme{Op: num.Sum}, turned)
		}},
		plan: func(call api.Call) (*api.Plan, error) {
			return &api.Plan{
				Unwritten:  make([]int64, call.Ranks),
				Kernels:    []api.Kernel{{CTAs: []api.CTA{{Count: call.Count, Algorithm: "switch"}}}},
				Algorithms: map[string]api.Algorithm{"switch": {Evidence: api.Assumed, Contract: api.Faithful, AnyOrder: kinds, Fitted: fitted}},
			}, nil
		},
	}
}

// TestAnyOrder: where a plan says so, sums step by step in any order hold the
// faithful contract, and no others do.
func TestAnyOrder(t *testing.T) {
	fold := []api.AnyOrder{{Acc: api.BF16}}
	in := values(0x4380, 0x3F80, 0x3F80, 0x3F80) // 256 and three ones: 256, 258 or 259
	c := allReduce(api.BF16, 4, 5)
	run2 := func(l, r *planned) *Report { return run(t, &Runner{Input: in}, l.side(), r.side(), c) }
	rep := run2(ordered(fold, false, 0, 1, 2, 3), ordered(fold, false, 3, 2, 1, 0))
	require.Equal(t, Agree, rep.Verdict)
	require.Equal(t, int64(20), rep.Differing.InSwitch)
	require.Equal(t, Diverge, run2(ordered(nil, false, 0, 1, 2, 3), ordered(nil, false, 3, 2, 1, 0)).Verdict)

	wrong := ordered(fold, false, 0, 1, 2, 3)
	wrong.value = func(*execution, int, int, int64, []uint64, uint64) uint64 { return 0x4387 }
	require.Equal(t, Diverge, run2(wrong, ordered(fold, false, 0, 1, 2, 3)).Verdict)

	// More inputs than are tried in all orders stay undecided.
	many := allReduce(api.BF16, 9, 3)
	rep = run(t, &Runner{Input: values(0x4380, 0x3F80, 0x3F80, 0x3F80, 0, 0, 0, 0, 0)}, ordered(fold, false, 0, 1, 2, 3, 4, 5, 6, 7, 8).side(), ordered(fold, false, 0, 1, 2, 3, 4, 5, 6, 7, 8).side(), many)
	require.Equal(t, Agree, rep.Verdict)
	require.Equal(t, int64(54), rep.Differing.Undecided)
}

// TestFittedIsExact: a side whose arithmetic was measured makes its elements
// exact, whatever less the other side promises.
func TestFittedIsExact(t *testing.T) {
	in := values(0x4380, 0x3F80, 0x3F80, 0x3F80)
	fold := []api.AnyOrder{{Acc: api.BF16}}
	fitted := ordered(fold, true, 0, 1, 2, 3).side()
	rep := run(t, &Runner{Input: in}, fitted, ordered(fold, false, 3, 2, 1, 0).side(), allReduce(api.BF16, 4, 5))
	require.Equal(t, Diverge, rep.Verdict)
	require.Equal(t, api.Exact, rep.Contract)
	rep = run(t, &Runner{Input: in}, fitted, ordered(fold, false, 0, 1, 2, 3).side(), allReduce(api.BF16, 4, 5))
	require.Equal(t, Agree, rep.Verdict)
}

// TestOrderedSums holds the sets to sums over all permutations, in a tree and in
// a line.
func TestOrderedSums(t *testing.T) {
	in := []uint64{0x400A, 0x3FFE, 0xBCDF, 0x3F9F, 0xBD1D}
	for _, kind := range []api.AnyOrder{{Acc: api.BF16}, {Acc: api.BF16, Step: num.TowardZero}, {Acc: api.F32}, {Acc: api.BF16, Tree: true}} {
		want := map[uint64]bool{}
		s := num.Scheme{Op: num.Sum, Step: kind.Step}
		if kind.Tree {
			s.Order = num.Balanced
		}
		permute(in, func(p []uint64) {
			vals := make([]uint64, len(p))
			for i, b := range p {
				vals[i] = b
				if kind.Acc == api.F32 {
					vals[i] = num.Convert(api.F32, api.BF16, b, num.NearestEven)
				}
			}
			want[num.Eval(kind.Acc, s, vals)] = true
		})
		got := orderedSums(api.BF16, kind, in)
		require.Len(t, got, len(want))
		for _, v := range got {
			require.True(t, want[v], "%v %#x", kind, v)
		}
	}
}

// permute calls f with every order of the values.
func permute(vals []uint64, f func([]uint64)) {
	var place func(done, rest []uint64)
	place = func(done, rest []uint64) {
		if len(rest) == 0 {
			f(done)
			return
		}
		for i := range rest {
			left := append(append([]uint64(nil), rest[:i]...), rest[i+1:]...)
			place(append(append([]uint64(nil), done...), rest[i]), left)
		}
	}
	place(nil, vals)
}

// TestBandIsUndecided: two neighbours that differ where bits of terms may have
// been cut are within the contract, and say nothing for each other or against.
func TestBandIsUndecided(t *testing.T) {
	gives := func(b uint64) *fake {
		return &fake{value: func(*execution, int, int, int64, []uint64, uint64) uint64 { return b }, impl: api.Implementation{Name: "plain", Contract: api.Faithful}}
	}
	// The sum is 2^-30 (1 + 2^-9), its least term has bits of 2^-39.
	rep := run(t, &Runner{Input: values(0x3F80, 0xBF80, 0x2FFF, 0x3001)}, gives(0x3080).side(), gives(0x3081).side(), allReduce(api.BF16, 4, 3))
	require.Equal(t, Agree, rep.Verdict)
	require.Equal(t, int64(12), rep.Differing.InSwitch)
	require.Equal(t, int64(12), rep.Differing.Undecided)
	// Beyond the band neighbours differ and are decided.
	rep = run(t, &Runner{Input: values(0x3F80, 0x3B80, 0, 0)}, gives(0x3F80).side(), gives(0x3F81).side(), allReduce(api.BF16, 4, 3))
	require.Equal(t, int64(12), rep.Differing.InSwitch)
	require.Zero(t, rep.Differing.Undecided)
}
