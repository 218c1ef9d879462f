package main

import (
	"example.com/tandem/api"
	"example.com/tandem/cmd/compare/internal/explain"
	"example.com/tandem/cmd/compare/internal/term"
)

// explainCmd shows plans. It needs no memory, whatever the count.
type explainCmd struct {
	Spec    string `arg:"" name:"SPEC" help:"The implementation, as sim:nvshmem@pr131."`
	Against string `placeholder:"SPEC" help:"Tell what another implementation does otherwise, and what got slower."`
	callFlags
	outputFlags
}

func (c *explainCmd) do(a *app) (int, error) {
	if err := c.check(reportFormats...); err != nil {
		return 0, err
	}
	call, err := c.call()
	if err != nil {
		return 0, err
	}
	left, right, err := a.specs(c.Spec, c.Against)
	if err != nil {
		return 0, err
	}
	plan, err := a.plan(left, call)
	if err != nil {
		return 0, err
	}
	if c.Against == "" {
		return exitHolds, a.emit(&c.outputFlags, func(s term.Style) string { return explain.Text(plan, a.explainOptions(s)) }, explain.JSON(plan))
	}
	other, err := a.plan(right, call)
	if err != nil {
		return 0, err
	}
	d := explain.Compare(plan, other)
	return exitHolds, a.emit(&c.outputFlags, func(s term.Style) string { return explain.DiffText(plan, other, d, a.explainOptions(s)) }, explain.Diff(plan, other, d))
}

func (a *app) explainOptions(s term.Style) explain.Options {
	return explain.Options{Style: s, Cause: causeText}
}

// plan asks the backend of a spec what it would do.
func (a *app) plan(spec api.Spec, call api.Call) (*api.Plan, error) {
	b, err := a.backend(spec)
	if err != nil {
		return nil, err
	}
	planner, ok := b.(api.Planner)
	if !ok {
		return nil, &api.Unavailable{Spec: spec.String(), Reason: "a " + b.Name() + ": side has no plans", Hint: "explain takes sim:, hw: and ptx: specs"}
	}
	return planner.Plan(spec, call)
}
