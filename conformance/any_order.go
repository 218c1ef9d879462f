package conformance

import (
	"slices"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
)

const (
	// maxOrdered is the most inputs of which all orders are tried.
	maxOrdered = 8
	// maxTried is how many elements of a destination are tried; the others stay
	// undecided.
	maxTried = 4096
)

// anyOrders judges values that no neighbour and no window explains by sums in an
// order that nobody knows, where a plan says that there are such.
type anyOrders struct {
	d     api.DType
	kinds []api.AnyOrder
	tried int
}

func newAnyOrders(d api.DType, observed []*observation) *anyOrders {
	o := &anyOrders{d: d}
	for _, obs := range observed {
		if obs == nil || obs.plan == nil {
			continue
		}
		for _, a := range obs.plan.Algorithms {
			for _, kind := range a.AnyOrder {
				if kind.Acc.Valid() && kind.Acc.Float() && !slices.Contains(o.kinds, kind) {
					o.kinds = append(o.kinds, kind)
				}
			}
		}
	}
	return o
}

// judge says whether got is what one of the kinds gives in some order.
func (o *anyOrders) judge(in []uint64, got uint64) verdictOf {
	if len(o.kinds) == 0 {
		return outside
	}
	if o.tried++; len(in) > maxOrdered || o.tried > maxTried {
		return undecided
	}
	for _, kind := range o.kinds {
		for _, sum := range orderedSums(o.d, kind, in) {
			if o.rounds(kind.Acc, sum, got) {
				return inside
			}
		}
	}
	return outside
}

// rounds reports whether got is a neighbour of an accumulator. The switch has no
// -0, and an fp8 result out of range may be a NaN.
func (o *anyOrders) rounds(acc api.DType, sum, got uint64) bool {
	lo, hi := num.Convert(o.d, acc, sum, num.Down), num.Convert(o.d, acc, sum, num.Up)
	switch {
	case num.IsNaN(o.d, got):
		return num.IsNaN(o.d, lo) || num.IsNaN(o.d, hi) || o.d.Size() == 1 && (num.IsInf(o.d, lo) || num.IsInf(o.d, hi))
	case got == 0:
		return num.IsZero(o.d, lo) || num.IsZero(o.d, hi)
	}
	return got == lo || got == hi
}

// orderedSums are what the inputs add up to, in the accumulator, over all orders.
func orderedSums(d api.DType, kind api.AnyOrder, in []uint64) []uint64 {
	step := num.Scheme{Op: num.Sum, Step: kind.Step}
	reach := make([][]uint64, 1<<len(in))
	for set := 1; set < len(reach); set++ {
		var members []int
		for i := range in {
			if set>>i&1 == 1 {
				members = append(members, i)
			}
		}
		if len(members) == 1 {
			b := in[members[0]]
			if kind.Acc != d {
				b = num.Convert(kind.Acc, d, b, num.NearestEven)
			}
			reach[set] = []uint64{b}
			continue
		}
		first := len(members) - 1
		if kind.Tree {
			for first = 1; 2*first < len(members); {
				first *= 2
			}
		}
		for part := (set - 1) & set; part > 0; part = (part - 1) & set {
			if ones(part) != first {
				continue
			}
			for _, x := range reach[part] {
				for _, y := range reach[set&^part] {
					reach[set] = append(reach[set], num.Eval(kind.Acc, step, []uint64{x, y}))
				}
			}
		}
		slices.Sort(reach[set])
		reach[set] = slices.Compact(reach[set])
	}
	return reach[len(reach)-1]
}

func ones(set int) int {
	n := 0
	for ; set > 0; set &= set - 1 {
		n++
	}
	return n
}
