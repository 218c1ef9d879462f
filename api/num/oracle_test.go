package num

import (
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// The oracle: exact rational arithmetic, and rounding by looking for the two
// neighbours among the values that Decode gives. It shares no code with Eval but
// Decode, which has an oracle of its own.

// exact is the value of a finite pattern.
func exact(d DType, b uint64) *big.Rat { return new(big.Rat).SetFloat64(Decode(d, b)) }

// roundRat rounds x once into d. zeroNeg is the sign of the result if x is 0.
func roundRat(d DType, x *big.Rat, r Rounding, zeroNeg bool) uint64 {
	if x.Sign() == 0 {
		return withSign(d, zeroNeg, 0)
	}
	neg, mag := x.Sign() < 0, new(big.Rat).Abs(x)
	lo, hi := uint64(0), infinity(d) // the magnitudes around it, found by bisection
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; exact(d, mid).Cmp(mag) <= 0 {
			lo = mid
		} else {
			hi = mid
		}
	}
	below := new(big.Rat).Sub(mag, exact(d, lo))
	if below.Sign() == 0 {
		return withSign(d, neg, lo)
	}
	// The distance to the next value, which beyond MAX there would be too.
	gap := new(big.Rat).Sub(exact(d, max(lo, 1)), exact(d, max(lo, 1)-1))
	if hi != infinity(d) {
		gap.Sub(exact(d, hi), exact(d, lo))
	}
	half := below.Cmp(gap.Quo(gap, big.NewRat(2, 1)))
	up := map[Rounding]bool{
		NearestEven:  half > 0 || half == 0 && lo%2 == 1,
		NearestAway:  half >= 0,
		Up:           !neg,
		Down:         neg,
		AwayFromZero: true,
		ToOdd:        lo%2 == 0 && hi != infinity(d),
	}[r]
	if up {
		lo = hi
	}
	return withSign(d, neg, lo)
}

// finite draws a finite pattern: any, or one among few exponents.
func finite(r *rand.Rand, d DType) uint64 {
	b := r.Uint64N(maxFinite(d) + 1)
	if r.IntN(2) == 0 {
		man := d.MantissaBits()
		b = b&(1<<man-1) | uint64(d.Bias()-2+r.IntN(5))<<man
	}
	return withSign(d, r.IntN(2) == 0, b)
}

func cases(n int) int {
	if testing.Short() {
		return n/100 + 1
	}
	return n
}

// TestStepsAgainstRationals checks one addition, multiplication and division in
// every format under every rounding.
func TestStepsAgainstRationals(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, d := range floats() {
		for _, rounding := range roundings {
			for range cases(300) {
				a, b := finite(r, d), finite(r, d)
				if r.IntN(8) == 0 {
					b = Neg(d, a)
				}
				x, y := exact(d, a), exact(d, b)
				aNeg, bNeg := SignBit(d, a), SignBit(d, b)
				sumNeg := aNeg && bNeg || aNeg != bNeg && rounding == Down
				n := 1 + r.IntN(100)
				for _, c := range []struct {
					op   string
					want *big.Rat
					neg  bool
					got  uint64
				}{
					{"+", new(big.Rat).Add(x, y), sumNeg, Eval(d, Scheme{Op: Sum, Step: rounding}, []uint64{a, b})},
					{"*", new(big.Rat).Mul(x, y), aNeg != bNeg, Eval(d, Scheme{Op: Prod, Step: rounding}, []uint64{a, b})},
					{"/", new(big.Rat).Quo(x, big.NewRat(int64(n), 1)), aNeg, format{d, rounding}.div(a, n)},
				} {
					want := roundRat(d, c.want, rounding, c.neg)
					require.Equal(t, want, c.got, "%v %#x %s %#x or %d by %d: got %#x, want %#x", d, a, c.op, b, n, rounding, c.got, want)
				}
			}
		}
	}
}

// TestFusedAgainstRationals checks the fused step.
func TestFusedAgainstRationals(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, d := range floats() {
		for _, rounding := range roundings {
			for range cases(300) {
				acc, a, c := finite(r, d), finite(r, d), finite(r, d)&^signBit(d)
				product := new(big.Rat).Mul(exact(d, a), exact(d, c))
				if r.IntN(4) == 0 { // cancel most of it
					acc = roundRat(d, new(big.Rat).Neg(product), NearestEven, false)
					if IsInf(d, acc) || IsNaN(d, acc) {
						continue
					}
				}
				accNeg, aNeg := SignBit(d, acc), SignBit(d, a)
				neg := accNeg && aNeg || accNeg != aNeg && rounding == Down
				want := roundRat(d, product.Add(product, exact(d, acc)), rounding, neg)
				got := format{d, rounding}.fma(acc, a, c)
				require.Equal(t, want, got, "%v %#x + %#x*%#x by %d", d, acc, a, c, rounding)
			}
		}
	}
}

// TestExactAgainstRationals checks sums, averages and products of many terms,
// rounded once, and the neighbours of the exact result.
func TestExactAgainstRationals(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, d := range floats() {
		for range cases(400) {
			in, neg := make([]uint64, 2+r.IntN(20)), 0
			sum, prod, minus := new(big.Rat), big.NewRat(1, 1), false
			for i := range in {
				in[i] = finite(r, d)
				if i > 0 && r.IntN(3) == 0 {
					in[i] = Neg(d, in[r.IntN(i)])
				}
				if SignBit(d, in[i]) {
					neg++
					minus = !minus
				}
				sum.Add(sum, exact(d, in[i]))
				prod.Mul(prod, exact(d, in[i]))
			}
			avg := new(big.Rat).Quo(sum, big.NewRat(int64(len(in)), 1))
			for _, c := range []struct {
				op   Op
				want *big.Rat
			}{{Sum, sum}, {Avg, avg}, {Prod, prod}} {
				zeroNeg := func(r Rounding) bool {
					if c.op == Prod {
						return minus
					}
					return neg == len(in) || neg > 0 && r == Down
				}
				for _, rounding := range roundings {
					got := Eval(d, Scheme{Op: c.op, Acc: AccExact, Last: rounding}, in)
					want := roundRat(d, c.want, rounding, zeroNeg(rounding))
					require.Equal(t, want, got, "%v %v %#x by %d", d, c.op, in, rounding)
				}
				lo, hi := Neighbours(d, c.op, in)
				require.Equal(t, roundRat(d, c.want, Down, zeroNeg(Up)), lo, "%v %v %#x", d, c.op, in)
				require.Equal(t, roundRat(d, c.want, Up, zeroNeg(Up)), hi, "%v %v %#x", d, c.op, in)
			}
		}
	}
}

// TestFusedExactSum: products that are not rounded at all.
func TestFusedExactSum(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, d := range floats() {
		for range cases(100) {
			in := make([]uint64, 2+r.IntN(9))
			sum, c := new(big.Rat), exact(d, format{d, NearestEven}.inverse(len(in)))
			for i := range in {
				in[i] = finite(r, d) &^ signBit(d)
				p := new(big.Rat).Mul(exact(d, in[i]), c)
				if i == 0 {
					p = exact(d, roundRat(d, p, NearestEven, false))
				}
				sum.Add(sum, p)
			}
			s := Scheme{Op: Avg, Acc: AccExact, Avg: AvgPremulFused}
			require.Equal(t, roundRat(d, sum, NearestEven, false), Eval(d, s, in), "%v %#x", d, in)
		}
	}
}
