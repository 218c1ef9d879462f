package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
	"example.com/tandem/cmd/compare/internal/bench"
)

// TestPTXTiming runs what measures on the virtual GPU, which finds races and
// barriers that do not match: every kind of work, on one to four GPUs.
func TestPTXTiming(t *testing.T) {
	withoutRaceDetector(t)
	b := new(ptxBackend)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	ctx := context.Background()
	for _, ranks := range []int{1, 2, 4} {
		if testing.Short() && ranks > 2 {
			continue
		}
		team, err := b.Open(ctx, api.Spec{Backend: "ptx", Implementation: "tandem"}, api.TeamConfig{Ranks: ranks})
		require.NoError(t, err)
		for _, work := range []api.Work{api.WorkCalls, api.WorkNothing, api.WorkEmpty, api.WorkFlag, api.WorkCopy, api.WorkPush, api.WorkPull} {
			gap := time.Duration(0)
			if work == api.WorkNothing && ranks == 1 {
				gap = 100 * time.Nanosecond
			}
			call := api.Call{Collective: api.AllGather, DType: api.U8, Ranks: ranks, Count: 300, SrcOffset: api.Offsets{1}}
			m, err := team.(api.Timer).Time(ctx, api.Timing{Call: call, Work: work, Calls: 3, Sets: 2, Gap: gap})
			require.NoError(t, err, work)
			for range 3 {
				require.NoError(t, m.Prepare(ctx), work)
				took, err := m.Sample(ctx)
				require.NoError(t, err, "%s on %d ranks", work, ranks)
				require.Len(t, took, ranks)
			}
			require.NoError(t, m.Close())
		}
		_, err = team.(api.Timer).Time(ctx, api.Timing{Call: api.Call{Collective: api.AllGather, DType: api.U8, Ranks: ranks}, Calls: 1, Graph: true})
		require.ErrorIs(t, err, api.ErrRefused, "its graphs have no events")
		require.NoError(t, team.Close(ctx))
	}
}

// clockwork is a backend of implementations that take a set time: "steady" the
// same for each call, "linear" one that grows, "slower" one that a test sets.
type clockwork struct{ slower time.Duration }

func (clockwork) Name() string { return "hw" }

func (clockwork) Implementations() []api.Implementation {
	var out []api.Implementation
	for _, n := range []string{"steady", "linear", "slower", "tandem"} {
		i := api.Implementation{Name: n, Summary: n + " as a clock"}
		if n == "tandem" {
			i.Params = []api.Param{{Name: "path"}, {Name: "ctas"}}
		}
		out = append(out, i)
	}
	return out
}

func (clockwork) GPUs() (string, []gpu.Info) {
	return "clock 1.0", []gpu.Info{{Name: "Clock", L2: 50 << 20, ClockKHz: 1000000}, {Name: "Clock"}}
}

func (c clockwork) Open(_ context.Context, s api.Spec, _ api.TeamConfig) (api.Team, error) {
	return &clockTeam{c, s.Implementation, s}, nil
}

type clockTeam struct {
	c    clockwork
	name string
	spec api.Spec
}

func (*clockTeam) Members() []api.Member       { return nil }
func (*clockTeam) Close(context.Context) error { return nil }

func (t *clockTeam) Time(_ context.Context, what api.Timing) (api.Timed, error) {
	return &clockTimed{t, what}, nil
}

type clockTimed struct {
	t    *clockTeam
	what api.Timing
}

func (*clockTimed) Prepare(context.Context) error { return nil }
func (*clockTimed) Close() error                  { return nil }

func (m *clockTimed) Sample(context.Context) ([]time.Duration, error) {
	each := 10 * time.Microsecond
	switch {
	case m.what.Work == api.WorkNothing:
		each = 0
	case m.what.Work != api.WorkCalls:
		each = 2 * time.Microsecond
	case m.t.name == "linear":
		each = time.Microsecond + time.Duration(m.what.Call.SrcElems(0))
	case m.t.name == "tandem":
		// Pushing is the faster below 16 KiB, sixteen blocks always.
		each = 8*time.Microsecond + time.Duration(m.what.Call.SrcElems(0)/8)
		if m.t.spec.Params["path"] == "push" {
			each = 4*time.Microsecond + time.Duration(m.what.Call.SrcElems(0))
		}
		if m.t.spec.Params["ctas"] == "16" {
			each -= time.Microsecond
		}
	case m.t.name == "slower":
		each = m.t.c.slower
	}
	all := time.Duration(m.what.Calls) * (each + m.what.Gap)
	return []time.Duration{all, all - time.Nanosecond}, nil
}

func timeOn(c clockwork, args ...string) result {
	var out, errs bytes.Buffer
	list := backends()
	for i := range list {
		if list[i].Name() == "hw" {
			list[i] = c
		}
	}
	a := &app{ctx: context.Background(), stdout: &out, stderr: &errs, getenv: func(string) string { return "" }, backends: list}
	code := a.run(append([]string{"bench"}, args...))
	return result{code, out.String(), errs.String()}
}

func TestBenchCommand(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "new.json")
	got := timeOn(clockwork{}, "hw:steady", "hw:linear", "--collective", "all_gather,all_gather_many", "--max-bytes", "64KiB", "--samples", "5", "--note", "a note", "-o", file)
	require.Equal(t, exitHolds, got.code, got.stderr)
	for _, says := range []string{"2 ranks, Clock", "F0 2.00 us", "hw:linear", "16 KiB", "crossovers", "hw:steady is faster than hw:linear", "graph with 5 us of work after each call", "8 lanes"} {
		require.Contains(t, got.stdout, says)
	}
	rep, err := bench.Read(file)
	require.NoError(t, err)
	require.Len(t, rep.Rows, 2*2*3*4)
	require.Equal(t, "a note", rep.Notes)
	require.Equal(t, "clock 1.0", rep.Environment["driver"])
	require.Contains(t, rep.Environment["gpu.0"], "highest SM clock 1000 MHz")
	require.Contains(t, rep.Flags, "--samples=5")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, validate("bench", string(text)))

	packed := file + ".gz"
	require.Equal(t, exitHolds, timeOn(clockwork{}, "hw:steady", "--bytes=1KiB", "--samples=3", "-o", packed).code)
	_, err = bench.Read(packed)
	require.NoError(t, err)

	again := timeOn(clockwork{}, "hw:steady", "-o", file)
	requireRefused(t, again, "not written over")
	kept, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, text, kept, "what was stored is as it was")
	shown := timeOn(clockwork{}, "file:"+file)
	require.Equal(t, got.stdout, shown.stdout)
}

func TestBenchAgainst(t *testing.T) {
	dir := t.TempDir()
	old := filepath.Join(dir, "old.json")
	args := []string{"hw:slower", "--collective", "all_gather,all_reduce", "--bytes", "1KiB,32KiB", "--launch", "graph", "--samples", "4"}
	require.Equal(t, exitHolds, timeOn(clockwork{10 * time.Microsecond}, append(args, "-o", old)...).code)
	before, err := os.ReadFile(old)
	require.NoError(t, err)
	for _, c := range []struct {
		takes time.Duration
		flags string
		code  int
	}{
		{10 * time.Microsecond, "--unchanged all_gather", exitHolds},
		{10400, "--unchanged all_gather", exitHolds},
		{10600, "--unchanged all_gather", exitBroken},
		{10600, "--unchanged all_gather,all_reduce --within 10", exitHolds},
		{9000, "--unchanged hw:slower", exitBroken},
		{20000, "", exitHolds},
	} {
		got := timeOn(clockwork{c.takes}, append(append(args, "--against", old), strings.Fields(c.flags)...)...)
		require.Equal(t, c.code, got.code, "%v %s: %s", c.takes, c.flags, got.stderr)
		require.Contains(t, got.stdout, "against the earlier report")
	}
	after, err := os.ReadFile(old)
	require.NoError(t, err)
	require.Equal(t, before, after, "the earlier report is as it was")
	requireRefused(t, timeOn(clockwork{1}, append(args, "--unchanged", "broadcast")...), "since when", "--against")
	for says, args := range map[string][]string{"broadcast": append(args, "--against", old, "--unchanged", "broadcast"), "no row of that report": {"hw:steady", "--max-bytes=1KiB", "--against", old}} {
		got := timeOn(clockwork{time.Microsecond}, args...)
		require.Equal(t, exitCannotCompare, got.code)
		require.Contains(t, got.stderr, says)
		require.Contains(t, got.stdout, "microseconds a call", "what was measured is not lost")
	}
}

// TestBenchTune: the table says what was the fastest.
func TestBenchTune(t *testing.T) {
	withoutRaceDetector(t)
	file := filepath.Join(t.TempDir(), "table.json")
	got := timeOn(clockwork{}, "--tune", "--max-bytes", "1MiB", "--collective", "all_gather", "-o", file)
	require.Equal(t, exitHolds, got.code, got.stderr)
	var table bench.Table
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &table))
	require.NoError(t, validate("tune", string(text)))
	require.Equal(t, "hw:tandem", table.Spec)
	require.Len(t, table.Entries, 2, got.stdout)
	require.Equal(t, map[string]string{"path": "push", "ctas": "16"}, table.Entries[0].Params)
	require.Equal(t, map[string]string{"path": "direct", "ctas": "16"}, table.Entries[1].Params)
	require.Equal(t, int64(16<<10), table.Entries[1].FromBytes)
	require.Contains(t, got.stdout, "ctas=16 path=push")
	requireRefused(t, timeOn(clockwork{}, "--tune", "-o", file), "not written over")
	requireRefused(t, timeOn(clockwork{}, "--tune", "hw:steady"), "no paths")
	requireRefused(t, timeOn(clockwork{}, "--tune", "hw:steady", "hw:tandem"), "one spec")
	requireRefused(t, timeOn(clockwork{}, "--tune", "hw:none"), "no such implementation")
}

func TestBenchBadInput(t *testing.T) {
	for args, says := range map[string]string{
		"":                              "SPEC is missing",
		"hw:steady --samples 0":         "samples",
		"hw:steady --calls 1001":        "1 to 1000",
		"hw:steady --warm-up -1":        "warm-up",
		"hw:steady --launch fast":       "eager graph gap",
		"hw:steady --collective gather": "known are",
		"hw:steady --collective ,":      "nothing to time",
		"hw:steady --min-bytes 2KiB --max-bytes 1KiB": "max-bytes",
		"hw:steady --bytes 1":                         "2 or more",
		"hw:steady --bytes x":                         "not a number of bytes",
		"hw:steady --step 1":                          "step",
		"hw:steady --gap 1s":                          "5us",
		"hw:steady --gap 5":                           "5us",
		"hw:steady --dtype b16":                       "dtype",
		"hw:steady --op plus":                         "op",
		"hw:steady --ranks 0":                         "ranks",
		"hw:steady --within x":                        "percent",
		"hw:steady --within NaN":                      "percent",
		"hw:steady --lanes 0":                         "lanes",
		"hw:steady hw:steady":                         "given twice",
		"hw:steady sim:tandem":                        "elsewhere",
		"sim:tandem":                                  "no device",
		"nowhere:steady":                              "no backend",
		"hw:steady --against nofile":                  "nofile",
		"file:nofile":                                 "nofile",
		"file:nofile hw:steady":                       "stands alone",
		"hw:steady -o /no/such/x.json":                "cannot be written",
	} {
		got := timeOn(clockwork{time.Microsecond}, append(strings.Fields(args), "--max-bytes=1KiB")...)
		if strings.Contains(args, "max-bytes") {
			got = timeOn(clockwork{time.Microsecond}, strings.Fields(args)...)
		}
		requireRefused(t, got, says)
	}
}

func TestPlotCommand(t *testing.T) {
	dir := t.TempDir()
	old, now, other := filepath.Join(dir, "old.json"), filepath.Join(dir, "new.json"), filepath.Join(dir, "other.json")
	args := []string{"hw:slower", "hw:steady", "--collective", "all_gather", "--launch", "graph,eager", "--samples", "3", "--max-bytes"}
	require.Equal(t, exitHolds, timeOn(clockwork{20 * time.Microsecond}, append(args, "1MiB", "-o", old)...).code)
	require.Equal(t, exitHolds, timeOn(clockwork{10 * time.Microsecond}, append(args, "1MiB", "-o", now)...).code)
	require.Equal(t, exitHolds, timeOn(clockwork{10 * time.Microsecond}, append(args, "4MiB", "-o", other)...).code)
	png := filepath.Join(dir, "x.png")
	got := compare("plot", "--before", old, "--after", now, "--reference", "hw:steady", "-o", png)
	require.Equal(t, exitHolds, got.code, got.stderr)
	require.FileExists(t, png)
	svg := filepath.Join(dir, "y.svg")
	got = compare("plot", "--before", now, "--after", now, "--spec", "hw:slower,hw:steady", "-o", svg)
	require.Equal(t, exitHolds, got.code, got.stderr)
	text, err := os.ReadFile(svg)
	require.NoError(t, err)
	require.Contains(t, string(text), "hw:slower")
	require.Contains(t, string(text), "hw:steady")
	none := filepath.Join(dir, "none.png")
	requireRefused(t, compare("plot", "--before", old, "--after", now, "--spec", "a,b,c", "-o", none), "more than one before")
	requireRefused(t, compare("plot", "--before", old+","+old, "--after", now+","+other, "-o", none), "sizes")
	require.NoFileExists(t, none, "nothing is drawn where one pair does not match")
	requireRefused(t, compare("plot", "--before", old, "--after", now, "-o", "x.pdf"), ".svg")
	requireRefused(t, compare("plot", "--before", old, "--after", now), "into a file")
	requireRefused(t, compare("plot", "-o", none), "nothing to draw")
	requireRefused(t, compare("plot", "--before", old, "--before", old, "--after", now, "-o", none), "2 reports before, 1 after")
}

// TestStoredReports: what is committed reads, keeps its schema and can be drawn.
func TestStoredReports(t *testing.T) {
	files, err := filepath.Glob("testdata/bench/*.json.gz")
	require.NoError(t, err)
	for _, f := range files {
		text, err := bench.Bytes(f)
		require.NoError(t, err)
		require.NoError(t, validate("bench", string(text)), f)
		got := compare("bench", "file:"+f)
		require.Equal(t, exitHolds, got.code, got.stderr)
	}
	tables, err := filepath.Glob("testdata/bench/*tune*.json")
	require.NoError(t, err)
	for _, f := range tables {
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		require.NoError(t, validate("tune", string(text)), f)
	}
	require.NotEmpty(t, append(files, tables...))
}
