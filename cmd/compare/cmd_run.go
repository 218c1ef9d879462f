package main

import (
	"context"
	"errors"
	"strings"

	"example.com/tandem/api"
	"example.com/tandem/cmd/compare/internal/term"
	"example.com/tandem/conformance"
)

// runCmd compares two executions of one call.
type runCmd struct {
	Left     string `default:"sim:nvshmem@2dca770" help:"The one implementation."`
	Right    string `default:"sim:nvshmem@pr131" help:"The other one."`
	Contract string `placeholder:"exact" help:"exact: equal bits also where less is promised."`
	Launch   string `default:"eager" help:"eager, or graph: recorded once and replayed over new data, where a side can."`
	callFlags
	inputFlags
	memoryFlags
	outputFlags
}

// memoryFlags bound what a command may use.
type memoryFlags struct {
	MaxMemory string `default:"8GiB" help:"Refuse calls whose buffers need more." json:"max_memory"`
}

func (f *memoryFlags) bytes() (int64, error) {
	p := parser{}
	n := p.byteSize("max-memory", f.MaxMemory)
	return n, p.err
}

func (c *runCmd) do(a *app) (int, error) {
	if err := c.check(verdictFormats...); err != nil {
		return 0, err
	}
	if c.Contract != "" && c.Contract != "exact" {
		return 0, &api.InvalidError{Field: "contract", Value: c.Contract, Reason: "cannot be asked for", Hint: "leave it out, or ask for exact"}
	}
	call, err := c.call()
	if err != nil {
		return 0, err
	}
	runner := conformance.Runner{Exact: c.Contract == "exact"}
	if runner.Graph, err = parseLaunch(c.Launch); err != nil {
		return 0, err
	}
	if runner.Input, err = c.input(&call); err != nil {
		return 0, err
	}
	if runner.MaxMemory, err = c.bytes(); err != nil {
		return 0, err
	}
	left, right, err := a.sides(c.Left, c.Right)
	if err != nil {
		return 0, err
	}
	runner.Environment = a.deviceEnvironment(left, right)
	rep, err := runner.Run(a.ctx, left, right, call)
	if err := errors.Join(err, runner.Close(context.WithoutCancel(a.ctx))); err != nil {
		return 0, err
	}
	if err := rep.Nothing(); err != nil {
		return 0, err
	}
	if err := a.emit(&c.outputFlags, func(s term.Style) string { return reportText(rep, s) }, rep); err != nil {
		return 0, err
	}
	if rep.Holds() {
		return exitHolds, nil
	}
	return exitBroken, nil
}

// sides finds the backends of two specs.
func (a *app) sides(left, right string) (l, r conformance.Side, err error) {
	if l.Spec, r.Spec, err = a.specs(left, right); err != nil {
		return l, r, err
	}
	for _, s := range []*conformance.Side{&l, &r} {
		if s.Spec.Backend == "" {
			continue
		}
		if s.Backend, err = a.backend(s.Spec); err != nil {
			return l, r, err
		}
	}
	return l, r, nil
}

func reportText(rep *conformance.Report, s term.Style) string {
	var b strings.Builder
	_ = rep.WriteText(&b, conformance.TextOptions{Color: s.On()}) // a Builder takes everything
	return b.String()
}
