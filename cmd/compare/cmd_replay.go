package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"example.com/tandem/api"
	"example.com/tandem/cmd/compare/internal/term"
	"example.com/tandem/conformance"
	"example.com/tandem/conformance/vectors"
)

// replayCmd checks recordings.
type replayCmd struct {
	Files   []string `arg:"" name:"FILE" help:"Vector files."`
	Against string   `placeholder:"SPEC" help:"What to check them against; the model that the file names."`
	Strict  bool     `help:"Exit code 2 where a row was refused."`
	memoryFlags
	outputFlags
}

// replayed is the JSON form, schema tandem.replay/1: one file's report, or the
// sum of several, each named.
type replayed struct {
	conformance.ReplayReport
	Files []fileReplay `json:"files,omitempty"`
}

// fileReplay is one of several files.
type fileReplay struct {
	File   string                    `json:"file"`
	Error  string                    `json:"error,omitempty"` // why the file was not replayed to its end
	Report *conformance.ReplayReport `json:"report"`
}

func (c *replayCmd) do(a *app) (int, error) {
	if err := c.check(verdictFormats...); err != nil {
		return 0, err
	}
	runner := conformance.Runner{}
	var err error
	if runner.MaxMemory, err = c.bytes(); err != nil {
		return 0, err
	}
	out := replayed{ReplayReport: conformance.ReplayReport{Schema: conformance.ReplaySchema, Failures: []conformance.ReplayFailure{}}}
	var failure error
	for _, name := range c.Files {
		rep, err := c.file(a, &runner, name)
		f := fileReplay{File: name, Report: rep}
		if err != nil {
			f.Error = oneLine(err.Error())
			failure = errors.Join(failure, err)
		}
		out.add(f)
	}
	if len(out.Files) == 1 {
		out.Files = nil
	}
	if err := a.emit(&c.outputFlags, out.text, out); err != nil {
		return 0, err
	}
	if n := out.UnreadableLines; n > 0 && failure == nil {
		failure = unreadable(n, &out.Unreadable[0])
	}
	if out.Failed > 0 {
		if failure != nil {
			a.fail(failure)
		}
		return exitBroken, nil
	}
	return c.code(&out), failure
}

// unreadable says that lines are no rows, and what would be one.
func unreadable(n int, first *conformance.ReplayRefusal) error {
	what := "1 line cannot be read"
	if n > 1 {
		what = fmt.Sprintf("%d lines cannot be read, the first of them", n)
	}
	return fmt.Errorf("%s, line %d: %s (every line after the header is one row, a JSON object as compare record writes it: remove or record anew what is not)", what, first.Line, first.Reason)
}

// code is the exit code where no row failed.
func (c *replayCmd) code(out *replayed) int {
	if out.UnreadableLines > 0 || out.Passed == 0 || (c.Strict && out.Refused > 0) {
		return exitCannotCompare
	}
	return exitHolds
}

// file replays one file. The report is there whatever the error, and may hold
// a part of the file.
func (c *replayCmd) file(a *app, runner *conformance.Runner, name string) (*conformance.ReplayReport, error) {
	none := &conformance.ReplayReport{Schema: conformance.ReplaySchema, Failures: []conformance.ReplayFailure{}}
	rows, err := vectors.OpenContext(a.ctx, name)
	if err != nil {
		return none, err
	}
	defer rows.Close()
	side, err := a.replaySide(rows.Header, name, c.Against)
	if err != nil {
		return none, fmt.Errorf("%s: %w", name, err)
	}
	rep, err := runner.Replay(a.ctx, rows, side)
	if errors.Is(err, context.Canceled) {
		err = errors.New("interrupted")
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return rep, err
}

// replaySide is what a recording is checked against: the spec asked for, else
// the model that its header names.
func (a *app) replaySide(h vectors.Header, name, against string) (conformance.Side, error) {
	if against == "" {
		spec, err := a.profileSpec(h)
		if err != nil {
			return conformance.Side{}, err
		}
		against = spec.String()
	}
	side, _, err := a.sides(against, "file:"+name)
	return side, err
}

// profileSpec is the model that a header names: sim: and its profile, without
// multicast where the recording was.
func (a *app) profileSpec(h vectors.Header) (api.Spec, error) {
	spec, err := api.ParseSpec("sim:" + h.Profile)
	if err != nil || h.Profile == "" {
		return spec, &api.InvalidError{Field: "profile", Value: h.Profile, Reason: "the header names no model", Hint: "say which with --against SPEC"}
	}
	impl, err := a.implementation(spec)
	if err != nil {
		return spec, err
	}
	if !h.NVLS && hasParam(impl, "nvls") {
		if spec.Params == nil {
			spec.Params = map[string]string{}
		}
		spec.Params["nvls"] = "off"
	}
	return spec, nil
}

func hasParam(impl api.Implementation, name string) bool {
	for _, p := range impl.Params {
		if p.Name == name {
			return true
		}
	}
	return false
}

// add sums the reports of files.
func (r *replayed) add(f fileReplay) {
	r.Files = append(r.Files, f)
	r.Passed += f.Report.Passed
	r.Failed += f.Report.Failed
	r.Refused += f.Report.Refused
	r.Failures = append(r.Failures, f.Report.Failures...)
	r.Refusals = append(r.Refusals, f.Report.Refusals...)
	r.Unreadable = append(r.Unreadable, f.Report.Unreadable...)
	r.UnreadableLines += f.Report.UnreadableLines
}

// text ends with the three counts, of all files together.
func (r *replayed) text(s term.Style) string {
	var b strings.Builder
	opt := conformance.TextOptions{Color: s.On()}
	for _, f := range r.Files {
		b.WriteString(s.Bold(f.File) + "\n")
		_ = f.Report.WriteText(&b, opt) // a Builder takes everything
		b.WriteString("\n")
	}
	if len(r.Files) > 0 {
		fmt.Fprintf(&b, "%d passed, %d failed, %d refused\n", r.Passed, r.Failed, r.Refused)
	} else {
		_ = r.WriteText(&b, opt)
	}
	return b.String()
}
