package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/tandem/conformance"
)

// report runs `compare run` and decodes its JSON.
func report(t *testing.T, code int, args ...string) conformance.Report {
	t.Helper()
	got := compare(append([]string{"run", "--format", "json"}, args...)...)
	require.Equal(t, code, got.code, got.stderr)
	requireSchema(t, got.stdout)
	var rep struct {
		conformance.Report
		Call json.RawMessage `json:"call"`
	}
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &rep))
	return rep.Report
}

func unwritten(side conformance.SideReport) (out []int64) {
	for _, r := range side.Ranks {
		out = append(out, *r.Unwritten)
	}
	return out
}

// TestDefaults is what a newcomer sees first.
func TestDefaults(t *testing.T) {
	got := compare()
	require.Equal(t, exitBroken, got.code, got.stderr)
	require.Empty(t, got.stderr)
	for _, says := range []string{
		"sim:nvshmem@2dca770", "sim:nvshmem@pr131", "2 ranks x 1048573 elements",
		"left 65548 on every rank, right 0 on every rank",
		"odd_cta_start", "the split put the CTA on an odd element",
		"CTA 15, 65548 elements from element 983025", "slice of rank 0: 32774 elements", "no word of 16, 8 or 4 bytes fits",
		"again: compare run --left sim:nvshmem@2dca770 --right sim:nvshmem@pr131 --collective all_reduce --dtype bf16 --op sum --ranks 2 --count 1048573 --input normal --seed 1",
	} {
		require.Contains(t, got.stdout, says)
	}
	require.NotContains(t, got.stdout, "\x1b", "no terminal, no colours")
	require.Equal(t, got, compare("run"), "the default command, byte for byte")

	rep := report(t, exitBroken)
	require.Equal(t, conformance.Diverge, rep.Verdict)
	require.Equal(t, []int64{65548, 65548}, unwritten(rep.Left))
	require.Equal(t, []int64{0, 0}, unwritten(rep.Right))
	require.Equal(t, conformance.Range{Rank: 0, Start: 983025, Stride: 1, Count: 65548, Cause: "odd_cta_start"}, rep.Ranges[0])
}

// TestReproduces follows the line that a report ends with.
func TestReproduces(t *testing.T) {
	first := report(t, exitBroken, "--ranks", "4", "--count", "4099", "--left", "sim:nvshmem@3.4.5?nvls=off&reduce_recexch_kval=4", "--src-offset", "1", "--dst-offset", "1",
		"--scope", "block", "--input", "uniform:-0.5:1", "--seed", "7", "--right", "sim:nvshmem@3.4.5?nvls=off&max_ctas=3")
	require.Contains(t, first.Repro, `'sim:nvshmem@3.4.5?nvls=off&reduce_recexch_kval=4'`)
	words, ok := strings.CutPrefix(first.Repro, "compare run ")
	require.True(t, ok)
	require.Equal(t, first, report(t, exitBroken, strings.Fields(strings.ReplaceAll(words, "'", ""))...))
}

// TestPR131 has every row of the pull request's tables, in both 16-bit types.
func TestPR131(t *testing.T) {
	table, err := os.ReadFile("testdata/pr131.tsv")
	require.NoError(t, err)
	rows := 0
	for line := range strings.Lines(string(table)) {
		cells := strings.Split(strings.TrimRight(line, "\n"), "\t")
		if strings.HasPrefix(line, "#") || cells[0] == "pes" {
			continue
		}
		rows++
		ranks, err := strconv.Atoi(cells[0])
		require.NoError(t, err)
		before, err := strconv.ParseInt(cells[4], 10, 64)
		require.NoError(t, err)
		after, err := strconv.ParseInt(cells[5], 10, 64)
		require.NoError(t, err)
		for _, dtype := range []string{"bf16", "f16"} {
			if testing.Short() && (rows%4 != 0 || (dtype == "f16") != (rows%8 == 0)) {
				continue
			}
			code := exitHolds
			if before != after {
				code = exitBroken
			}
			// At 4 ranks the paths also round apart, so that exit code 1 says
			// little there: the counts do.
			got := compare("run", "--format", "json", "--ranks", cells[0], "--count", cells[1], "--src-offset", cells[2], "--dst-offset", cells[2], "--scope", cells[3], "--dtype", dtype)
			require.LessOrEqual(t, got.code, exitBroken, got.stderr)
			if code == exitBroken {
				require.Equal(t, code, got.code, line)
			}
			var rep struct{ Left, Right conformance.SideReport }
			require.NoError(t, json.Unmarshal([]byte(got.stdout), &rep))
			want := func(n int64) (out []int64) {
				for range ranks {
					out = append(out, n)
				}
				return out
			}
			require.Equal(t, want(before), unwritten(rep.Left), "%s %s", dtype, line)
			require.Equal(t, want(after), unwritten(rep.Right), "%s %s", dtype, line)
		}
	}
	require.Equal(t, 22, rows)
}

// TestDumps compares with somebody's own dumps, and takes inputs from them.
func TestDumps(t *testing.T) {
	dir := func(ranks ...string) string {
		d := t.TempDir()
		for r, text := range ranks {
			require.NoError(t, os.WriteFile(d+"/rank"+strconv.Itoa(r)+".bin", []byte(text), 0o666))
		}
		return d
	}
	// A broadcast of 3 bytes from rank 1.
	args := func(left string, more ...string) []string {
		return append([]string{"--left", "file:" + left, "--right", "sim:nvshmem@3.4.5", "--collective", "broadcast", "--root", "1", "--dtype", "u8", "--count", "3", "--format", "json"}, more...)
	}
	in := dir("abc", "xyz")
	report(t, exitHolds, args(dir("xyz", "xyz"), "--input", "file:"+in)...)
	rep := report(t, exitBroken, args(dir("xyz", "xbz"), "--input", "file:"+in)...)
	require.EqualValues(t, []int64{0, 1}, rep.Differing.PerRank)
	require.Equal(t, "0x62", *rep.First.Left)
	require.Equal(t, "0x79", *rep.First.Right)
	report(t, exitHolds, args(dir("ccc", "ccc"), "--values", "0x61,0x63")...)

	requireRefused(t, compare(args(dir("xyz", "xyz"), "--input", "file:"+dir("abcd", "xyz"))...), "4 bytes")
	requireRefused(t, compare(args(dir("xyz", "xyz"), "--input", "file:"+dir("abc"))...), "rank")
	requireRefused(t, compare(args(dir("xyz", "xyz"), "--input", "file:"+dir())...), "file")
	requireRefused(t, compare(args(dir("xyz"))...), "rank")
	requireRefused(t, compare(args(dir("xy", "xy"))...), "2 bytes", "needs 3")
	odd := dir("xyz", "xyz")
	require.NoError(t, os.WriteFile(odd+"/notes.txt", nil, 0o666))
	requireRefused(t, compare(args(odd)...), "notes.txt")
}

// TestStartsFast holds the defaults to half a second, of processor time so that
// a busy machine does not matter.
func TestStartsFast(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector slows everything down")
	}
	best := time.Hour
	for range 5 {
		cmd := exec.Command("compare") // this test binary, see TestMain
		err := cmd.Run()
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit)
		require.Equal(t, exitBroken, exit.ExitCode())
		best = min(best, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
	}
	require.Less(t, best, 500*time.Millisecond)
}
