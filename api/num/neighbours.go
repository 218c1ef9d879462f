package num

// Neighbours are the two representable numbers next to the exact result of op
// on the inputs, lo <= hi in value, and equal where the result is representable.
// The neighbour beyond the greatest finite value is an infinity; E4M3 has none,
// there it is the NaN. NaN is canonical in both.
//
// A sum or an average of exactly zero is +0, unless every input is -0. min and
// max follow [DropNaN], integers [Eval]; a prod or avg is exact and then rounded
// as a sum is. No input at all, or an operation that d does not have, panics.
func Neighbours(d DType, op Op, in []uint64) (lo, hi uint64) {
	s := Scheme{Op: op, Acc: AccExact, Last: Down}
	if !d.Float() || op == Min || op == Max || len(in) == 1 {
		lo = Eval(d, s, in)
		if IsNaN(d, lo) {
			lo = CanonicalNaN(d)
		}
		return lo, lo
	}
	lo = Eval(d, s, in)
	s.Last = Up
	hi = Eval(d, s, in)
	if IsZero(d, lo) && IsZero(d, hi) {
		lo = hi // rounding down, an exact cancellation is -0
	}
	return lo, hi
}

// Faithful reports whether got is the exact result of op on the inputs or, where
// that is not representable, one of its two neighbours. Any NaN stands for any
// NaN. Zeros are not interchangeable: an exact zero has the sign [Neighbours]
// gives it, and a result that rounds to zero keeps its sign.
func Faithful(d DType, op Op, in []uint64, got uint64) bool {
	lo, hi := Neighbours(d, op, in)
	if IsNaN(d, got) {
		return IsNaN(d, lo) || IsNaN(d, hi)
	}
	return got == lo || got == hi
}
