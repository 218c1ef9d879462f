package arith

import (
	"math"

	"example.com/tandem/api/num"
)

// planPremul multiplies every input by 1/n before the sum, fused or not.
func (p *plan) planPremul(o Options) bool {
	mul := o.joiner(p.d, num.Prod)
	if mul == nil {
		return false
	}
	// 1/n in every element: the products then are those of the kernel for prod.
	c := num.Encode(p.d, 1/float64(p.n), num.NearestEven) // see maxDivisor
	all := make([]byte, tileElements*p.d.Size())
	for i := 0; i < len(all); i += p.d.Size() {
		num.Store(p.d, all[i:], c)
	}
	p.prepare = func(dst, src []byte) { mul(dst, src, all[:len(src)]) }
	if p.s.Avg == num.AvgPremulFused {
		p.fused = fusedStep(p.acc, p.d, c)
	}
	return p.s.Avg == num.AvgPremul || p.fused != nil
}

// fusedStep is dst[i] = acc[i] + src[i]*c, rounded once in the accumulator's
// format.
func fusedStep(acc, d num.DType, c uint64) func(dst, acc, src []byte) {
	by := num.Decode(d, c)
	value, ok := valuesOf(d)
	switch {
	case !ok:
		return nil
	case acc == num.BF16:
		return func(dst, acc, src []byte) {
			for i := 0; i < len(dst)-1; i += 2 {
				x := fma(value(src, i), by, float64(widenBF16(get16(acc, i))))
				put16(dst, i, narrowBF16(odd32(x)))
			}
		}
	case acc == num.F16:
		return func(dst, acc, src []byte) {
			for i := 0; i < len(dst)-1; i += 2 {
				x := fma(value(src, i), by, float64(widenF16(get16(acc, i))))
				put16(dst, i, narrowF16(odd32(x)))
			}
		}
	case acc == num.F32 && d != num.F64:
		return func(dst, acc, src []byte) {
			for i := 0; i < len(dst)-3; i += 4 {
				x := fma(value(src, i*d.Size()/4), by, float64(getF32(acc, i)))
				putF32(dst, i, canonical32(float32(x)))
			}
		}
	case acc == num.F64:
		return func(dst, acc, src []byte) {
			for i := 0; i < len(dst)-7; i += 8 {
				a, x := getF64(acc, i), value(src, i*d.Size()/8)
				putF64(dst, i, quiet64(math.FMA(x, by, a), a, x))
			}
		}
	}
	return nil
}

// fma is x*y + z, rounded to odd, for factors of at most 24 bits: their product
// is exact.
func fma(x, y, z float64) float64 { return odd64(twoSum(z, float64(x*y))) }

// valuesOf reads the element at byte i of a range.
func valuesOf(d num.DType) (func(p []byte, i int) float64, bool) {
	switch d {
	case num.BF16:
		return func(p []byte, i int) float64 { return float64(widenBF16(get16(p, i))) }, true
	case num.F16:
		return func(p []byte, i int) float64 { return float64(widenF16(get16(p, i))) }, true
	case num.F32:
		return func(p []byte, i int) float64 { return float64(getF32(p, i)) }, true
	case num.F64:
		return func(p []byte, i int) float64 { return getF64(p, i) }, true
	}
	return nil, false
}
