package probe

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
)

// target reduces every element by a function.
type target func(rank int, in []uint64) uint64

func (f target) Reduce(_ context.Context, d api.DType, op api.Op, ranks int, count int64, input func(int, int64) uint64) ([][]uint64, error) {
	if op != api.Sum {
		return nil, &api.Refused{Spec: "target", What: op.String(), Reason: "sums only"}
	}
	out := make([][]uint64, ranks)
	in := make([]uint64, ranks)
	for i := range count {
		for r := range in {
			in[r] = input(r, i)
		}
		for r := range out {
			out[r] = append(out[r], f(r, in))
		}
	}
	return out, nil
}

func sumOf(t *testing.T, d api.DType, f target, ranks int) Cell {
	t.Helper()
	rep, err := Run(t.Context(), f, "target", Options{Ranks: ranks, DTypes: []api.DType{d}, Count: 4096})
	require.NoError(t, err)
	require.Len(t, rep.Refused, 2)
	return rep.Cells[0]
}

// TestSchemes: reductions of the number package, found from outputs.
func TestSchemes(t *testing.T) {
	for _, c := range []struct {
		d       api.DType
		s       num.Scheme
		ranks   int
		verdict string
	}{
		{api.BF16, num.Scheme{Op: num.Sum}, 4, "exact: fold in same, rne a step, order 0-1-2-3"},
		{api.F16, num.Scheme{Op: num.Sum, Order: num.Balanced}, 7, "exact: tree in same, rne a step, order 0-1-2-3-4-5-6"},
		{api.F32, num.Scheme{Op: num.Sum, Step: num.TowardZero}, 5, "exact: fold in same, rz a step, order 0-1-2-3-4"},
		{api.BF16, num.Scheme{Op: num.Sum, Acc: num.AccF32, Last: num.AwayFromZero}, 3, "exact: fold in f32, rne a step, order 0-1-2, last rounding away"},
		{api.F16, num.Scheme{Op: num.Sum, Acc: num.AccExact, Last: num.ToOdd}, 4, "exact: exact, last rounding odd"},
	} {
		cell := sumOf(t, c.d, func(_ int, in []uint64) uint64 { return num.Eval(c.d, c.s, in) }, c.ranks)
		require.Contains(t, cell.Verdict, c.verdict, "%v", cell.Evidence)
		require.True(t, cell.Exact)
	}
}

// TestNotInTheSpace: what no model explains is said, and never exact.
func TestNotInTheSpace(t *testing.T) {
	exact := num.Scheme{Op: num.Sum, Acc: num.AccExact}
	// A tree that is neither a line nor balanced.
	odd := sumOf(t, api.BF16, func(_ int, in []uint64) uint64 {
		add := func(a, b uint64) uint64 { return num.Eval(api.BF16, num.Scheme{Op: num.Sum}, []uint64{a, b}) }
		return add(add(in[0], in[1]), add(add(in[2], in[3]), in[4]))
	}, 5)
	require.False(t, odd.Exact)
	require.Contains(t, odd.Verdict, "no model in the parameter space")
	// One result in a thousand is wrong.
	rare := sumOf(t, api.F16, func(_ int, in []uint64) uint64 {
		v := num.Eval(api.F16, exact, in)
		if in[0]%1021 == 7 {
			v ^= 1
		}
		return v
	}, 4)
	require.False(t, rare.Exact)
	// Ranks that hold different bits.
	ranks := sumOf(t, api.BF16, func(rank int, in []uint64) uint64 {
		turned := append(append([]uint64(nil), in[rank:]...), in[:rank]...)
		return num.Eval(api.BF16, num.Scheme{Op: num.Sum}, turned)
	}, 4)
	require.False(t, ranks.Exact)
	require.Contains(t, ranks.Verdict, "the ranks differ")
}

// TestChance: a direction that is not even the same twice, and one that does not
// follow the fraction.
func TestChance(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	dither := func(p func(in []uint64) float64) Cell {
		return sumOf(t, api.BF16, func(_ int, in []uint64) uint64 {
			lo, hi := num.Neighbours(api.BF16, num.Sum, in)
			if rng.Float64() < p(in) {
				return hi
			}
			return lo
		}, 4)
	}
	cell := dither(func([]uint64) float64 { return 0.5 })
	require.Contains(t, cell.Verdict, "direction not a function of the inputs")
	require.Contains(t, cell.Evidence, "the same call gives other bits: the direction is not fixed by the place")
	require.Contains(t, cell.Evidence, "the share rounded up does not follow the fraction")
	require.False(t, cell.Exact)
}

// TestModelEval holds the probe's own arithmetic to the reference.
func TestModelEval(t *testing.T) {
	names := map[num.Rounding]string{num.NearestEven: "rne", num.NearestAway: "rna", num.TowardZero: "rz", num.AwayFromZero: "away", num.Up: "rtp", num.ToOdd: "odd"}
	rapid.Check(t, func(rt *rapid.T) {
		d := rapid.SampledFrom([]api.DType{api.BF16, api.F16, api.F32, api.F64}).Draw(rt, "dtype")
		in := rapid.SliceOfN(rapid.Uint64(), 2, 5).Draw(rt, "in")
		for i := range in {
			in[i] &= d.Mask()
		}
		for r, name := range names {
			m := Model{Kind: "exact", Final: name, KeepNeg0: true}
			got, ok := m.Eval(d, in)
			require.True(rt, ok)
			require.Equal(rt, num.Eval(d, num.Scheme{Op: num.Sum, Acc: num.AccExact, Last: r}, in), got, "%s %#x", name, in)
		}
	})
}

func TestOptions(t *testing.T) {
	sum := target(func(_ int, in []uint64) uint64 { return in[0] })
	for _, o := range []Options{{Ranks: 2}, {Ranks: 17}, {Count: -1}, {DTypes: []api.DType{api.I32}}, {DTypes: []api.DType{api.E4M3}}} {
		_, err := Run(t.Context(), sum, "x", o)
		require.ErrorIs(t, err, api.ErrInvalid)
	}
	nothing := target(nil)
	_, err := Run(t.Context(), refusing{nothing}, "x", Options{})
	require.ErrorIs(t, err, api.ErrRefused)
}

type refusing struct{ target }

func (refusing) Reduce(context.Context, api.DType, api.Op, int, int64, func(int, int64) uint64) ([][]uint64, error) {
	return nil, &api.Refused{Spec: "x", What: "everything", Reason: "no"}
}
