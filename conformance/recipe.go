package conformance

import (
	"fmt"
	"slices"
	"strings"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
)

// recipe is one way of computing a reduction, tried as an explanation.
type recipe struct {
	scheme num.Scheme
	order  order
	// any stands for a result that is a neighbour of the exact sum, whichever:
	// an accumulator whose last rounding nobody knows.
	any bool
}

// order is the order in which the inputs, given in rank order, are combined.
type order struct {
	name string // "" where the result does not depend on it
	perm []int  // nil: rank order
	tree num.Order
	// pairs is how many of the first inputs are combined pairwise before
	// anything else, as recursive exchange does for team sizes that are no
	// power of two.
	pairs int
	// relative orders are others on every rank.
	relative bool
	// rare orders are tried because they exist, not because anybody uses them.
	rare bool
}

// evaluate is what the recipe makes of the inputs; scratch is overwritten.
func (r *recipe) evaluate(d api.DType, in, scratch []uint64) uint64 {
	scratch = scratch[:0]
	if r.order.perm == nil {
		scratch = append(scratch, in...)
	} else {
		for _, k := range r.order.perm {
			scratch = append(scratch, in[k])
		}
	}
	if n := r.order.pairs; n > 0 {
		folded := scratch[:0]
		for i := 0; i < n; i += 2 {
			folded = append(folded, num.Eval(d, r.scheme, scratch[i:i+2]))
		}
		scratch = append(folded, scratch[n:]...)
	}
	return num.Eval(d, r.scheme, scratch)
}

// orders lists the orders that implementations use, the plainest first. For up
// to four ranks that is every order there is.
func orders(ranks, rank int) []order {
	list := []order{{name: "in rank order"}}
	if ranks < 3 {
		return list
	}
	turn := func(from, step int) []int {
		p := make([]int, ranks)
		for i := range p {
			p[i] = ((from+step*i)%ranks + ranks) % ranks
		}
		return p
	}
	list = append(list,
		order{name: "as a balanced tree", tree: num.Balanced},
		order{name: "from the last rank down", perm: turn(ranks-1, -1)},
		order{name: "each rank's own input first, then that of the ranks below it, so that ranks differ", perm: turn(rank, -1), relative: true},
		order{name: "each rank's own input first, then that of the ranks above it, so that ranks differ", perm: turn(rank, 1), relative: true},
	)
	if ranks <= 4 {
		return append(list, everyOrder(ranks)...)
	}
	list = append(list, order{name: "as a balanced tree from the last rank", perm: turn(ranks-1, -1), tree: num.Balanced})
	if p := powerBelow(ranks); p < ranks {
		list = append(list, order{name: "by recursive exchange", tree: num.Balanced, pairs: 2 * (ranks - p)})
	}
	for k := 1; k < min(ranks, 16); k++ {
		list = append(list,
			order{name: fmt.Sprintf("around the ring from rank %d up", k), perm: turn(k, 1)},
			order{name: fmt.Sprintf("around the ring from rank %d down", k-1), perm: turn(k-1, -1)})
	}
	return list
}

// powerBelow is the largest power of two that is at most n.
func powerBelow(n int) int {
	p := 1
	for 2*p <= n {
		p *= 2
	}
	return p
}

// everyOrder lists all linear orders of three or four ranks, and all trees.
func everyOrder(ranks int) []order {
	var list []order
	perm := make([]int, 0, ranks)
	var grow func()
	grow = func() {
		if len(perm) == ranks {
			p := slices.Clone(perm)
			text := strings.Trim(fmt.Sprint(p), "[]")
			list = append(list,
				order{name: "in the order " + text, perm: p, rare: true},
				order{name: "as a tree over " + text, perm: p, tree: num.Balanced, rare: true})
			return
		}
		for k := range ranks {
			if !slices.Contains(perm, k) {
				perm = append(perm, k)
				grow()
				perm = perm[:len(perm)-1]
			}
		}
	}
	grow()
	return list
}

// roundings of a last step, the likely ones first.
var roundings = []num.Rounding{num.NearestEven, num.TowardZero, num.AwayFromZero, num.NearestAway, num.Up, num.Down, num.ToOdd}

// fewOrders is how many orders are tried with the less likely accumulators.
const fewOrders = 5

// recipes lists what is tried for a floating reduction, the plainest first.
func recipes(d api.DType, op api.Op, ranks, rank int) []recipe {
	rules := []num.AvgRule{num.AvgDivide}
	if op == api.Avg {
		rules = []num.AvgRule{num.AvgDivide, num.AvgPremul, num.AvgPremulFused, num.AvgMultiply}
	}
	all := orders(ranks, rank)
	var list []recipe
	add := func(o order, s num.Scheme) {
		s.Op, s.Order = op, o.tree
		list = append(list, recipe{scheme: s, order: o})
	}
	for _, rule := range rules {
		for _, o := range all {
			add(o, num.Scheme{Avg: rule})
			add(o, num.Scheme{Avg: rule, Step: num.TowardZero, Last: num.TowardZero})
		}
		for _, r := range roundings {
			add(order{}, num.Scheme{Avg: rule, Acc: num.AccExact, Last: r})
		}
		for i, o := range all[:min(fewOrders, len(all))] {
			if d.Bits() < 32 {
				add(o, num.Scheme{Avg: rule, Acc: num.AccF32})
			}
			if d != api.F64 && i < 2 {
				add(o, num.Scheme{Avg: rule, Acc: num.AccF64})
			}
		}
		for _, r := range roundings[1:] {
			for _, o := range all[:min(2, len(all))] {
				add(o, num.Scheme{Avg: rule, Step: r, Last: r})
				if d.Bits() < 32 {
					add(o, num.Scheme{Avg: rule, Acc: num.AccF32, Last: r})
				}
			}
		}
	}
	if op == api.Sum {
		list = append(list, recipe{scheme: num.Scheme{Op: op, Acc: num.AccExact}, any: true})
	}
	return list
}

var (
	accNames      = [...]string{"the element type", "f32", "f64", "an exact accumulator"}
	roundingNames = [...]string{"to nearest even", "to nearest, ties away from zero", "toward zero", "up", "down", "away from zero", "to odd"}
	avgNames      = [...]string{"dividing the sum", "multiplying every input by 1/n first", "multiplying every input by 1/n first, fused with the addition", "multiplying the sum by 1/n in f32"}
)

// words describe the recipe within an explanation.
func (r *recipe) words(d api.DType) string {
	var parts []string
	if r.order.name != "" {
		parts = append(parts, r.order.name)
	}
	s := r.scheme
	switch {
	case r.any:
		parts = append(parts, "exact, or too wide to tell, rounded once to either neighbour")
	case s.Acc == num.AccElement:
		parts = append(parts, fmt.Sprintf("rounded %s to %s at each step", roundingNames[s.Step], d))
	case s.Acc == num.AccExact:
		parts = append(parts, fmt.Sprintf("exact, or too wide to tell, rounded once %s", roundingNames[s.Last]))
	default:
		parts = append(parts, fmt.Sprintf("accumulated in %s, rounded %s at the end", accNames[s.Acc], roundingNames[s.Last]))
	}
	if s.Op == api.Avg {
		parts = append(parts, avgNames[s.Avg])
	}
	return strings.Join(parts, ", ")
}

// difference is the class of the difference between two recipes, and in how
// many respects they differ: the fewer, the better an explanation it is.
func difference(a, b *recipe) (class api.Cause, respects int) {
	class = api.CauseUnknown
	name := func(differ bool, c api.Cause) {
		if differ {
			class = c
			respects++
		}
	}
	sa, sb := a.scheme, b.scheme
	name(a.order.name != b.order.name && a.order.name != "" && b.order.name != "", api.CauseOrder)
	name(a.lastRounding() != b.lastRounding() || a.any != b.any, api.CauseRounding)
	name(sa.Acc != sb.Acc, api.CauseAccumulator)
	name(sa.Avg != sb.Avg, api.CauseAvgRule)
	return class, respects
}

// oddity says how unlikely a recipe is, where several explain as much: roundings
// and orders that few use, and an order that differs between ranks on a side
// whose ranks agree, or is the same where they do not.
func (r *recipe) oddity(agree bool) int {
	n := 0
	switch r.lastRounding() {
	case num.NearestEven:
	case num.TowardZero:
		n = 1
	default:
		n = 2
	}
	if r.order.name != "" && r.order.relative == agree {
		n++
	}
	if r.order.rare {
		n++
	}
	return n
}

// stepwise reports whether the recipe rounds to the element type at each step.
func (r *recipe) stepwise() bool { return !r.any && r.scheme.Acc == num.AccElement }

// lastRounding is the rounding that makes the result an element.
func (r *recipe) lastRounding() num.Rounding {
	if r.scheme.Acc == num.AccElement {
		return r.scheme.Step
	}
	return r.scheme.Last
}
