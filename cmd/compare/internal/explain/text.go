package explain

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"example.com/tandem/api"
	"example.com/tandem/cmd/compare/internal/term"
)

// Options of the text form.
type Options struct {
	Style term.Style
	// Cause explains a cause in a few words; nil leaves causes unexplained.
	Cause func(api.Cause) string
}

// Text is a plan for a person: the outcome first, then the CTAs, the cost and
// how all this is known.
func Text(p *api.Plan, o Options) string {
	var b strings.Builder
	b.WriteString(o.Style.Bold("plan of "+p.Spec) + "\n  " + p.Call.String() + "\n\n")
	b.WriteString(outcome(p, o))
	for i := range p.Kernels {
		b.WriteString("\n" + kernelText(p, &p.Kernels[i], o))
	}
	fmt.Fprintf(&b, "\nCost of the slowest rank: %s.\n", costText(p.Cost))
	b.WriteString("Evidence: " + evidenceText(p) + ".\n")
	for _, n := range p.Notes {
		b.WriteString("Note: " + n + "\n")
	}
	return b.String()
}

// outcome says how the call ends: a fault, an unknown, or what is left out.
func outcome(p *api.Plan, o Options) string {
	var b strings.Builder
	if f := p.Fault; f != nil {
		b.WriteString(o.Style.Red(fmt.Sprintf("Ends in a fault: %s on rank %d, CTA %d", f.Kind, f.Rank, f.CTA)) + "\n  " + f.Detail + "\n")
		return b.String()
	}
	if p.Unknown != "" {
		b.WriteString(o.Style.Red("Refused when run: the values are not known") + "\n  " + p.Unknown + "\n")
	}
	b.WriteString(holesText(p, o))
	return b.String()
}

// tally is what one rank loses, and why.
type tally struct {
	unwritten       int64
	missing, spoilt map[api.Cause]int64
}

func (t tally) equal(u tally) bool {
	return t.unwritten == u.unwritten && maps.Equal(t.missing, u.missing) && maps.Equal(t.spoilt, u.spoilt)
}

// tallyOf sums the holes in the destinations of a rank. Those of a slice that
// leaves nothing unwritten are written with wrong data. In place an element
// may hold its value without being written.
func tallyOf(p *api.Plan, rank int) tally {
	t := tally{missing: map[api.Cause]int64{}, spoilt: map[api.Cause]int64{}}
	if rank < len(p.Unwritten) {
		t.unwritten = p.Unwritten[rank]
	}
	for k := range p.Kernels {
		lane := p.Kernels[k].Lane
		for _, c := range p.Kernels[k].CTAs {
			for _, s := range c.Slices {
				if s.Local && s.Rank != rank {
					continue
				}
				into := t.missing
				if s.Unwritten == 0 {
					into = t.spoilt
				}
				for _, h := range s.Holes {
					if !p.Call.OwnPlace(lane, rank, h.Start) {
						into[h.Cause] += h.Count
					}
				}
			}
		}
	}
	return t
}

func holesText(p *api.Plan, o Options) string {
	type class struct {
		tally
		ranks []int
	}
	var classes []class
next:
	for rank := range p.Call.Ranks {
		t := tallyOf(p, rank)
		for i := range classes {
			if classes[i].equal(t) {
				classes[i].ranks = append(classes[i].ranks, rank)
				continue next
			}
		}
		classes = append(classes, class{t, []int{rank}})
	}
	var total int64
	for lane := range p.Call.Lanes() {
		total += p.Call.DstElems(lane)
	}
	var b strings.Builder
	for _, c := range classes {
		who := "on " + rankList(c.ranks)
		if len(classes) == 1 {
			who = "on every rank"
		}
		switch {
		case c.unwritten > 0:
			b.WriteString(o.Style.Red(fmt.Sprintf("%d of %d outputs stay unwritten %s", c.unwritten, total, who)) + "\n")
		case len(c.spoilt) == 0:
			b.WriteString(o.Style.Green(fmt.Sprintf("All %d outputs are written %s", total, who)) + "\n")
		}
		b.WriteString(causesText(c.missing, o))
		if len(c.spoilt) > 0 {
			b.WriteString(o.Style.Red(fmt.Sprintf("%d of %d outputs are written with wrong data %s", sum(c.spoilt), total, who)) + "\n")
			b.WriteString(causesText(c.spoilt, o))
		}
	}
	return b.String()
}

func sum(causes map[api.Cause]int64) int64 {
	var n int64
	for _, v := range causes {
		n += v
	}
	return n
}

// causesText is a line per cause, the largest first.
func causesText(causes map[api.Cause]int64, o Options) string {
	names := slices.SortedFunc(maps.Keys(causes), func(a, b api.Cause) int {
		return cmp.Or(cmp.Compare(causes[b], causes[a]), cmp.Compare(a, b))
	})
	t := term.Table{Indent: "  "}
	for _, c := range names {
		why := ""
		if o.Cause != nil {
			why = o.Cause(c)
		}
		t.Row(fmt.Sprint(causes[c]), string(c), why)
	}
	return t.String()
}

func kernelText(p *api.Plan, k *api.Kernel, o Options) string {
	if len(k.CTAs) == 0 {
		return "No CTA does anything.\n"
	}
	var b strings.Builder
	if k.Name != "" || len(p.Kernels) > 1 {
		head := "Kernel"
		if k.Name != "" {
			head += " " + k.Name
		}
		if api.IsMany(p.Call.Collective) {
			l := p.Call.Lane(k.Lane)
			head += fmt.Sprintf(", lane %d (%s, %d elements)", k.Lane, l.DType, l.Count)
		}
		b.WriteString(o.Style.Bold(head) + "\n")
	}
	t := term.Table{}
	t.Row("CTA", "elements", "algorithm", "why")
	for _, g := range Groups(k) {
		groupRows(&t, g)
	}
	b.WriteString(t.String())
	return b.String()
}

// detail indents what is said about a group of CTAs.
const detail = "       "

func groupRows(t *term.Table, g Group) {
	c := &g.CTAs[0]
	t.Row(g.Label(), rangeText(c.Start, c.Count, len(g.CTAs)), c.Algorithm, cmp.Or(c.Why, "-"))
	if steps := stepsText(g); steps != "" {
		t.Row(detail + steps)
	}
	for _, s := range g.sliceSets() {
		t.Row(detail + sliceText(s, len(g.CTAs) > 1))
		if s.first.Why != "" {
			t.Row(detail + "    " + s.first.Why)
		}
	}
}

func rangeText(start, count int64, ctas int) string {
	if ctas > 1 {
		return fmt.Sprintf("%d each from %d", count, start)
	}
	return fmt.Sprintf("%d from %d", count, start)
}

func stepsText(g Group) string {
	var parts []string
	if n := g.CTAs[0].Rounds; n > 0 {
		parts = append(parts, plural(n, "round")+", each ended by a barrier")
	}
	if lo, hi := g.wordRange(); hi > 0 {
		parts = append(parts, between(lo, hi)+" multicast words")
	}
	if len(parts) > 0 && len(g.CTAs) > 1 {
		parts = append(parts, fmt.Sprintf("each of the %d CTAs", len(g.CTAs)))
	}
	return strings.Join(parts, ", ")
}

// sliceText tells of alike slices. Starts are left out where several CTAs
// share the line.
func sliceText(s sliceSet, shared bool) string {
	f := s.first
	text := rankList(s.ranks) + ": "
	if len(s.ranks) > 1 {
		text += fmt.Sprintf("slices of %d", f.Count)
	} else {
		text += fmt.Sprintf("slice of %d", f.Count)
	}
	if len(s.ranks) == 1 && !shared {
		text += fmt.Sprintf(" from %d", f.Start)
	}
	if f.Local {
		text += ", in the own destination only"
	}
	if f.Algorithm != "" {
		text += ", " + f.Algorithm
	}
	if w := wordsText(s.words); w != "" {
		text += ", " + w
	}
	if f.Unwritten > 0 || len(f.Holes) > 0 {
		text += ", " + lossText(f)
	}
	return text
}

// lossText says how much of a slice is lost, and to what.
func lossText(s *api.Slice) string {
	var held int64
	var causes []string
	for _, h := range s.Holes {
		held += h.Count
		if len(causes) == 0 || causes[len(causes)-1] != string(h.Cause) {
			causes = append(causes, string(h.Cause))
		}
	}
	slices.Sort(causes)
	why := strings.Join(slices.Compact(causes), ", ")
	switch {
	case s.Unwritten == 0:
		return fmt.Sprintf("%d wrong: %s", held, why)
	case s.Unwritten == s.Count:
		return "nothing written: " + why
	}
	return fmt.Sprintf("%d unwritten: %s", s.Unwritten, why)
}

// costText lists the counts that are not 0.
func costText(c api.Cost) string {
	var parts []string
	for _, x := range []struct {
		n    int64
		unit string
	}{
		{c.Launches, "launch"}, {c.Rounds, "round"}, {c.Words, "multicast word"}, {c.Trips, "loop trip"},
		{c.Divisions, "division"}, {c.RoundTrip, "remote round trip"},
	} {
		if x.n != 0 {
			parts = append(parts, plural(x.n, x.unit))
		}
	}
	if c.Bytes != 0 {
		parts = append(parts, plural(c.Bytes, "byte")+" sent to peers")
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}

func plural(n int64, unit string) string {
	switch {
	case n == 1:
	case strings.HasSuffix(unit, "ch"):
		unit += "es"
	default:
		unit += "s"
	}
	return fmt.Sprintf("%d %s", n, unit)
}

func evidenceText(p *api.Plan) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(p.Algorithms)) {
		a := p.Algorithms[name]
		text := name + " " + string(a.Evidence)
		if a.Contract != api.Exact {
			text += fmt.Sprintf(" (values %s)", a.Contract)
		}
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		return "none needed"
	}
	return strings.Join(parts, ", ")
}
