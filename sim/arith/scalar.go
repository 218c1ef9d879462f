package arith

import (
	"math"

	"example.com/tandem/api/num"
)

// The scalars of the portable kernels, small enough to be inlined. Products are
// converted explicitly everywhere, or the compiler would fuse them with a sum on
// some machines and give other bits.

// The loops below index up to len-1, len-3 or len-7, from which the compiler sees
// that no access is out of bounds, and reads a whole element at once.

func get16(p []byte, i int) uint16 { return uint16(p[i]) | uint16(p[i+1])<<8 }

func put16(p []byte, i int, v uint16) { p[i], p[i+1] = byte(v), byte(v>>8) }

func get32(p []byte, i int) uint32 {
	return uint32(p[i]) | uint32(p[i+1])<<8 | uint32(p[i+2])<<16 | uint32(p[i+3])<<24
}

func put32(p []byte, i int, v uint32) {
	p[i], p[i+1], p[i+2], p[i+3] = byte(v), byte(v>>8), byte(v>>16), byte(v>>24)
}

func get64(p []byte, i int) uint64 {
	return uint64(p[i]) | uint64(p[i+1])<<8 | uint64(p[i+2])<<16 | uint64(p[i+3])<<24 |
		uint64(p[i+4])<<32 | uint64(p[i+5])<<40 | uint64(p[i+6])<<48 | uint64(p[i+7])<<56
}

func put64(p []byte, i int, v uint64) {
	p[i], p[i+1], p[i+2], p[i+3] = byte(v), byte(v>>8), byte(v>>16), byte(v>>24)
	p[i+4], p[i+5], p[i+6], p[i+7] = byte(v>>32), byte(v>>40), byte(v>>48), byte(v>>56)
}

func getF32(p []byte, i int) float32    { return math.Float32frombits(get32(p, i)) }
func putF32(p []byte, i int, v float32) { put32(p, i, math.Float32bits(v)) }
func getF64(p []byte, i int) float64    { return math.Float64frombits(get64(p, i)) }
func putF64(p []byte, i int, v float64) { put64(p, i, math.Float64bits(v)) }

const (
	nan16 = 0x7FFF     // the canonical NaN of bf16 and f16
	nan32 = 0x7FFFFFFF // of f32
)

// widenBF16 is the value of a bf16 pattern.
func widenBF16(b uint16) float32 { return math.Float32frombits(uint32(b) << 16) }

// narrowBF16 rounds to nearest even.
func narrowBF16(x float32) uint16 {
	if x != x {
		return nan16
	}
	u := math.Float32bits(x)
	return uint16((u + 0x7FFF + u>>16&1) >> 16)
}

// widenF16 is the value of an f16 pattern. Multiplying by 2^112 moves the
// exponent from the f16 bias to that of f32, for subnormals too.
func widenF16(h uint16) float32 {
	sign, mag := uint32(h&0x8000)<<16, uint32(h&0x7FFF)<<13
	if mag >= 0x7C00<<13 {
		return math.Float32frombits(sign | mag | 0x7F800000)
	}
	x := float32(math.Float32frombits(mag) * 0x1p112)
	return math.Float32frombits(sign | math.Float32bits(x))
}

// narrowF16 rounds to nearest even.
func narrowF16(x float32) uint16 {
	u := math.Float32bits(x)
	sign, mag := uint16(u>>16&0x8000), u&0x7FFFFFFF
	switch {
	case mag-0x38800000 < 0x477FF000-0x38800000: // f16's normal numbers
		return sign | uint16((mag-0x38000000+0xFFF+mag>>13&1)>>13)
	case mag < 0x38800000:
		// The last place of a sum near 0.5 is that of f16's subnormals.
		return sign | uint16(math.Float32bits(math.Float32frombits(mag)+0.5)-0x3F000000)
	case mag > 0x7F800000:
		return nan16
	}
	return sign | 0x7C00
}

// narrowBF16By rounds as r says.
func narrowBF16By(x float32, r num.Rounding) uint16 {
	if x != x {
		return nan16
	}
	u := math.Float32bits(x)
	kept := uint16(u >> 16)
	return kept + awayBy(r, kept, u<<16)
}

// narrowF16By rounds as r says.
func narrowF16By(x float32, r num.Rounding) uint16 {
	u := math.Float32bits(x)
	sign, mag := uint16(u>>16&0x8000), u&0x7FFFFFFF
	switch {
	case mag > 0x7F800000:
		return nan16
	case mag == 0x7F800000:
		return sign | 0x7C00
	case mag >= 0x47800000: // 2^16: beyond the finite values whatever r says
		return sign | 0x7BFF + awayBy(r, sign|0x7BFF, 0xFFFFFFFF)
	}
	drop := uint32(13)
	if mag < 0x38800000 {
		// Below the normal numbers the last place stays at 2^-24.
		exp := max(mag>>23, 1)
		drop = 126 - exp
		if mag >= 0x00800000 {
			mag = mag&0x007FFFFF | 0x00800000
		}
		if drop > 31 { // a quarter of the last place at most
			drop = 31
			if mag != 0 {
				mag = 1
			}
		}
	} else {
		mag -= 0x38000000
	}
	kept := sign | uint16(mag>>drop)
	return kept + awayBy(r, kept, mag<<(32-drop))
}

// awayBy is 1 if kept, a pattern with its sign, goes one away from zero, given
// what was cut off below its last place, as a fraction of 2^32.
func awayBy(r num.Rounding, kept uint16, rest uint32) uint16 {
	var up bool
	switch r {
	case num.NearestEven:
		up = rest > 1<<31 || rest == 1<<31 && kept&1 == 1
	case num.NearestAway:
		up = rest >= 1<<31
	case num.Up:
		up = rest != 0 && kept < 0x8000
	case num.Down:
		up = rest != 0 && kept >= 0x8000
	case num.AwayFromZero:
		up = rest != 0
	case num.ToOdd:
		up = rest != 0 && kept&1 == 0
	}
	if up {
		return 1
	}
	return 0
}

// narrowF32By rounds as r says.
func narrowF32By(x float64, r num.Rounding) float32 {
	f := float32(x)
	back := float64(f)
	switch {
	case x != x:
		return math.Float32frombits(nan32)
	case back == x || r == num.NearestEven:
		return f
	}
	// The neighbours of x, toward zero and away from it.
	u := math.Float32bits(f)
	if math.Abs(back) > math.Abs(x) {
		u--
	}
	near, far := math.Float32frombits(u), math.Float32frombits(u+1)
	switch {
	case r == num.NearestAway && x-float64(near) == float64(far)-x,
		r == num.Up && x > 0, r == num.Down && x < 0, r == num.AwayFromZero, r == num.ToOdd && u&1 == 0:
		return far
	case r == num.NearestAway:
		return f
	}
	return near
}

// odd32 rounds to odd, so that a second rounding into a 16-bit format goes where
// a single one would have gone.
func odd32(x float64) float32 {
	f := float32(x)
	back := float64(f)
	if back == x || x != x {
		return f
	}
	u := math.Float32bits(f)
	if u&1 == 1 {
		return f
	}
	if math.Abs(back) > math.Abs(x) {
		return math.Float32frombits(u - 1)
	}
	return math.Float32frombits(u + 1)
}

// twoSum is a + b as a rounded sum and what the rounding cut off, exactly, which
// is a NaN where the sum is not finite.
func twoSum(a, b float64) (sum, rest float64) {
	sum = a + b
	bb := sum - a
	return sum, (a - (sum - bb)) + (b - bb)
}

// odd64 is sum + rest, as twoSum gives them, rounded to odd.
func odd64(sum, rest float64) float64 {
	u := math.Float64bits(sum)
	if rest == 0 || u&1 == 1 || rest != rest { // NaN: the sum is not finite
		return sum
	}
	if rest > 0 == (sum > 0) {
		return math.Float64frombits(u + 1)
	}
	return math.Float64frombits(u - 1)
}

// quiet64 is the sum or product of a and b in f64 given its rounded value: where
// that is a NaN the machines differ, and the rule is that of num.Scheme.
func quiet64(x, a, b float64) float64 {
	if x == x {
		return x
	}
	return quietNaN(a, b)
}

func quietNaN(a, b float64) float64 {
	const quiet = 1 << 51
	switch {
	case a != a:
		return math.Float64frombits(math.Float64bits(a) | quiet)
	case b != b:
		return math.Float64frombits(math.Float64bits(b) | quiet)
	}
	return math.Float64frombits(0xFFF8000000000000)
}

// canonical32 is x, the canonical NaN for any other one.
func canonical32(x float32) float32 {
	if x != x {
		return math.Float32frombits(nan32)
	}
	return x
}
