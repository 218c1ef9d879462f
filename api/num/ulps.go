package num

// Class says what kind of difference there is between two patterns.
type Class uint8

// The classes.
const (
	// Finite: both are finite, or integers; the distance says how far apart,
	// and is zero only where the patterns are equal.
	Finite Class = iota
	// Zeros of different sign: equal in value, different in bits.
	Zeros
	// Infinite: the same infinity twice.
	Infinite
	// NaNs: two NaNs, whatever their payloads.
	NaNs
	// FiniteInfinite: one is infinite and the other finite.
	FiniteInfinite
	// Opposite infinities.
	Opposite
	// OneNaN: one of the two is a NaN.
	OneNaN
)

var classNames = [...]string{
	"finite", "zeros", "infinite", "nans", "finite and infinite", "opposite infinities", "one nan",
}

// String is the class in words.
func (c Class) String() string { return classNames[c] }

// Ulps is the distance of a and b in units in the last place, counted in
// representable numbers from one to the other, and the class of the pair. The
// distance means something in the class [Finite]; in every other one it is 0.
// Both zeros count as one number. For integers the distance is |a-b|.
func Ulps(d DType, a, b uint64) (uint64, Class) {
	if !d.Float() {
		if lessInt(d, a, b) {
			a, b = b, a
		}
		return (a - b) & d.Mask(), Finite
	}
	an, bn := IsNaN(d, a), IsNaN(d, b)
	ai, bi := IsInf(d, a), IsInf(d, b)
	switch {
	case an && bn:
		return 0, NaNs
	case an || bn:
		return 0, OneNaN
	case ai && bi && a == b:
		return 0, Infinite
	case ai && bi:
		return 0, Opposite
	case ai || bi:
		return 0, FiniteInfinite
	case a != b && IsZero(d, a) && IsZero(d, b):
		return 0, Zeros
	}
	am, bm := magnitude(d, a), magnitude(d, b)
	if SignBit(d, a) != SignBit(d, b) {
		return am + bm, Finite
	}
	return max(am, bm) - min(am, bm), Finite
}
