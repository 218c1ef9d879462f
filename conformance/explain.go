package conformance

import (
	"fmt"
	"math/bits"

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

// bestPair is the pair of recipes that explains most of the sample; among
// those, the pair that differs in the fewest respects, then the least odd one,
// then the plainest. A pair that explains no more than chance would is none.
func (w *witness) bestPair(list []recipe, elements []int64) (l, r *recipe) {
	matches := w.matches(list, elements)
	ranks := len(w.inputs(elements[0]))
	best, least := max(1, len(elements)/(4*ranks+16)), 0
	for a := range list {
		if matches[left][a] == (mask{}) {
			continue
		}
		for b := range list {
			n := 0
			for k := range matches[left][a] {
				n += bits.OnesCount64(matches[left][a][k] & matches[right][b][k])
			}
			if n < best || n == 0 {
				continue
			}
			_, respects := difference(&list[a], &list[b])
			odd := 8*respects + list[a].oddity(w.agreeing[left]) + list[b].oddity(w.agreeing[right])
			if n > best || l == nil || odd < least {
				l, r, best, least = &list[a], &list[b], n, odd
			}
		}
	}
	return l, r
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
