package arith

import (
	"example.com/tandem/api/num"
)

// maxDivisor bounds the inputs of an average that the kernels divide: up to
// there a quotient rounded in f64 is never so near to a number half way between
// two elements that the second rounding errs, and n is a number in f32.
const maxDivisor = 1 << 20

// planFloat plans a sum, product or average of floats with steps rounded to
// nearest even. Where it finds no kernels it leaves the plan without any.
func (p *plan) planFloat(o Options) {
	switch p.s.Acc {
	case num.AccF32:
		p.acc = num.F32
	case num.AccF64:
		p.acc = num.F64
	}
	steps := o.floatSteps(p.acc, p.d, p.s.Op)
	if p.acc != p.d {
		p.finish = o.converter(p.d, p.acc, p.s.Last)
		p.narrow = steps.last != nil && p.s.Op != num.Avg && p.s.Last == num.NearestEven
	}
	if p.s.Op == num.Avg && !p.planAverage(o) {
		return
	}
	p.steps = steps
}

// floatSteps are the kernels of a sum or product.
func (o Options) floatSteps(acc, d num.DType, op num.Op) steps {
	if s := o.assemblySteps(acc, d, op); s.join != nil {
		return s
	}
	type key struct {
		acc, d num.DType
		prod   bool
	}
	join := o.joiner(acc, op)
	switch (key{acc, d, op == num.Prod}) {
	case key{num.F32, num.BF16, false}:
		return widening(join, widenBF16ToF32, sumBF16ToF32, addBF16ToF32)
	case key{num.F32, num.F16, false}:
		return widening(join, widenF16ToF32, sumF16ToF32, addF16ToF32)
	case key{num.F64, num.BF16, false}:
		return widening(join, widenBF16ToF64, nil, addBF16ToF64)
	case key{num.F64, num.F16, false}:
		return widening(join, widenF16ToF64, nil, addF16ToF64)
	case key{num.F64, num.F32, false}:
		return widening(join, widenF32ToF64, nil, addF32ToF64)
	case key{num.F32, num.BF16, true}:
		return widening(join, widenBF16ToF32, nil, mulBF16ToF32)
	case key{num.F32, num.F16, true}:
		return widening(join, widenF16ToF32, nil, mulF16ToF32)
	case key{num.F64, num.BF16, true}:
		return widening(join, widenBF16ToF64, nil, mulBF16ToF64)
	case key{num.F64, num.F16, true}:
		return widening(join, widenF16ToF64, nil, mulF16ToF64)
	case key{num.F64, num.F32, true}:
		return widening(join, widenF32ToF64, nil, mulF32ToF64)
	}
	if acc != d || join == nil {
		return steps{}
	}
	return pairwise(join)
}

// joiner is the kernel dst = a op b on elements of d, nil if there is none.
func (o Options) joiner(d num.DType, op num.Op) func(dst, a, b []byte) {
	if s := o.assemblySteps(d, d, op); s.join != nil {
		return s.join
	}
	add, mul := addBF16, mulBF16
	switch d {
	case num.BF16:
	case num.F16:
		add, mul = addF16, mulF16
	case num.F32:
		add, mul = addF32, mulF32
	case num.F64:
		add, mul = addF64, mulF64
	default:
		return nil
	}
	if op == num.Prod {
		return mul
	}
	return add
}

// planAverage adds what avg needs besides the sum; it reports whether it could.
func (p *plan) planAverage(o Options) bool {
	if p.n > maxDivisor {
		return false
	}
	narrow := p.finish
	switch p.s.Avg {
	case num.AvgPremul, num.AvgPremulFused:
		return p.planPremul(o)
	case num.AvgMultiply:
		return p.planMultiply(o)
	}
	if p.s.Acc == num.AccElement {
		return p.planDivideElement()
	}
	divide := divideF32
	if p.acc == num.F64 {
		divide = divideF64
	}
	n := p.n
	p.finish = func(dst, acc []byte) {
		if narrow == nil {
			divide(dst, acc, n)
			return
		}
		divide(acc, acc, n)
		narrow(dst, acc)
	}
	return true
}

// planDivideElement divides a sum that is an element already, by Last.
func (p *plan) planDivideElement() bool {
	n, r := p.n, p.s.Last
	switch {
	case p.d == num.BF16:
		p.finish = func(dst, acc []byte) {
			for i := 0; i < len(dst)-1; i += 2 {
				q := float64(widenBF16(get16(acc, i))) / float64(n)
				put16(dst, i, narrowBF16By(odd32(q), r))
			}
		}
	case p.d == num.F16:
		p.finish = func(dst, acc []byte) {
			for i := 0; i < len(dst)-1; i += 2 {
				q := float64(widenF16(get16(acc, i))) / float64(n)
				put16(dst, i, narrowF16By(odd32(q), r))
			}
		}
	case p.d == num.F32 && r == num.NearestEven:
		p.finish = func(dst, acc []byte) { divideF32(dst, acc, n) }
	case p.d == num.F64 && r == num.NearestEven:
		p.finish = func(dst, acc []byte) { divideF64(dst, acc, n) }
	default:
		return false
	}
	return true
}

// divideF32 is dst[i] = acc[i] / n.
func divideF32(dst, acc []byte, n int) {
	for i := 0; i < len(dst)-3; i += 4 {
		x := getF32(acc, i)
		putF32(dst, i, canonical32(x/float32(n)))
	}
}

// divideF64 is dst[i] = acc[i] / n.
func divideF64(dst, acc []byte, n int) {
	for i := 0; i < len(dst)-7; i += 8 {
		x := getF64(acc, i)
		putF64(dst, i, quiet64(x/float64(n), x, x))
	}
}

// planMultiply multiplies the sum by 1/n in f32, f64 elements in f64.
func (p *plan) planMultiply(o Options) bool {
	if p.d == num.F64 {
		if p.acc != num.F64 {
			return false
		}
		c := 1 / float64(p.n)
		p.finish = func(dst, acc []byte) {
			for i := 0; i < len(dst)-7; i += 8 {
				x := getF64(acc, i)
				putF64(dst, i, quiet64(float64(x*c), x, x))
			}
		}
		return true
	}
	c := float32(1 / float64(p.n)) // one rounding: 1/n is not near half way, see maxDivisor
	widen := func(dst, src []byte) { copy(dst, src) }
	if p.acc != num.F32 {
		widen = o.converter(num.F32, p.acc, num.NearestEven)
	}
	narrow := func(dst, src []byte) { copy(dst, src) }
	if p.d != num.F32 {
		narrow = o.converter(p.d, num.F32, p.s.Last)
	}
	p.finish = func(dst, acc []byte) {
		var room [4 * 256]byte
		for i := 0; i < len(dst)/p.d.Size(); i += 256 {
			end := min(i+256, len(dst)/p.d.Size())
			part := room[:4*(end-i)]
			widen(part, acc[i*p.acc.Size():end*p.acc.Size()])
			for j := 0; j < len(part)-3; j += 4 {
				x := getF32(part, j)
				putF32(part, j, canonical32(float32(x*c)))
			}
			narrow(dst[i*p.d.Size():end*p.d.Size()], part)
		}
	}
	return true
}
