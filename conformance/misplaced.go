package conformance

import (
	"bytes"
	"fmt"
	"math"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
)

// hypothesis is a way in which a side may have come by a wrong value.
type hypothesis struct {
	finding
	holds func(i int64, v uint64) bool
}

// misplaced takes the elements whose value on one side comes of data that does
// not belong there: not written for this call, read elsewhere, or of other
// ranks. Each time what holds for most of a sample is looked for everywhere.
func (w *witness) misplaced(b *laneBlame, side int, values []int64) (rest []int64) {
	list := w.hypotheses(side)
	rest = values
	for len(rest) > 0 {
		suspect := w.suspects(side, sample(rest, 8*maxSuspects))
		if w.lone(side, suspect) {
			break
		}
		h := w.bestHypothesis(append(list, w.elsewhere(side, rest, suspect)...), side, sample(suspect, maxSuspects))
		if h == nil {
			break
		}
		var left []int64
		why := b.why(h.finding)
		for _, i := range rest {
			if v := w.value(side, i); !w.faithfulSum(side, i) && h.holds(i, v) {
				b.elements = append(b.elements, blamed{i, why})
			} else {
				left = append(left, i)
			}
		}
		rest = left
	}
	return rest
}

// lone reports whether so few short values are wrong, on one of the ranks that
// must hold the same, that other inputs giving them is most likely chance.
func (w *witness) lone(side int, suspect []int64) bool {
	if len(suspect) == 0 || len(suspect) >= minWindow || !w.d.Float() || w.d.Bits() > 16 || !w.call.Collective.Symmetric() || !w.call.Collective.Reduces() {
		return false
	}
	return !w.agree(side, suspect[0]) && w.agree(1-side, suspect[0])
}

// maxSuspects is how many elements hypotheses are tried on.
const maxSuspects = 64

// suspects are those of the elements whose value is no result of the reduction
// or copy that they should be.
func (w *witness) suspects(side int, elements []int64) []int64 {
	var out []int64
	for _, i := range elements {
		if !w.plausible(side, i, w.value(side, i)) {
			out = append(out, i)
		}
	}
	return out
}

// faithfulSum reports whether a value is known to be a neighbour of the exact
// sum.
func (w *witness) faithfulSum(side int, i int64) bool {
	if w.outside[side] == nil {
		return false
	}
	set := w.outside[side][w.rank][w.lane]
	return set != nil && !set.has(i)
}

// plausible reports whether a value is one that some correct implementation
// gives.
func (w *witness) plausible(side int, i int64, v uint64) bool {
	if w.faithfulSum(side, i) {
		return true
	}
	in := w.inputs(i)
	if !w.call.Collective.Reduces() {
		return v == in[0]
	}
	return w.reduces(in, v)
}

// reduces reports whether a value is the reduction of the inputs, under any of
// the schemes that are common.
func (w *witness) reduces(in []uint64, v uint64) bool {
	if !w.d.Float() {
		return num.Eval(w.d, num.Scheme{Op: w.call.Op}, in) == v
	}
	if num.Faithful(w.d, w.call.Op, in, v) {
		return true
	}
	for _, o := range w.commonOrders(len(in)) {
		for _, acc := range []num.Acc{num.AccElement, num.AccF32} {
			rec := recipe{scheme: num.Scheme{Op: w.call.Op, Order: o.tree, Acc: acc}, order: o}
			if rec.evaluate(w.d, in, w.room(len(in))) == v {
				return true
			}
		}
	}
	return false
}

// commonOrders are the plainest orders of n inputs.
func (w *witness) commonOrders(n int) []order {
	if w.orders == nil {
		w.orders = map[int][]order{}
	}
	list, ok := w.orders[n]
	if !ok {
		list = orders(n, min(w.rank, n-1))
		list = list[:min(fewOrders, len(list))]
		w.orders[n] = list
	}
	return list
}

// room is scratch for n inputs.
func (w *witness) room(n int) []uint64 {
	if cap(w.scratch) < n {
		w.scratch = make([]uint64, n)
	}
	return w.scratch
}

// bestHypothesis holds for most of the sample; nil if none holds for more than
// chance would make it.
func (w *witness) bestHypothesis(list []hypothesis, side int, elements []int64) *hypothesis {
	var best *hypothesis
	most := max(1, len(elements)/16) - 1
	for k := range list {
		n := 0
		for _, i := range elements {
			if list[k].holds(i, w.value(side, i)) {
				n++
			}
		}
		if n > most {
			best, most = &list[k], n
		}
	}
	return best
}

// hypotheses lists what is tried whatever the positions are.
func (w *witness) hypotheses(side int) []hypothesis {
	name := sideName(side)
	list := []hypothesis{}
	add := func(class api.Cause, words string, holds func(i int64, v uint64) bool) {
		list = append(list, hypothesis{finding{class, name + ": " + words}, holds})
	}
	poison := uint64(0x0101010101010101*poison1) & w.d.Mask()
	add(api.CauseStale, "a store put the poison there: memory that nobody wrote was copied", func(_ int64, v uint64) bool { return v == poison })
	if w.call.Collective.Reduces() {
		list = append(list, w.contributions(name, poison)...)
	}
	for q := range min(w.call.Ranks, 64) {
		add(api.CauseForeign, fmt.Sprintf("rank %d's input stands where it does not belong", q), func(i int64, v uint64) bool {
			w.inputs(i)
			at := w.g.refs[0].Index * int64(w.d.Size())
			return num.Load(w.d, w.in.data[q][w.lane][at:]) == v
		})
		if q != w.rank && !w.call.Collective.Symmetric() {
			add(api.CauseForeign, fmt.Sprintf("rank %d's result stands in rank %d's place", q, w.rank), func(i int64, v uint64) bool {
				in := w.g.inputs(w.lane, q, i)
				if !w.call.Collective.Reduces() {
					return in[0] == v
				}
				return w.reduces(in, v)
			})
		}
	}
	return list
}

// contributions lists reductions of the wrong inputs.
func (w *witness) contributions(name string, poison uint64) []hypothesis {
	var list []hypothesis
	var buf []uint64
	add := func(class api.Cause, words string, change func(in []uint64) []uint64) {
		list = append(list, hypothesis{finding{class, name + ": " + words}, func(i int64, v uint64) bool {
			buf = change(append(buf[:0], w.inputs(i)...))
			return len(buf) > 0 && w.reduces(buf, v)
		}})
	}
	for q := range min(w.call.Ranks, 64) {
		add(api.CauseStale, fmt.Sprintf("rank %d's contribution is missing: it had not arrived when it was read", q), func(in []uint64) []uint64 {
			if q >= len(in) {
				return nil
			}
			return append(in[:q], in[q+1:]...)
		})
		add(api.CauseStale, fmt.Sprintf("poison was reduced in place of rank %d's contribution, which had not arrived", q), func(in []uint64) []uint64 {
			if q >= len(in) {
				return nil
			}
			in[q] = poison
			return in
		})
		add(api.CauseForeign, fmt.Sprintf("rank %d's contribution is counted twice", q), func(in []uint64) []uint64 {
			if q >= len(in) {
				return nil
			}
			return append(in, in[q])
		})
	}
	return list
}

// multiples lists sums of which everything counts several times. A single value
// that is doubled may be one flipped bit.
func (w *witness) multiples(name string) []hypothesis {
	var list []hypothesis
	for k := 1; k <= 6 && w.call.Op == api.Sum; k++ {
		words := fmt.Sprintf("%s: every contribution is counted %d times: what was already reduced was reduced again", name, 1<<k)
		list = append(list, hypothesis{finding{api.CauseForeign, words}, func(i int64, v uint64) bool { return w.multiple(i, v, k) }})
	}
	return list
}

// multiple reports whether a value is 2^k times the sum: for floats, as close to
// it as adding up so many contributions in any order would come.
func (w *witness) multiple(i int64, v uint64, k int) bool {
	in := w.inputs(i)
	if !w.d.Float() {
		return num.Eval(w.d, num.Scheme{Op: api.Sum}, in)<<k&w.d.Mask() == v
	}
	var sum, most float64
	for _, b := range in {
		x := num.Decode(w.d, b)
		sum += x
		most += math.Abs(x)
	}
	times := math.Ldexp(1, k)
	slack := times * most * float64(len(in)) * math.Ldexp(1, -1-w.d.MantissaBits())
	return math.Abs(num.Decode(w.d, v)-times*sum) <= slack // false where anything is NaN or infinite
}

// window bounds how many elements are searched for elsewhere. Fewer than
// minWindow could be anywhere by chance.
const (
	window    = 32
	minWindow = 3
)

// elsewhere lists what depends on where the wrong elements are and on what they
// hold.
func (w *witness) elsewhere(side int, wrong, suspect []int64) []hypothesis {
	list := w.shifts(side, wrong)
	if w.call.Collective.Reduces() && len(suspect) >= minWindow {
		list = append(list, w.shiftedInputs(side)...)
		list = append(list, w.multiples(sideName(side))...)
		list = append(list, w.multiplicities(side, suspect)...)
	}
	return list
}

// shifts looks for the longest run of wrong elements in the other side's
// results, and so for a constant distance from where they belong.
func (w *witness) shifts(side int, wrong []int64) []hypothesis {
	start, n := longestRun(wrong)
	n = min(n, window)
	size := int64(w.d.Size())
	out := w.obs[side].out[w.rank][w.lane]
	needle := out[start*size : (start+n)*size]
	if n < minWindow || constant(needle, int(size)) {
		return nil
	}
	var list []hypothesis
	for _, rank := range w.ranksFrom(w.rank) {
		hay := w.obs[1-side].out[rank][w.lane]
		for _, at := range occurrences(hay, needle, int(size)) {
			if by := at - start; by != 0 || rank != w.rank {
				list = append(list, w.shift(side, rank, by, hay))
			}
		}
	}
	return list
}

// ranksFrom lists all ranks, the given one first.
func (w *witness) ranksFrom(rank int) []int {
	list := []int{rank}
	for r := range min(w.call.Ranks, 64) {
		if r != rank {
			list = append(list, r)
		}
	}
	return list
}

func (w *witness) shift(side, rank int, by int64, hay []byte) hypothesis {
	class := api.CauseOffset
	words := fmt.Sprintf("%s: the results are those of %s further on", sideName(side), elementsText(by))
	if by < 0 {
		words = fmt.Sprintf("%s: the results are those of %s before", sideName(side), elementsText(-by))
	}
	if rank != w.rank {
		words += fmt.Sprintf(", of rank %d", rank)
		if by == 0 {
			class, words = api.CauseForeign, fmt.Sprintf("%s: rank %d's result stands in rank %d's place", sideName(side), rank, w.rank)
		}
	}
	size, n := int64(w.d.Size()), int64(len(hay)/w.d.Size())
	return hypothesis{finding{class, words}, func(i int64, v uint64) bool {
		at := i + by
		return at >= 0 && at < n && num.Load(w.d, hay[at*size:]) == v
	}}
}

// longestRun is the start and length of the longest run of consecutive elements.
func longestRun(list []int64) (start, n int64) {
	for at := 0; at < len(list); {
		end := runEnd(list, at)
		if int64(end-at) > n {
			start, n = list[at], int64(end-at)
		}
		at = end
	}
	return start, n
}

// constant reports whether all elements are the same.
func constant(p []byte, size int) bool {
	return bytes.Equal(p[size:], p[:len(p)-size])
}

// maxOccurrences bounds how many places of a needle are looked at.
const maxOccurrences = 8

// occurrences are the element positions at which needle lies in hay.
func occurrences(hay, needle []byte, size int) []int64 {
	var list []int64
	for at := 0; len(list) < maxOccurrences; {
		k := bytes.Index(hay[at:], needle)
		if k < 0 {
			break
		}
		if at += k; at%size == 0 {
			list = append(list, int64(at/size))
		}
		at++
	}
	return list
}

// disagreeing takes the elements that one side gave different bits on different
// ranks, where all ranks must hold the same and do on the other side.
func (w *witness) disagreeing(b *laneBlame, side int, values []int64) (rest []int64) {
	if !w.call.Collective.Symmetric() {
		return values
	}
	f := finding{api.CauseRanks, sideName(side) + ": the ranks hold different bits, and no arithmetic that is known explains them"}
	for _, i := range values {
		if w.agree(1-side, i) && !w.agree(side, i) {
			b.add(f, i)
		} else {
			rest = append(rest, i)
		}
	}
	return rest
}

// agree reports whether all ranks of a side hold the same bits.
func (w *witness) agree(side int, i int64) bool {
	size := int64(w.d.Size())
	first := w.obs[side].out[0][w.lane][i*size : (i+1)*size]
	for rank := 1; rank < w.call.Ranks; rank++ {
		if !bytes.Equal(first, w.obs[side].out[rank][w.lane][i*size:(i+1)*size]) {
			return false
		}
	}
	return true
}
