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
	var shown int
	for _, g := range r.Ranges {
		if g.Cause.Unwritten() || g.Cause == api.CauseFault {
			continue
		}
		if shown == 0 {
			t.line("")
			t.line("where values differ")
		}
		if shown++; shown > maxPlaces {
			t.line("  and so on: the JSON form lists the ranges")
			return
		}
		t.line("  rank %d, %s: %s%s", g.Rank, rangeWords(&g), g.Cause, r.placeWords(&g))
	}
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
			t.line("  and %d more CTAs: explain lists them", len(list)-i)
			return
		}
		lane := ""
		if r.Call.Lanes() > 1 {
			lane = fmt.Sprintf("lane %d, ", l.lane)
		}
		t.line("  %sCTA %d, %d elements from element %d, %s: %d unwritten on every rank it serves", lane, l.cta.CTA, l.cta.Count, l.cta.Start, l.cta.Algorithm, l.lost)
		if l.cta.Why != "" {
			t.line("    chosen because: %s", l.cta.Why)
		}
		if l.alike > 0 {
			t.line("    and %d more CTAs alike, up to CTA %d", l.alike, l.last)
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
		t.line("    slice of rank %d: %d elements from %d, %s, %d unwritten (%s)", s.Rank, s.Count, s.Start, wordsText(s.Words), s.Unwritten, holeClasses(s))
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
