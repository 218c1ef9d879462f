package main

import (
	"io"

	"example.com/tandem/api"
	"example.com/tandem/cmd/compare/internal/figure"
)

// plotCmd draws reports of benchmarks.
type plotCmd struct {
	Before     []string `placeholder:"A.json,.." help:"Reports of the times before; compare bench's or RL-Kernel's. The flag may be repeated."`
	After      []string `placeholder:"B.json,.." help:"Reports of the times after, one for each before."`
	Collective string   `placeholder:"LIST" help:"Only these collectives."`
	Launch     string   `placeholder:"LIST" help:"Only these forms of launch: eager, graph, gap."`
	Spec       string   `placeholder:"SPEC" help:"Whose times are drawn; the first spec of each report. SPEC,SPEC: the one before, the other after, as of one report."`
	Reference  string   `placeholder:"SPEC" help:"Whose times of the reports after are drawn beside; hw:nccl if it is there."`
	Output     string   `short:"o" placeholder:"FILE" help:"The figure, as .png or .svg."`
}

func (c *plotCmd) do(a *app) (int, error) {
	if c.Output == "" {
		return 0, &api.InvalidError{Field: "o", Value: c.Output, Reason: "a figure goes into a file", Hint: "-o FILE.png or -o FILE.svg"}
	}
	if !figure.Known(c.Output) {
		return 0, figure.NameError(c.Output)
	}
	if len(c.Before) == 0 || len(c.After) == 0 {
		return 0, &api.InvalidError{Field: "before", Reason: "there is nothing to draw", Hint: "--before A.json --after B.json"}
	}
	specs := fields(c.Spec)
	if len(specs) > 2 {
		return 0, &api.InvalidError{Field: "spec", Value: c.Spec, Reason: "more than one before and one after", Hint: "SPEC, or SPEC,SPEC"}
	}
	sel := figure.Select{Collectives: fields(c.Collective), Launches: fields(c.Launch), Reference: c.Reference}
	load := func(names []string, which int) ([][]figure.Source, error) {
		sel := sel
		if len(specs) > 0 {
			sel.Spec = specs[min(which, len(specs)-1)]
		}
		var out [][]figure.Source
		for _, name := range names {
			s, err := figure.Load(name, sel)
			if err != nil {
				return nil, err
			}
			out = append(out, s)
		}
		return out, nil
	}
	before, err := load(c.Before, 0)
	if err != nil {
		return 0, err
	}
	after, err := load(c.After, 1)
	if err != nil {
		return 0, err
	}
	pairs, err := figure.Pairs(before, after)
	if err != nil {
		return 0, err
	}
	return exitHolds, writeFile(c.Output, func(w io.Writer) error { return figure.Draw(w, c.Output, pairs) })
}
