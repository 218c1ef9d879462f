package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"example.com/tandem/api"
	"example.com/tandem/cmd/compare/internal/bench"
	"example.com/tandem/cmd/compare/internal/term"
)

// pushLimit is the largest source that is tried with lines that carry flags; above
// it the path gives way to another by itself.
const pushLimit = 256 << 10

// blockLimit is the largest source for each block that a number of blocks is tried
// with.
const blockLimit = 128 << 10

// tuneSamples are fewer than a benchmark takes, since there are many candidates.
const (
	tuneSamples = 20
	tuneWarmUp  = 4
)

// tuneCandidates are what is tried, likely ones first.
func tuneCandidates() []bench.Candidate {
	var out []bench.Candidate
	for _, path := range []string{"direct", "two_shot", "push"} {
		for _, ctas := range []int64{0, 1, 2, 4, 8, 16, 32, 64} {
			c := bench.Candidate{Params: map[string]string{"path": path, "ctas": "auto"}}
			if ctas > 0 {
				c.Params["ctas"], c.MaxBytes = fmt.Sprint(ctas), ctas*blockLimit
			}
			if path == "push" && (ctas == 0 || c.MaxBytes > pushLimit) {
				c.MaxBytes = pushLimit
			}
			out = append(out, c)
		}
	}
	return out
}

// tune finds the fastest parameters by size.
func (c *benchCmd) tune(a *app) (int, error) {
	if c.Against != "" || len(c.Specs) > 1 {
		return 0, &api.InvalidError{Field: "tune", Value: strings.Join(c.Specs, " "), Reason: "one spec is tuned, against nothing", Hint: "compare bench --tune hw:tandem -o table.json"}
	}
	if len(c.Specs) == 0 {
		c.Specs = []string{"hw:tandem"}
	}
	base, err := api.ParseSpec(c.Specs[0])
	if err != nil {
		return 0, err
	}
	if impl, err := a.implementation(base); err != nil {
		return 0, err
	} else if !hasParam(impl, "path") || !hasParam(impl, "ctas") {
		return 0, &api.InvalidError{Field: "spec", Value: base.String(), Reason: "it has no paths and blocks to choose", Hint: "hw:tandem"}
	}
	candidates := tuneCandidates()
	run := *c
	run.Specs = nil
	for _, k := range candidates {
		s := base
		s.Params = maps.Clone(base.Params)
		if s.Params == nil {
			s.Params = map[string]string{}
		}
		maps.Copy(s.Params, k.Params)
		run.Specs = append(run.Specs, s.String())
	}
	run.Launch, run.Step = string(bench.Graph), "2"
	cfg, err := run.config()
	if err != nil {
		return 0, err
	}
	cfg.Samples, cfg.WarmUp, cfg.Floors = min(cfg.Samples, tuneSamples), min(cfg.WarmUp, tuneWarmUp), true
	cfg.LeaveOut = bench.LeaveOut(candidates)
	rep, err := run.measure(a, cfg)
	if err != nil {
		return 0, err
	}
	table, err := bench.Tune(rep, base, candidates)
	if err != nil {
		return 0, err
	}
	if c.Output != "" {
		if err := writeFile(c.Output, table.Write); err != nil {
			return 0, err
		}
	}
	if _, err := io.WriteString(a.stdout, tableText(table)); err != nil {
		return 0, fmt.Errorf("cannot write the result: %w", err)
	}
	return exitHolds, nil
}

// tableText is the table for a reader.
func tableText(t *bench.Table) string {
	var rows term.Table
	rows.Row("collective", "from bytes", "parameters", "us", "")
	for _, e := range t.Entries {
		var params []string
		for _, k := range slices.Sorted(maps.Keys(e.Params)) {
			params = append(params, k+"="+e.Params[k])
		}
		rows.Row(e.Collective, fmt.Sprint(e.FromBytes), strings.Join(params, " "), fmt.Sprintf("%.2f", e.Us), "")
	}
	return fmt.Sprintf("%s on %d x %s, %.0f GB/s, %s\n", t.Spec, t.Ranks, t.GPU, t.LinkGBs, t.DType) + rows.String()
}
