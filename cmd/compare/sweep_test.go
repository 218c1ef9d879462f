package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/cmd/compare/internal/sweep"
	"example.com/tandem/conformance/matrix"
)

// small is a sweep of a few hundred calls, of which some diverge and some are
// refused.
var small = strings.Fields("sweep --left sim:nvshmem@2dca770 --right sim:nvshmem@pr131 --collectives all_reduce,reduce_scatter,broadcast " +
	"--dtypes bf16,f32 --ops sum,min --ranks 2,4 --counts 6,2050 --src-offsets 0,1,0/1 --dst-offsets 0,1 --scopes on_stream,block --in-place false --teams world --inputs normal --full")

func smallAnd(args ...string) []string { return append(append([]string{}, small...), args...) }

func readSweep(t *testing.T, text string) *sweep.Result {
	t.Helper()
	requireSchema(t, text)
	r, err := sweep.ReadResult("test", strings.NewReader(text))
	require.NoError(t, err)
	return r.Result
}

func TestSweepFindsWhatTheFixFixed(t *testing.T) {
	got := compare(smallAnd("--format", "json")...)
	require.Equal(t, exitBroken, got.code, got.stderr)
	r := readSweep(t, got.stdout)
	require.Equal(t, r.Cases, r.Calls)
	require.Positive(t, r.Agree)
	require.Positive(t, r.Diverge)
	require.Positive(t, r.Refused)
	causes := map[api.Cause]bool{}
	for _, f := range r.Failures {
		require.Equal(t, api.CheckValue, f.Check)
		causes[f.Cause] = true
		require.Contains(t, f.Class, "bf16", "only 16-bit types lose words")
		again := compare(strings.Fields(strings.TrimPrefix(f.Again, "compare "))...)
		require.Equal(t, exitBroken, again.code, f.Again)
		require.Contains(t, again.stdout, string(f.Cause))
		require.Equal(t, exitBroken, compare(strings.Fields(strings.TrimPrefix(f.Found, "compare "))...).code, f.Found)
	}
	require.True(t, causes[api.OddPointer] && causes[api.OddSliceStart], "%v", causes)
	text := compare(small...)
	require.Regexp(t, fmt.Sprintf(`\nDIVERGE: %d calls, %d agree, %d diverge, %d refused, in [0-9.]+ s\n$`, r.Calls, r.Agree, r.Diverge, r.Refused), text.stdout)
	require.NotContains(t, text.stdout, "\x1b")
}

// TestSweepFailuresAreSmall: an odd pointer loses already one word of two
// elements.
func TestSweepFailuresAreSmall(t *testing.T) {
	got := compare(strings.Fields("sweep --collectives all_reduce --dtypes bf16 --ops sum --ranks 8 --counts 1000 --src-offsets 1 --dst-offsets 8 --in-place false --scopes on_stream --teams world --inputs bits --seeds 3 --format json")...)
	r := readSweep(t, got.stdout)
	require.Len(t, r.Failures, 1)
	require.Equal(t, 3, r.Failures[0].Calls)
	require.Equal(t, "compare run --left sim:nvshmem@2dca770 --right sim:nvshmem@pr131 --collective all_reduce --dtype bf16 --op sum --ranks 2 --count 2 --src-offset 1 --input ones", r.Failures[0].Again)
}

func TestSweepExitCodes(t *testing.T) {
	tandem := strings.Fields("sweep --left sim:tandem --right sim:tandem --collectives all_reduce --dtypes f32 --counts 0,5 --inputs normal")
	got := compare(append(tandem, "--check", "coverage,value,rank_agreement,run_to_run,size_invariance,placement_invariance,liveness")...)
	require.Equal(t, exitHolds, got.code, got.stdout+got.stderr)
	require.Contains(t, got.stdout, "AGREE: ")
	got = compare(strings.Fields("sweep --left sim:rlkernel@8ccb03c --right sim:tandem --collectives broadcast --counts 5")...)
	require.Equal(t, exitCannotCompare, got.code)
	require.Contains(t, got.stdout, "the class has no such operation")
	require.Contains(t, got.stdout, "NOTHING COMPARED: ")
	for args, says := range map[string]string{
		"--check bits":           "known are",
		"--check value,":         "unknown",
		"--shard 5/4":            "not a shard",
		"--shard 0/4":            "not a shard",
		"--shard 1":              "not a shard",
		"--launches lazily":      "eager and graph",
		"--max-bytes many":       "not a number of bytes",
		"--teams all":            "known are",
		"--counts=-1":            "no sound call",
		"--counts 0":             "no call has an element",
		"--left sim:nvshmem@1":   "no such implementation",
		"--full --seeds 1000000": "shorter lists",
		"--write-known":          "--known FILE",
		"--known missing.txt":    "cannot be read",
		"--resume missing.part":  "resume",
		"--contract faithful":    "contract",
		"--format xml":           "known are",
		"-o missing/out.json":    "cannot be written",
		"--dtypes bf16 --ops and --collectives many": "unknown",
	} {
		requireRefused(t, compare(append([]string{"sweep"}, strings.Fields(args)...)...), says)
	}
}

// TestChecksCatch: each check finds what does not keep it, and its command line
// shows it again.
func TestChecksCatch(t *testing.T) {
	for _, c := range []struct{ check, args string }{
		{"rank_agreement", "--left sim:nvshmem@3.4.5?nvls=off --right sim:nvshmem@3.4.5?nvls=off --ranks 4 --counts 8192"},
		{"coverage", "--left sim:nvshmem@2dca770 --right sim:nvshmem@2dca770 --ranks 2 --counts 131074"},
		{"size_invariance", "--left sim:nvshmem@3.4.5?nvls=off --right sim:tandem --ranks 4 --counts 600"},
		{"placement_invariance", "--left sim:nvshmem@2dca770 --right sim:tandem --ranks 2 --counts 4096"},
	} {
		args := "sweep --collectives all_reduce --dtypes bf16 --ops sum --src-offsets 0 --dst-offsets 0 --in-place false --scopes on_stream --teams world --inputs normal --check " + c.check + " " + c.args
		got := compare(strings.Fields(args + " --format json")...)
		require.Equal(t, exitBroken, got.code, "%s: %s%s", args, got.stdout, got.stderr)
		r := readSweep(t, got.stdout)
		require.Len(t, r.Failures, 1)
		require.Equal(t, api.Check(c.check), r.Failures[0].Check)
		require.NotEmpty(t, r.Failures[0].Detail)
		if strings.HasPrefix(r.Failures[0].Again, "compare sweep ") {
			again := compare(strings.Fields(strings.ReplaceAll(strings.TrimPrefix(r.Failures[0].Again, "compare "), "'", ""))...)
			require.Equal(t, exitBroken, again.code, r.Failures[0].Again)
		}
		holds := strings.ReplaceAll(args, "2dca770", "pr131") // of which only these two keep it
		if c.check == "coverage" {
			require.Equal(t, exitHolds, compare(strings.Fields(holds)...).code, holds)
		}
	}
}

func TestShardsMerge(t *testing.T) {
	dir := t.TempDir()
	whole := readSweep(t, compare(smallAnd("--format", "json")...).stdout)
	var files []string
	for i := 1; i <= 3; i++ {
		name := filepath.Join(dir, fmt.Sprintf("%d.json", i))
		got := compare(smallAnd("--format", "json", "--shard", fmt.Sprintf("%d/3", i), "-o", name)...)
		require.NotEqual(t, exitCannotCompare, got.code, got.stderr)
		require.Empty(t, got.stdout)
		require.NoFileExists(t, name+".part")
		files = append(files, name)
	}
	all := filepath.Join(dir, "all.json")
	got := compare("merge", files[2], files[0], files[1], "--format", "json", "-o", all)
	require.Equal(t, exitBroken, got.code, got.stderr)
	text, err := os.ReadFile(all)
	require.NoError(t, err)
	merged := readSweep(t, string(text))
	merged.Seconds, whole.Seconds = 0, 0
	// The smallest of a kind may come from another first call than in the whole.
	require.Equal(t, sweep.KnownOf(whole), sweep.KnownOf(merged))
	require.Equal(t, whole.Refusals, merged.Refusals)
	require.Equal(t, mustJSON(t, whole), mustJSON(t, merged))

	out := filepath.Join(dir, "out.json")
	for _, bad := range []struct {
		files []string
		says  string
	}{
		{files[:2], "shards are missing: 3/3"},
		{[]string{files[0], files[1], files[2], files[1]}, "so is"},
		{[]string{all, all}, "so is"},
		{[]string{all, files[0]}, "shard 1/3"},
		{[]string{filepath.Join(dir, "none.json")}, "cannot be read"},
	} {
		requireRefused(t, compare(append(append([]string{"merge"}, bad.files...), "-o", out)...), bad.says)
	}
	requireRefused(t, compare("merge", all), "-o FILE is missing")
	requireRefused(t, compare("merge"), "FILE")
	require.NoFileExists(t, out)
	other := filepath.Join(dir, "other.json")
	require.NotEqual(t, exitCannotCompare, compare(smallAnd("--seeds", "2", "--shard", "2/3", "--format", "json", "-o", other)...).code)
	requireRefused(t, compare("merge", files[0], other, files[2], "-o", out), "not those of")
	for name, damage := range map[string]func(string) string{
		"is no result": func(s string) string { return s[:len(s)/2] },
		"not add up":   func(s string) string { return strings.Replace(s, `"agree": `, `"agree": 1`, 1) },
		"damaged":      func(s string) string { return strings.Replace(s, `"class"`, `"clas"`, 1) },
		"not \"tandem": func(s string) string { return strings.Replace(s, "sweep/1", "sweep/9", 1) },
		"has ":         func(s string) string { return strings.Replace(s, `"cases": `, `"cases": 9`, 1) },
	} {
		require.NoError(t, os.WriteFile(other, []byte(damage(string(text))), 0o644))
		requireRefused(t, compare("merge", other, "-o", out), name)
	}
}

func mustJSON(t *testing.T, v any) string {
	b, err := json.MarshalIndent(v, "", " ")
	require.NoError(t, err)
	return string(b)
}

// TestSweepGoesOn interrupts a sweep again and again and goes on with it: the
// result is that of a sweep that nobody interrupted.
func TestSweepGoesOn(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "r.json")
	part := out + ".part"
	whole := readSweep(t, compare(smallAnd("--format", "json")...).stdout)
	interrupt := func(after int, args ...string) result {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		var stdout, stderr bytes.Buffer
		all := backends()
		all[0] = &countdown{Backend: all[0], Planner: all[0].(api.Planner), cancel: cancel, after: int64(after)}
		a := &app{ctx: ctx, stdout: &stdout, stderr: &stderr, getenv: func(string) string { return "" }, backends: all}
		return result{a.run(args), stdout.String(), stderr.String()}
	}
	got := interrupt(40, smallAnd("--format", "json", "-o", out)...)
	requireRefused(t, got, "interrupted; go on with: compare sweep --resume "+part)
	require.FileExists(t, part)
	require.NoFileExists(t, out)
	requireRefused(t, compare(smallAnd("-o", out)...), "an unfinished sweep is there already", "--resume")
	requireRefused(t, compare(append(small[:len(small)-1:len(small)-1], "--resume", part)...), "other flags")

	// A line that was cut off is made again.
	text, err := os.ReadFile(part)
	require.NoError(t, err)
	lines := bytes.Count(text, []byte("\n"))
	require.Greater(t, lines, 3)
	require.NoError(t, os.WriteFile(part, text[:len(text)-9], 0o644))
	got = interrupt(40, "sweep", "--resume", part)
	requireRefused(t, got, "interrupted")
	again, err := os.ReadFile(part)
	require.NoError(t, err)
	require.Greater(t, bytes.Count(again, []byte("\n")), lines)

	got = compare("sweep", "--resume", part, "--format", "json")
	require.Equal(t, exitBroken, got.code, got.stderr)
	require.NoFileExists(t, part)
	text, err = os.ReadFile(out)
	require.NoError(t, err)
	resumed := readSweep(t, string(text))
	resumed.Seconds, whole.Seconds = 0, 0
	require.Equal(t, mustJSON(t, whole), mustJSON(t, resumed))
}

// countdown is a backend that ends a context when so many teams were opened, or
// calls planned.
type countdown struct {
	api.Backend
	api.Planner
	cancel context.CancelFunc
	after  int64
	plans  atomic.Int64
}

func (c *countdown) Plan(spec api.Spec, call api.Call) (*api.Plan, error) {
	if call.Count == 2050 && c.plans.Add(1) == c.after {
		c.cancel()
	}
	return c.Planner.Plan(spec, call)
}

func TestHostileJournals(t *testing.T) {
	dir := t.TempDir()
	part := filepath.Join(dir, "r.json.part")
	write := func(text string) {
		require.NoError(t, os.WriteFile(part, []byte(text), 0o644))
	}
	request, err := json.Marshal(defaultRequest)
	require.NoError(t, err)
	header := func(request string) string {
		return `{"schema":"tandem.sweep_part/1","left":"a","right":"b","matrix":"x","cases":10,"shard":"1/2","request":` + request + "}\n"
	}
	for says, text := range map[string]string{
		"not even a header":       "",
		"even a header":           header("{}")[:30],
		"line 1: it is not":       "{}\n",
		"it is not a journal":     "\x00\xff\x7fELF\n",
		"line 1: json":            strings.Replace(header("{}"), `"left"`, `"lift"`, 1),
		"request cannot be":       header("7"),
		"line 2":                  header("{}") + "nonsense\n",
		"case 9 is not":           header("{}") + `{"case":9,"status":"agree"}` + "\n",
		"case 10 is not":          header("{}") + `{"case":10,"status":"agree"}` + "\n",
		"case -1 is not":          header("{}") + `{"case":-1,"status":"agree"}` + "\n",
		"unknown status":          header("{}") + `{"case":2,"status":"maybe"}` + "\n",
		"two outcomes":            header("{}") + `{"case":2,"status":"agree"}` + "\n" + `{"case":2,"status":"diverge"}` + "\n",
		"unknown field":           header("{}") + `{"case":2,"status":"agree","x":1}` + "\n",
		"more than one":           header("{}") + `{"case":2,"status":"agree"} {}` + "\n",
		"longer than":             header("{}") + strings.Repeat("x", 1<<21) + "\n",
		"not a shard":             strings.Replace(header("{}"), "1/2", "3/2", 1),
		"no longer those":         header(string(request)),
		"it does not say which":   strings.Replace(header("{}"), `"cases":10`, `"cases":-1`, 1),
		"max-bytes \"\": not a n": header(`{"left":"sim:tandem","right":"sim:tandem","max_memory":"8GiB","shard":"1/1","seeds":"1"}`),
	} {
		write(text)
		requireRefused(t, compare("sweep", "--resume", part), says)
	}
	write(header(string(request)))
	odd := filepath.Join(dir, "odd")
	require.NoError(t, os.Rename(part, odd))
	requireRefused(t, compare("sweep", "--resume", odd), "does not end in .part")
	requireRefused(t, compare("sweep", "--resume", dir), "resume")
}

func TestDefaultRequest(t *testing.T) {
	a := &app{stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}}
	cmd, err := a.parse([]string{"sweep"})
	require.NoError(t, err)
	require.Equal(t, defaultRequest, cmd.(*sweepCmd).sweepRequest)
}

func TestKnownDivergences(t *testing.T) {
	dir := t.TempDir()
	list := filepath.Join(dir, "known.txt")
	require.Equal(t, exitHolds, compare(smallAnd("--known", list, "--write-known")...).code)
	got := compare(smallAnd("--known", list, "--format", "json")...)
	require.Equal(t, exitHolds, got.code, got.stderr)
	r := readSweep(t, got.stdout)
	require.Equal(t, r.Diverge, r.Known.Listed)
	text, err := os.ReadFile(list)
	require.NoError(t, err)
	lines := strings.SplitAfter(string(text), "\n")
	require.Greater(t, len(lines), 4)
	for name, other := range map[string]string{
		"not listed":               strings.Join(append(lines[:2:2], lines[3:]...), ""),
		"listed, but did not":      string(text) + "3\tvalue\torder\tall_gather i8 warp\n",
		"not listed: 1 call":       strings.Replace(string(text), "\n"+firstField(lines[2]), fmt.Sprintf("\n%d", atoi(t, firstField(lines[2]))-1), 1),
		"did not occur: 1000 call": strings.Replace(string(text), "\n"+firstField(lines[2]), fmt.Sprintf("\n%d", atoi(t, firstField(lines[2]))+1000), 1),
	} {
		require.NoError(t, os.WriteFile(list, []byte(other), 0o644))
		got := compare(smallAnd("--known", list)...)
		require.Equal(t, exitBroken, got.code, name)
		require.Contains(t, got.stdout, name)
	}
	for says, bad := range map[string]string{
		"line 1: the file is empty": "",
		"line 1: it does not begin": "3\tvalue\torder\tx\n",
		"line 3: 2 fields":          "# tandem.known/1 x\n\n3\tvalue\n",
		"line 2: \"x\" is no":       "# tandem.known/1 x\nx\tvalue\torder\tx\n",
		"line 2: \"0\" is no":       "# tandem.known/1 x\n0\tvalue\torder\tx\n",
		"line 2: unknown check":     "# tandem.known/1 x\n1\tvalues\torder\tx\n",
		"line 3: listed twice":      "# tandem.known/1 x\n1\tvalue\torder\tx\n2\tvalue\torder\tx\n",
		"token too long":            "# tandem.known/1 x\n" + strings.Repeat("x", 1<<17),
	} {
		require.NoError(t, os.WriteFile(list, []byte(bad), 0o644))
		requireRefused(t, compare(smallAnd("--known", list)...), says)
	}
}

func firstField(line string) string { f, _, _ := strings.Cut(line, "\t"); return f }

func atoi(t *testing.T, s string) int {
	var n int
	_, err := fmt.Sscan(s, &n)
	require.NoError(t, err)
	return n
}

// TestSweepIsOrdered: neither the number of workers nor chance shows.
func TestSweepIsOrdered(t *testing.T) {
	run := &sweepRun{}
	c := &sweepCmd{sweepRequest: defaultRequest}
	c.Collectives, c.Counts, c.DTypes = "all_reduce", "6,2050", "bf16"
	a := &app{backends: backends()}
	run, err := c.read(a)
	require.NoError(t, err)
	var results []*matrix.Result
	for _, workers := range []int{1, 3} {
		run.opt.Workers = workers
		res, err := matrix.Run(context.Background(), run.left, run.right, run.cases, run.opt)
		require.NoError(t, err)
		results = append(results, res)
	}
	one, err := sweep.New(run.id, 0, results[0], run.again)
	require.NoError(t, err)
	two, err := sweep.New(run.id, 0, results[1], run.again)
	require.NoError(t, err)
	require.Equal(t, mustJSON(t, one), mustJSON(t, two))
}
