package num

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// The least and greatest patterns that matter, without the sign:

// infinity is the magnitude pattern of infinity. E4M3 has none; its first
// magnitude beyond the finite ones is its NaN.
func infinity(d DType) uint64 {
	if d == E4M3 {
		return 0x7F
	}
	return (1<<d.ExponentBits() - 1) << d.MantissaBits()
}

// maxFinite is the magnitude pattern of the greatest finite value.
func maxFinite(d DType) uint64 { return infinity(d) - 1 }

func signBit(d DType) uint64 { return 1 << (d.Bits() - 1) }

func magnitude(d DType, b uint64) uint64 { return b & (signBit(d) - 1) }

// CanonicalNaN is the NaN that conversions into d, and arithmetic in d, give:
// every mantissa bit set in the narrow formats (0x7FFF, 0x7FFFFFFF, fp8 0x7F),
// as CUDA does, and 0x7FF8000000000000 in f64. Arithmetic in f64 has a rule of
// its own, see [Scheme].
func CanonicalNaN(d DType) uint64 {
	mustFloat(d)
	if d == F64 {
		return 0x7FF8000000000000
	}
	return signBit(d) - 1
}

// IsNaN reports whether b is a NaN of d; integers have none.
func IsNaN(d DType, b uint64) bool {
	if !d.Float() {
		return false
	}
	if d == E4M3 {
		return magnitude(d, b) == 0x7F
	}
	return magnitude(d, b) > infinity(d)
}

// IsInf reports whether b is an infinity of d; integers and E4M3 have none.
func IsInf(d DType, b uint64) bool {
	return d.Float() && d != E4M3 && magnitude(d, b) == infinity(d)
}

// IsZero reports whether b is a zero of d, of either sign.
func IsZero(d DType, b uint64) bool {
	if d.Float() {
		return magnitude(d, b) == 0
	}
	return b&d.Mask() == 0
}

// SignBit reports whether the sign bit of b is set, for a float or a signed
// integer; NaNs have one too.
func SignBit(d DType, b uint64) bool { return d.Signed() && b&signBit(d) != 0 }

// Neg flips the sign bit of a float, of a NaN too, and negates an integer with
// wrap-around.
func Neg(d DType, b uint64) uint64 {
	if d.Float() {
		return b ^ signBit(d)
	}
	return -b & d.Mask()
}

// Load reads one little-endian element of d from the front of p.
func Load(d DType, p []byte) uint64 {
	switch d.Size() {
	case 1:
		return uint64(p[0])
	case 2:
		return uint64(binary.LittleEndian.Uint16(p))
	case 4:
		return uint64(binary.LittleEndian.Uint32(p))
	default:
		return binary.LittleEndian.Uint64(p)
	}
}

// Store writes b as one little-endian element of d to the front of p.
func Store(d DType, p []byte, b uint64) {
	switch d.Size() {
	case 1:
		p[0] = byte(b)
	case 2:
		binary.LittleEndian.PutUint16(p, uint16(b))
	case 4:
		binary.LittleEndian.PutUint32(p, uint32(b))
	default:
		binary.LittleEndian.PutUint64(p, b)
	}
}

// Decode is the value of a floating-point pattern; every format's values are
// exact in float64. A NaN gives a NaN whose payload means nothing, except that
// an f64 pattern is passed on as it is. Integers panic.
func Decode(d DType, b uint64) float64 {
	mustFloat(d)
	switch {
	case d == F64:
		return math.Float64frombits(b)
	case IsNaN(d, b):
		return math.NaN()
	case IsInf(d, b):
		return math.Inf(1 - 2*int(b>>(d.Bits()-1)&1))
	}
	u := unpack(d, b)
	x := math.Ldexp(float64(u.lo), u.exp)
	if u.neg {
		return -x
	}
	return x
}

// Encode rounds x once into d. Subnormals are kept. Beyond the greatest finite
// value MAX the result is an infinity, or MAX where the rounding leads back
// toward zero; E4M3 has no infinity, its NaN stands in. Round-to-odd gives MAX
// there, in E4M3 too, whose MAX is even. A NaN gives [CanonicalNaN].
func Encode(d DType, x float64, r Rounding) uint64 {
	return Convert(d, F64, math.Float64bits(x), r)
}

// Convert rounds a pattern of one floating-point format once into another, with
// Encode's rules. From a format to itself every value stays what it is and a
// NaN becomes canonical. From bf16 to f32 is a shift, on GPUs too: there a NaN
// keeps its payload.
func Convert(to, from DType, b uint64, r Rounding) uint64 {
	mustFloat(to)
	mustFloat(from)
	switch {
	case to == F32 && from == BF16:
		return b << 16
	case IsNaN(from, b):
		return CanonicalNaN(to)
	case IsInf(from, b):
		return withSign(to, SignBit(from, b), infinity(to))
	}
	return unpack(from, b).round(to, r)
}

// withSign attaches a sign to a magnitude; the one E4M3 NaN has none.
func withSign(d DType, neg bool, mag uint64) uint64 {
	if neg && !(d == E4M3 && mag == 0x7F) {
		return mag | signBit(d)
	}
	return mag
}

// unpack takes a finite pattern apart.
func unpack(d DType, b uint64) real {
	man := magnitude(d, b)
	field := int(man >> d.MantissaBits())
	man &= 1<<d.MantissaBits() - 1
	if field == 0 {
		field = 1 // subnormals share the exponent of the least normals
	} else {
		man |= 1 << d.MantissaBits()
	}
	return real{neg: SignBit(d, b), lo: man, exp: field - d.Bias() - d.MantissaBits()}
}

// pack rounds ±(mant + sticky) * 2^exp into d. sticky stands for more magnitude,
// less than one unit of mant; mant must then have its top bit set.
func pack(d DType, neg bool, mant uint64, exp int, sticky bool, r Rounding) uint64 {
	if mant == 0 {
		return withSign(d, neg, 0)
	}
	lead := bits.LeadingZeros64(mant)
	mant <<= lead
	exp -= lead
	least := 1 - d.Bias() // exponent of the least normal number
	e := exp + 63         // exponent of the leading bit
	if e > d.Bias()+1 {
		return overflow(d, neg, r)
	}
	drop := max(e, least) - d.MantissaBits() - exp // bits of mant below the last place
	kept, rest := uint64(0), uint64(1)             // below half of the last place, whatever it is
	if drop <= 64 {
		kept, rest = mant>>drop, mant<<(64-drop)
	}
	if away(neg, kept, rest, sticky, r) {
		kept++
	}
	// The leading bit of a normal number adds one to the exponent field, and so
	// does a carry out of the mantissa.
	b := kept + uint64(max(e, least)-least)<<d.MantissaBits()
	if b > maxFinite(d) {
		return overflow(d, neg, r)
	}
	return withSign(d, neg, b)
}

// away says whether the magnitude kept + rest/2^64 (+ sticky) goes up.
func away(neg bool, kept, rest uint64, sticky bool, r Rounding) bool {
	const half = 1 << 63
	inexact := rest != 0 || sticky
	switch r {
	case NearestEven:
		return rest > half || rest == half && (sticky || kept&1 == 1)
	case NearestAway:
		return rest >= half
	case TowardZero:
		return false
	case Up:
		return inexact && !neg
	case Down:
		return inexact && neg
	case AwayFromZero:
		return inexact
	case ToOdd:
		return inexact && kept&1 == 0
	}
	panic(badRounding)
}

// overflow is what a magnitude beyond the greatest finite one rounds to.
func overflow(d DType, neg bool, r Rounding) uint64 {
	if r == TowardZero || r == ToOdd || r == Up && neg || r == Down && !neg {
		return withSign(d, neg, maxFinite(d))
	}
	return withSign(d, neg, infinity(d))
}

const (
	badRounding = "num: unknown rounding"
	notFloat    = "num: not a floating-point type"
)

func mustFloat(d DType) {
	if !d.Valid() || !d.Float() {
		panic(notFloat)
	}
}
