package num

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/floats/scalar"
	"pgregory.net/rapid"
)

// TestUlpsNeighbours: in the order of their values, neighbours of every narrow
// format are one apart, across zero too.
func TestUlpsNeighbours(t *testing.T) {
	for _, d := range narrow() {
		for b := uint64(0); b < maxFinite(d); b++ {
			for _, sign := range []uint64{0, signBit(d)} {
				n, c := Ulps(d, b|sign, (b+1)|sign)
				if n != 1 || c != Finite {
					t.Fatalf("%v %#x: %d, %v", d, b|sign, n, c)
				}
			}
		}
		n, c := Ulps(d, 1, signBit(d)|1)
		require.Equal(t, uint64(2), n, "both zeros are one number")
		require.Equal(t, Finite, c)
	}
}

// TestUlpsGonum compares the distance in f64 with gonum's judgement.
func TestUlpsGonum(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range cases(100_000) {
		a := r.Uint64()
		b := a + r.Uint64N(1<<r.IntN(40)) - r.Uint64N(1<<r.IntN(40))
		n, c := Ulps(F64, a, b)
		x, y := math.Float64frombits(a), math.Float64frombits(b)
		if c != Finite || math.Signbit(x) != math.Signbit(y) {
			continue // gonum gives up on signs that differ
		}
		require.True(t, scalar.EqualWithinULP(x, y, uint(n)), "%g %g", x, y)
		if n > 0 {
			require.False(t, scalar.EqualWithinULP(x, y, uint(n-1)), "%g %g", x, y)
		}
	}
}

func TestUlpsClasses(t *testing.T) {
	for _, c := range []struct {
		a, b uint64
		n    uint64
		want Class
	}{
		{0x3F80, 0x3F80, 0, Finite},
		{0x0000, 0x8000, 0, Zeros},
		{0x7F80, 0x7F80, 0, Infinite},
		{0x7F80, 0xFF80, 0, Opposite},
		{0x7F80, 0x7F7F, 0, FiniteInfinite},
		{0x7FFF, 0xFFC0, 0, NaNs},
		{0x7FFF, 0x7F80, 0, OneNaN},
		{0x3F80, 0x7FC0, 0, OneNaN},
		{0x3F80, 0xBF80, 2 * 0x3F80, Finite},
	} {
		n, class := Ulps(BF16, c.a, c.b)
		require.Equal(t, c.want, class, "%#x %#x: %v", c.a, c.b, class)
		require.Equal(t, c.n, n)
		require.NotEmpty(t, class.String())
	}
	n, class := Ulps(I8, 0x80, 0x7F)
	require.Equal(t, uint64(255), n)
	require.Equal(t, Finite, class)
	n, _ = Ulps(U64, 0, math.MaxUint64)
	require.Equal(t, uint64(math.MaxUint64), n)
}

// TestUlpsProperties: a distance is symmetric, and 0 only between equal patterns
// of the class Finite.
func TestUlpsProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.SampledFrom(DTypes()).Draw(t, "dtype")
		a, b := rapid.Uint64().Draw(t, "a")&d.Mask(), rapid.Uint64().Draw(t, "b")&d.Mask()
		n, c := Ulps(d, a, b)
		m, e := Ulps(d, b, a)
		require.Equal(t, n, m)
		require.Equal(t, c, e)
		require.Equal(t, a == b, n == 0 && c == Finite || a == b)
		if c != Finite {
			require.Zero(t, n)
		}
	})
}

// TestFaithful: what is accepted of an exact result.
func TestFaithful(t *testing.T) {
	one, tiny := encodeAll(BF16, 1)[0], encodeAll(BF16, math.Ldexp(1, -20))[0]
	max, least := maxFinite(BF16), uint64(1)
	for _, c := range []struct {
		op        Op
		in        []uint64
		yes, no   []uint64
		annotated string
	}{
		{Sum, []uint64{one, one}, []uint64{0x4000}, []uint64{0x4001, 0x3FFF}, "representable"},
		{Sum, []uint64{one, tiny}, []uint64{one, one + 1}, []uint64{one - 1, one + 2, 0x7FFF}, "between two"},
		{Sum, []uint64{one, Neg(BF16, tiny)}, []uint64{one, one - 1}, []uint64{one + 1}, "below one"},
		{Sum, []uint64{max, max}, []uint64{max, 0x7F80}, []uint64{max - 1, 0xFF80, 0x7FFF}, "beyond MAX"},
		{Sum, []uint64{max, one}, []uint64{max, 0x7F80}, []uint64{max - 1}, "just beyond MAX"},
		{Sum, []uint64{0x7F80, 0xFF80}, []uint64{0x7FFF, 0xFFC1}, []uint64{0x7F80, 0}, "any NaN"},
		{Sum, []uint64{one, Neg(BF16, one)}, []uint64{0}, []uint64{0x8000}, "exactly zero"},
		{Sum, []uint64{0x8000, 0x8000}, []uint64{0x8000}, []uint64{0}, "-0 only"},
		{Avg, []uint64{least, 0}, []uint64{0, least}, []uint64{0x8000}, "half of the least number"},
		{Avg, []uint64{Neg(BF16, least), 0}, []uint64{0x8000, 0x8001}, []uint64{0}, "keeps its sign"},
		{Prod, []uint64{least, tiny}, []uint64{0, least}, []uint64{0x8000}, "underflow"},
		{Min, []uint64{one, 0x7FC1}, []uint64{one}, []uint64{0x7FFF}, "NaN dropped"},
		{Max, []uint64{0x7FC1, 0x7FC1}, []uint64{0x7FFF, 0x7FC1}, []uint64{one}, "all NaN"},
		{Sum, []uint64{one}, []uint64{one}, []uint64{one + 1}, "a copy"},
	} {
		for _, got := range c.yes {
			require.True(t, Faithful(BF16, c.op, c.in, got), "%s: %#x", c.annotated, got)
		}
		for _, got := range c.no {
			require.False(t, Faithful(BF16, c.op, c.in, got), "%s: %#x", c.annotated, got)
		}
	}
	require.True(t, Faithful(E4M3, Sum, []uint64{0x7E, 0x7E}, 0x7F), "NaN stands in for infinity")
	require.True(t, Faithful(U8, Sum, []uint64{200, 100}, 44))
	require.False(t, Faithful(U8, Sum, []uint64{200, 100}, 255))
}

// TestExactOrderFree: an exact sum does not depend on the order, on what was in
// the accumulator before, or on terms that cancel.
func TestExactOrderFree(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var x Exact
	for range cases(2000) {
		d := floats()[r.IntN(6)]
		in := make([]uint64, 1+r.IntN(12))
		for i := range in {
			in[i] = r.Uint64() & d.Mask()
		}
		sum := func(in []uint64) uint64 {
			x.Reset()
			for _, b := range in {
				x.Add(d, b)
			}
			return x.Round(d, NearestEven)
		}
		want := sum(in)
		r.Shuffle(len(in), func(i, j int) { in[i], in[j] = in[j], in[i] })
		require.Equal(t, want, sum(in))
		if extra := finite(r, d); want != signBit(d) && !IsZero(d, want) {
			require.Equal(t, want, sum(append(in, extra, Neg(d, extra))))
		}
	}
	require.Equal(t, uint64(0), new(Exact).Round(F32, NearestEven), "the empty sum")
}
