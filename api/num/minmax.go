package num

// minMax is min or max of two floats under the scheme's rule.
func minMax(d DType, s Scheme, a, b uint64) uint64 {
	an, bn := IsNaN(d, a), IsNaN(d, b)
	less := ordered(d, a) < ordered(d, b)
	switch s.MinMax {
	case DropNaN:
		switch {
		case an && bn:
			return CanonicalNaN(d)
		case an:
			return b
		case bn:
			return a
		}
	case PropagateNaN:
		if an || bn {
			return CanonicalNaN(d)
		}
	case Ternary:
		if an || bn || IsZero(d, a) && IsZero(d, b) {
			return b
		}
	default:
		panic("num: unknown rule for min and max")
	}
	if less == (s.Op == Min) {
		return a
	}
	return b
}

// ordered maps the patterns of a float format to integers in the order of their
// values, -0 just below +0; NaNs lie beyond the infinities.
func ordered(d DType, b uint64) int64 {
	if SignBit(d, b) {
		return -1 - int64(magnitude(d, b))
	}
	return int64(b)
}

// evalInt is Eval on integers. Sums and products wrap, and so every order and
// every accumulator gives the same.
func evalInt(d DType, s Scheme, in []uint64) uint64 {
	acc := in[0]
	for _, b := range in[1:] {
		switch s.Op {
		case Sum, Avg:
			acc += b
		case Prod:
			acc *= b
		case And:
			acc &= b
		case Or:
			acc |= b
		case Xor:
			acc ^= b
		case Min, Max:
			if lessInt(d, b, acc) == (s.Op == Min) {
				acc = b
			}
		}
	}
	acc &= d.Mask()
	if s.Op == Avg {
		if d.Signed() {
			acc = uint64(signed(d, acc) / int64(len(in)))
		} else {
			acc /= uint64(len(in))
		}
	}
	return acc & d.Mask()
}

// signed is the value of a signed integer pattern.
func signed(d DType, b uint64) int64 {
	up := 64 - d.Bits()
	return int64(b<<up) >> up
}

// lessInt reports a < b for integers of d.
func lessInt(d DType, a, b uint64) bool {
	if d.Signed() {
		return signed(d, a) < signed(d, b)
	}
	return a < b
}
