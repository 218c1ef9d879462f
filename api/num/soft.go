package num

import "math/bits"

// real is the finite number ±(hi:lo) * 2^exp. The last bit of lo may be jammed:
// set to stand for anything nonzero below it. A number with a jammed bit has at
// least 95 significant bits, so that no format's rounding looks that far down.
type real struct {
	neg    bool
	hi, lo uint64
	exp    int
}

func (x real) zero() bool { return x.hi|x.lo == 0 }

// round rounds x once into d.
func (x real) round(d DType, r Rounding) uint64 {
	x = x.normal()
	// 64 bits decide, the other ones are only zero or not.
	return pack(d, x.neg, x.hi<<1|x.lo>>63, x.exp+63, x.lo<<1 != 0, r)
}

// normal shifts x so that bit 126 is its leading one, leaving room for a carry.
func (x real) normal() real {
	if x.zero() {
		return x
	}
	n := bits.LeadingZeros64(x.hi) - 1
	if x.hi == 0 {
		n = 63 + bits.LeadingZeros64(x.lo)
	}
	if n < 0 { // after a carry
		return real{x.neg, x.hi >> 1, x.hi<<63 | x.lo>>1 | x.lo&1, x.exp + 1}
	}
	if n >= 64 {
		x.hi, x.lo = x.lo<<(n-64), 0
	} else {
		x.hi, x.lo = x.hi<<n|x.lo>>(64-n), x.lo<<n
	}
	x.exp -= n
	return x
}

// rightJam shifts the magnitude right by n bits without forgetting that bits
// fell off.
func (x real) rightJam(n int) real {
	x.exp += n
	var lost uint64
	if n >= 64 {
		lost, x.lo, x.hi = x.lo, x.hi, 0
		n -= 64
	}
	if n >= 64 {
		lost, x.lo = lost|x.lo, 0
	} else {
		lost |= x.lo << (64 - n)
		x.hi, x.lo = x.hi>>n, x.lo>>n|x.hi<<(64-n)
	}
	if lost != 0 {
		x.lo |= 1
	}
	return x
}

// plus is x + y. Each must have at most 106 significant bits: then bits are lost
// only where the exponents are more than 20 apart, and there at most one leading
// bit can cancel. The sign of a zero result means nothing.
func (x real) plus(y real) real {
	if x.zero() {
		return y
	}
	if y.zero() {
		return x
	}
	x, y = x.normal(), y.normal()
	if x.exp < y.exp {
		x, y = y, x
	}
	y = y.rightJam(x.exp - y.exp)
	if x.neg == y.neg {
		lo, carry := bits.Add64(x.lo, y.lo, 0)
		hi, _ := bits.Add64(x.hi, y.hi, carry)
		return real{x.neg, hi, lo, x.exp}
	}
	lo, borrow := bits.Sub64(x.lo, y.lo, 0)
	hi, borrow := bits.Sub64(x.hi, y.hi, borrow)
	if borrow != 0 { // |y| is greater
		lo, borrow = bits.Sub64(0, lo, 0)
		hi, _ = bits.Sub64(0, hi, borrow)
		x.neg = y.neg
	}
	return real{x.neg, hi, lo, x.exp}
}

// times is x * y, exactly: neither may have more than 64 significant bits in lo.
func (x real) times(y real) real {
	hi, lo := bits.Mul64(x.lo, y.lo)
	return real{x.neg != y.neg, hi, lo, x.exp + y.exp}
}

// over is x / n, jammed. x must be a number as unpacked from a format.
func (x real) over(n uint64) real {
	if x.zero() {
		return x
	}
	lead := bits.LeadingZeros64(x.lo)
	hi, rest := bits.Div64(0, x.lo<<lead, n)
	lo, rest := bits.Div64(rest, 0, n)
	if rest != 0 {
		lo |= 1
	}
	return real{x.neg, hi, lo, x.exp - lead - 64}
}

// format is a floating-point format as arithmetic sees it: IEEE operations
// rounded once, and a rule for NaN.
type format struct {
	DType
	r Rounding
}

// add is a + b.
func (f format) add(a, b uint64) uint64 {
	switch {
	case IsNaN(f.DType, a) || IsNaN(f.DType, b):
		return f.pass(a, b)
	case IsInf(f.DType, a):
		if IsInf(f.DType, b) && a != b {
			return f.invalid()
		}
		return a
	case IsInf(f.DType, b):
		return b
	}
	return f.sum(unpack(f.DType, a), unpack(f.DType, b))
}

// sum rounds x + y.
func (f format) sum(x, y real) uint64 {
	z := x.plus(y)
	if z.zero() {
		// Equal signs keep theirs; a cancellation is +0, -0 when rounding down.
		z.neg = x.neg && y.neg || x.neg != y.neg && f.r == Down
	}
	return z.round(f.DType, f.r)
}

// mul is a * b.
func (f format) mul(a, b uint64) uint64 {
	neg := SignBit(f.DType, a) != SignBit(f.DType, b)
	switch {
	case IsNaN(f.DType, a) || IsNaN(f.DType, b):
		return f.pass(a, b)
	case IsInf(f.DType, a) || IsInf(f.DType, b):
		if IsZero(f.DType, a) || IsZero(f.DType, b) {
			return f.invalid()
		}
		return withSign(f.DType, neg, infinity(f.DType))
	}
	return unpack(f.DType, a).times(unpack(f.DType, b)).round(f.DType, f.r)
}

// fma is acc + a*c for a finite positive c, rounded once.
func (f format) fma(acc, a, c uint64) uint64 {
	switch {
	case IsNaN(f.DType, acc) || IsNaN(f.DType, a):
		return f.pass(acc, a)
	case IsInf(f.DType, acc) || IsInf(f.DType, a):
		if c == 0 && IsInf(f.DType, a) {
			return f.invalid()
		}
		return f.add(acc, a) // infinities are what their sum is
	}
	return f.sum(unpack(f.DType, acc), unpack(f.DType, a).times(unpack(f.DType, c)))
}

// div is a / n.
func (f format) div(a uint64, n int) uint64 {
	switch {
	case IsNaN(f.DType, a):
		return f.pass(a, a)
	case IsInf(f.DType, a):
		return a
	}
	return unpack(f.DType, a).over(uint64(n)).round(f.DType, f.r)
}

// inverse is 1/n to nearest even.
func (f format) inverse(n int) uint64 {
	return real{lo: 1}.over(uint64(n)).round(f.DType, NearestEven)
}

// pass is the NaN that comes of operands of which one is a NaN.
func (f format) pass(a, b uint64) uint64 {
	if f.DType != F64 {
		return CanonicalNaN(f.DType)
	}
	if !IsNaN(F64, a) {
		a = b
	}
	return a | 1<<51
}

// invalid is the NaN of inf-inf and 0*inf.
func (f format) invalid() uint64 {
	if f.DType == F64 {
		return 0xFFF8000000000000
	}
	return CanonicalNaN(f.DType)
}
