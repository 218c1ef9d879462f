package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"example.com/tandem/api"
	"example.com/tandem/cmd/compare/internal/sweep"
	"example.com/tandem/conformance"
	"example.com/tandem/conformance/matrix"
)

// sweepCmd compares two executions of many calls.
type sweepCmd struct {
	sweepRequest
	Known      string `placeholder:"FILE" help:"Accepted divergences: the sweep holds if exactly those occur."`
	WriteKnown bool   `help:"Write the divergences that occur to the --known file."`
	Resume     string `placeholder:"FILE.part" help:"Go on with an interrupted sweep; its flags need not be given again."`
	outputFlags
}

// sweepRequest are the flags that say which calls are made and what is asked of
// them.
type sweepRequest struct {
	Left     string `default:"sim:nvshmem@2dca770" help:"The one implementation." json:"left"`
	Right    string `default:"sim:nvshmem@pr131" help:"The other one." json:"right"`
	Check    string `placeholder:"NAME,.." help:"coverage, value, rank_agreement, run_to_run, size_invariance, placement_invariance, liveness, asked of both sides; value and what each side promises of coverage, rank_agreement and liveness." json:"check,omitempty"`
	Contract string `placeholder:"exact" help:"exact: equal bits also where less is promised." json:"contract,omitempty"`
	matrixFlags
	Teams    string `group:"Matrix:" placeholder:"LIST" help:"world and sub." json:"teams,omitempty"`
	Modes    string `group:"Matrix:" placeholder:"LIST" help:"Reduction modes; default names that of the implementation." json:"modes,omitempty"`
	Launches string `group:"Matrix:" placeholder:"LIST" help:"eager and graph: calls recorded once and replayed, where a side can." json:"launches,omitempty"`
	MaxBytes string `group:"Matrix:" default:"64MiB" help:"Leave out counts around thresholds whose buffers take more." json:"max_bytes"`
	Shard    string `default:"1/1" placeholder:"I/N" help:"Make only every N-th call, from the I-th; compare merge joins the results." json:"shard"`
	memoryFlags
}

// sweepRun is a request, read.
type sweepRun struct {
	request     sweepRequest
	left, right conformance.Side
	id          sweep.Identity
	cases       []matrix.Case
	tooLarge    int
	opt         matrix.Options
}

func (c *sweepCmd) do(a *app) (int, error) {
	if err := c.check(verdictFormats...); err != nil {
		return 0, err
	}
	known, err := c.known()
	if err != nil {
		return 0, err
	}
	journal, err := c.resumed()
	if err != nil {
		return 0, err
	}
	if journal != nil {
		defer journal.Close()
	}
	run, err := c.read(a)
	if err != nil {
		return 0, err
	}
	part := ""
	if part, journal, err = c.journal(run, journal); err != nil {
		return 0, err
	}
	res, err := run.do(a, journal)
	if err != nil {
		if journal != nil && a.ctx.Err() != nil {
			return 0, &interrupted{part}
		}
		return 0, err
	}
	if err := c.compareKnown(res, known); err != nil {
		return 0, err
	}
	if err := a.emit(&c.outputFlags, res.Text, res); err != nil {
		return 0, err
	}
	if part != "" {
		if err := os.Remove(part); err != nil {
			return 0, fmt.Errorf("the result is written, but %w", err)
		}
	}
	return res.Code(), nil
}

// interrupted says how to go on.
type interrupted struct{ part string }

func (e *interrupted) Error() string {
	return "interrupted; go on with: compare sweep --resume " + e.part
}

// resumed opens the journal to go on with, and takes the request from it.
func (c *sweepCmd) resumed() (*sweep.Journal, error) {
	if c.Resume == "" {
		return nil, nil
	}
	j, err := sweep.ResumeJournal(c.Resume)
	if err != nil {
		return nil, err
	}
	bad := func(reason, hint string) (*sweep.Journal, error) {
		j.Close()
		return nil, &api.InvalidError{Field: "resume", Value: c.Resume, Reason: reason, Hint: hint}
	}
	var req sweepRequest
	if err := json.Unmarshal(j.Request, &req); err != nil {
		return bad("line 1: its request cannot be read: "+err.Error(), "start again without --resume")
	}
	if c.sweepRequest != defaultRequest && c.sweepRequest != req {
		return bad("it was begun with other flags", "leave out the flags that say which calls are made: the file has them")
	}
	c.sweepRequest = req
	if c.Output == "" {
		name, ok := strings.CutSuffix(c.Resume, ".part")
		if !ok {
			return bad("its name does not end in .part", "say where the result goes with -o FILE")
		}
		c.Output = name
	}
	return j, nil
}

// defaultRequest is that of a command line without flags.
var defaultRequest = sweepRequest{
	Left: "sim:nvshmem@2dca770", Right: "sim:nvshmem@pr131", matrixFlags: matrixFlags{Seeds: "1"},
	MaxBytes: "64MiB", Shard: "1/1", memoryFlags: memoryFlags{MaxMemory: "8GiB"},
}

// read makes the cases.
func (c *sweepCmd) read(a *app) (*sweepRun, error) {
	r := &sweepRun{request: c.sweepRequest}
	var err error
	if c.Contract != "" && c.Contract != "exact" {
		return nil, &api.InvalidError{Field: "contract", Value: c.Contract, Reason: "cannot be asked for", Hint: "leave it out, or ask for exact"}
	}
	r.opt.Exact = c.Contract == "exact"
	if r.opt.MaxMemory, err = c.bytes(); err != nil {
		return nil, err
	}
	if r.id.Shard, err = sweep.ParseShard(c.Shard); err != nil {
		return nil, err
	}
	axes, err := c.axes()
	if err != nil {
		return nil, err
	}
	if r.left, r.right, err = a.sides(c.Left, c.Right); err != nil {
		return nil, err
	}
	for _, s := range []conformance.Side{r.left, r.right} {
		if s.Spec.Backend == "file" {
			continue
		}
		m, err := a.implementation(s.Spec)
		if err != nil {
			return nil, err
		}
		if m.Unavailable != "" {
			return nil, &api.Unavailable{Spec: s.String(), Reason: m.Unavailable, Hint: "compare list shows what this machine can run"}
		}
	}
	r.opt.Checks = parseChecks(c.Check, &err)
	if err != nil {
		return nil, err
	}
	all := matrix.For(r.left, r.right, axes)
	if err := boundFull(c.Full, all...); err != nil {
		return nil, err
	}
	r.cases, r.tooLarge = matrix.ExpandAll(all, c.Full)
	if len(r.cases) == 0 {
		return nil, errNoCalls
	}
	if !slices.ContainsFunc(r.cases, func(c matrix.Case) bool { return c.Call.MemoryBytes() > 0 }) {
		return nil, &api.InvalidError{Field: "counts", Value: c.Counts, Reason: "nothing would be compared: no call has an element", Hint: "give a count above 0 as well"}
	}
	r.id.Left, r.id.Right, r.id.Cases = r.left.String(), r.right.String(), len(r.cases)
	r.id.Matrix = sweep.MatrixHash(r.cases, r.id.Left, r.id.Right, c.Check, c.Contract)
	return r, nil
}

// axes are those of the lists, and of this command's own.
func (r *sweepRequest) axes() (matrix.Axes, error) {
	a, err := r.matrixFlags.axes()
	if err != nil {
		return a, err
	}
	p := parser{}
	a.Teams = list(&p, r.Teams, api.ParseTeamKind)
	a.Modes = list(&p, r.Modes, func(s string) (string, error) { return strings.TrimPrefix(s, "default"), nil })
	a.Graph = list(&p, r.Launches, parseLaunch)
	a.MaxBytes = p.byteSize("max-bytes", r.MaxBytes)
	return a, p.err
}

// parseLaunch reports whether calls are replayed from a recording.
func parseLaunch(text string) (graph bool, err error) {
	switch text {
	case "eager":
		return false, nil
	case "graph":
		return true, nil
	}
	return false, &api.InvalidError{Field: "launch", Value: text, Reason: "unknown", Hint: "known are eager and graph"}
}

// parseChecks reads the names of checks; "" is nil.
func parseChecks(text string, err *error) []api.Check {
	p := parser{}
	out := list(&p, text, func(s string) (api.Check, error) {
		for _, c := range api.Checks() {
			if string(c) == s {
				return c, nil
			}
		}
		return "", &api.InvalidError{Field: "check", Value: s, Reason: "unknown", Hint: fmt.Sprintf("known are %v", api.Checks())}
	})
	if p.err != nil {
		*err = p.err
	}
	return out
}

// journal is the file in which the run is kept until it ends: the one to go on
// with, a new one beside the output file, or none.
func (c *sweepCmd) journal(r *sweepRun, old *sweep.Journal) (string, *sweep.Journal, error) {
	if old != nil {
		if old.Identity != r.id {
			return "", nil, &api.InvalidError{Field: "resume", Value: c.Resume, Reason: "its calls are no longer those that its flags describe", Hint: "it was begun by another version of compare; start again without --resume"}
		}
		return c.Resume, old, nil
	}
	if c.Output == "" {
		return "", nil, nil
	}
	if info, err := os.Stat(c.Output); err == nil && !info.Mode().IsRegular() {
		return "", nil, nil // a device keeps nothing
	}
	request, err := json.Marshal(r.request)
	if err != nil {
		return "", nil, err
	}
	part := c.Output + ".part"
	j, err := sweep.CreateJournal(part, sweep.Header{Identity: r.id, Request: request})
	return part, j, err
}

// do makes the calls that the journal does not have yet, and looks at all.
func (r *sweepRun) do(a *app, journal *sweep.Journal) (*sweep.Result, error) {
	var before map[int]matrix.Outcome
	if journal != nil {
		before = journal.Outcomes
	}
	begun := time.Now()
	bar := newProgress(a.stderr, a.getenv, r.id.Shard.Count(len(r.cases)), before)
	defer bar.stop()
	r.opt.Skip = func(i int) bool {
		_, known := before[i]
		return known || !r.id.Shard.Has(i)
	}
	r.opt.Done = func(o matrix.Outcome) error {
		bar.add(o)
		if journal == nil {
			return nil
		}
		return journal.Add(o)
	}
	outcomes, err := matrix.Execute(a.ctx, r.left, r.right, r.cases, r.opt)
	if err != nil {
		return nil, err
	}
	for _, o := range before {
		outcomes = append(outcomes, o)
	}
	res, err := matrix.Explain(a.ctx, r.left, r.right, r.cases, outcomes, r.opt)
	if err != nil {
		return nil, err
	}
	out, err := sweep.New(r.id, r.tooLarge, res, r.again)
	if err != nil {
		return nil, err
	}
	out.Seconds = time.Since(begun).Round(time.Millisecond).Seconds()
	return out, nil
}

// known reads the list of accepted divergences; nil if there is none.
func (c *sweepCmd) known() (sweep.Known, error) {
	switch {
	case c.WriteKnown && c.Known == "":
		return nil, errors.New("--known FILE is missing: --write-known writes that file")
	case c.Known == "" || c.WriteKnown:
		return nil, nil
	}
	f, err := api.OpenFile(c.Known)
	if err != nil {
		return nil, &api.InvalidError{Field: "known", Value: c.Known, Reason: "it cannot be read", Hint: "--write-known writes it"}
	}
	defer f.Close()
	return sweep.ReadKnown(c.Known, f)
}

// compareKnown holds the result against the list, or writes the list.
func (c *sweepCmd) compareKnown(res *sweep.Result, known sweep.Known) error {
	if c.WriteKnown {
		known = sweep.KnownOf(res)
		if err := writeFile(c.Known, func(w io.Writer) error { return known.Write(w, res.Left, res.Right) }); err != nil {
			return err
		}
	}
	if known != nil {
		res.Known = known.Against(res)
	}
	return nil
}

// again is the command line of a case: one that shows what is compared, or for
// checks that take several executions a sweep of the one call.
func (r *sweepRun) again(c matrix.Case, check api.Check) string {
	switch check {
	case api.CheckRunToRun, api.CheckPlacementInvariance, api.CheckSizeInvariance:
		return r.sweepOf(c, check)
	}
	runner := conformance.Runner{Exact: r.opt.Exact, Input: c.Input, Graph: c.Graph}
	return runner.Repro(r.left, r.right, c.Call)
}

// sweepOf is the command line that asks one check of one case.
func (r *sweepRun) sweepOf(c matrix.Case, check api.Check) string {
	slashes := func(o api.Offsets) string { return strings.ReplaceAll(o.String(), ",", "/") }
	args := []string{"compare sweep", "--left", conformance.Quote(r.id.Left), "--right", conformance.Quote(r.id.Right), "--check", string(check),
		"--collectives", c.Call.Collective.Name(), "--dtypes", c.Call.DType.String()}
	if c.Call.Op != api.NoOp {
		args = append(args, "--ops", c.Call.Op.String())
	}
	args = append(args, "--ranks", fmt.Sprint(c.Call.Ranks), "--counts", fmt.Sprint(c.Call.Lane(0).Count),
		"--src-offsets", slashes(c.Call.SrcOffset), "--dst-offsets", slashes(c.Call.DstOffset), "--in-place", c.Call.InPlace.String(),
		"--scopes", c.Call.Scope.String(), "--teams", c.Call.Team.String())
	if c.Call.Mode != "" {
		args = append(args, "--modes", c.Call.Mode)
	}
	if text, ok := strings.CutPrefix(c.Input.String(), "--input "); ok {
		text, seed, _ := strings.Cut(text, " --seed ")
		args = append(args, "--inputs", text)
		if seed != "" && seed != "1" {
			args = append(args, "--seeds", seed)
		}
	}
	if values, ok := strings.CutPrefix(c.Input.String(), "--values "); ok {
		args = append(args, "--inputs", "values:"+strings.ReplaceAll(values, ",", "/"))
	}
	if c.Graph {
		args = append(args, "--launches", "graph")
	}
	return strings.Join(args, " ")
}
