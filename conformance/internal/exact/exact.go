// Package exact finds the neighbours of an exact sum quickly. It equals
// num.Neighbours for sums, bit for bit; the ordinary case is done in float64
// with error-free additions, every other one by num itself.
//
// The rule users break: a Set holds NaN patterns as num makes them, while any
// NaN belongs where one does. Ask with Has.
package exact

import (
	"math"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
)

// Set is the two numbers next to an exact sum, equal where it is representable.
type Set struct{ Lo, Hi uint64 }

// Has reports whether got is one of the two; any NaN stands for any NaN.
func (s Set) Has(d api.DType, got uint64) bool {
	return got == s.Lo || got == s.Hi || num.IsNaN(d, got) && (num.IsNaN(d, s.Lo) || num.IsNaN(d, s.Hi))
}

// Sum finds sets for sums of one floating-point type.
type Sum struct {
	d      api.DType
	m      int // stored mantissa bits
	sign   uint64
	limit  uint64    // greatest finite magnitude
	scale  float64   // makes the least subnormal 1
	least  float64   // least normal number
	parts  []float64 // of an exact sum: no two overlap, the greatest is last
	values *[256]float64
}

// NewSum prepares sums of d, which must be a floating-point type.
func NewSum(d api.DType) *Sum {
	s := &Sum{d: d, m: d.MantissaBits(), sign: 1 << (d.Bits() - 1)}
	s.limit = num.Encode(d, math.Inf(1), num.NearestEven) - 1 // E4M3 has its NaN there
	s.least = math.Ldexp(1, 1-d.Bias())
	s.scale = math.Ldexp(1, d.Bias()-1+s.m)
	if d.Bits() == 8 {
		s.values = new([256]float64)
		for b := range s.values {
			s.values[b] = num.Decode(d, uint64(b))
		}
	}
	return s
}

// Set is the neighbours of the exact sum of at least one input.
func (s *Sum) Set(in []uint64) Set {
	total := s.decode(in[0])
	exact := true
	for _, b := range in[1:] {
		x := s.decode(b)
		sum := total + x
		exact = exact && twoSumError(total, x, sum) == 0
		total = sum
	}
	side := 0
	if !exact {
		total, side = s.expand(in)
	}
	if len(in) > 1 && !math.IsInf(total, 0) && !math.IsNaN(total) {
		if set, ok := s.around(total, side, in); ok {
			return set
		}
	}
	lo, hi := num.Neighbours(s.d, num.Sum, in)
	return Set{lo, hi}
}

// twoSumError is what was lost in sum = a + b.
func twoSumError(a, b, sum float64) float64 {
	bb := sum - a
	return (a - (sum - bb)) + (b - bb)
}

// expand adds exactly: total is the sum to nearest, side the sign of what is
// left of it.
func (s *Sum) expand(in []uint64) (total float64, side int) {
	parts := s.parts[:0]
	for _, b := range in {
		x := s.decode(b)
		kept := parts[:0]
		for _, p := range parts {
			sum := x + p
			if err := twoSumError(x, p, sum); err != 0 {
				kept = append(kept, err)
			}
			x = sum
		}
		parts = append(kept, x)
	}
	s.parts = parts
	// Adding up from the greatest, the first inexact step decides.
	total = parts[len(parts)-1]
	for i := len(parts) - 2; i >= 0; i-- {
		sum := total + parts[i]
		if err := twoSumError(total, parts[i], sum); err > 0 {
			return sum, 1
		} else if err < 0 {
			return sum, -1
		}
		total = sum
	}
	return total, 0
}

// around is the set around total plus something much smaller of the given sign.
func (s *Sum) around(total float64, side int, in []uint64) (Set, bool) {
	if total == 0 {
		return s.zero(in), side == 0
	}
	bits := math.Float64bits(total)
	neg := bits>>63 == 1
	if neg {
		side = -side
	}
	t, exact := s.truncate(math.Abs(total))
	switch {
	case exact && side < 0:
		t, exact = t-1, false
	case side != 0:
		exact = false
	}
	if t > s.limit {
		return Set{}, false
	}
	next := t
	if !exact {
		next = t + 1
	}
	if !neg {
		return Set{t, next}, true
	}
	if s.d == api.E4M3 && next > s.limit {
		return Set{}, false // its NaN has no sign
	}
	return Set{next | s.sign, t | s.sign}, true
}

// truncate is the magnitude pattern of x > 0, cut off, and whether nothing was.
func (s *Sum) truncate(x float64) (t uint64, exact bool) {
	if x < s.least && s.d != api.F64 {
		scaled := x * s.scale
		t = uint64(scaled)
		return t, float64(t) == scaled
	}
	b := math.Float64bits(x)
	drop := 52 - s.m
	return b>>drop - uint64(1023-s.d.Bias())<<s.m, b&(1<<drop-1) == 0
}

// zero is an exact zero: +0 unless every input is -0.
func (s *Sum) zero(in []uint64) Set {
	for _, b := range in {
		if b != s.sign {
			return Set{}
		}
	}
	return Set{s.sign, s.sign}
}

// decode is num.Decode.
func (s *Sum) decode(b uint64) float64 {
	switch s.d {
	case api.BF16:
		return float64(math.Float32frombits(uint32(b) << 16))
	case api.F16:
		return decodeF16(uint32(b))
	case api.F32:
		return float64(math.Float32frombits(uint32(b)))
	case api.F64:
		return math.Float64frombits(b)
	}
	return s.values[b&0xff]
}

// decodeF16 puts exponent and mantissa where a float32 has them; the factor
// makes up for the other bias, for subnormals too.
func decodeF16(b uint32) float64 {
	x := math.Float32frombits(b & 0x7fff << 13)
	if b&0x7c00 == 0x7c00 {
		x = math.Float32frombits(0x7f800000 | b&0x3ff<<13)
	} else {
		x *= 0x1p112
	}
	return float64(math.Float32frombits(math.Float32bits(x) | b&0x8000<<16))
}
