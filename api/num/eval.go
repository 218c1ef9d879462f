package num

// Eval is what the scheme makes of the inputs, which are patterns of d: the
// reference for all arithmetic on ranges.
//
// One input is a copy: nothing is computed, so its pattern stays what it is, a
// NaN's payload included, for every operation. A reduction starts from its first
// input, never from +0. No input at all, or an operation that d does not have,
// panics.
func Eval(d DType, s Scheme, in []uint64) uint64 {
	switch {
	case len(in) == 0:
		panic("num: no inputs")
	case !s.Op.ValidFor(d):
		panic("num: no such operation on this type")
	case len(in) == 1:
		return in[0]
	case !d.Float():
		return evalInt(d, s, in)
	}
	switch s.Op {
	case Min, Max:
		pick := func(a, b uint64) uint64 { return minMax(d, s, a, b) }
		return fold(s.Order, len(in), func(i int) uint64 { return in[i] }, pick)
	}
	if s.Acc == AccExact {
		return evalExact(d, s, in)
	}
	f := s.accumulator(d)
	total := evalTotal(f, d, s, in)
	if s.Op == Avg {
		return average(f, d, s, total, len(in))
	}
	return f.into(d, s.Last, total)
}

// accumulator is the format in which the steps of s are done on elements of d.
func (s Scheme) accumulator(d DType) format {
	switch s.Acc {
	case AccF32:
		return format{F32, s.Step}
	case AccF64:
		return format{F64, s.Step}
	}
	return format{d, s.Step}
}

// into converts a pattern of f to d. Where there is nothing to convert a NaN
// keeps its payload.
func (f format) into(d DType, r Rounding, b uint64) uint64 {
	if f.DType == d {
		return b
	}
	return Convert(d, f.DType, b, r)
}

// evalTotal folds the inputs, averages before their division, in the
// accumulator's format f.
func evalTotal(f format, d DType, s Scheme, in []uint64) uint64 {
	elem := format{d, s.Step}
	leaf := func(i int) uint64 { return elem.into(f.DType, s.Step, in[i]) }
	join := f.add
	switch {
	case s.Op == Prod:
		join = f.mul
	case s.Op == Avg && s.Avg == AvgPremul:
		c := elem.inverse(len(in))
		leaf = func(i int) uint64 { return elem.into(f.DType, s.Step, elem.mul(in[i], c)) }
	case s.Op == Avg && s.Avg == AvgPremulFused:
		return evalFused(f, elem, s, in)
	}
	return fold(s.Order, len(in), leaf, join)
}

// evalFused is the sum of in[i] * (1/n) in which an addition that takes a single
// product, and not a sum, is fused with it.
func evalFused(f, elem format, s Scheme, in []uint64) uint64 {
	c := elem.inverse(len(in))
	wide := func(b uint64) uint64 { return elem.into(f.DType, s.Step, b) }
	var sub func(lo, hi int) uint64
	sub = func(lo, hi int) uint64 {
		if hi-lo == 1 {
			return wide(elem.mul(in[lo], c))
		}
		mid := lo + split(s.Order, hi-lo)
		acc := sub(lo, mid)
		if hi-mid == 1 {
			return f.fma(acc, wide(in[mid]), wide(c))
		}
		return f.add(acc, sub(mid, hi))
	}
	return sub(0, len(in))
}

// average is the total of n inputs, in f, after what is left to do of avg.
func average(f format, d DType, s Scheme, total uint64, n int) uint64 {
	switch s.Avg {
	case AvgDivide:
		if s.Acc == AccElement {
			return format{d, s.Last}.div(total, n)
		}
		total = f.div(total, n)
	case AvgMultiply:
		m := s.multiplier(d)
		total = m.mul(f.into(m.DType, s.Step, total), m.inverse(n))
		return m.into(d, s.Last, total)
	}
	return f.into(d, s.Last, total)
}

// multiplier is the format in which AvgMultiply multiplies.
func (s Scheme) multiplier(d DType) format {
	if d == F64 {
		return format{F64, s.Step}
	}
	return format{F32, s.Step}
}

// evalExact is a sum, product or average rounded once.
func evalExact(d DType, s Scheme, in []uint64) uint64 {
	if s.Op == Prod {
		return exactProduct(d, s.Last, in)
	}
	var x Exact
	elem := format{d, s.Step}
	c := elem.inverse(len(in))
	for i, b := range in {
		switch {
		case s.Op == Avg && s.Avg == AvgPremulFused && i > 0:
			x.addProduct(d, b, c)
		case s.Op == Avg && (s.Avg == AvgPremul || s.Avg == AvgPremulFused):
			x.Add(d, elem.mul(b, c))
		default:
			x.Add(d, b)
		}
	}
	switch {
	case s.Op == Avg && s.Avg == AvgDivide:
		return x.round(d, s.Last, uint64(len(in)))
	case s.Op == Avg && s.Avg == AvgMultiply:
		m := s.multiplier(d)
		return m.into(d, s.Last, m.mul(x.Round(m.DType, s.Step), m.inverse(len(in))))
	}
	return x.Round(d, s.Last)
}

// exactProduct is the product of the inputs, rounded once.
func exactProduct(d DType, r Rounding, in []uint64) uint64 {
	p := wide{words: []uint64{1}}
	var inf, zero, neg bool
	for _, b := range in {
		neg = neg != SignBit(d, b)
		switch {
		case IsNaN(d, b):
			return CanonicalNaN(d)
		case IsInf(d, b):
			inf = true
		case IsZero(d, b):
			zero = true
		default:
			p = p.times(unpack(d, b))
		}
	}
	switch {
	case inf && zero:
		return CanonicalNaN(d)
	case inf:
		return withSign(d, neg, infinity(d))
	case zero:
		return withSign(d, neg, 0)
	}
	return p.round(d, r)
}

// split is how many of n inputs, n > 1, are combined before the other ones.
func split(o Order, n int) int {
	if o == Linear {
		return n - 1
	}
	p := 1
	for 2*p < n {
		p *= 2
	}
	return p
}

// fold combines n leaves in the given order.
func fold(o Order, n int, leaf func(int) uint64, join func(a, b uint64) uint64) uint64 {
	var sub func(lo, hi int) uint64
	sub = func(lo, hi int) uint64 {
		if hi-lo == 1 {
			return leaf(lo)
		}
		mid := lo + split(o, hi-lo)
		return join(sub(lo, mid), sub(mid, hi))
	}
	return sub(0, n)
}
