package conformance

import (
	"math"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
	"example.com/tandem/conformance/internal/exact"
)

// floatSum reports whether a lane's outputs are floating sums, the only ones
// that can be held to anything less than equal bits.
func floatSum(call *api.Call, lane int) bool {
	return call.Collective.Reduces() && call.Op == api.Sum && call.Lane(lane).DType.Float()
}

// anyFloatSum reports whether a lane of the call has floating sums.
func anyFloatSum(call *api.Call) bool {
	for l := range call.Lanes() {
		if floatSum(call, l) {
			return true
		}
	}
	return false
}

// faithfulElements has, by rank and lane, the elements that one of the
// observations declares to be no more than faithful; nil if there are none.
func faithfulElements(call *api.Call, observed ...*observation) [][]bitset {
	weak := false
	for _, o := range observed {
		weak = weak || o.contract() == api.Faithful
	}
	if !weak || !anyFloatSum(call) {
		return nil
	}
	fitted := func(a api.Algorithm) bool { return a.Fitted }
	sets := make([][]bitset, call.Ranks)
	for rank := range sets {
		for l := range call.Lanes() {
			set := newBitset(call.DstElems(l))
			if floatSum(call, l) {
				for _, o := range observed {
					o.markFaithful(set, call, l, rank)
				}
				for _, o := range observed {
					o.eachRange(call, l, rank, fitted, set.clearRange)
				}
			}
			sets[rank] = append(sets[rank], set)
		}
	}
	return sets
}

// contract is the weakest that one of the outputs may fall under.
func (o *observation) contract() api.Contract {
	if o.plan != nil {
		return o.plan.Contract()
	}
	return o.promise
}

// markFaithful adds the elements of a destination that the plan, or in want of
// one the promise, declares faithful.
func (o *observation) markFaithful(set bitset, call *api.Call, lane, rank int) {
	n := call.DstElems(lane)
	if o.plan == nil {
		if o.promise == api.Faithful {
			set.setRange(0, n)
		}
		return
	}
	o.eachRange(call, lane, rank, func(a api.Algorithm) bool { return a.Contract == api.Faithful }, set.setRange)
}

// eachRange hands out the ranges of a destination whose algorithm, by the plan,
// is of a kind; none where there is no plan.
func (o *observation) eachRange(call *api.Call, lane, rank int, is func(api.Algorithm) bool, do func(lo, hi int64)) {
	if o.plan == nil {
		return
	}
	n := call.DstElems(lane)
	mark := func(algorithm string, start, count int64) {
		if is(o.plan.Algorithms[algorithm]) {
			do(max(0, start), min(n, start+count))
		}
	}
	for k := range o.plan.Kernels {
		if o.plan.Kernels[k].Lane != lane {
			continue
		}
		for _, c := range o.plan.Kernels[k].CTAs {
			if len(c.Slices) == 0 {
				mark(c.Algorithm, c.Start, c.Count)
			}
			for _, s := range c.Slices {
				if !s.Local || s.Rank == rank {
					mark(algorithmOf(&c, &s), s.Start, s.Count)
				}
			}
		}
	}
}

// algorithmOf is the slice's algorithm, or its CTA's where it has none.
func algorithmOf(c *api.CTA, s *api.Slice) string {
	if s.Algorithm != "" {
		return s.Algorithm
	}
	return c.Algorithm
}

// verdictOf says what a value is to a sum that a switch may have done.
type verdictOf uint8

const (
	outside   verdictOf = iota // not a result a switch gives
	inside                     // one of the results it may give
	undecided                  // terms may have been cut: nobody knows
)

// switchSet judges a value that is no neighbour of the exact sum, by what has
// been measured of in-switch sums: a window anchored at the greatest exponent
// among the inputs, in steps of 16. A sum far below the window reads +0, and
// near its end bits of terms may be missing. near are the neighbours.
func switchSet(d api.DType, in []uint64, near exact.Set, got uint64) verdictOf {
	e, finite, nonzero := greatestExponent(d, in)
	if !finite {
		return outside
	}
	if !nonzero {
		// The accumulator has no -0.
		if got == 0 {
			return inside
		}
		return outside
	}
	resultBits := 38
	if d.Bits() > 16 {
		resultBits = 86
	}
	anchor := 16 * int(math.Ceil(float64(e)/16))
	least, most := math.Abs(num.Decode(d, near.Lo)), math.Abs(num.Decode(d, near.Hi))
	if least > most {
		least, most = most, least
	}
	below := func(place int) bool {
		limit := math.Ldexp(1, place)
		return most < limit || most == limit && least < most
	}
	switch {
	case below(anchor - resultBits):
		if got == 0 {
			return inside
		}
	case d.Bits() <= 16 && below(anchor-24) && bitsBelow(d, in, anchor-resultBits):
		return undecided
	}
	return outside
}

// greatestExponent is the exponent of the largest input, at least that of the
// least normal number; finite says that no input is infinite or NaN.
func greatestExponent(d api.DType, in []uint64) (e int, finite, nonzero bool) {
	e = 1 - d.Bias()
	for _, b := range in {
		if num.IsNaN(d, b) || num.IsInf(d, b) {
			return 0, false, false
		}
		if num.IsZero(d, b) {
			continue
		}
		nonzero = true
		if x := num.Decode(d, b); x != 0 {
			_, exp := math.Frexp(x)
			e = max(e, exp-1)
		}
	}
	return e, true, nonzero
}

// bitsBelow reports whether an input has bits below 2^place.
func bitsBelow(d api.DType, in []uint64, place int) bool {
	for _, b := range in {
		x := math.Ldexp(num.Decode(d, b), -place)
		if x != math.Trunc(x) {
			return true
		}
	}
	return false
}

// outsiders has, for each observation by rank and lane, the elements that are
// no neighbours of the exact sum; nil for lanes that are no floating sums.
func outsiders(in *sources, workers int, observed ...*observation) [][][]bitset {
	call := in.call
	out := make([][][]bitset, len(observed))
	for o := range observed {
		out[o] = make([][]bitset, call.Ranks)
		for rank := range out[o] {
			out[o][rank] = make([]bitset, call.Lanes())
		}
	}
	for l := range call.Lanes() {
		if !floatSum(call, l) {
			continue
		}
		for o := range observed {
			for rank := range call.Ranks {
				out[o][rank][l] = newBitset(call.DstElems(l))
			}
		}
		markOutsiders(in, workers, l, observed, out)
	}
	return out
}

// markOutsiders does one lane, in ranges that share no word of a bitset. Where
// all ranks must hold the same, the exact sum is found once for all of them.
func markOutsiders(in *sources, workers, lane int, observed []*observation, out [][][]bitset) {
	call := in.call
	const step = 1 << 13
	n := call.DstElems(lane)
	chunks := int((n + step - 1) / step)
	groups, perGroup := call.Ranks, 1
	if call.Collective.Symmetric() {
		groups, perGroup = 1, call.Ranks
	}
	d := call.Lane(lane).DType
	size := int64(d.Size())
	_ = parallel(workers, chunks*groups, func(i int) error {
		first := i / chunks * perGroup
		start := int64(i%chunks) * step
		g, sum := in.gatherer(), exact.NewSum(d)
		for index := start; index < min(n, start+step); index++ {
			set := sum.Set(g.inputs(lane, first, index))
			for rank := first; rank < first+perGroup; rank++ {
				for o, obs := range observed {
					if obs.fault == nil && !set.Has(d, num.Load(d, obs.out[rank][lane][index*size:])) {
						out[o][rank][lane].set(index)
					}
				}
			}
		}
		return nil
	})
}
