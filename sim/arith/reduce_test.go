package arith

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"example.com/tandem/api/num"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestManyTiles crosses tile boundaries, on one goroutine and on several.
func TestManyTiles(t *testing.T) {
	n := 5*tileElements + 77
	if testing.Short() {
		n = tileElements + 77
	}
	r := rand.New(rand.NewPCG(5, 6))
	for _, d := range []num.DType{num.BF16, num.F16, num.F32, num.F64, num.I32, num.U8} {
		for _, s := range []num.Scheme{
			{Op: num.Sum}, {Op: num.Sum, Order: num.Balanced}, {Op: num.Sum, Acc: num.AccF32},
			{Op: num.Sum, Acc: num.AccExact, Last: num.AwayFromZero}, {Op: num.Max}, {Op: num.Avg, Avg: num.AvgPremulFused},
		} {
			p := newProblem(r, d, s, 11, n)
			require.Empty(t, explain(d, p.want, wanted(d, s, p.srcs), p.srcs), "%v %+v", d, s)
			for _, o := range []Options{{}, {Workers: 1}, {Workers: 3}, {Workers: 3, Portable: true}} {
				got := make([]byte, len(p.want))
				o.Reduce(got, d, s, p.srcs...)
				require.True(t, bytes.Equal(p.want, got), "%v %+v %+v", d, s, o)
			}
		}
	}
}

// TestManyRanks reduces more sources than any machine has GPUs, beyond every
// limit that the exact kernels have.
func TestManyRanks(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, ranks := range []int{64, 72, 255, 1025} {
		for _, d := range []num.DType{num.BF16, num.F16, num.F32, num.F64, num.I16} {
			for _, order := range []num.Order{num.Linear, num.Balanced} {
				for _, acc := range []num.Acc{num.AccElement, num.AccF32, num.AccF64, num.AccExact} {
					s := num.Scheme{Op: num.Sum, Order: order, Acc: acc}
					p := newProblem(r, d, s, ranks, 33)
					require.Empty(t, explain(d, p.want, wanted(d, s, p.srcs), p.srcs), "%v %+v", d, s)
					p.check(t, d, s, 33, func(i int) int { return i })
				}
			}
		}
	}
}

// TestExactSums aims at sums that are not exact in f32 or f64: terms binades
// apart, cancellations, ties that a far smaller term breaks, and overflow.
func TestExactSums(t *testing.T) {
	n := 2000
	if testing.Short() {
		n = 100
	}
	r := rand.New(rand.NewPCG(9, 10))
	for _, d := range []num.DType{num.BF16, num.F16, num.F32} {
		for _, last := range roundings {
			s := num.Scheme{Op: num.Sum, Acc: num.AccExact, Last: last}
			for _, ranks := range []int{2, 3, 5, 8, 16, 17} {
				p := newProblem(r, d, s, ranks, n)
				for i := range n {
					hostileTerms(r, d, p.srcs, i*d.Size())
				}
				want := wanted(d, s, p.srcs)
				Options{Portable: true}.Reduce(p.want, d, s, p.srcs...)
				require.Empty(t, explain(d, p.want, want, p.srcs), "%v %+v", d, s)
				p.check(t, d, s, n, func(int) int { return 0 })
			}
		}
	}
}

// hostileTerms makes the terms of one sum.
func hostileTerms(r *rand.Rand, d num.DType, srcs [][]byte, at int) {
	man := d.MantissaBits()
	exponents := uint64(1)<<d.ExponentBits() - 1 // finite
	base, spread := r.Uint64N(exponents), uint64(1)<<r.IntN(d.ExponentBits())
	for i, src := range srcs {
		b := (base+r.Uint64N(spread))%exponents<<man | r.Uint64()&(1<<man-1)&^(1<<r.IntN(man+1)-1)
		if r.IntN(2) == 0 {
			b = num.Neg(d, b)
		}
		if i > 0 && r.IntN(3) == 0 { // take an earlier term away again, or double it
			b = num.Load(d, srcs[r.IntN(i)][at:]) ^ r.Uint64N(2)<<(d.Bits()-1)
		}
		num.Store(d, src[at:], b)
	}
}

// TestProperties states what must hold whatever the inputs.
func TestProperties(t *testing.T) {
	pattern := rapid.Uint64()
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.SampledFrom(num.DTypes()).Draw(t, "dtype")
		op := rapid.SampledFrom(num.Ops()).Filter(func(op num.Op) bool { return op.ValidFor(d) }).Draw(t, "op")
		s := rapid.SampledFrom(schemes(d, op)).Draw(t, "scheme")
		ranks, n := rapid.IntRange(1, 12).Draw(t, "ranks"), rapid.IntRange(0, 40).Draw(t, "elements")
		srcs := make([][]byte, ranks)
		for i := range srcs {
			srcs[i] = make([]byte, n*d.Size())
			for j := range n {
				num.Store(d, srcs[i][j*d.Size():], pattern.Draw(t, "bits")&d.Mask())
			}
		}
		want := wanted(d, s, srcs)
		for _, o := range implementations() {
			got := make([]byte, n*d.Size())
			o.Reduce(got, d, s, srcs...)
			require.Empty(t, explain(d, got, want, srcs), "%+v", o)
		}
	})
}

// TestConvert compares every conversion with the reference.
func TestConvert(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	var floats []num.DType
	for _, d := range num.DTypes() {
		if d.Float() {
			floats = append(floats, d)
		}
	}
	for _, o := range implementations() {
		for _, from := range floats {
			for _, to := range floats {
				for _, rounding := range roundings {
					const n = 517
					src, want := make([]byte, n*from.Size()), make([]byte, n*to.Size())
					for i := range n {
						b := sample(r, from)
						if i%2 == 0 { // near the numbers of the narrower type
							b = num.Convert(from, to, sample(r, to), rounding) + r.Uint64N(3) - 1
						}
						b &= from.Mask()
						num.Store(from, src[i*from.Size():], b)
						num.Store(to, want[i*to.Size():], num.Convert(to, from, b, rounding))
					}
					var got guarded
					o.Convert(got.place(len(want), r.IntN(33)), to, src, from, rounding)
					require.Equal(t, want, got.p, "%+v %v to %v by %d", o, from, to, rounding)
					require.True(t, got.intact())
				}
			}
		}
	}
}

// TestMisuse: what the caller got wrong panics before anything is written.
func TestMisuse(t *testing.T) {
	sum := num.Scheme{Op: num.Sum}
	p := make([]byte, 8)
	for _, c := range []struct {
		message string
		call    func()
	}{
		{noSources, func() { Reduce(p, num.F32, sum) }},
		{badLength, func() { Reduce(p, num.F32, sum, p, p[:4]) }},
		{badSize, func() { Reduce(p[:6], num.F32, sum, p[:6]) }},
		{badDType, func() { Reduce(p, num.DType(99), sum, p) }},
		{badOp, func() { Reduce(p, num.F32, num.Scheme{Op: num.Xor}, p) }},
		{badOp, func() { Reduce(p, num.F32, num.Scheme{}, p) }},
		{badDType, func() { Convert(p, num.I32, p, num.F32, num.NearestEven) }},
		{badSize, func() { Convert(p[:6], num.F32, p, num.F32, num.NearestEven) }},
		{badLength, func() { Convert(p, num.F32, p, num.F64, num.NearestEven) }},
	} {
		require.PanicsWithValue(t, c.message, c.call)
	}
}
