package matrix

import (
	"context"
	"fmt"

	"example.com/tandem/conformance"
)

// TB is what Test needs of a *testing.T.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
	Logf(format string, args ...any)
}

// Test is Run for a test: every kind of failure is an error with the command
// that repeats it, and so is a run in which nothing was compared. The last line
// of its log says what was run and what was not, with the reasons.
func Test(ctx context.Context, t TB, left, right conformance.Side, cases []Case, opt Options) *Result {
	t.Helper()
	res, err := Run(ctx, left, right, cases, opt)
	if err != nil {
		t.Errorf("%s against %s: %v", left, right, err)
		return &Result{}
	}
	for _, f := range res.Failures {
		t.Errorf("%s: %s %s: %d calls; %s\n  again: %s", f.Class, f.Check, f.Cause, f.Calls, f.Detail, f.Report.Repro)
	}
	if res.Agree+res.Diverge == 0 {
		t.Errorf("%s against %s: nothing was compared", left, right)
	}
	t.Logf("%s against %s: %s", left, right, res.Line())
	return res
}

// Line is the result on one line, reasons for refusals included.
func (r *Result) Line() string {
	text := fmt.Sprintf("%d calls: %d agree, %d diverge, %d refused", r.Calls, r.Agree, r.Diverge, r.Refused)
	for _, why := range r.Refusals {
		text += fmt.Sprintf("; %d: %s", why.Calls, why.Reason)
	}
	return text
}
