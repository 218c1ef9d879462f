package main

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
	"example.com/tandem/cmd/compare/internal/bench"
)

// benchCmd times collectives on GPUs.
type benchCmd struct {
	Specs []string `arg:"" optional:"" name:"SPEC" help:"What is timed, side by side, as hw:tandem hw:nccl hw:tandem?path=direct; or file:REPORT.json for a report that was written before."`
	benchFlags
	Tune      bool   `help:"Find the fastest path and number of blocks of hw:tandem for each size, and write them as a table."`
	Against   string `placeholder:"OLD.json" help:"Put the times beside those of an earlier report."`
	Unchanged string `placeholder:"NAMES" help:"Collectives or specs whose times must be those of --against: exit code 1 if not."`
	Within    string `default:"5" placeholder:"PCT" help:"By how many percent they may differ."`
	Note      string `placeholder:"TEXT" help:"Is written into the report."`
	Output    string `short:"o" placeholder:"FILE.json" help:"The report, with all samples; packed as .json.gz. A file that exists is not written to."`
	NoColor   bool   `help:"No colours; also NO_COLOR and a pipe."`
}

// benchFlags say what is timed and how.
type benchFlags struct {
	Collective string `group:"Calls:" default:"all_gather,all_reduce,reduce_scatter" placeholder:"LIST" help:"Collectives."`
	DType      string `group:"Calls:" name:"dtype" default:"bf16" help:"Element type."`
	Op         string `group:"Calls:" default:"sum" help:"Operation of those that reduce."`
	Ranks      string `group:"Calls:" default:"2" help:"Ranks of the team."`
	MinBytes   string `group:"Calls:" default:"1KiB" help:"Smallest source of a rank."`
	MaxBytes   string `group:"Calls:" default:"64MiB" help:"Largest source of a rank."`
	Step       string `group:"Calls:" default:"4" help:"Factor from one size to the next."`
	Bytes      string `group:"Calls:" placeholder:"1KiB,32KiB" help:"These sizes instead."`
	Lanes      string `group:"Calls:" default:"8" help:"Lanes of a many form, which share the bytes."`
	SrcOffset  string `group:"Calls:" default:"0" help:"Elements from a 16-byte aligned base to the source."`
	DstOffset  string `group:"Calls:" default:"0" help:"The same for the destination."`
	InPlace    bool   `group:"Calls:" help:"In place."`
	Launch     string `group:"Timing:" default:"graph,gap,eager" placeholder:"LIST" help:"graph: calls back to back; gap: with a busy kernel after each; eager: each call by itself."`
	Gap        string `group:"Timing:" default:"5us" help:"How long that kernel runs."`
	Calls      string `group:"Timing:" default:"20" help:"Calls of a graph."`
	Samples    string `group:"Timing:" default:"100" help:"Samples of each spec."`
	WarmUp     string `group:"Timing:" default:"20" help:"Samples thrown away before."`
	Floors     bool   `group:"Timing:" default:"true" negatable:"" help:"Measure what an empty kernel, a flag and plain copies take."`
}

func (c *benchCmd) do(a *app) (int, error) {
	if c.Output != "" {
		if _, err := os.Lstat(c.Output); err == nil {
			return 0, &api.InvalidError{Field: "o", Value: c.Output, Reason: "the file exists, and a report is not written over", Hint: "name another, or move that one away"}
		}
	}
	if c.Tune {
		return c.tune(a)
	}
	if len(c.Specs) == 0 {
		return 0, errors.New("SPEC is missing (as in compare bench hw:tandem hw:nccl)")
	}
	p := parser{}
	within := p.percent("within", c.Within)
	if p.err != nil {
		return 0, p.err
	}
	if c.Unchanged != "" && c.Against == "" {
		return 0, &api.InvalidError{Field: "unchanged", Value: c.Unchanged, Reason: "unchanged since when?", Hint: "--against OLD.json"}
	}
	var old *bench.Report
	if c.Against != "" {
		var err error
		if old, err = bench.Read(c.Against); err != nil {
			return 0, err
		}
	}
	rep, failure := c.report(a)
	if rep == nil || failure != nil && !rep.Timed() {
		return 0, failure
	}
	if old != nil && failure == nil {
		failure = rep.Against(old, bench.Allowance{Names: fields(c.Unchanged), Within: within})
	}
	if err := c.write(a, rep); err != nil {
		return 0, errors.Join(failure, err)
	}
	if failure != nil {
		return 0, failure
	}
	if rep.Broken() {
		return exitBroken, nil
	}
	return exitHolds, nil
}

// fields splits a comma list; of "" there is nothing.
func fields(list string) []string {
	var out []string
	for f := range strings.SplitSeq(list, ",") {
		if f = strings.TrimSpace(f); f != "" {
			out = append(out, f)
		}
	}
	return out
}

// write puts the report into its file and the tables onto standard output.
func (c *benchCmd) write(a *app, rep *bench.Report) error {
	if c.Output != "" {
		write := rep.Write
		if strings.HasSuffix(c.Output, ".gz") {
			write = func(w io.Writer) error {
				z := gzip.NewWriter(w)
				return errors.Join(rep.Write(z), z.Close())
			}
		}
		if err := writeFile(c.Output, write); err != nil {
			return err
		}
	}
	style := a.style(&outputFlags{NoColor: c.NoColor})
	if _, err := io.WriteString(a.stdout, rep.Text(style)); err != nil {
		return fmt.Errorf("cannot write the result: %w", err)
	}
	return nil
}

// report measures, or reads what was measured. With an error it may hold what
// was measured before.
func (c *benchCmd) report(a *app) (*bench.Report, error) {
	if path, ok := strings.CutPrefix(c.Specs[0], "file:"); ok {
		if len(c.Specs) > 1 {
			return nil, &api.InvalidError{Field: "spec", Value: c.Specs[1], Reason: "a report that was written before stands alone", Hint: "--against puts it beside another"}
		}
		return bench.Read(path)
	}
	cfg, err := c.config()
	if err != nil {
		return nil, err
	}
	return c.measure(a, cfg)
}

// measure opens the specs and times them.
func (c *benchCmd) measure(a *app, cfg bench.Config) (*bench.Report, error) {
	b, specs, err := a.benchSides(c.Specs)
	if err != nil {
		return nil, err
	}
	var sides []bench.Side
	closing := func() error {
		var errs []error
		for _, s := range sides {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(a.ctx), closeLimit)
			errs = append(errs, s.Team.Close(ctx))
			cancel()
		}
		return errors.Join(errs...)
	}
	for _, spec := range specs {
		team, err := b.Open(a.ctx, spec, api.TeamConfig{Ranks: cfg.Points[0].Ranks})
		if err != nil {
			return nil, errors.Join(err, closing())
		}
		sides = append(sides, bench.Side{Spec: spec.String(), Team: team})
	}
	env, gpuName, l2 := a.benchEnvironment(b)
	cfg.L2 = int64(l2)
	cfg.Progress = a.benchProgress()
	rep, err := bench.Run(a.ctx, cfg, sides)
	rep.Environment, rep.GPU, rep.Notes, rep.Flags = env, gpuName, c.Note, c.flags()
	return rep, errors.Join(err, closing())
}

// closeLimit is how long a team may take to end.
const closeLimit = 30 * time.Second

// benchSides reads specs, which are all of one backend: they run in turn on the
// same GPUs.
func (a *app) benchSides(texts []string) (api.Backend, []api.Spec, error) {
	var backend api.Backend
	var specs []api.Spec
	seen := map[string]bool{}
	for _, text := range texts {
		spec, err := api.ParseSpec(text)
		if err != nil {
			return nil, nil, err
		}
		b, err := a.backend(spec)
		switch {
		case err != nil:
			return nil, nil, err
		case backend != nil && b.Name() != backend.Name():
			return nil, nil, &api.InvalidError{Field: "spec", Value: text, Reason: "it runs elsewhere than " + texts[0], Hint: "specs of one backend"}
		case seen[spec.String()]:
			return nil, nil, &api.InvalidError{Field: "spec", Value: text, Reason: "given twice", Hint: "each spec once; a parameter tells two of them apart"}
		}
		seen[spec.String()] = true
		backend, specs = b, append(specs, spec)
	}
	return backend, specs, nil
}

// gpuLister is a backend that can say which GPUs it has.
type gpuLister interface {
	GPUs() (driver string, gpus []gpu.Info)
}

var _, _ gpuLister = (*hwBackend)(nil), (*ptxBackend)(nil)

// flags is the command line in its canonical form: what was set, and what was
// left at its default.
func (c *benchCmd) flags() []string {
	f := &c.benchFlags
	out := slices.Clone(c.Specs)
	for _, kv := range [][2]string{{"collective", f.Collective}, {"dtype", f.DType}, {"op", f.Op}, {"ranks", f.Ranks}, {"min-bytes", f.MinBytes}, {"max-bytes", f.MaxBytes},
		{"step", f.Step}, {"bytes", f.Bytes}, {"lanes", f.Lanes}, {"src-offset", f.SrcOffset}, {"dst-offset", f.DstOffset}, {"launch", f.Launch}, {"gap", f.Gap},
		{"calls", f.Calls}, {"samples", f.Samples}, {"warm-up", f.WarmUp}, {"against", c.Against}, {"unchanged", c.Unchanged}} {
		if kv[1] != "" {
			out = append(out, "--"+kv[0]+"="+kv[1])
		}
	}
	out = append(out, fmt.Sprintf("--in-place=%v", f.InPlace), fmt.Sprintf("--floors=%v", f.Floors))
	return out
}
