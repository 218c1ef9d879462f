package conformance

import (
	"math/bits"

	"example.com/tandem/api"
	"example.com/tandem/conformance/internal/exact"
)

// How many elements that agree a pair of recipes is held to: on either side of
// an element that it explains at least minBeside, and in all about maxBeside.
// The fewer it explains, the more of them it has to leave equal.
const (
	minBeside = 8
	maxBeside = 128
	// maxHeldTo bounds the explained elements whose neighbours are looked at.
	maxHeldTo = 16
)

// supported reports whether a pair of recipes fits what lies beside the elements
// that it explains. Where both sides hold the same bits both recipes must give
// those bits: one flipped bit can look like another rounding, but then most of
// its neighbours would have to differ too. A path may begin or end beside an
// element, so that one of its two sides is enough.
func (w *witness) supported(c *candidate, elements []int64) bool {
	beside := min(maxBeside, max(minBeside, maxBeside/c.explains))
	step := max(1, c.explains/maxHeldTo)
	sum := exact.NewSum(w.d)
	asked, fits, seen := 0, 0, 0
	c.undivided = 0
	for k, word := range c.at {
		for ; word != 0; word &= word - 1 {
			if seen++; seen%step != 0 {
				continue
			}
			i := elements[64*k+bits.TrailingZeros64(word)]
			asked++
			if w.fitsBeside(c, sum, i, -1, beside) || w.fitsBeside(c, sum, i, 1, beside) {
				fits++
			}
		}
	}
	if c.l.any || c.r.any {
		// Either neighbour fits everywhere: count what it leaves equal by luck.
		return 2*fits > asked && c.undivided <= maxUndivided*asked
	}
	return 2*fits > asked
}

// maxUndivided is how many inexact sums may be equal for each one that is
// explained by a side's taking either neighbour of them.
const maxUndivided = 32

// fitsBeside looks at the nearest elements in one direction that agree, as far
// as plans say that they are computed as this one is. An edge fits only where the
// other direction, which begins there, has nothing to say either.
func (w *witness) fitsBeside(c *candidate, sum *exact.Sum, i, by int64, most int) bool {
	n := w.call.DstElems(w.lane)
	places := w.placesOf(i)
	held := 0
	for at, tried := i+by, 0; at >= 0 && at < n && held < most && tried < 16*most; at, tried = at+by, tried+1 {
		if !w.agreed(at) {
			continue
		}
		if places != w.placesOf(at) {
			break
		}
		v := w.value(left, at)
		in := w.inputs(at)
		p := pair{v, v}
		okL, _ := w.gives(c.l, sum, in, p)
		if okL {
			_, okL = w.gives(c.r, sum, in, p)
		}
		if !okL {
			return false
		}
		if set := sum.Set(in); set.Lo != set.Hi {
			c.undivided++
		}
		held++
	}
	return held > 0 || !w.anyBeside(i, -by, places)
}

// anyBeside reports whether there is an element in one direction that agrees.
func (w *witness) anyBeside(i, by int64, places [2]place) bool {
	n := w.call.DstElems(w.lane)
	for at, tried := i+by, 0; at >= 0 && at < n && tried < 16*minBeside; at, tried = at+by, tried+1 {
		if w.agreed(at) {
			return places == w.placesOf(at)
		}
	}
	return false
}

// agreed reports whether both sides wrote the same bits.
func (w *witness) agreed(i int64) bool {
	for _, o := range w.obs {
		if o.unwritten != nil && o.unwritten[w.rank][w.lane].has(i) {
			return false
		}
	}
	return w.value(left, i) == w.value(right, i)
}

// place is what a side's plan computes an element in; the zero place where
// there is no plan.
type place struct {
	cta   *api.CTA
	slice *api.Slice
}

func (w *witness) placesOf(i int64) (at [2]place) {
	for s, o := range w.obs {
		if o.plan == nil {
			continue
		}
		if p, ok := o.plan.Locate(w.lane, w.rank, i); ok {
			at[s] = place{p.CTA, p.Slice}
		}
	}
	return at
}
