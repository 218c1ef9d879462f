package arith

import (
	"math"

	"example.com/tandem/api/num"
)

// exactTiles makes the maker of the kernels of a sum rounded once, as plan.tiles
// has it; nil if there is none.
func (o Options) exactTiles(d num.DType, s num.Scheme, n int) func(elements int) func(dst []byte, srcs [][]byte) {
	if s.Op != num.Sum || !d.Float() || d == num.F64 || d.Size() == 1 {
		return nil
	}
	if tiles := o.assemblyExact(d, s, n); tiles != nil {
		return tiles
	}
	return func(int) func(dst []byte, srcs [][]byte) {
		e := newExactSum(d, s.Last)
		return func(dst []byte, srcs [][]byte) {
			for i := 0; i < len(dst); i += d.Size() {
				num.Store(d, dst[i:], e.element(i, srcs))
			}
		}
	}
}

// exactSum sums single elements exactly.
type exactSum struct {
	d     num.DType
	last  num.Rounding
	terms []float64
	round func(x float64) uint64 // x has its last bit set if anything was cut off
	wide  *num.Exact             // made when needed: it is large
}

func newExactSum(d num.DType, last num.Rounding) *exactSum {
	e := &exactSum{d: d, last: last}
	switch {
	case d == num.BF16:
		e.round = func(x float64) uint64 { return uint64(narrowBF16By(odd32(x), last)) }
	case d == num.F16:
		e.round = func(x float64) uint64 { return uint64(narrowF16By(odd32(x), last)) }
	default:
		e.round = func(x float64) uint64 { return uint64(math.Float32bits(narrowF32By(x, last))) }
	}
	return e
}

// element sums the elements at byte i and rounds once. The sum is kept as three
// f64: high + mid is exact but for terms whose magnitudes low adds up.
func (e *exactSum) element(i int, srcs [][]byte) uint64 {
	terms := e.gather(i, srcs)
	high, mid, low := terms[0], 0.0, 0.0
	for _, x := range terms[1:] {
		var rest, lost float64
		high, rest = twoSum(high, x)
		mid, lost = twoSum(mid, rest)
		low += math.Abs(lost)
	}
	if math.IsNaN(mid) {
		// An input was infinite or a NaN, and high is what IEEE makes of that:
		// no finite sum comes near the end of f64's range.
		return e.round(high)
	}
	high, mid = twoSum(high, mid)
	// What low stands for cannot change the sign of mid, so that the rounding
	// of high is known; a sum of zero has a sign of its own.
	if high != 0 && (low == 0 || math.Abs(mid) > 2*low) {
		return e.round(odd64(high, mid))
	}
	if e.wide == nil {
		e.wide = new(num.Exact)
	}
	e.wide.Reset()
	for _, src := range srcs {
		e.wide.Add(e.d, num.Load(e.d, src[i:]))
	}
	return e.wide.Round(e.d, e.last)
}

// gather reads the elements at byte i.
func (e *exactSum) gather(i int, srcs [][]byte) []float64 {
	e.terms = e.terms[:0]
	switch e.d {
	case num.BF16:
		for _, src := range srcs {
			e.terms = append(e.terms, float64(widenBF16(get16(src, i))))
		}
	case num.F16:
		for _, src := range srcs {
			e.terms = append(e.terms, float64(widenF16(get16(src, i))))
		}
	default:
		for _, src := range srcs {
			e.terms = append(e.terms, float64(getF32(src, i)))
		}
	}
	return e.terms
}
