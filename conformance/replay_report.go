package conformance

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"example.com/tandem/api"
)

// ReplaySchema names the JSON form of a ReplayReport.
const ReplaySchema = "tandem.replay/1"

// MaxKept is how many failures, refusals and unreadable lines a report keeps of
// each, the first ones; all are counted.
const MaxKept = 500

// ReplayReport says which rows of a recording a side gave again.
type ReplayReport struct {
	Schema string `json:"schema"`
	Passed int    `json:"passed"`
	Failed int    `json:"failed"`
	// Refused rows could not be checked.
	Refused    int             `json:"refused"`
	Failures   []ReplayFailure `json:"failures"`
	Refusals   []ReplayRefusal `json:"refusals,omitempty"`
	Unreadable []ReplayRefusal `json:"unreadable,omitempty"` // lines that are no rows
	// UnreadableLines counts them.
	UnreadableLines int `json:"unreadable_lines,omitempty"`
}

// ReplayFailure is a row whose results the side does not give.
type ReplayFailure struct {
	Line int        `json:"line"`
	Call CallReport `json:"call"`
	// Ranks differ, and so do Blocks of vectors.BlockBytes of their outputs, as
	// far as the row tells.
	Ranks  []int   `json:"ranks"`
	Blocks []int64 `json:"blocks"`
	// FirstIndex is the first element that differs, or the first of the first
	// block that does; nil where the row has neither outputs nor blocks.
	FirstIndex *int64    `json:"first_index"`
	Cause      api.Cause `json:"cause"`
	// Where names the CTA and slice, and Why explains the cause, where known.
	Where string `json:"where,omitempty"`
	Why   string `json:"why,omitempty"`
}

// ReplayRefusal is a row that was not checked, or a line that is no row.
type ReplayRefusal struct {
	Line   int         `json:"line"`
	Call   *CallReport `json:"call,omitempty"`
	Reason string      `json:"reason"`
}

func (f *ReplayFailure) line() int { return f.Line }
func (f *ReplayRefusal) line() int { return f.Line }

// maxListed is how many failures, refusals and unreadable lines the text form
// lists of each.
const maxListed = 20

// WriteText writes the report for people. Its last line is the three counts,
// whatever happened.
func (r *ReplayReport) WriteText(w io.Writer, opt TextOptions) error {
	t := &textWriter{Writer: bufio.NewWriter(w), color: opt.Color}
	for i := range r.Failures {
		if i == maxListed {
			t.line("and %s", plural(int64(r.Failed-i), "1 more failure", "%d more failures")+inJSON(r.Failed))
			break
		}
		r.Failures[i].write(t)
	}
	writeRefusals(t, "refused", r.Refused, r.Refusals)
	writeRefusals(t, "unreadable", r.UnreadableLines, r.Unreadable)
	last := fmt.Sprintf("%d passed, %d failed, %d refused", r.Passed, r.Failed, r.Refused)
	color := green
	if r.Failed > 0 || r.UnreadableLines > 0 {
		color = red
	}
	t.line("%s", t.paint(color, last))
	return t.Flush()
}

func (f *ReplayFailure) write(t *textWriter) {
	t.line("line %d: %s (%s)", f.Line, callWords(&f.Call.Call), f.Call.Input)
	parts := []string{t.paint(red, "differs") + " on " + listWords("rank", f.Ranks)}
	if len(f.Blocks) > 0 {
		parts = append(parts, listWords("block", f.Blocks))
	}
	if f.FirstIndex != nil {
		parts = append(parts, fmt.Sprintf("first in element %d", *f.FirstIndex))
	}
	if f.Where != "" {
		parts = append(parts, f.Where)
	}
	t.line("  %s: %s", strings.Join(parts, ", "), f.Cause)
	if f.Why != "" {
		t.line("  %s", f.Why)
	}
}

// listWords is a few numbers with their noun.
func listWords[T int | int64](noun string, list []T) string {
	if len(list) != 1 {
		noun += "s"
	}
	const most = 12
	more := ""
	if len(list) > most {
		more = fmt.Sprintf(" and %d more", len(list)-most)
		list = list[:most]
	}
	return noun + " " + strings.ReplaceAll(strings.Trim(fmt.Sprint(list), "[]"), " ", ", ") + more
}

// inJSON says where more can be seen of so many.
func inJSON(n int) string {
	if n > MaxKept {
		return fmt.Sprintf(": the JSON form lists the first %d", MaxKept)
	}
	return ": the JSON form lists them"
}

func writeRefusals(t *textWriter, name string, n int, list []ReplayRefusal) {
	for i, r := range list {
		if i == maxListed {
			t.line("and %s %s", plural(int64(n-i), "1 more line", "%d more lines"), name+inJSON(n))
			return
		}
		t.line("line %d %s: %s", r.Line, name, r.Reason)
	}
}
