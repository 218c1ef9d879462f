package vm

import (
	"math"
	"math/bits"

	"example.com/tandem/api/num"
	"example.com/tandem/sim/ptx/asm"
)

// fn is what an instruction computes from up to three registers.
type fn func(a, b, c uint64) uint64

func mask(t asm.Type) uint64 {
	if t == asm.Pred {
		return 1
	}
	return ^uint64(0) >> (64 - 8*t.Size())
}

// signed is a register's value as a number of the type.
func signed(t asm.Type, v uint64) int64 {
	n := 64 - 8*t.Size()
	return int64(v<<n) >> n
}

// format is the number format of a type; packed types have that of an element.
func format(t asm.Type) num.DType {
	switch t {
	case asm.F16, asm.F16X2:
		return num.F16
	case asm.BF16, asm.BF16X2:
		return num.BF16
	case asm.F64:
		return num.F64
	case asm.E4M3X2:
		return num.E4M3
	case asm.E5M2X2:
		return num.E5M2
	}
	return num.F32
}

// pairs applies an operation to both halves of a packed type.
func pairs(t asm.Type, f fn) fn {
	if t != asm.F16X2 && t != asm.BF16X2 {
		return f
	}
	return func(a, b, c uint64) uint64 {
		return f(a&0xFFFF, b&0xFFFF, c&0xFFFF) | f(a>>16&0xFFFF, b>>16&0xFFFF, c>>16&0xFFFF)<<16
	}
}

// sumOdd is x + y in f64, rounded to odd where it is not exact, so that rounding
// it once more to a format of at most 51 bits rounds as if it had been exact.
func sumOdd(x, y float64) float64 {
	s := x + y
	if math.IsInf(s, 0) || math.IsNaN(s) {
		return s
	}
	bb := s - x
	e := (x - (s - bb)) + (y - bb)
	if e != 0 && math.Float64bits(s)&1 == 0 {
		if (e > 0) == (s > 0) {
			return math.Float64frombits(math.Float64bits(s) + 1)
		}
		return math.Float64frombits(math.Float64bits(s) - 1)
	}
	return s
}

// rounded is the sum of two exact numbers in a narrow format.
func rounded(d num.DType, x, y float64, r num.Rounding) uint64 {
	s := sumOdd(x, y)
	if s == 0 && r == num.Down && (math.Signbit(x) != math.Signbit(y)) {
		s = math.Copysign(0, -1)
	}
	return num.Encode(d, s, r)
}

func add(t asm.Type, r num.Rounding) fn {
	d := format(t)
	switch {
	case d == num.F64:
		return func(a, b, _ uint64) uint64 {
			s := math.Float64frombits(a) + math.Float64frombits(b)
			if s != s || r != num.NearestEven {
				return num.Eval(d, num.Scheme{Op: num.Sum, Step: r, Last: r}, []uint64{a, b})
			}
			return math.Float64bits(s)
		}
	case d == num.F32 && r == num.NearestEven:
		return func(a, b, _ uint64) uint64 {
			return f32bits(math.Float32frombits(uint32(a)) + math.Float32frombits(uint32(b)))
		}
	}
	return pairs(t, func(a, b, _ uint64) uint64 { return rounded(d, num.Decode(d, a), num.Decode(d, b), r) })
}

func f32bits(f float32) uint64 {
	if f != f {
		return 0x7FFFFFFF
	}
	return uint64(math.Float32bits(f))
}

func mul(t asm.Type, r num.Rounding) fn {
	d := format(t)
	if d == num.F64 {
		return func(a, b, _ uint64) uint64 {
			return num.Eval(d, num.Scheme{Op: num.Prod, Step: r, Last: r}, []uint64{a, b})
		}
	}
	return pairs(t, func(a, b, _ uint64) uint64 { return num.Encode(d, num.Decode(d, a)*num.Decode(d, b), r) })
}

// fma is a*b + c, rounded once: a product of two numbers of 24 bits is exact in
// f64.
func fma(t asm.Type, r num.Rounding) fn {
	d := format(t)
	if d == num.F64 {
		return func(a, b, c uint64) uint64 {
			v := math.FMA(math.Float64frombits(a), math.Float64frombits(b), math.Float64frombits(c))
			if v != v {
				return nan64(a, b, c)
			}
			return math.Float64bits(v)
		}
	}
	return pairs(t, func(a, b, c uint64) uint64 {
		return rounded(d, float64(num.Decode(d, a)*num.Decode(d, b)), num.Decode(d, c), r) // not fused
	})
}

// nan64 is the NaN of f64 operands: the first that is one, quieted.
func nan64(in ...uint64) uint64 {
	for _, v := range in {
		if num.IsNaN(num.F64, v) {
			return v | 1<<51
		}
	}
	return 0xFFF8000000000000
}

func div(t asm.Type) fn {
	if t == asm.F64 {
		return func(a, b, _ uint64) uint64 {
			v := math.Float64frombits(a) / math.Float64frombits(b)
			if v != v {
				return nan64(a, b)
			}
			return math.Float64bits(v)
		}
	}
	return func(a, b, _ uint64) uint64 {
		return f32bits(math.Float32frombits(uint32(a)) / math.Float32frombits(uint32(b)))
	}
}

func sqrt(t asm.Type) fn {
	if t == asm.F64 {
		return func(a, _, _ uint64) uint64 {
			v := math.Sqrt(math.Float64frombits(a))
			if v != v {
				return nan64(a)
			}
			return math.Float64bits(v)
		}
	}
	return func(a, _, _ uint64) uint64 { // 53 bits are enough for one rounding to be as two
		return f32bits(float32(math.Sqrt(float64(math.Float32frombits(uint32(a))))))
	}
}

// pick is min or max: a NaN loses, or wins where it is propagated; -0 < +0.
func pick(t asm.Type, most, propagate bool) fn {
	d := format(t)
	return pairs(t, func(a, b, _ uint64) uint64 {
		an, bn := num.IsNaN(d, a), num.IsNaN(d, b)
		switch {
		case an && bn || propagate && (an || bn):
			return num.CanonicalNaN(d)
		case an:
			return b
		case bn:
			return a
		}
		x, y := a, b
		if num.SignBit(d, a) {
			x = ^a & d.Mask()
		} else {
			x |= 1 << (d.Bits() - 1)
		}
		if num.SignBit(d, b) {
			y = ^b & d.Mask()
		} else {
			y |= 1 << (d.Bits() - 1)
		}
		if (x < y) != most {
			return a
		}
		return b
	})
}

// compare gives the comparisons of setp by name; ok is false for an unknown one.
func compare(name string, t asm.Type) (func(a, b uint64) bool, bool) {
	if t.Float() {
		return compareFloat(name, t)
	}
	m := mask(t)
	less := func(a, b uint64) bool { return a&m < b&m }
	if t.Signed() {
		less = func(a, b uint64) bool { return signed(t, a) < signed(t, b) }
	}
	switch name {
	case "eq":
		return func(a, b uint64) bool { return (a^b)&m == 0 }, true
	case "ne":
		return func(a, b uint64) bool { return (a^b)&m != 0 }, true
	case "lt", "lo":
		return less, true
	case "gt", "hi":
		return func(a, b uint64) bool { return less(b, a) }, true
	case "le", "ls":
		return func(a, b uint64) bool { return !less(b, a) }, true
	case "ge", "hs":
		return func(a, b uint64) bool { return !less(a, b) }, true
	}
	return nil, false
}

func compareFloat(name string, t asm.Type) (func(a, b uint64) bool, bool) {
	d := format(t)
	of := map[string]func(x, y float64) bool{
		"eq": func(x, y float64) bool { return x == y }, "ne": func(x, y float64) bool { return x < y || x > y },
		"lt": func(x, y float64) bool { return x < y }, "le": func(x, y float64) bool { return x <= y },
		"gt": func(x, y float64) bool { return x > y }, "ge": func(x, y float64) bool { return x >= y },
		"equ": func(x, y float64) bool { return !(x < y || x > y) }, "neu": func(x, y float64) bool { return x != y },
		"ltu": func(x, y float64) bool { return !(x >= y) }, "leu": func(x, y float64) bool { return !(x > y) },
		"gtu": func(x, y float64) bool { return !(x <= y) }, "geu": func(x, y float64) bool { return !(x < y) },
		"num": func(x, y float64) bool { return x == x && y == y }, "nan": func(x, y float64) bool { return x != x || y != y },
	}[name]
	if of == nil {
		return nil, false
	}
	return func(a, b uint64) bool { return of(num.Decode(d, a), num.Decode(d, b)) }, true
}

// toInt is a conversion of a float to an integer, saturating; NaN gives 0.
func toInt(to, from asm.Type, round func(float64) float64) fn {
	d := format(from)
	n := 8 * to.Size()
	return func(a, _, _ uint64) uint64 {
		x := round(num.Decode(d, a))
		switch {
		case x != x:
			return 0
		case to.Signed() && x >= math.Ldexp(1, n-1):
			return 1<<(n-1) - 1
		case to.Signed() && x < -math.Ldexp(1, n-1):
			return 1 << (n - 1) & mask(to)
		case to.Signed():
			return uint64(int64(x)) & mask(to)
		case x >= math.Ldexp(1, n):
			return mask(to)
		case x <= 0:
			return 0
		case x >= 1<<63:
			return uint64(int64(x-1<<63)) + 1<<63
		}
		return uint64(int64(x))
	}
}

// fromInt is a conversion of an integer to a float, to nearest even.
func fromInt(to, from asm.Type) fn {
	d := format(to)
	return func(a, _, _ uint64) uint64 {
		if from.Signed() {
			v := signed(from, a)
			if d == num.F32 {
				return uint64(math.Float32bits(float32(v)))
			}
			return encodeInt(d, v < 0, uint64(max(v, -v)))
		}
		return encodeInt(d, false, a&mask(from))
	}
}

// encodeInt rounds an integer once: what lies below bit 11 only matters as being
// there, for formats narrower than f64.
func encodeInt(d num.DType, neg bool, v uint64) uint64 {
	var x float64
	switch {
	case d == num.F64:
		x = float64(v)
	default:
		if n := bits.Len64(v); n > 53 {
			low := v & (1<<(n-53) - 1)
			v &^= 1<<(n-53) - 1
			if low != 0 {
				v |= 1 << (n - 53)
			}
		}
		x = float64(v)
	}
	if neg {
		x = -x
	}
	return num.Encode(d, x, num.NearestEven)
}
