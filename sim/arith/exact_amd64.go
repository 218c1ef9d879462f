//go:build amd64 && !noasm

package arith

import (
	"math/bits"

	"example.com/tandem/api/num"
)

// exactPlan is how sums rounded once are taken. A sum in f32 or f64 is exact as
// long as the exponents of its terms are not too far apart. So the terms are summed
// in f32 first if that may do, and their exponents watched; the few elements for
// which it did not do are summed again by themselves, and a tile with many of them
// as a whole in f64, as are some tiles after it.
type exactPlan struct {
	d            num.DType
	last         num.Rounding
	first, again exactSteps
}

// exactTile is the working space of one worker.
type exactTile struct {
	*exactPlan
	single    *exactSum
	room      []byte // accumulators
	high, low []byte // what the kernels spread16 and spread32 find
	fixes     []fix
	skip      int // tiles to come that are not worth a first attempt
}

// exactSteps are the kernels that sum in one format.
type exactSteps struct {
	acc    num.DType
	steps  steps
	finish func(dst, acc []byte)
	most   int  // how far apart the exponents of the terms may be
	top    int  // and how great
	free   bool // no exponents are too far apart
}

// fix is an element that had to be summed by itself.
type fix struct {
	at   int
	bits uint64
}

// skipTiles is how many tiles go without a first attempt after one that failed: the
// attempts then cost a twentieth at most.
const skipTiles = 16

// fixUnit is how many elements are searched at once, by an instruction for many,
// for some that need a fix.
const fixUnit = 4 * unit

// assemblyExact makes the maker of the kernels of a sum rounded once.
func (o Options) assemblyExact(d num.DType, s num.Scheme, n int) func(elements int) func(dst []byte, srcs [][]byte) {
	if n > 1<<10 || !hasAssembly || o.Portable {
		return nil
	}
	p := &exactPlan{d: d, last: s.Last, again: o.exactSteps(num.F64, d, s, n)}
	p.first = p.again
	// With less room than 7 binades numbers of one size do not fit.
	if narrow := o.exactSteps(num.F32, d, s, n); d != num.F32 && narrow.most >= 7 {
		p.first = narrow
	}
	return func(elements int) func(dst []byte, srcs [][]byte) {
		t := &exactTile{exactPlan: p, single: newExactSum(d, s.Last), room: make([]byte, 8*elements)}
		if !p.first.free {
			t.high, t.low = make([]byte, d.Size()*elements), make([]byte, d.Size()*elements)
		}
		return t.reduce
	}
}

func (o Options) exactSteps(acc, d num.DType, s num.Scheme, n int) exactSteps {
	carry := bits.Len(uint(n - 1))
	e := exactSteps{
		acc:   acc,
		steps: o.assemblySteps(acc, d, num.Sum),
		// The last place of the least term and the carry out of the sum of n
		// terms like the greatest one are that many binades apart.
		most: acc.MantissaBits() - d.MantissaBits() - carry,
		top:  1<<d.ExponentBits() - 1,
	}
	if acc == num.F32 && d == num.BF16 {
		e.top -= 1 + carry // no sum may be beyond f32's range
	}
	e.free = e.most >= 1<<d.ExponentBits()-1
	e.finish = o.converter(d, acc, s.Last)
	return e
}

// reduce sums one tile. dst, which may be a source, is written when everything
// has been read.
func (t *exactTile) reduce(dst []byte, srcs [][]byte) {
	size := t.d.Size()
	whole := len(dst) &^ (unit*size - 1)
	if whole > 0 {
		t.reduceWhole(dst[:whole], srcs)
	}
	for i := whole; i < len(dst); i += size {
		num.Store(t.d, dst[i:], t.single.element(i, srcs))
	}
}

// reduceWhole sums whole units.
func (t *exactTile) reduceWhole(dst []byte, srcs [][]byte) {
	t.fixes = t.fixes[:0]
	e, watch := t.first, func([][]byte) {}
	if t.skip > 0 {
		e = t.again
		t.skip--
	}
	if !e.free {
		high, low := t.high[:len(dst)], t.low[:len(dst)]
		clear(high)
		clear(low)
		watch = func(some [][]byte) { t.spread(high, low, some) }
	}
	elements := len(dst) / t.d.Size()
	acc := t.sum(e, elements, srcs, watch)
	limit := elements
	if e.acc != t.again.acc {
		limit = elements / 128 // about the cost of the second attempt
	}
	if !t.findFixes(e, len(dst), limit, srcs) {
		e, t.skip, t.fixes = t.again, skipTiles, t.fixes[:0]
		acc = t.sum(e, elements, srcs, func([][]byte) {})
		t.findFixes(e, len(dst), elements, srcs)
	}
	if t.last == num.Down {
		t.fixZeros(e, acc, srcs)
	}
	e.finish(dst, acc)
	for _, f := range t.fixes {
		num.Store(t.d, dst[f.at:], f.bits)
	}
}

// sum sums the first elements of the sources and calls seen for every few of
// them, while they are in the cache.
func (t *exactTile) sum(e exactSteps, elements int, srcs [][]byte, seen func(some [][]byte)) []byte {
	acc := t.room[:elements*e.acc.Size()]
	for i := 0; i < len(srcs); i += group - 1 {
		some := srcs[i:min(i+group-1, len(srcs))]
		if i == 0 {
			e.steps.first(acc, some)
		} else {
			e.steps.more(acc, acc, some)
		}
		seen(some)
	}
	return acc
}

// spread keeps the greatest and the least magnitude in every place.
func (t *exactTile) spread(high, low []byte, srcs [][]byte) {
	if t.d == num.F32 {
		spread32(high, low, srcs)
	} else {
		spread16(high, low, srcs)
	}
}

// findFixes sums by themselves the elements whose sums may not be exact, and gives
// up when there are more than limit.
func (t *exactTile) findFixes(e exactSteps, bytes, limit int, srcs [][]byte) bool {
	if e.free {
		return true
	}
	size := t.d.Size()
	for lo := 0; lo < bytes; lo += fixUnit * size {
		hi := min(lo+fixUnit*size, bytes)
		if !t.over(e, t.high[lo:hi], t.low[lo:hi]) {
			continue
		}
		for i := lo; i < hi; i += size {
			if !t.over1(e, i) {
				continue
			}
			if len(t.fixes) == limit {
				return false
			}
			t.fixes = append(t.fixes, fix{i, t.single.element(i, srcs)})
		}
	}
	return true
}

// fixZeros sums zeros again: the steps round to nearest even, and an exact zero
// of two signs is -0 only when rounding down.
func (t *exactTile) fixZeros(e exactSteps, acc []byte, srcs [][]byte) {
	for i := 0; i < len(acc); i += e.acc.Size() {
		if num.IsZero(e.acc, num.Load(e.acc, acc[i:])) {
			at := i / e.acc.Size() * t.d.Size()
			t.fixes = append(t.fixes, fix{at, t.single.element(at, srcs)})
		}
	}
}

// over reports whether exponents are too far apart, or too great, in some place.
func (t *exactTile) over(e exactSteps, high, low []byte) bool {
	man := uint64(t.d.MantissaBits())
	if t.d == num.F32 {
		return over32(high, low, uint32(e.most), uint32(e.top), man) != 0
	}
	return over16(high, low, uint16(e.most), uint16(e.top), man) != 0
}

// over1 is over for the place at byte i.
func (t *exactTile) over1(e exactSteps, i int) bool {
	man := t.d.MantissaBits()
	high := int(num.Load(t.d, t.high[i:]) >> man)
	low := int(-num.Load(t.d, t.low[i:]) & t.d.Mask() >> man)
	return high-low > e.most || high > e.top
}
