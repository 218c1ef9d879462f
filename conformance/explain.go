package conformance

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"

	"example.com/tandem/api"
	"example.com/tandem/conformance/internal/exact"
)

// maxSample is how many elements recipes are tried on; what they explain is then
// checked on every element.
const maxSample = 192

// maxRounds is how many pairs of recipes one destination may need: an
// implementation has few paths, but each slice may start its ring elsewhere.
const maxRounds = 12

// explain finds pairs of recipes, one a side, that give both values, and blames
// on the difference of the two what they explain.
func (w *witness) explain(b *laneBlame, values []int64) (rest []int64) {
	if w.orderFree || len(values) == 0 {
		return values // every recipe gives the same on order-free inputs
	}
	ranks := len(w.inputs(values[0]))
	if ranks < 2 {
		return values
	}
	list := recipes(w.d, w.call.Op, ranks, w.rank)
	rest = values
	for range maxRounds {
		l, r := w.bestPair(list, sample(rest, max(32, min(maxSample, 4096/ranks))))
		if l == nil {
			return rest
		}
		rest = w.apply(b, l, r, rest)
		if len(rest) == 0 {
			return nil
		}
	}
	return rest
}

// sample is at most n of the elements, evenly spaced.
func sample(values []int64, n int) []int64 {
	if len(values) <= n {
		return values
	}
	out := make([]int64, n)
	for k := range out {
		out[k] = values[k*len(values)/n]
	}
	return out
}

// mask has a bit for each element of a sample.
type mask [(maxSample + 63) / 64]uint64

// candidate is a pair of recipes that explains something.
type candidate struct {
	l, r     *recipe
	explains int // elements of the sample
	odd      int
	at       mask
	// undivided counts inexact sums, beside those explained, in which the sides
	// agree.
	undivided int
}

// Few elements are explained by many pairs, and those are told apart by the
// elements that agree. So many are held to them, times the ranks, and at least
// minCandidates.
const (
	maxCandidates = 4096
	minCandidates = 48
)

// bestPair is the pair of recipes that explains most of the sample; among
// those, the pair that differs in the fewest respects, then the least odd one,
// then the plainest. A pair that explains no more than chance would is none, and
// so is one that says that elements beside those differ which do not.
func (w *witness) bestPair(list []recipe, elements []int64) (l, r *recipe) {
	pairs := w.candidates(list, elements)
	most := max(minCandidates, maxCandidates/len(w.inputs(elements[0])))
	for k := range pairs[:min(len(pairs), most)] {
		if w.supported(&pairs[k], elements) {
			return pairs[k].l, pairs[k].r
		}
	}
	return nil, nil
}

// candidates lists the pairs that explain more than chance would, best first.
func (w *witness) candidates(list []recipe, elements []int64) []candidate {
	matches := w.matches(list, elements)
	ranks := len(w.inputs(elements[0]))
	least := max(1, len(elements)/(4*ranks+16))
	against := w.againstPlans(elements)
	var pairs []candidate
	for a := range list {
		if matches[left][a] == (mask{}) {
			continue
		}
		for b := range list {
			c := candidate{l: &list[a], r: &list[b]}
			for k := range c.at {
				c.at[k] = matches[left][a][k] & matches[right][b][k]
				c.explains += bits.OnesCount64(c.at[k])
			}
			if c.explains < least {
				continue
			}
			_, respects := difference(c.l, c.r)
			c.odd = 8*respects + c.l.oddity(w.agreeing[left]) + c.r.oddity(w.agreeing[right])
			c.odd += against[left](c.l) + against[right](c.r)
			pairs = append(pairs, c)
		}
	}
	slices.SortStableFunc(pairs, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.explains, a.explains), cmp.Compare(a.odd, b.odd))
	})
	return pairs
}

// againstPlan is how odd a sum in steps is where a plan says that the switch
// adds: more than two recipes can differ.
const againstPlan = 64

// againstPlans says, for each side, how odd a recipe is by what the side's plan
// declares of the elements.
func (w *witness) againstPlans(elements []int64) (odd [2]func(*recipe) int) {
	for side := range odd {
		inSwitch := w.obs[side].plan != nil && floatSum(w.call, w.lane)
		for _, i := range elements {
			if !inSwitch {
				break
			}
			p, ok := w.obs[side].plan.Locate(w.lane, w.rank, i)
			a := w.obs[side].plan.Algorithms[p.Algorithm]
			inSwitch = ok && a.Contract == api.Faithful && !slices.ContainsFunc(a.AnyOrder, func(k api.AnyOrder) bool { return k.Acc == w.d })
		}
		odd[side] = func(r *recipe) int {
			if inSwitch && r.stepwise() {
				return againstPlan
			}
			return 0
		}
	}
	return odd
}

// matches says, for each side and recipe, which elements of the sample the
// recipe gives.
func (w *witness) matches(list []recipe, elements []int64) [2][]mask {
	var out [2][]mask
	out[left], out[right] = make([]mask, len(list)), make([]mask, len(list))
	sum := exact.NewSum(w.d)
	for k, i := range elements {
		in, p := w.inputs(i), w.pair(i)
		for a := range list {
			l, r := w.gives(&list[a], sum, in, p)
			if l {
				out[left][a][k/64] |= 1 << (k % 64)
			}
			if r {
				out[right][a][k/64] |= 1 << (k % 64)
			}
		}
	}
	return out
}

// gives reports which of the two values the recipe gives.
func (w *witness) gives(rec *recipe, sum *exact.Sum, in []uint64, p pair) (l, r bool) {
	if rec.any {
		set := sum.Set(in)
		return set.Has(w.d, p.l), set.Has(w.d, p.r)
	}
	v := rec.evaluate(w.d, in, w.room(len(in)))
	return v == p.l, v == p.r
}

// apply blames what the pair explains, and gives back what it does not.
func (w *witness) apply(b *laneBlame, l, r *recipe, values []int64) (rest []int64) {
	f := w.pairFinding(l, r)
	sum := exact.NewSum(w.d)
	for _, i := range values {
		in, p := w.inputs(i), w.pair(i)
		okL, _ := w.gives(l, sum, in, p)
		okR := okL
		if okL {
			_, okR = w.gives(r, sum, in, p)
		}
		if okL && okR {
			b.add(f, i)
		} else {
			rest = append(rest, i)
		}
	}
	return rest
}

// pairFinding names the difference of two recipes.
func (w *witness) pairFinding(l, r *recipe) finding {
	class, respects := difference(l, r)
	lw, rw := l.words(w.d), r.words(w.d)
	switch {
	case l.any && r.any:
		return finding{api.CauseRounding, "both sides: exact, rounded once to a neighbour, but not to the same"}
	case respects == 0:
		// Both break a contract that asks for less than equal bits.
		return finding{api.CauseAccumulator, fmt.Sprintf("both sides: %s; that is no neighbour of the exact sum", lw)}
	}
	return finding{class, fmt.Sprintf("left: %s; right: %s", lw, rw)}
}
