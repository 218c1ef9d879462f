package exact

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
)

func floats() []api.DType {
	return []api.DType{api.BF16, api.F16, api.F32, api.F64, api.E4M3, api.E5M2}
}

// boundary patterns of a type: zeros, least and greatest numbers, ones,
// infinities, NaNs, of either sign.
func boundary(d api.DType) []uint64 {
	top := num.Encode(d, math.Inf(1), num.NearestEven)
	one := num.Encode(d, 1, num.NearestEven)
	least := uint64(1) << d.MantissaBits()
	var out []uint64
	for _, b := range []uint64{0, 1, 2, least - 1, least, least + 1, one - 1, one, one + 1, top - 2, top - 1, top, d.Mask() >> 1} {
		out = append(out, b, b|1<<(d.Bits()-1))
	}
	return out
}

func TestEveryPairOfBoundaries(t *testing.T) {
	for _, d := range floats() {
		s := NewSum(d)
		for _, a := range boundary(d) {
			for _, b := range boundary(d) {
				check(t, s, []uint64{a, b})
				check(t, s, []uint64{b, a, a ^ 1<<(d.Bits()-1)})
			}
			check(t, s, []uint64{a})
		}
	}
}

func TestEveryPairOfFP8(t *testing.T) {
	for _, d := range []api.DType{api.E4M3, api.E5M2} {
		s := NewSum(d)
		for a := range uint64(256) {
			for b := range uint64(256) {
				check(t, s, []uint64{a, b})
			}
		}
	}
}

// TestEqualsNum draws inputs whose exponents are close together or far apart,
// so that every path is taken.
func TestEqualsNum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.SampledFrom(floats()).Draw(t, "dtype")
		n := rapid.IntRange(1, 20).Draw(t, "n")
		edges := boundary(d)
		exp := rapid.Uint64Range(0, 1<<d.ExponentBits()-1).Draw(t, "exponent")
		in := make([]uint64, n)
		for i := range in {
			b := rapid.Uint64Range(0, d.Mask()).Draw(t, "bits")
			switch rapid.IntRange(0, 3).Draw(t, "how") {
			case 0:
				b = rapid.SampledFrom(edges).Draw(t, "edge")
			case 1, 2: // near exp
				near := (exp + b>>d.MantissaBits()&3) % (1 << d.ExponentBits())
				b = b&^((1<<d.ExponentBits()-1)<<d.MantissaBits()) | near<<d.MantissaBits()
			}
			in[i] = b
		}
		check(t, NewSum(d), in)
	})
}

type fataler interface {
	require.TestingT
	Helper()
}

func check(t fataler, s *Sum, in []uint64) {
	t.Helper()
	lo, hi := num.Neighbours(s.d, num.Sum, in)
	got := s.Set(in)
	if got != (Set{lo, hi}) {
		require.Equal(t, fmt.Sprintf("%x %x", lo, hi), fmt.Sprintf("%x %x", got.Lo, got.Hi), "%v %x", s.d, in)
	}
	for _, b := range []uint64{lo, hi, hi ^ 3} {
		if num.Faithful(s.d, num.Sum, in, b) != got.Has(s.d, b) {
			require.Fail(t, "Has differs from Faithful", "%v %x %x", s.d, in, b)
		}
	}
}

func BenchmarkSet(b *testing.B) {
	for _, d := range []api.DType{api.BF16, api.F16, api.F32, api.F64} {
		for _, n := range []int{2, 8} {
			b.Run(fmt.Sprintf("%v/ranks=%d", d, n), func(b *testing.B) {
				s := NewSum(d)
				r := rand.New(rand.NewPCG(1, 2))
				in := make([][]uint64, 256)
				for i := range in {
					in[i] = make([]uint64, n)
					for j := range in[i] {
						in[i][j] = num.Encode(d, r.NormFloat64(), num.NearestEven)
					}
				}
				for i := range b.N {
					s.Set(in[i&255])
				}
			})
		}
	}
}

// TestRandomSums covers what 100 drawn cases cannot: many sums of every length,
// with exponents all over the format.
func TestRandomSums(t *testing.T) {
	n := 200_000
	if testing.Short() {
		n /= 100
	}
	r := rand.New(rand.NewPCG(3, 4))
	for _, d := range floats() {
		s := NewSum(d)
		in := make([]uint64, 0, 9)
		for range n {
			in = in[:0]
			for range 1 + r.IntN(9) {
				in = append(in, r.Uint64()&d.Mask())
			}
			check(t, s, in)
		}
	}
}
