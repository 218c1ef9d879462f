//go:build amd64 && !noasm

package arith

import (
	"math/bits"

	"example.com/tandem/api/num"
)

// maxExact bounds the terms of a sum in f64 that is known to be exact: of 2^10
// multiples of 2^-24 below 2^16, which f16 holds, it has 50 bits.
const maxExact = 1 << 10

// exactTile is the working space of one worker for sums rounded once.
type exactTile struct {
	d         num.DType
	most      uint16 // how far exponents of bf16 may be apart
	steps     steps
	finish    func(dst, acc []byte)
	single    *exactSum
	acc       []byte // f64
	high, low []byte // what spreadBF16 finds
	fixes     []fix
}

// fix is an element that had to be summed by itself.
type fix struct {
	at   int
	bits uint64
}

// assemblyExact makes the kernel of a sum rounded once. The sum is taken in f64,
// where it is exact as long as the exponents of its terms are not too far apart:
// always for f16, and for bf16 where a second kernel finds so.
func (o Options) assemblyExact(d num.DType, s num.Scheme, n, elements int) func(dst []byte, srcs [][]byte) {
	// An exact zero has the sign that f64's addition gives it, unless rounding down.
	if d != num.BF16 && d != num.F16 || s.Last == num.Down || n > maxExact || !hasAssembly || o.Portable {
		return nil
	}
	t := &exactTile{
		d:      d,
		steps:  o.assemblySteps(num.F64, d, num.Sum),
		finish: o.converter(d, num.F64, s.Last),
		single: newExactSum(d, s.Last),
		acc:    make([]byte, 8*elements),
	}
	if d == num.BF16 {
		// From the last place of the least term, of exponent low, to the carry
		// out of n terms of exponent high there are high-low+8+log2(n) bits.
		t.most = uint16(53 - 8 - bits.Len(uint(n-1)))
		t.high, t.low = make([]byte, 2*elements), make([]byte, 2*elements)
	}
	return t.reduce
}

func (t *exactTile) reduce(dst []byte, srcs [][]byte) {
	whole := len(dst) / 2 &^ (unit - 1)
	for i := 2 * whole; i < len(dst); i += 2 {
		num.Store(t.d, dst[i:], t.single.element(i, srcs))
	}
	if whole == 0 {
		return
	}
	acc := t.acc[:8*whole]
	clear(t.high)
	clear(t.low)
	for i := 0; i < len(srcs); i += group - 1 {
		some := srcs[i:min(i+group-1, len(srcs))]
		if i == 0 {
			t.steps.first(acc, some)
		} else {
			t.steps.more(acc, acc, some)
		}
		if t.d == num.BF16 {
			spreadBF16(t.high[:2*whole], t.low[:2*whole], some)
		}
	}
	// The sources are read once more before dst, which may be one, is written.
	if t.d == num.BF16 && overBF16(t.high[:2*whole], t.low[:2*whole], t.most) != 0 {
		t.findFixes(whole, srcs)
	}
	t.finish(dst[:2*whole], acc)
	for _, f := range t.fixes {
		num.Store(t.d, dst[f.at:], f.bits)
	}
	t.fixes = t.fixes[:0]
}

// findFixes sums the elements whose sums in f64 may not be exact.
func (t *exactTile) findFixes(whole int, srcs [][]byte) {
	high, low := t.high[:2*whole], t.low[:2*whole]
	for i := 0; i < len(high)-1; i += 2 {
		if int(get16(high, i)>>7)-int(-get16(low, i)>>7) > int(t.most) {
			t.fixes = append(t.fixes, fix{i, t.single.element(i, srcs)})
		}
	}
}
