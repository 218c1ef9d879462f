package conformance

import (
	"fmt"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"example.com/tandem/api"
)

// manyRanks is how many ranks a line lists one by one.
const manyRanks = 16

// plural is the one form or the other; a verb for the number may stand in the
// second.
func plural(n int64, one, many string) string {
	switch {
	case n == 1:
		return one
	case strings.Contains(many, "%d"):
		return fmt.Sprintf(many, n)
	}
	return many
}

func ranksText(n int) string      { return plural(int64(n), "1 rank", "%d ranks") }
func elementsText(n int64) string { return plural(n, "1 element", "%d elements") }

// onRanks is a number per rank in few words.
func onRanks(n []int64) string {
	if len(n) == 0 {
		return "nothing"
	}
	if !slices.ContainsFunc(n, func(v int64) bool { return v != n[0] }) {
		if len(n) == 1 {
			return fmt.Sprint(n[0])
		}
		return fmt.Sprintf("%d on every rank", n[0])
	}
	if len(n) <= manyRanks {
		return strings.Join(strings.Fields(strings.Trim(fmt.Sprint(n), "[]")), ", ") + " by rank"
	}
	x := make([]float64, len(n))
	for i, v := range n {
		x[i] = float64(v)
	}
	return fmt.Sprintf("%d (rank %d) to %d (rank %d), %.1f on average", n[floats.MinIdx(x)], floats.MinIdx(x), n[floats.MaxIdx(x)], floats.MaxIdx(x), stat.Mean(x, nil))
}

// bucketTops is the greatest distance in each bucket of a histogram; the last
// bucket has none.
func bucketTops() []float64 {
	top := make([]float64, buckets)
	for i := 1; i < buckets; i++ {
		top[i] = float64(uint64(1) << (i - 1))
	}
	return top
}

// distances is a histogram of ulps in few words: how far apart the pairs are
// that are not equal.
func distances(hist []int64) string {
	weights := make([]float64, len(hist))
	var differ, far int64
	for i, n := range hist {
		if i > 0 {
			weights[i] = float64(n)
			differ += n
		}
	}
	if differ == 0 {
		return ""
	}
	far = hist[buckets-1]
	within := func(p float64) string {
		q := stat.Quantile(p, stat.Empirical, bucketTops(), weights)
		if q > float64(uint64(1)<<(buckets-3)) {
			return "more than 32768"
		}
		return fmt.Sprintf("at most %.0f", q)
	}
	text := fmt.Sprintf("1 pair of values differs, by %s ulp", within(0.5))
	if differ > 1 {
		text = fmt.Sprintf("%d pairs of values differ, half of them by %s ulp", differ, within(0.5))
		text += fmt.Sprintf(", 99 of 100 by %s", within(0.99))
	}
	if far > 0 {
		text += "; " + plural(far, "1 is", "%d are") + " further apart than 32768 ulp or of another kind"
	}
	return text
}

// lossy is a CTA that leaves elements unwritten, and how many others like it
// there are.
type lossy struct {
	cta   *api.CTA
	lane  int
	lost  int64
	alike int
	last  int // CTA number of the last one alike
}

// local reports whether what is lost lies in the destination of one rank each.
func (l *lossy) local() bool {
	return slices.ContainsFunc(l.cta.Slices, func(s api.Slice) bool { return s.Local && s.Unwritten > 0 })
}

// loses reports whether a slice of the CTA has a hole of the class.
func (l *lossy) loses(class api.Cause) bool {
	return slices.ContainsFunc(l.cta.Slices, func(s api.Slice) bool {
		return slices.ContainsFunc(s.Holes, func(h api.Hole) bool { return h.Cause == class })
	})
}

// lossyWords names the CTAs of a plan that lose elements to a class; "" if there
// are none.
func lossyWords(p *api.Plan, class api.Cause) string {
	var first *lossy
	n := 0
	for _, l := range lossyCTAs(p) {
		if l.loses(class) {
			if first == nil {
				first = &l
			}
			n += 1 + l.alike
		}
	}
	if first == nil {
		return ""
	}
	text := fmt.Sprintf("CTA %d (%s from element %d, %s)", first.cta.CTA, elementsText(first.cta.Count), first.cta.Start, first.cta.Algorithm)
	if n > 1 {
		text = fmt.Sprintf("%d CTAs, the first of them %s", n, text)
	}
	return text
}

// lossyCTAs lists the CTAs of a plan that lose elements, those that lose alike
// as one.
func lossyCTAs(p *api.Plan) []lossy {
	var out []lossy
	for k := range p.Kernels {
		for i := range p.Kernels[k].CTAs {
			c := &p.Kernels[k].CTAs[i]
			var lost int64
			for _, s := range c.Slices {
				lost += s.Unwritten
			}
			if lost == 0 {
				continue
			}
			if n := len(out); n > 0 && out[n-1].alikeTo(c, lost, p.Kernels[k].Lane) {
				out[n-1].alike++
				out[n-1].last = c.CTA
				continue
			}
			out = append(out, lossy{cta: c, lane: p.Kernels[k].Lane, lost: lost, last: c.CTA})
		}
	}
	return out
}

// alikeTo reports whether a CTA loses as much, of as much, in the same way.
func (l *lossy) alikeTo(c *api.CTA, lost int64, lane int) bool {
	a := l.cta
	if l.lane != lane || l.lost != lost || a.Algorithm != c.Algorithm || a.Count != c.Count || len(a.Slices) != len(c.Slices) {
		return false
	}
	for i := range a.Slices {
		x, y := &a.Slices[i], &c.Slices[i]
		if x.Unwritten != y.Unwritten || x.Count != y.Count || x.Words != y.Words || holeClasses(x) != holeClasses(y) {
			return false
		}
	}
	return true
}

// holeClasses names what a slice loses its elements to.
func holeClasses(s *api.Slice) string {
	var names []string
	for _, h := range s.Holes {
		if !slices.Contains(names, string(h.Cause)) {
			names = append(names, string(h.Cause))
		}
	}
	return strings.Join(names, ", ")
}
