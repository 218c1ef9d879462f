package sweep

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"example.com/tandem/cmd/compare/internal/term"
)

// maxTold is how many kinds the text tells of; JSON has them all.
const maxTold = 20

// Text is the result for people. The last line counts the calls.
func (r *Result) Text(s term.Style) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s against %s\n", s.Bold(r.Left), s.Bold(r.Right))
	r.textFailures(&b, s)
	r.textRefusals(&b)
	r.textKnown(&b, s)
	b.WriteString("\n")
	if r.Shard != Whole {
		fmt.Fprintf(&b, "shard %s of %d cases\n", r.Shard, r.Cases)
	}
	if r.TooLarge > 0 {
		fmt.Fprintf(&b, "%d more cases around thresholds are left out for the size of their buffers (--max-bytes)\n", r.TooLarge)
	}
	verdict := s.Green("AGREE")
	switch r.Code() {
	case 1:
		verdict = s.Red("DIVERGE")
	case 2:
		verdict = s.Red("NOTHING COMPARED")
	}
	fmt.Fprintf(&b, "%s: %d calls, %d agree, %d diverge, %d refused, in %.1f s\n", verdict, r.Calls, r.Agree, r.Diverge, r.Refused, r.Seconds)
	return b.String()
}

func (r *Result) textFailures(b *strings.Builder, s term.Style) {
	list := slices.Clone(r.Failures)
	slices.SortStableFunc(list, func(x, y Failure) int { return cmp.Compare(y.Calls, x.Calls) })
	for i, f := range list {
		if i == maxTold {
			fmt.Fprintf(b, "\nand %d more kinds of divergence: the JSON form lists them\n", len(list)-i)
			break
		}
		what := string(f.Check)
		if f.Cause != "" {
			what += ", " + string(f.Cause)
		}
		fmt.Fprintf(b, "\n%s: %s in %s\n", s.Bold(f.Class), s.Red(what), calls(f.Calls))
		if f.Detail != "" {
			fmt.Fprintf(b, "  %s\n", f.Detail)
		}
		fmt.Fprintf(b, "  again: %s\n", f.Again)
		if f.Found != f.Again {
			fmt.Fprintf(b, "  found: %s\n", f.Found)
		}
	}
}

func (r *Result) textRefusals(b *strings.Builder) {
	list := slices.Clone(r.Refusals)
	slices.SortStableFunc(list, func(x, y Refusal) int { return cmp.Compare(y.Calls, x.Calls) })
	for i, f := range list {
		if i == 0 {
			b.WriteString("\nnot compared\n")
		}
		if i == maxTold {
			fmt.Fprintf(b, "  and for %d more reasons: the JSON form lists them\n", len(list)-i)
			break
		}
		fmt.Fprintf(b, "  %s: %s\n    for one %s\n", calls(f.Calls), f.Reason, f.First)
	}
}

func (r *Result) textKnown(b *strings.Builder, s term.Style) {
	if r.Known == nil {
		return
	}
	fmt.Fprintf(b, "\n%s diverged as listed\n", calls(r.Known.Listed))
	for _, l := range []struct {
		what string
		list []string
	}{{"not listed", r.Known.Unlisted}, {"listed, but did not occur", r.Known.Missing}} {
		for _, k := range l.list {
			fmt.Fprintf(b, "  %s: %s\n", s.Red(l.what), k)
		}
	}
}

func calls(n int) string {
	if n == 1 {
		return "1 call"
	}
	return fmt.Sprintf("%d calls", n)
}
