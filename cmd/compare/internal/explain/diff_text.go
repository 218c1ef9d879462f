package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"example.com/tandem/api"
	"example.com/tandem/cmd/compare/internal/term"
)

// DiffText is the difference of two plans of one call for a person.
func DiffText(left, right *api.Plan, d Difference, o Options) string {
	var b strings.Builder
	b.WriteString(o.Style.Bold("two plans of one call") + "\n  " + left.Call.String() + "\n\n")
	b.WriteString(o.Style.Bold("left   "+left.Spec) + "\n" + indent(outcome(left, o)))
	b.WriteString(o.Style.Bold("right  "+right.Spec) + "\n" + indent(outcome(right, o)))
	for _, v := range []struct {
		verdict Verdict
		title   string
	}{
		{Slower, o.Style.Red("Slower on the right")},
		{Faster, o.Style.Green("Faster on the right")},
		{Regrouped, "Split in another way"},
		{Same, "As many rounds and words"},
	} {
		b.WriteString(changesText(d, v.verdict, v.title))
	}
	b.WriteString("\n" + totalsText(d))
	fmt.Fprintf(&b, "Cost of the slowest rank\n  left   %s\n  right  %s\n", costText(left.Cost), costText(right.Cost))
	b.WriteString(notesText(left, right))
	return b.String()
}

// notesText is the notes of both plans, those they share once.
func notesText(left, right *api.Plan) string {
	var b strings.Builder
	for _, n := range left.Notes {
		side := "left "
		if slices.Contains(right.Notes, n) {
			side = "both "
		}
		b.WriteString("Note " + side + " " + n + "\n")
	}
	for _, n := range right.Notes {
		if !slices.Contains(left.Notes, n) {
			b.WriteString("Note right " + n + "\n")
		}
	}
	return b.String()
}

func indent(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n  ") + "\n"
}

func changesText(d Difference, v Verdict, title string) string {
	var b strings.Builder
	for _, c := range d.Changes {
		if c.Verdict != v {
			continue
		}
		if b.Len() == 0 {
			b.WriteString("\n" + title + "\n")
		}
		head := "  CTA " + span(c.First, c.Last)
		if c.Last > c.First {
			head = "  CTAs " + span(c.First, c.Last)
		}
		if c.Inverted {
			head += ", against the rest of the call"
		}
		b.WriteString(head + "\n" + pairText(c))
	}
	return b.String()
}

// pairText shows the work on both sides, or once where nothing changed.
func pairText(c Change) string {
	t := term.Table{Indent: "    "}
	row := func(side string, w *Work) {
		cells := []string{side, w.Algorithm, plural(w.Count, "element"), loadText(*w), cmp.Or(w.Why, "-")}
		if w.Unwritten > 0 {
			cells[3] += fmt.Sprintf(", %d unwritten", w.Unwritten)
		}
		t.Row(cells...)
	}
	switch {
	case equalWork(c.Left, c.Right):
		row("both", c.Left)
	default:
		if c.Left != nil {
			row("left", c.Left)
		}
		if c.Right != nil {
			row("right", c.Right)
		}
	}
	return t.String()
}

func loadText(w Work) string {
	switch {
	case w.Rounds == 0 && w.Words == 0:
		return "no round"
	case w.Rounds == 0:
		return plural(w.Words, "word")
	case w.Words == 0:
		return plural(w.Rounds, "round")
	}
	return plural(w.Rounds, "round") + " and " + plural(w.Words, "word")
}

// wholeWords says of the whole call what its counts say.
func wholeWords(d Difference) string {
	switch d.Verdict {
	case Slower:
		return "By its counts the right plan is slower"
	case Faster:
		return "By its counts the right plan is faster"
	case Same:
		return "By their counts both plans take the same time"
	}
	if slower(d.Left.Slowest, d.Right.Slowest) < 0 {
		return "By its slowest CTA the right plan is slower, by all CTAs together it is faster"
	}
	return "By its slowest CTA the right plan is faster, by all CTAs together it is slower"
}

func totalsText(d Difference) string {
	t := term.Table{Indent: "  "}
	t.Row("", "slowest CTA", "its work", "all CTAs")
	for _, side := range []struct {
		name string
		x    Totals
	}{{"left", d.Left}, {"right", d.Right}} {
		if side.x.CTAs == 0 {
			t.Row(side.name, "-", "-", "nothing to do")
			continue
		}
		s := side.x.Slowest
		t.Row(side.name, fmt.Sprintf("CTA %d of %d", side.x.SlowestCTA, side.x.CTAs), s.Algorithm+", "+loadText(s),
			loadText(Work{Rounds: side.x.Rounds, Words: side.x.Words}))
	}
	return wholeWords(d) + ".\n" + t.String()
}
