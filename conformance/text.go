package conformance

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
)

// TextOptions say how a report is told in words. The zero value is plain text.
type TextOptions struct {
	Color bool // with ANSI escapes
}

// WriteText writes the report for people: the call, the verdict, what each side
// left unwritten, where, why, the first difference, and the command that gives
// it all again.
func (r *Report) WriteText(w io.Writer, opt TextOptions) error {
	t := &textWriter{Writer: bufio.NewWriter(w), color: opt.Color}
	r.writeCall(t)
	r.writeVerdict(t)
	r.writeCounts(t)
	r.writeFirst(t)
	r.writeValues(t)
	r.writeCauses(t)
	r.writePlaces(t)
	t.line("")
	t.line("again: %s", r.Repro)
	return t.Flush()
}

// textWriter writes lines; its first error is that of Flush.
type textWriter struct {
	*bufio.Writer
	color bool
}

func (t *textWriter) line(format string, args ...any) {
	fmt.Fprintf(t, format+"\n", args...)
}

// ANSI escapes.
const (
	red   = "31"
	green = "32"
	bold  = "1"
)

func (t *textWriter) paint(code, text string) string {
	if !t.color {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// callWords is a call as one would say it.
func callWords(c *api.Call) string {
	var b strings.Builder
	b.WriteString(c.Collective.Name())
	if c.Op != api.NoOp {
		fmt.Fprintf(&b, " %s", c.Op)
	}
	if api.IsMany(c.Collective) {
		fmt.Fprintf(&b, ", %s, %s", ranksText(c.Ranks), plural(int64(c.Lanes()), "1 lane", "%d lanes"))
	} else {
		fmt.Fprintf(&b, " of %s, %s x %s", c.DType, ranksText(c.Ranks), elementsText(c.Count))
	}
	fmt.Fprintf(&b, ", %s", c.Scope)
	if c.InPlace != api.OutOfPlace {
		b.WriteString(", in place")
	}
	if s, d := c.SrcOffset.String(), c.DstOffset.String(); s != "0" || d != "0" {
		fmt.Fprintf(&b, ", source at +%s, destination at +%s", s, d)
	}
	if c.Team != api.World {
		b.WriteString(", part of a larger world")
	}
	return b.String()
}

func (r *Report) writeCall(t *textWriter) {
	t.line("%s (%s)", t.paint(bold, callWords(&r.Call.Call)), r.Call.Input)
	for _, s := range []struct {
		name string
		side *SideReport
	}{{"left ", &r.Left}, {"right", &r.Right}} {
		var known []string
		for _, name := range slices.Sorted(maps.Keys(s.side.Evidence)) {
			known = append(known, fmt.Sprintf("%s: %s", name, s.side.Evidence[name]))
		}
		line := fmt.Sprintf("  %s  %s", s.name, s.side.Spec)
		if len(known) > 0 {
			line += "   (" + strings.Join(known, ", ") + ")"
		}
		t.line("%s", line)
	}
}

// contractWords say what a contract asks for.
func contractWords(c api.Contract) string {
	switch c {
	case api.Faithful:
		return "equal bits, or where a plan says faithful a neighbour of the exact sum"
	case api.OrderFree:
		return "equal bits, and those of the definition"
	}
	return "equal bits"
}

func (r *Report) writeVerdict(t *textWriter) {
	n, total := r.compared(), r.outputs()
	t.line("")
	switch {
	case !r.Holds():
		t.line("%s: %d of %s the %s contract (%s)", t.paint(red, "DIVERGE"), r.Differing.Elements, plural(total, "1 output breaks", "%d outputs break"), r.Contract, contractWords(r.Contract))
	case n == 0:
		t.line("%s: no output was compared", t.paint(green, "AGREE"))
	case n < total:
		t.line("%s: the %s compared, of %d, %s the %s contract (%s)", t.paint(green, "AGREE"), plural(n, "1 output", "%d outputs"), total, plural(n, "holds", "hold"), r.Contract, contractWords(r.Contract))
	default:
		t.line("%s: %s the %s contract (%s)", t.paint(green, "AGREE"), plural(n, "the 1 output holds", "all %d outputs hold"), r.Contract, contractWords(r.Contract))
	}
	if u := r.Differing.Unwritten; u > 0 {
		t.line("  %s on both sides: nothing there was compared", plural(u, "1 is unwritten", "%d are unwritten"))
	}
	if r.Differing.InSwitch > 0 {
		t.line("  %s within it: sums done in the switch, each a neighbour of the exact one", plural(r.Differing.InSwitch, "1 more differs", "%d more differ"))
	}
	if r.Differing.Undecided > 0 {
		t.line("  %s cannot be judged: the switch may have cut bits of their terms", plural(r.Differing.Undecided, "1 value", "%d values"))
	}
}

// writeCounts writes a line for everything that can be counted per rank; those
// of zeros only where a newcomer would look for them.
func (r *Report) writeCounts(t *textWriter) {
	get := func(side *SideReport, f func(*RankReport) *int64) []int64 {
		var out []int64
		for i := range side.Ranks {
			if n := f(&side.Ranks[i]); n != nil {
				out = append(out, *n)
			}
		}
		return out
	}
	line := func(name string, always bool, f func(*RankReport) *int64) {
		l, r := get(&r.Left, f), get(&r.Right, f)
		zero := !slices.ContainsFunc(append(slices.Clone(l), r...), func(n int64) bool { return n != 0 })
		if zero && !always {
			return
		}
		text := func(n []int64) string {
			if n == nil {
				return "not known"
			}
			return onRanks(n)
		}
		t.line("  %-15s left %s, right %s", name, text(l), text(r))
	}
	line("unwritten", true, func(k *RankReport) *int64 { return k.Unwritten })
	line("unreduced", false, func(k *RankReport) *int64 { return k.Unreduced })
	line("not faithful", false, func(k *RankReport) *int64 {
		if k.FNV1a64 == nil { // after a fault there is nothing to judge
			return nil
		}
		return &k.NotFaithful
	})
	line("guard bytes hit", false, func(k *RankReport) *int64 { return &k.GuardHits })
	line("source bytes", false, func(k *RankReport) *int64 { return &k.SourceChanged })
	if a := r.RankAgreement; a != nil {
		t.line("  %-15s left %s, right %s", "ranks", agreeWords(a.Left), agreeWords(a.Right))
	}
	if text := distances(r.ULPHistogram); text != "" {
		t.line("  %-15s %s", "distance", text)
	}
}

func agreeWords(same *bool) string {
	switch {
	case same == nil:
		return "unspecified"
	case *same:
		return "all hold the same bits"
	}
	return "hold different bits"
}

func (r *Report) writeFirst(t *textWriter) {
	f := r.First
	if f == nil {
		return
	}
	d := r.Call.Lane(f.Lane).DType
	value := func(pattern *string, b uint64) string {
		if pattern == nil {
			return "nothing"
		}
		return fmt.Sprintf("%s (%s)", *pattern, num.Text(d, b))
	}
	where := fmt.Sprintf("rank %d, element %d", f.Rank, f.Index)
	if r.Call.Lanes() > 1 {
		where += fmt.Sprintf(" of lane %d", f.Lane)
	}
	line := fmt.Sprintf("  %-15s %s: left %s, right %s", "first", where, value(f.Left, f.left), value(f.Right, f.right))
	if f.ULP != nil {
		line += fmt.Sprintf(", %d ulp apart", *f.ULP)
	}
	t.line("%s", line)
}

func (r *Report) writeCauses(t *textWriter) {
	if len(r.Causes) == 0 {
		return
	}
	t.line("")
	t.line("why")
	for _, c := range r.Causes {
		t.line("  %s  %s", t.paint(bold, string(c.Class)), elementsText(c.Elements))
		for _, part := range c.parts {
			t.line("    %s", part)
		}
	}
}
