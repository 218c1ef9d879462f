package arith

import (
	"math"

	"example.com/tandem/api/num"
)

// exactTile is the kernel of a sum or product rounded once, nil if there is none.
func (o Options) exactTile(d num.DType, s num.Scheme, n int) func(dst []byte, srcs [][]byte) {
	if s.Op != num.Sum {
		return nil
	}
	if k := o.assemblyExact(d, s, n); k != nil {
		return k
	}
	value, ok := valuesOf(d)
	if !ok || d == num.F64 {
		return nil
	}
	// From f64, with the last bit set if anything was cut off, to the element.
	round := func(x float64) uint64 { return num.Encode(d, x, s.Last) }
	switch {
	case d == num.BF16:
		round = func(x float64) uint64 { return uint64(narrowBF16By(odd32(x), s.Last)) }
	case d == num.F16:
		round = func(x float64) uint64 { return uint64(narrowF16By(odd32(x), s.Last)) }
	case s.Last == num.NearestEven:
		round = func(x float64) uint64 { return uint64(math.Float32bits(canonical32(float32(x)))) }
	}
	return func(dst []byte, srcs [][]byte) {
		var wide num.Exact
		for i := 0; i < len(dst); i += d.Size() {
			num.Store(d, dst[i:], exactElement(&wide, d, s.Last, i, srcs, value, round))
		}
	}
}

// exactElement sums the elements at byte i and rounds them once. The sum is kept
// as three f64: high + mid is exact but for terms whose size low adds up.
func exactElement(wide *num.Exact, d num.DType, r num.Rounding, i int, srcs [][]byte,
	value func(p []byte, i int) float64, round func(float64) uint64) uint64 {
	high, mid, low := value(srcs[0], i), 0.0, 0.0
	for _, src := range srcs[1:] {
		var rest, lost float64
		high, rest = twoSum(high, value(src, i))
		mid, lost = twoSum(mid, rest)
		low += math.Abs(lost)
	}
	if math.IsNaN(mid) || math.IsInf(high, 0) {
		// An input was infinite or a NaN, and high is what IEEE makes of that:
		// no finite sum comes near the end of f64's range.
		return round(high)
	}
	high, mid = twoSum(high, mid)
	// What low stands for cannot change the sign of mid, so that the rounding
	// of high is known; a sum of zero has a sign of its own.
	if high != 0 && (low == 0 || math.Abs(mid) > 2*low) {
		return round(odd64(high, mid))
	}
	wide.Reset()
	for _, src := range srcs {
		wide.Add(d, num.Load(d, src[i:]))
	}
	return wide.Round(d, r)
}
