package conformance

import (
	"fmt"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
)

// pair is the values of one element on both sides.
type pair struct{ l, r uint64 }

// witness looks at single elements of one destination on both sides.
type witness struct {
	*comparison
	rank, lane int
	d          api.DType
	g          *gatherer
	scratch    []uint64
	orders     map[int][]order // by number of inputs
}

func (c *comparison) witness(rank, lane int) *witness {
	return &witness{comparison: c, rank: rank, lane: lane, d: c.call.Lane(lane).DType, g: c.in.gatherer()}
}

func (w *witness) value(side int, i int64) uint64 {
	return num.Load(w.d, w.obs[side].out[w.rank][w.lane][i*int64(w.d.Size()):])
}

func (w *witness) pair(i int64) pair { return pair{w.value(left, i), w.value(right, i)} }

func (w *witness) inputs(i int64) []uint64 { return w.g.inputs(w.lane, w.rank, i) }

// blameValues says why elements that both sides wrote differ. What a plan
// declares comes first, then the rules for NaN and zero, then arithmetic that
// gives both values, then data that should not be there.
func (c *comparison) blameValues(b *laneBlame, values []int64) {
	if len(values) == 0 {
		return
	}
	w := c.witness(b.rank, b.lane)
	values = w.moving(b, values)
	values = w.declared(b, values)
	values = w.special(b, values)
	if w.arithmetic() {
		values = w.explain(b, values)
	}
	for _, side := range []int{left, right} {
		values = w.misplaced(b, side, values)
	}
	for _, side := range []int{left, right} {
		values = w.disagreeing(b, side, values)
	}
	b.add(finding{api.CauseUnknown, "no order, accumulator or rounding that is known gives these bits, and no misplaced data does"}, values...)
}

// moving takes the elements that a side gave other bits when it ran again.
func (w *witness) moving(b *laneBlame, values []int64) []int64 {
	for side, o := range w.obs {
		if o.unstable == nil {
			continue
		}
		f := finding{api.CauseStale, sideName(side) + ": the result depends on what memory held before the call, or on chance: two runs over different poisons differ"}
		var rest []int64
		for _, i := range values {
			if o.unstable[w.rank][w.lane].has(i) {
				b.add(f, i)
			} else {
				rest = append(rest, i)
			}
		}
		values = rest
	}
	return values
}

// declared takes the elements that a plan itself says are wrong.
func (w *witness) declared(b *laneBlame, values []int64) (rest []int64) {
	var holes [2][]api.Hole
	for side := range holes {
		holes[side] = w.holes(side, w.lane, w.rank)
	}
	if len(holes[left])+len(holes[right]) == 0 {
		return values
	}
	for _, i := range values {
		claimed := false
		for side := range holes {
			if h := holeAt(holes[side], i); h != nil && !h.Cause.Unwritten() && !claimed {
				claimed = true
				b.add(finding{h.Cause, fmt.Sprintf("%s: %s, by the implementation's own plan", sideName(side), declaredWords(h.Cause))}, i)
			}
		}
		if !claimed {
			rest = append(rest, i)
		}
	}
	return rest
}

// declaredWords say what a wrong value is that a plan declares.
func declaredWords(class api.Cause) string {
	switch class {
	case api.CauseOffset:
		return "the inputs are read at the wrong offset"
	case api.CauseStale:
		return "scratch that nobody wrote for this call is reduced"
	case api.CauseForeign:
		return "data that does not belong to the element is reduced into it"
	}
	return "the value is not that of the definition (" + string(class) + ")"
}

// special takes the elements on which the sides have different rules for NaN or
// for zeros.
func (w *witness) special(b *laneBlame, values []int64) (rest []int64) {
	if !w.d.Float() {
		return values
	}
	op := w.call.Op
	for _, i := range values {
		p := w.pair(i)
		if f, ok := specialRule(w.d, op, w.inputs(i), p); ok {
			b.add(f, i)
		} else {
			rest = append(rest, i)
		}
	}
	return rest
}

// specialRule is the finding for a pair that NaNs or zeros explain.
func specialRule(d api.DType, op api.Op, in []uint64, p pair) (finding, bool) {
	nan, ops := false, 0
	for _, b := range in {
		nan = nan || num.IsNaN(d, b)
		if num.IsInf(d, b) || op == api.Prod && num.IsZero(d, b) {
			ops++
		}
	}
	ln, rn := num.IsNaN(d, p.l), num.IsNaN(d, p.r)
	minMax := op == api.Min || op == api.Max
	switch {
	case p.l == p.r:
	case num.IsZero(d, p.l) && num.IsZero(d, p.r) && (!minMax || zeroWins(d, op, in)):
		return finding{api.CauseZeroRule, "both results are zero, with different signs"}, true
	case ln && rn:
		return finding{api.CauseNaNRule, "both results are NaN, with different bits: one side passes a payload on where the other makes a NaN of its own"}, true
	case nan && minMax:
		return finding{api.CauseNaNRule, "an input is NaN: one side drops it where the other passes it on, or lets the order of operands decide"}, true
	case nan && (ln || rn):
		return finding{api.CauseNaNRule, "an input is NaN, and only one side's result is"}, true
	case (ln || rn) && ops > 1 && !minMax:
		return finding{api.CauseNaNRule, "the operation is invalid (opposite infinities, or zero times infinity), and only one side's result is NaN"}, true
	}
	return finding{}, false
}

// zeroWins reports whether min or max of the inputs that are no NaN is a zero.
// Then zeros of both signs among them explain two zeros, and a NaN does not
// have to; only a rule that lets the order of operands decide gives zeros where
// another input wins.
func zeroWins(d api.DType, op api.Op, in []uint64) bool {
	return num.IsZero(d, num.Eval(d, num.Scheme{Op: op, MinMax: num.DropNaN}, in))
}

// arithmetic reports whether outputs are sums, products or averages of floats,
// the only results that depend on order, accumulator and rounding.
func (w *witness) arithmetic() bool {
	op := w.call.Op
	return w.call.Collective.Reduces() && w.d.Float() && (op == api.Sum || op == api.Prod || op == api.Avg)
}
