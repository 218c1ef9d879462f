package main

import (
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"

	"example.com/tandem/api"
	"example.com/tandem/cmd/compare/internal/term"
	"example.com/tandem/conformance"
	"example.com/tandem/conformance/matrix"
	"example.com/tandem/conformance/vectors"
)

// recordCmd writes what an implementation gives.
type recordCmd struct {
	Spec string `arg:"" name:"SPEC" help:"The implementation."`
	matrixFlags
	memoryFlags
	Output  string `group:"Output:" short:"o" placeholder:"FILE" help:"The vector file, compressed if its name ends in .gz."`
	Format  string `group:"Output:" default:"text" help:"Of the summary: text or json."`
	NoColor bool   `group:"Output:" help:"No colours; also NO_COLOR and a pipe."`
}

// recorded is the summary, schema tandem.record/1.
type recorded struct {
	Schema   string    `json:"schema"`
	File     string    `json:"file"`
	Recorded int       `json:"recorded"`
	Refused  int       `json:"refused"`
	Refusals []refusal `json:"refusals"`
}

// refusal is calls refused for one reason.
type refusal struct {
	Reason string `json:"reason"`
	Calls  int    `json:"calls"`
	First  string `json:"first"` // one of them
}

func (c *recordCmd) do(a *app) (int, error) {
	out := outputFlags{Format: c.Format, NoColor: c.NoColor}
	if err := out.check(); err != nil {
		return 0, err
	}
	if c.Output == "" {
		return 0, errors.New("-o FILE is missing: record writes a vector file, as -o recorded.jsonl.gz")
	}
	limit, err := c.bytes()
	if err != nil {
		return 0, err
	}
	side, _, err := a.sides(c.Spec, "")
	if err != nil {
		return 0, err
	}
	impl, err := a.implementation(side.Spec)
	if err != nil {
		return 0, err
	}
	cases, err := c.cases(impl)
	if err != nil {
		return 0, err
	}
	sum := recorded{Schema: "tandem.record/1", File: c.Output, Refusals: []refusal{}}
	err = writeFile(c.Output, func(w io.Writer) error {
		if !strings.HasSuffix(c.Output, ".gz") {
			return sum.write(a.ctx, w, side, impl, cases, limit)
		}
		z := gzip.NewWriter(w)
		return errors.Join(sum.write(a.ctx, z, side, impl, cases, limit), z.Close())
	})
	if err != nil {
		return 0, err
	}
	if err := a.emit(&out, sum.text, sum); err != nil {
		return 0, err
	}
	return exitHolds, nil
}

// errNothingRecorded keeps an empty file from being written.
var errNothingRecorded = errors.New("nothing was recorded: every call is refused")

// write records the cases.
func (s *recorded) write(ctx context.Context, w io.Writer, side conformance.Side, impl api.Implementation, cases []matrix.Case, limit int64) error {
	out, err := vectors.NewWriter(w, header(side.Spec, impl))
	if err != nil {
		return err
	}
	runner := conformance.Runner{MaxMemory: limit}
	defer runner.Close(context.WithoutCancel(ctx))
	for _, one := range cases {
		if err := ctx.Err(); err != nil {
			return err
		}
		runner.Input = one.Input
		row, err := runner.Record(ctx, side, one.Call)
		if errors.Is(err, api.ErrRefused) || errors.Is(err, api.ErrInvalid) {
			s.refuse(one.Call, err)
			continue
		}
		if err != nil {
			return err
		}
		if err := out.Write(row); err != nil {
			return err
		}
		s.Recorded++
	}
	if s.Recorded == 0 {
		return fmt.Errorf("%w; the first: %s", errNothingRecorded, s.Refusals[0].Reason)
	}
	return out.Close()
}

// header says what the vectors come from. Replay finds the model by the
// profile, which keeps the parameters.
func header(spec api.Spec, impl api.Implementation) vectors.Header {
	profile := spec
	profile.Backend = ""
	profile.Params = map[string]string{}
	for k, v := range spec.Params {
		if k != "nvls" {
			profile.Params[k] = v
		}
	}
	return vectors.Header{
		Library:     spec.String(),
		Profile:     strings.TrimPrefix(profile.String(), ":"),
		NVLS:        hasParam(impl, "nvls") && spec.Param("nvls", "on") == "on",
		Hardware:    "none: " + spec.Backend,
		Environment: map[string]string{"go": runtime.Version(), "goarch": runtime.GOARCH, "compare": currentVersion().Version},
	}
}

// refuse counts a call under the reason alone.
func (s *recorded) refuse(call api.Call, err error) {
	s.Refused++
	reason := err.Error()
	var r *api.Refused
	if errors.As(err, &r) {
		reason = r.Reason
	}
	for i := range s.Refusals {
		if s.Refusals[i].Reason == reason {
			s.Refusals[i].Calls++
			return
		}
	}
	s.Refusals = append(s.Refusals, refusal{reason, 1, call.String()})
}

func (s *recorded) text(term.Style) string {
	var b strings.Builder
	list := slices.Clone(s.Refusals)
	slices.SortStableFunc(list, func(a, b refusal) int { return cmp.Compare(b.Calls, a.Calls) })
	for i, r := range list {
		if i == 20 {
			fmt.Fprintf(&b, "and %d more reasons: the JSON form lists them\n", len(list)-i)
			break
		}
		fmt.Fprintf(&b, "refused: %s: %s\n  for one %s\n", plural(r.Calls, "call"), r.Reason, r.First)
	}
	fmt.Fprintf(&b, "%s: %s, %d refused\n", s.File, plural(s.Recorded, "call")+" recorded", s.Refused)
	return b.String()
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
