package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/conformance/vectors"
)

const (
	goodHeader = `{"format":"vectors","version":1,"library":"x","profile":"nvshmem@3.4.5","nvls":false,"hardware":"x","environment":{}}`
	goodRow    = `{"collective":"all_reduce","scope":"block","dtype":"bf16","op":"max","ranks":2,"count":1,"src_offset":0,"dst_offset":0,"in_place":false,"input":{"gen":"normal","seed":7},"out_fnv1a64":["096b8907b5f5a9e4","096b8907b5f5a9e4"],"out_hex":["a4bf","a4bf"]}`
	goodCounts = "1 passed, 0 failed, 0 refused\n"
)

// TestGoldenReplays is every result recorded from the real libraries; a part
// of them under -short.
func TestGoldenReplays(t *testing.T) {
	for name, want := range map[string]int{
		"nvshmem-3.4.5-h200-p2p.jsonl.gz":   9893,
		"nvshmem-3.4.5-h200-extra.jsonl.gz": 2492,
		"nccl-2.28.3-h200x2.jsonl.gz":       674,
	} {
		t.Run(name, func(t *testing.T) {
			file := "testdata/golden/" + name
			if testing.Short() {
				file, want = every(t, file, want/50), 50
			}
			got := compare("replay", file)
			require.Equal(t, result{exitHolds, fmt.Sprintf("%d passed, 0 failed, 0 refused\n", want), ""}, got)
		})
	}
}

// every is a recording with 50 of its rows, nth ones.
func every(t *testing.T, file string, n int) string {
	t.Helper()
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	text, err := io.ReadAll(z)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	some := lines[:1]
	for i := 1; i < len(lines) && len(some) <= 50; i += n {
		some = append(some, lines[i])
	}
	return vectorFile(t, "some.jsonl", some...)
}

// TestReplaySeesMistakes checks the recordings against models that are not
// theirs.
func TestReplaySeesMistakes(t *testing.T) {
	if testing.Short() {
		t.Skip("reads a whole recording, which takes seconds; the run without -short does")
	}
	got := compare("replay", "testdata/golden/nvshmem-3.4.5-h200-extra.jsonl.gz", "--against", "sim:nvshmem@3.4.5?nvls=off&reduce_recexch_kval=4", "--format", "json")
	require.Equal(t, exitBroken, got.code, got.stderr)
	requireSchema(t, got.stdout)
	var rep struct{ Passed, Failed, Refused int }
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &rep))
	require.Positive(t, rep.Passed)
	require.Positive(t, rep.Failed)
	require.Equal(t, 2492, rep.Passed+rep.Failed+rep.Refused)
}

// vectorFile writes lines, compressed if name ends in .gz.
func vectorFile(t *testing.T, name string, lines ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	text := []byte(strings.Join(lines, "\n") + "\n")
	if strings.HasSuffix(name, ".gz") {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, err := z.Write(text)
		require.NoError(t, err)
		require.NoError(t, z.Close())
		text = b.Bytes()
	}
	require.NoError(t, os.WriteFile(file, text, 0o666))
	return file
}

func TestReplayExitCodes(t *testing.T) {
	wrong := strings.ReplaceAll(strings.ReplaceAll(goodRow, "096b8907b5f5a9e4", "0a188e07b6886838"), "a4bf", "9134")
	// In the switch, and recorded as a hash only: nothing to check it against.
	unknowable := strings.Replace(goodRow, `"op":"max","ranks":2,"count":1`, `"op":"sum","ranks":2,"count":4`, 1)
	unknowable = unknowable[:strings.Index(unknowable, `,"out_hex"`)] + "}"
	nvls := strings.Replace(goodHeader, `"nvls":false`, `"nvls":true`, 1)
	for _, c := range []struct {
		name  string
		lines []string
		flags []string
		code  int
		last  string
		says  string
	}{
		{"passes", []string{goodHeader, goodRow}, nil, exitHolds, goodCounts, ""},
		{"blank lines are none", []string{goodHeader, "", goodRow, "", ""}, nil, exitHolds, goodCounts, ""},
		{"fails", []string{goodHeader, goodRow, wrong}, nil, exitBroken, "1 passed, 1 failed, 0 refused\n", "line 3"},
		{"no row", []string{goodHeader}, nil, exitCannotCompare, "0 passed, 0 failed, 0 refused\n", ""},
		{"a bad line", []string{goodHeader, goodRow, "{}"}, nil, exitCannotCompare, goodCounts, "line 3 unreadable"},
		{"a failure outweighs a bad line", []string{goodHeader, "x", wrong}, nil, exitBroken, "0 passed, 1 failed, 0 refused\n", "line 2 unreadable"},
		{"refused", []string{nvls, goodRow, unknowable}, nil, exitHolds, "1 passed, 0 failed, 1 refused\n", "line 3 refused"},
		{"refused, strictly", []string{nvls, goodRow, unknowable}, []string{"--strict"}, exitCannotCompare, "1 passed, 0 failed, 1 refused\n", "line 3 refused"},
		{"all refused", []string{nvls, unknowable}, nil, exitCannotCompare, "0 passed, 0 failed, 1 refused\n", ""},
		{"too little memory", []string{goodHeader, goodRow}, []string{"--max-memory", "1"}, exitCannotCompare, "0 passed, 0 failed, 1 refused\n", "max-memory"},
		{"against another", []string{goodHeader, goodRow}, []string{"--against", "sim:nvshmem@auto?nvls=off"}, exitHolds, goodCounts, ""},
	} {
		for _, name := range []string{"v.jsonl", "v.jsonl.gz"} {
			t.Run(c.name+" "+name, func(t *testing.T) {
				got := compare(append([]string{"replay", vectorFile(t, name, c.lines...)}, c.flags...)...)
				require.Equal(t, c.code, got.code, "%s%s", got.stdout, got.stderr)
				require.True(t, strings.HasSuffix("\n"+got.stdout, "\n"+c.last), got.stdout)
				require.Contains(t, got.stdout, c.says)
				if strings.Contains(c.says, "unreadable") {
					require.Regexp(t, `^compare: 1 line cannot be read, line \d: .* as compare record writes it.*\n$`, got.stderr)
				} else {
					require.Empty(t, got.stderr)
				}
			})
		}
	}
}

// TestReplayOfFilesThatAreNone: one line on standard error, the counts on
// standard output, exit code 2.
func TestReplayOfFilesThatAreNone(t *testing.T) {
	change := func(from, to string) string { return strings.Replace(goodHeader, from, to, 1) }
	for _, c := range []struct {
		name, says string
		lines      []string
	}{
		{"empty", "line 1", nil},
		{"no JSON", "line 1", []string{"hello"}},
		{"another format", `format "traces"`, []string{change("vectors", "traces")}},
		{"a later version", `version "3": unknown`, []string{change(`"version":1`, `"version":3`)}},
		{"an earlier version", `version "0": unknown`, []string{change(`"version":1`, `"version":0`)}},
		{"unknown field", "line 1", []string{change(`"nvls"`, `"nvlz"`)}},
		{"no profile", "--against SPEC", []string{change("nvshmem@3.4.5", "")}},
		{"unknown profile", "nvshmem@pr131", []string{change("nvshmem@3.4.5", "nvshmem@9")}},
		{"hostile profile", "profile", []string{change("nvshmem@3.4.5", `nvshmem@\u001b[2J?x`)}},
		{"deeply nested", "line 1", []string{strings.Repeat("[", 1<<20)}},
		{"a row for a header", "line 1", []string{goodRow}},
		{"zeros", "line 1", []string{strings.Repeat("\x00", 4096)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := compare("replay", vectorFile(t, "v.jsonl", c.lines...))
			require.Equal(t, "0 passed, 0 failed, 0 refused\n", got.stdout)
			got.stdout = ""
			requireRefused(t, got, c.says)
			require.Contains(t, got.stderr, "v.jsonl")
		})
	}
	got := compare("replay", "/nonexistent.jsonl")
	require.Equal(t, "0 passed, 0 failed, 0 refused\n", got.stdout)
	got.stdout = ""
	requireRefused(t, got, "/nonexistent.jsonl")
}

// TestReplayOfHostileRows: whatever a line holds, the others are checked.
func TestReplayOfHostileRows(t *testing.T) {
	change := func(from, to string) string {
		out := strings.Replace(goodRow, from, to, 1)
		require.NotEqual(t, goodRow, out, from)
		return out
	}
	for name, row := range map[string]string{
		"unknown field":        change(`"count"`, `"cuont"`),
		"trailing":             goodRow + goodRow,
		"half":                 goodRow[:len(goodRow)/2],
		"array":                "[" + goodRow + "]",
		"no ranks":             change(`"ranks":2`, `"ranks":0`),
		"many ranks":           change(`"ranks":2`, `"ranks":1025`),
		"ranks and hashes":     change(`"ranks":2`, `"ranks":3`),
		"negative count":       change(`"count":1`, `"count":-1`),
		"count beyond":         change(`"count":1`, `"count":1099511627777`),
		"count beyond 64 bits": change(`"count":1`, `"count":18446744073709551616`),
		"count as text":        change(`"count":1`, `"count":"1"`),
		"offset":               change(`"src_offset":0`, `"src_offset":-1`),
		"offset list in v1":    change(`"src_offset":0`, `"src_offset":[0,0]`),
		"in place":             change(`"in_place":false`, `"in_place":"yes"`),
		"collective":           change("all_reduce", "all_educe"),
		"op":                   change(`"max"`, `"xor"`),
		"no seed":              change(`,"seed":7`, ``),
		"reads files":          change(`"gen":"normal","seed":7`, `"gen":"file","dir":"/etc"`),
		"bad hash":             change("096b8907b5f5a9e4", "96b8907b5f5a9e4"),
		"hash of another":      change("096b8907b5f5a9e4", "196b8907b5f5a9e4"),
		"odd hex":              change("a4bf", "a4b"),
		"long hex":             change("a4bf", "a4bfa4bf"),
		"not hex":              change("a4bf", "zzzz"),
		"long line":            strings.Repeat(" ", vectors.MaxLine+1<<17) + "x",
		"nested":               strings.Repeat(`{"input":`, 1<<18),
		"not UTF-8":            "{\"collective\":\"\xff\xfe\"}",
	} {
		t.Run(name, func(t *testing.T) {
			got := compare("replay", vectorFile(t, "v.jsonl.gz", goodHeader, goodRow, row, goodRow))
			require.Equal(t, exitCannotCompare, got.code, got.stderr)
			require.Contains(t, got.stdout, "line 3 unreadable: ")
			passed := "2 passed, 0 failed, 0 refused\n"
			if name == "long line" {
				passed = goodCounts // nobody knows where the next line begins
			}
			require.True(t, strings.HasSuffix(got.stdout, passed), "%.2000s", got.stdout)
			require.Equal(t, 1, strings.Count(got.stderr, "\n"), "%.2000s", got.stderr)
			require.Contains(t, got.stderr, "compare: 1 line cannot be read, line 3: ")
			require.Contains(t, got.stderr, "as compare record writes it")
			require.NotContains(t, got.stdout+got.stderr, "Go struct")
			require.NotContains(t, got.stdout, "goroutine")
		})
	}
	// A call too large for any machine is no bad line: it is refused.
	huge := strings.Replace(goodRow, `"count":1`, `"count":1099511627776`, 1)
	huge = huge[:strings.Index(huge, `,"out_hex"`)] + "}"
	got := compare("replay", vectorFile(t, "v.jsonl", goodHeader, goodRow, huge))
	require.Equal(t, exitHolds, got.code, got.stdout)
	require.True(t, strings.HasSuffix(got.stdout, "1 passed, 0 failed, 1 refused\n"), got.stdout)
}

func TestReplayOfBrokenCompression(t *testing.T) {
	whole, err := os.ReadFile("testdata/golden/nvshmem-3.4.5-h200-extra.jsonl.gz")
	require.NoError(t, err)
	cut := filepath.Join(t.TempDir(), "cut.jsonl.gz")
	require.NoError(t, os.WriteFile(cut, whole[:len(whole)/9], 0o666))
	got := compare("replay", cut)
	require.Equal(t, exitCannotCompare, got.code, got.stderr)
	require.Contains(t, got.stdout, "unreadable: unexpected EOF\n")
	require.Contains(t, got.stdout, " passed, 0 failed, 0 refused\n")

	require.NoError(t, os.WriteFile(cut, whole[:9], 0o666))
	got = compare("replay", cut)
	require.Equal(t, "0 passed, 0 failed, 0 refused\n", got.stdout)
	got.stdout = ""
	requireRefused(t, got, "line 1")
}

func TestReplayOfSeveralFiles(t *testing.T) {
	good, bad := vectorFile(t, "good.jsonl", goodHeader, goodRow), vectorFile(t, "bad.jsonl", "x")
	got := compare("replay", good, good)
	require.Equal(t, exitHolds, got.code)
	require.True(t, strings.HasSuffix(got.stdout, "\n2 passed, 0 failed, 0 refused\n"), got.stdout)
	got = compare("replay", bad, good, "--format", "json")
	require.Equal(t, exitCannotCompare, got.code)
	require.Equal(t, 1, strings.Count(got.stderr, "\n"))
	requireSchema(t, got.stdout)
	require.Contains(t, got.stdout, `"passed": 1`)
	require.Contains(t, got.stdout, `"file": "`+good)
}

func TestReplayInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	got := compareIn(ctx, "replay", "testdata/golden/nvshmem-3.4.5-h200-extra.jsonl.gz")
	require.Contains(t, got.stdout, "passed")
	got.stdout = ""
	requireRefused(t, got, "interrupted")
}

// TestRecordAndReplay closes the circle: what a model records it gives again,
// and another one does not.
func TestRecordAndReplay(t *testing.T) {
	for _, spec := range []string{"sim:nvshmem@3.4.5", "sim:nvshmem@3.4.5?nvls=off&max_ctas=3", "sim:nvshmem@pr131", "sim:nvshmem@2dca770"} {
		name := filepath.Join(t.TempDir(), "r.jsonl.gz")
		got := compare("record", spec, "-o", name, "--ranks", "2,3,4", "--dtypes", "bf16,f32,i32", "--counts", "0,1,6,1030,4099", "--scopes", "on_stream,block,thread", "--format", "json")
		require.Equal(t, exitHolds, got.code, got.stderr)
		requireSchema(t, got.stdout)
		first, err := os.ReadFile(name)
		require.NoError(t, err)
		got = compare("replay", name, "--strict")
		require.Equal(t, exitHolds, got.code, "%s%s", got.stdout, got.stderr)
		require.NotContains(t, got.stdout, "0 passed")
		if strings.Contains(spec, "nvls=off") {
			require.Equal(t, exitHolds, compare("replay", name, "--strict", "--against", "file:"+name).code, "a recording against itself")
		}
		require.Equal(t, exitHolds, compare("record", spec, "-o", name, "--ranks", "2,3,4", "--dtypes", "bf16,f32,i32", "--counts", "0,1,6,1030,4099", "--scopes", "on_stream,block,thread").code)
		again, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, first, again, "byte for byte")
	}
}

func TestRecordedLinesFitTheirSchema(t *testing.T) {
	name := filepath.Join(t.TempDir(), "r.jsonl")
	got := compare("record", "sim:nvshmem@3.4.5", "-o", name, "--counts", "3,2050", "--ranks", "2")
	require.Equal(t, exitHolds, got.code, got.stderr)
	require.Contains(t, got.stdout, name+": ")
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	n := 0
	for line := range strings.Lines(string(text)) {
		def := "vector_row"
		if n == 0 {
			def = "vector_header"
		}
		require.NoError(t, validate(def, line), line)
		n++
	}
	require.Greater(t, n, 20)
}

func TestRecordLeavesNothingHalfWritten(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "r.jsonl")
	require.NoError(t, os.WriteFile(name, []byte("precious"), 0o666))
	requireRefused(t, compare("record", "sim:nvshmem@pr131", "-o", name, "--dtypes", "f16", "--ops", "avg", "--collectives", "all_reduce", "--counts", "8"), "nothing was recorded", "avg")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	requireRefused(t, compareIn(ctx, "record", "sim:nvshmem@pr131", "-o", name, "--counts", "8"), "interrupted")
	kept, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, "precious", string(kept))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
}
