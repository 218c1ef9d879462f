package arith

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"example.com/tandem/api/num"
	"github.com/stretchr/testify/require"
)

var roundings = []num.Rounding{
	num.NearestEven, num.NearestAway, num.TowardZero, num.Up, num.Down, num.AwayFromZero, num.ToOdd,
}

// schemes lists every scheme that means something of its own for op on d.
func schemes(d num.DType, op num.Op) []num.Scheme {
	var all []num.Scheme
	for _, order := range []num.Order{num.Linear, num.Balanced} {
		switch {
		case !d.Float():
			all = append(all, num.Scheme{Op: op, Order: order})
		case op == num.Min || op == num.Max:
			for _, rule := range []num.MinMaxRule{num.DropNaN, num.PropagateNaN, num.Ternary} {
				all = append(all, num.Scheme{Op: op, Order: order, MinMax: rule})
			}
		default:
			all = append(all, floatSchemes(op, order)...)
		}
	}
	return all
}

func floatSchemes(op num.Op, order num.Order) []num.Scheme {
	var all []num.Scheme
	avgs := []num.AvgRule{num.AvgDivide}
	if op == num.Avg {
		avgs = append(avgs, num.AvgPremul, num.AvgPremulFused, num.AvgMultiply)
	}
	for _, avg := range avgs {
		for _, acc := range []num.Acc{num.AccElement, num.AccF32, num.AccF64, num.AccExact} {
			for _, last := range roundings {
				s := num.Scheme{Op: op, Order: order, Acc: acc, Last: last, Avg: avg}
				all = append(all, s)
				if last == num.NearestEven {
					s.Step = num.TowardZero
					all = append(all, s)
				}
			}
		}
	}
	return all
}

// specials are patterns at the edges of d.
func specials(d num.DType) []uint64 {
	all := []uint64{0, 1, 2, 3, d.Mask(), d.Mask() >> 1, d.Mask()>>1 + 1, d.Mask()>>1 + 2}
	if !d.Float() {
		return all
	}
	inf := (uint64(1)<<d.ExponentBits() - 1) << d.MantissaBits()
	one := uint64(d.Bias()) << d.MantissaBits()
	least := uint64(1) << d.MantissaBits()
	for _, b := range []uint64{inf, inf - 1, inf + 1, inf | least>>1, inf | least>>1 | 1, one, one + 1, one - 1, least, least - 1, least + 1} {
		all = append(all, b, num.Neg(d, b))
	}
	return all
}

// sample is a random pattern: any, a special one, or one near 1.
func sample(r *rand.Rand, d num.DType) uint64 {
	switch r.IntN(4) {
	case 0:
		return r.Uint64() & d.Mask()
	case 1:
		all := specials(d)
		return all[r.IntN(len(all))]
	}
	if !d.Float() {
		return r.Uint64() & d.Mask()
	}
	x := (r.Float64() - 0.5) * float64(int(1)<<r.IntN(6))
	return num.Encode(d, x, num.NearestEven)
}

func fill(r *rand.Rand, d num.DType, p []byte) {
	for i := 0; i < len(p); i += d.Size() {
		num.Store(d, p[i:], sample(r, d))
	}
}

// wanted is what Eval says.
func wanted(d num.DType, s num.Scheme, srcs [][]byte) []byte {
	dst := make([]byte, len(srcs[0]))
	evalTile(dst, d, s, srcs)
	return dst
}

// explain names the first element in which two results differ.
func explain(d num.DType, got, want []byte, srcs [][]byte) string {
	if bytes.Equal(got, want) {
		return ""
	}
	for i := 0; i < len(got); i += d.Size() {
		if g, w := num.Load(d, got[i:]), num.Load(d, want[i:]); g != w {
			var in []string
			for _, src := range srcs {
				in = append(in, fmt.Sprintf("%#x", num.Load(d, src[i:])))
			}
			return fmt.Sprintf("element %d: got %#x, want %#x from %v", i/d.Size(), g, w, in)
		}
	}
	return ""
}

// TestReduceEqualsEval tries every scheme of every type on random inputs.
func TestReduceEqualsEval(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	counts := []int{1, 2, 3, 4, 5, 7, 8, 9, 12, 16, 17, 23}
	if testing.Short() {
		counts = []int{2, 9}
	}
	for _, o := range implementations() {
		for _, d := range num.DTypes() {
			for _, op := range num.Ops() {
				if !op.ValidFor(d) {
					continue
				}
				for _, s := range schemes(d, op) {
					n := counts[r.IntN(len(counts))]
					srcs := make([][]byte, n)
					for i := range srcs {
						srcs[i] = make([]byte, d.Size()*(20+r.IntN(20)))[:20*d.Size()]
						fill(r, d, srcs[i])
					}
					dst := make([]byte, len(srcs[0]))
					o.Reduce(dst, d, s, srcs...)
					require.Empty(t, explain(d, dst, wanted(d, s, srcs), srcs), "%v %+v %+v of %d", d, s, o, n)
				}
			}
		}
	}
}

// implementations are the ways to compute the same: every test runs under each.
func implementations() []Options {
	if assembly() == "none" {
		return []Options{{}}
	}
	return []Options{{Portable: true}, {}}
}
