package conformance

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
)

// shiftedInputs lists results that are right for a place a little before or
// behind, in whatever order they were summed: the other side need not hold them.
func (w *witness) shiftedInputs(side int) []hypothesis {
	var list []hypothesis
	n := w.call.DstElems(w.lane)
	for _, by := range []int64{1, -1, 2, -2, 3, -3, 4, -4} {
		words := fmt.Sprintf("%s: the results are those of %s further on", sideName(side), elementsText(by))
		if by < 0 {
			words = fmt.Sprintf("%s: the results are those of %s before", sideName(side), elementsText(-by))
		}
		list = append(list, hypothesis{finding{api.CauseOffset, words}, func(i int64, v uint64) bool {
			at := i + by
			return at >= 0 && at < n && w.reduces(w.inputs(at), v)
		}})
	}
	return list
}

// Bounds of the search for contributions that are missing or counted twice.
const (
	maxCounted = 8  // ranks
	minCounted = 4  // elements that must agree on what is missing
	minCoarse  = 16 // the same for floats of 16 bits, whose sums are often near each other
	maxAnchors = 3  // elements from which the search starts
)

// multiplicities finds which contributions are missing and which count twice: a
// number of times for each input, 0 to 2, that gives most of the suspects. What
// it finds in one element it looks for in others, since in a single one such
// numbers can come about by chance.
func (w *witness) multiplicities(side int, suspect []int64) []hypothesis {
	enough := minCounted
	if w.d.Float() && w.d.Bits() <= 16 {
		enough = minCoarse
	}
	if w.call.Op != api.Sum || len(suspect) < enough || w.d.Float() && w.d.Bits() <= 8 {
		return nil
	}
	n := len(w.inputs(suspect[0]))
	if n < 2 || n > maxCounted {
		return nil
	}
	probe := sample(suspect, maxSuspects)
	var best []uint8
	most := max(enough, len(probe)/4) - 1
	for a := range maxAnchors {
		anchor := probe[a*len(probe)/maxAnchors]
		for _, times := range w.solutions(side, anchor) {
			hits := 0
			for k, i := range probe {
				if w.weighted(times, i, w.value(side, i)) {
					hits++
				}
				if k == 7 && hits < 2 {
					break
				}
			}
			if hits > most {
				best, most = times, hits
			}
		}
	}
	if best == nil {
		return nil
	}
	return []hypothesis{{timesFinding(side, best), func(i int64, v uint64) bool {
		return len(w.inputs(i)) == len(best) && w.weighted(best, i, v)
	}}}
}

// maxSolutions bounds what is looked for in other elements.
const maxSolutions = 512

// solutions lists the multiplicities that give one element, but for all ones.
func (w *witness) solutions(side int, i int64) [][]uint8 {
	v := w.value(side, i)
	times := make([]uint8, len(w.inputs(i)))
	var list [][]uint8
	for len(list) < maxSolutions {
		k := 0
		for k < len(times) && times[k] == 2 {
			times[k] = 0
			k++
		}
		if k == len(times) {
			return list
		}
		times[k]++
		usual := !slices.ContainsFunc(times, func(n uint8) bool { return n != 1 })
		if !usual && w.weighted(times, i, v) {
			list = append(list, slices.Clone(times))
		}
	}
	return list
}

// weighted reports whether a value is the sum of the inputs so many times each:
// for floats, as close to it as adding them up in any order comes.
func (w *witness) weighted(times []uint8, i int64, v uint64) bool {
	in := w.inputs(i)
	if !w.d.Float() {
		var sum uint64
		for k, b := range in {
			sum += uint64(times[k]) * b
		}
		return sum&w.d.Mask() == v
	}
	var sum, most float64
	for k, b := range in {
		x := float64(times[k]) * num.Decode(w.d, b)
		sum += x
		most += math.Abs(x)
	}
	slack := most * float64(len(in)) * math.Ldexp(1, -1-w.d.MantissaBits())
	return math.Abs(num.Decode(w.d, v)-sum) <= slack // false where anything is NaN or infinite
}

// timesFinding says whose contributions are missing and whose are doubled.
func timesFinding(side int, times []uint8) finding {
	var by [3][]int
	for rank, n := range times {
		by[n] = append(by[n], rank)
	}
	class := api.CauseStale
	var parts []string
	if len(by[0]) > 0 {
		parts = append(parts, listWords("the contribution of rank", by[0])+" is missing")
	}
	if len(by[2]) > 0 {
		class = api.CauseForeign
		parts = append(parts, listWords("that of rank", by[2])+" is counted twice")
	}
	text := sideName(side) + ": " + strings.Join(parts, ", ")
	if len(by[0]) > 0 && len(by[2]) > 0 {
		text += ": what was already reduced stood where the missing input should have been"
	}
	return finding{class, text}
}
