package bench

import (
	"fmt"
	"math"
	"strings"

	"example.com/tandem/cmd/compare/internal/term"
)

// manyOutliers is the share of a row's samples from which on its time gets a star.
const manyOutliers = 0.05

// Text is the report as tables, one for each collective and form of launch.
func (r *Report) Text(s term.Style) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", s.Bold(fmt.Sprintf("%d ranks, %s: microseconds a call, slowest rank, median of %d", r.Ranks, r.GPU, r.Samples)))
	r.floorText(&b)
	groups := r.groups()
	for n := 0; n < len(groups); {
		end := n + 1
		for end < len(groups) && alike(groups[n].point, groups[end].point) {
			end++
		}
		b.WriteString("\n" + s.Bold(title(groups[n].point)) + "\n")
		b.WriteString(r.table(groups[n:end]))
		n = end
	}
	r.crossoverText(&b, s)
	r.changeText(&b, s)
	if r.Incomplete != "" {
		b.WriteString("\n" + s.Red("incomplete: "+r.Incomplete) + "\n")
	}
	return b.String()
}

func (r *Report) floorText(b *strings.Builder) {
	f := r.Floors
	if f == nil {
		return
	}
	fmt.Fprintf(b, "floors (%s): F0 %.2f us, F1 %.2f us", f.Launch, f.F0, f.F1)
	if f.B > 0 {
		fmt.Fprintf(b, ", B %.0f GB/s (copy engine %.0f, pushed %.0f, pulled %.0f)", f.B, f.Copy, f.Push, f.Pull)
	}
	b.WriteString("\n")
}

// alike reports whether two points differ in size only.
func alike(a, b Point) bool {
	a.Bytes = b.Bytes
	return a == b
}

func title(p Point) string {
	parts := []string{p.Collective, p.DType}
	if p.Op != "" {
		parts = append(parts, p.Op)
	}
	switch p.Launch {
	case Gaps:
		parts = append(parts, fmt.Sprintf("graph with %g us of work after each call", p.Gap))
	default:
		parts = append(parts, string(p.Launch))
	}
	if p.Lanes > 0 {
		parts = append(parts, fmt.Sprintf("%d lanes", p.Lanes))
	}
	if p.SrcOffset != 0 || p.DstOffset != 0 {
		parts = append(parts, fmt.Sprintf("offsets %d and %d", p.SrcOffset, p.DstOffset))
	}
	if p.InPlace {
		parts = append(parts, "in place")
	}
	return strings.Join(parts, ", ")
}

func (r *Report) table(groups []group) string {
	var t term.Table
	head := []string{"bytes"}
	for i, spec := range r.Specs {
		head = append(head, spec)
		if i > 0 {
			head = append(head, "ratio")
		}
	}
	t.Row(append(head, "GB/s", "floor", "of floor", "")...)
	for _, g := range groups {
		cells := []string{size(g.point.Bytes)}
		for i, n := range g.rows {
			row := &r.Rows[n]
			cells = append(cells, row.time())
			if i > 0 {
				cells = append(cells, row.ratioText())
			}
		}
		first := &r.Rows[g.rows[0]]
		cells = append(cells, fmt.Sprintf("%.1f", first.BusGBs))
		if first.FloorUs > 0 && first.Refused == "" {
			cells = append(cells, fmt.Sprintf("%.2f", first.FloorUs), fmt.Sprintf("%.2f", first.Us/first.FloorUs))
		}
		t.Row(append(cells, "")...)
	}
	return t.String()
}

// time is a row's time, with a star where many samples were far from the others.
func (r *Row) time() string {
	if r.Refused != "" {
		return "refused"
	}
	star := ""
	if n := len(r.Outliers); n > 0 && len(r.RankSamples) > 0 && float64(n) >= manyOutliers*float64(len(r.RankSamples[0])) {
		star = "*"
	}
	return fmt.Sprintf("%.2f%s", r.Us, star)
}

func (r *Row) ratioText() string {
	if r.Ratio == nil {
		return "-"
	}
	return fmt.Sprintf("%.2f [%.2f, %.2f]", r.Ratio.Value, r.Ratio.Low, r.Ratio.High)
}

// size is a number of bytes in the largest unit that divides it.
func size(n int64) string {
	for _, u := range []struct {
		bytes int64
		name  string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= u.bytes && n%u.bytes == 0 {
			return fmt.Sprintf("%d %s", n/u.bytes, u.name)
		}
	}
	return fmt.Sprint(n)
}

func (r *Report) crossoverText(b *strings.Builder, s term.Style) {
	if len(r.Crossovers) == 0 {
		return
	}
	b.WriteString("\n" + s.Bold("crossovers") + "\n")
	for _, c := range r.Crossovers {
		fmt.Fprintf(b, "%s: from about %.0f bytes on %s is faster than %s (measured at %s and %s)\n", title(c.Point), roundTo(c.Bytes), c.To, c.From, size(c.Below), size(c.Beyond))
	}
}

// roundTo keeps two figures, as an interpolated size has no more.
func roundTo(n int64) float64 {
	if n <= 0 {
		return 0
	}
	unit := math.Pow(10, math.Floor(math.Log10(float64(n)))-1)
	return math.Round(float64(n)/unit) * unit
}

func (r *Report) changeText(b *strings.Builder, s term.Style) {
	if len(r.Changes) == 0 {
		return
	}
	var t term.Table
	b.WriteString("\n" + s.Bold("against the earlier report") + "\n")
	t.Row("call", "spec", "before", "now", "change", "")
	for _, c := range r.Changes {
		note := ""
		if c.Beyond {
			note = s.Red("beyond what was allowed")
		}
		t.Row(title(c.Point)+", "+size(c.Bytes), c.Spec, fmt.Sprintf("%.2f", c.OldUs), fmt.Sprintf("%.2f", c.NewUs), fmt.Sprintf("%+.1f %%", c.Percent), note)
	}
	b.WriteString(t.String())
}
