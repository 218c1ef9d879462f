package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
	"example.com/tandem/cmd/compare/internal/term"
	"example.com/tandem/conformance/probe"
)

// probeCmd infers how an implementation reduces, from its outputs alone.
type probeCmd struct {
	Spec    string `arg:"" name:"SPEC" help:"The implementation, as hw:nvls or sim:nvls."`
	Ranks   string `default:"4" help:"Ranks of the team, 3 to 16."`
	DTypes  string `name:"dtypes" default:"bf16,f16,f32,f64" help:"Element types, a comma list."`
	Count   string `default:"32768" help:"Elements of a call; an implementation may take another path at another count."`
	Format  string `default:"text" help:"text or json, of standard output."`
	Profile string `short:"o" placeholder:"FILE" help:"Write the profile there: profile=FILE gives it to a simulated switch."`
}

func (c *probeCmd) do(a *app) (int, error) {
	out := outputFlags{Format: c.Format}
	if err := out.check(); err != nil {
		return 0, err
	}
	p := parser{}
	o := probe.Options{Ranks: int(p.integer("ranks", c.Ranks)), Count: p.integer("count", c.Count)}
	for text := range strings.SplitSeq(c.DTypes, ",") {
		o.DTypes = append(o.DTypes, parse(&p, strings.TrimSpace(text), num.ParseDType))
	}
	switch {
	case p.err != nil:
		return 0, p.err
	case o.Ranks == 0: // these stand for defaults in a library call
		return 0, &api.InvalidError{Field: "ranks", Value: c.Ranks, Reason: "a team has ranks", Hint: "3 to 16"}
	case o.Count == 0:
		return 0, &api.InvalidError{Field: "count", Value: c.Count, Reason: "a call without elements tells nothing", Hint: "leave it out: 32768"}
	}
	spec, _, err := a.specs(c.Spec, "")
	if err != nil {
		return 0, err
	}
	b, err := a.backend(spec)
	if err != nil {
		return 0, err
	}
	rep, err := probe.Run(a.ctx, probe.Backend{Backend: b, Spec: spec}, spec.String(), o)
	if err != nil {
		return 0, err
	}
	if c.Profile != "" {
		if err := writeFile(c.Profile, func(w io.Writer) error { return writeJSON(w, rep) }); err != nil {
			return 0, err
		}
	}
	return exitHolds, a.emit(&out, func(s term.Style) string { return probeText(rep) }, rep)
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// probeText is the verdicts with their evidence.
func probeText(rep *probe.Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "probe of %s\n", rep.Of)
	for _, c := range rep.Cells {
		fmt.Fprintf(&b, "\n%s of %s, %d ranks\n  %s\n", c.Op, c.DType, c.Ranks, c.Verdict)
		for _, line := range c.Evidence {
			fmt.Fprintf(&b, "    %s\n", line)
		}
	}
	for _, text := range rep.Refused {
		fmt.Fprintf(&b, "\nnot done: %s\n", oneLine(text))
	}
	return b.String()
}
