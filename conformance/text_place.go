package conformance

import (
	"fmt"
	"strings"

	"example.com/tandem/api"
)

// maxPlaces is how many CTAs, or ranges, a side's places list.
const maxPlaces = 6

// writePlaces says where in the plans elements were lost, and where values
// differ.
func (r *Report) writePlaces(t *textWriter) {
	for s, p := range r.plans {
		if p != nil && r.sideHas(s, func(k *RankReport) bool { return k.Unwritten != nil && *k.Unwritten > 0 }) {
			r.writeLossy(t, sideName(s), p)
		}
	}
	list := r.places()
	for i, p := range list {
		if i == 0 {
			t.line("")
			t.line("where values differ")
		}
		if i == maxPlaces {
			t.line("  and in %s: the JSON form lists the ranges", plural(int64(len(list)-i), "1 more place", "%d more places"))
			return
		}
		t.line("  %s", p.words(r))
	}
}

// valuePlace is where values differ for one cause, in one CTA of each side.
type valuePlace struct {
	first Range // the first range there
	plans string
	ranks []int
	count int64
}

// places groups the ranges of differing values by what made them.
func (r *Report) places() []valuePlace {
	var list []valuePlace
	at := map[string]int{}
	for _, g := range r.Ranges {
		if g.Cause.Unwritten() || g.Cause == api.CauseFault {
			continue
		}
		plans := r.placeWords(&g)
		key := fmt.Sprintf("%s %d %s", g.Cause, g.Lane, plans)
		i, ok := at[key]
		if !ok {
			i = len(list)
			at[key] = i
			list = append(list, valuePlace{first: g, plans: plans})
		}
		p := &list[i]
		p.count += g.Count
		if n := len(p.ranks); n == 0 || p.ranks[n-1] != g.Rank {
			p.ranks = append(p.ranks, g.Rank)
		}
	}
	return list
}

func (p *valuePlace) words(r *Report) string {
	text := fmt.Sprintf("%s: %s", p.first.Cause, rangeWords(&p.first))
	if p.count > p.first.Count {
		atLeast := ""
		if r.RangesLeftOut > 0 {
			atLeast = "at least "
		}
		text = fmt.Sprintf("%s: %s%d elements on %s, first %s of rank %d", p.first.Cause, atLeast, p.count, listWords("rank", p.ranks), rangeWords(&p.first), p.first.Rank)
	} else {
		text += fmt.Sprintf(" of rank %d", p.first.Rank)
	}
	if r.Call.Lanes() > 1 {
		text += fmt.Sprintf(", lane %d", p.first.Lane)
	}
	return text + p.plans
}

func (r *Report) sideHas(s int, f func(*RankReport) bool) bool {
	side := &r.Left
	if s == right {
		side = &r.Right
	}
	for i := range side.Ranks {
		if f(&side.Ranks[i]) {
			return true
		}
	}
	return false
}

func rangeWords(g *Range) string {
	switch {
	case g.Count == 1:
		return fmt.Sprintf("element %d", g.Start)
	case g.Stride == 1:
		return fmt.Sprintf("%d elements from %d", g.Count, g.Start)
	}
	return fmt.Sprintf("%d elements from %d, every %d", g.Count, g.Start, g.Stride)
}

// placeWords say what made the first element of a range on each side.
func (r *Report) placeWords(g *Range) string {
	var parts []string
	for s, p := range r.plans {
		if p == nil {
			continue
		}
		if place, ok := p.Locate(g.Lane, g.Rank, g.Start); ok {
			parts = append(parts, fmt.Sprintf("%s CTA %d, %s", sideName(s), place.CTA.CTA, place.Algorithm))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, "; ") + ")"
}

// writeLossy lists the CTAs that lost elements, with their slices and words.
func (r *Report) writeLossy(t *textWriter, name string, p *api.Plan) {
	list := lossyCTAs(p)
	if len(list) == 0 {
		return
	}
	t.line("")
	t.line("where %s loses them", name)
	for i, l := range list {
		if i == maxPlaces {
			t.line("  and %s: explain lists them", plural(int64(len(list)-i), "1 more CTA", "%d more CTAs"))
			return
		}
		lane := ""
		if r.Call.Lanes() > 1 {
			lane = fmt.Sprintf("lane %d, ", l.lane)
		}
		over := "on every rank"
		if l.local() {
			over = "over all ranks"
		}
		t.line("  %sCTA %d, %s from element %d, %s: %d unwritten %s", lane, l.cta.CTA, elementsText(l.cta.Count), l.cta.Start, l.cta.Algorithm, l.lost, over)
		if l.cta.Why != "" {
			t.line("    chosen because: %s", l.cta.Why)
		}
		if l.alike > 0 {
			t.line("    and %s alike, up to CTA %d", plural(int64(l.alike), "1 more CTA", "%d more CTAs"), l.last)
		}
		writeSlices(t, l.cta)
	}
}

// writeSlices lists the slices of a CTA that lose elements.
func writeSlices(t *textWriter, c *api.CTA) {
	shown := 0
	for i := range c.Slices {
		s := &c.Slices[i]
		if s.Unwritten == 0 {
			continue
		}
		if shown++; shown > maxPlaces {
			t.line("    and so on")
			return
		}
		t.line("    slice of rank %d: %s from %d, %s, %d unwritten (%s)", s.Rank, elementsText(s.Count), s.Start, wordsText(s.Words), s.Unwritten, holeClasses(s))
	}
}

// wordsText says how wide the accesses of a slice are.
func wordsText(w api.WordCount) string {
	if w.Total() == 0 {
		return "no word of 16, 8 or 4 bytes fits"
	}
	var parts []string
	for _, x := range []struct {
		width int
		n     int64
	}{{16, w.W16}, {8, w.W8}, {4, w.W4}} {
		if x.n > 0 {
			parts = append(parts, fmt.Sprintf("%d of %d bytes", x.n, x.width))
		}
	}
	return "words: " + strings.Join(parts, ", ")
}
