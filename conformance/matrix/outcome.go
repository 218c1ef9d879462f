package matrix

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"example.com/tandem/api"
	"example.com/tandem/conformance"
)

// Status is what became of a case.
type Status string

// The states.
const (
	Agree   Status = "agree"   // every check holds
	Diverge Status = "diverge" // one does not
	Refused Status = "refused" // nothing was compared: a side refuses, or both fault
)

// Outcome is what became of one case. It marshals to a line of JSON.
type Outcome struct {
	Case   int    `json:"case"` // its place among the cases
	Status Status `json:"status"`
	// Check and Cause are of the first check that broke. Cause is the class of
	// most elements, "" where the check knows no classes.
	Check api.Check `json:"check,omitempty"`
	Cause api.Cause `json:"cause,omitempty"`
	// Reason says why nothing was compared.
	Reason string `json:"reason,omitempty"`
}

// Result is what became of many cases.
type Result struct {
	Calls, Agree, Diverge, Refused int
	// Failures are the kinds of divergence, in the order in which they were
	// met first.
	Failures []Failure
	// Refusals are the reasons for which nothing was compared, likewise.
	Refusals []Refusal
}

// Failure is a kind of divergence: calls of one class that break one check for
// one cause.
type Failure struct {
	Class string
	Check api.Check
	Cause api.Cause
	Calls int // as many
	// First is the first of them, Case its place among the cases.
	First Case
	Case  int
	// Small is as small as it became and still failed; Report and Detail are
	// of that.
	Small  Case
	Detail string
	Report *conformance.Report
}

// Refusal is one reason for which calls were not compared.
type Refusal struct {
	Reason string
	Calls  int
	First  Case
	Case   int
}

// Class names the calls that are told apart when divergences are counted: all
// but ranks, count, offsets, root, input and launch.
func (c Case) Class() string {
	parts := []string{c.Call.Collective.Name()}
	if c.Call.Op != api.NoOp {
		parts = append(parts, c.Call.Op.String())
	}
	parts = append(parts, c.Call.DType.String(), c.Call.Scope.String())
	switch c.Call.InPlace {
	case api.InPlaceOwn:
		parts = append(parts, "in_place")
	case api.InPlaceStart:
		parts = append(parts, "in_place=start")
	}
	if c.Call.Team != api.World {
		parts = append(parts, c.Call.Team.String())
	}
	if c.Call.Mode != "" {
		parts = append(parts, "mode="+c.Call.Mode)
	}
	return strings.Join(parts, " ")
}

// tally counts outcomes by kind. Outcomes must be in the order of their cases.
func tally(cases []Case, outcomes []Outcome) *Result {
	res := &Result{}
	failures, refusals := map[string]int{}, map[string]int{}
	for _, o := range outcomes {
		c := cases[o.Case]
		res.Calls++
		switch o.Status {
		case Agree:
			res.Agree++
		case Diverge:
			res.Diverge++
			key := fmt.Sprintf("%s|%s|%s", c.Class(), o.Check, o.Cause)
			at, ok := failures[key]
			if !ok {
				at = len(res.Failures)
				failures[key] = at
				res.Failures = append(res.Failures, Failure{Class: c.Class(), Check: o.Check, Cause: o.Cause, First: c, Case: o.Case, Small: c})
			}
			res.Failures[at].Calls++
		case Refused:
			res.Refused++
			at, ok := refusals[o.Reason]
			if !ok {
				at = len(res.Refusals)
				refusals[o.Reason] = at
				res.Refusals = append(res.Refusals, Refusal{Reason: o.Reason, First: c, Case: o.Case})
			}
			res.Refusals[at].Calls++
		}
	}
	return res
}

// sortOutcomes puts outcomes in the order of their cases.
func sortOutcomes(list []Outcome) {
	slices.SortFunc(list, func(a, b Outcome) int { return cmp.Compare(a.Case, b.Case) })
}

// refusal is the reason for which an error says that nothing was compared;
// false for errors that end a run.
func refusal(err error) (string, bool) {
	var refused *api.Refused
	var invalid *api.InvalidError
	var both *conformance.NothingCompared
	switch {
	case errors.As(err, &both) && (both.Left == nil || both.Right == nil):
		return both.Reason, true
	case errors.As(err, &both):
		return fmt.Sprintf("both sides fault: left %s, right %s", both.Left.Kind, both.Right.Kind), true
	case errors.As(err, &refused):
		return refused.Spec + ": " + refused.Reason, true
	case errors.As(err, &invalid):
		return invalid.Field + ": " + invalid.Reason, true
	case errors.Is(err, api.ErrUnavailable):
		return err.Error(), true
	}
	return "", false
}
