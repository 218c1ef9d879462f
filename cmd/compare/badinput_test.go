package main

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBadInput has every kind of bad input: what is said must name what was
// given and what would work.
func TestBadInput(t *testing.T) {
	for _, c := range []struct {
		args string
		says []string
	}{
		// The command line itself.
		{"frobnicate", []string{`unknown command "frobnicate"`, "known are run,", "explain", "replay", "version"}},
		{"simulate sim:nvshmem@pr131", []string{`unknown command "simulate"`}},
		{"run extra", []string{"extra"}},
		{"--explore 3", []string{"--explore"}},
		{"--frobnicate", []string{"unknown flag --frobnicate", "compare --help"}},
		{"--colective all_reduce", []string{"--collective"}},
		{"--format htm", []string{`format "htm": unknown`, "text, json, html and junit"}},
		{"explain sim:tandem --format junit", []string{`format "junit": unknown`, "text, json and html"}},
		{"version --format html", []string{`format "html": unknown`, "text and json"}},
		{"list --format junit", []string{`format "junit": unknown`, "text and json"}},
		{"explain", []string{"SPEC", "sim:nvshmem@pr131"}},
		{"replay", []string{"FILE"}},
		{"--contract faithful", []string{`contract "faithful"`, "exact"}},
		{"--count -1", []string{`count "-1": out of range (0 to 1099511627776)`}},
		{"run --seed -1", []string{`seed "-1": not a seed`}},
		{"--in-place -1", []string{`in-place "-1"`}},
		{"run --count", []string{"--count needs a value, as --count=VALUE"}},
		{"run --left", []string{"--left needs a value"}},
		{"merge", []string{"compare merge 1.json 2.json -o all.json"}},
		{"--left sim:nvls?order=5-6-7", []string{"every rank from 0 on once, as 2-0-1"}},
		{"--ranks 4 explain sim:nvshmem@pr131", []string{"--ranks"}},

		// Specs.
		{"--left nvshmem", []string{`spec "nvshmem": it has no backend`, "sim:nvshmem@pr131"}},
		{"--left gpu:nvshmem@3.4.5", []string{`there is no backend "gpu"`, "sim"}},
		{"--left sim:mpi@1", []string{`"mpi"`, "nvshmem"}},
		{"--left sim:nvshmem", []string{"version", "2dca770", "pr131", "3.4.5"}},
		{"--left sim:nvshmem@9", []string{`"9"`, "2dca770", "pr131", "3.4.5"}},
		{"--left sim:nvshmem@pr131?nvlz=off", []string{`"nvlz"`, "nvls", "max_ctas"}},
		{"--left sim:nvshmem@pr131?nvls=maybe", []string{`nvls "maybe"`, "on|off"}},
		{"--left sim:nvshmem@pr131?max_ctas=0", []string{`max_ctas "0"`}},
		{"--left sim:nvshmem@3.4.5?rs_align=pointer", []string{"rs_align"}},
		{"--left sim:nvshmem@auto --right sim:nvshmem@auto", []string{"auto", "compare list"}},
		{"explain sim:nvshmem@auto", []string{"auto"}},
		{"explain sim:", []string{"spec"}},

		// Calls.
		{"--collective allreduce", []string{`collective "allreduce": unknown`, "all_reduce", "all_to_all"}},
		{"--dtype float16", []string{`dtype "float16": unknown`, "f16"}},
		{"--op mean", []string{`op "mean": unknown`, "avg"}},
		{"--op xor", []string{`op "xor": not defined on bf16`, "and, or, xor on integers"}},
		{"--collective all_gather --op sum", []string{`op "sum": all_gather takes no op`}},
		{"--ranks 0", []string{`ranks "0": out of range (1 to 1024)`}},
		{"--ranks=-1", []string{`ranks "-1": out of range (1 to 1024)`}},
		{"--ranks 1025", []string{`ranks "1025": out of range (1 to 1024)`}},
		{"--ranks two", []string{`ranks "two": not an integer`}},
		{"--ranks 2.0", []string{`ranks "2.0": not an integer`}},
		{"--count=-1", []string{`count "-1": out of range (0 to 1099511627776)`}},
		{"--count 1099511627777", []string{`count "1099511627777": out of range`}},
		{"--count 9223372036854775808", []string{`count "9223372036854775808": does not fit into 64 bits`}},
		{"--count 1e6", []string{`count "1e6": not an integer`}},
		{"--src-offset 1099511627777", []string{"src-offset", "beyond any buffer"}},
		{"--src-offset=-2", []string{`src-offset "-2"`}},
		{"--dst-offset 1,2,3", []string{"dst-offset", "one, or one for each of 2 ranks"}},
		{"--src-offset 1,", []string{`src-offset "": not an integer`}},
		{"--in-place=end", []string{`in-place "end"`, "--in-place=start"}},
		{"--in-place=start", []string{"in-place", "all_reduce has no such in-place form"}},
		{"--in-place --src-offset 1", []string{"dst-offset", "both offsets must be equal"}},
		{"--collective all_to_all --in-place", []string{"all_to_all has no such in-place form"}},
		{"--root 1", []string{`root "1": all_reduce has no root`}},
		{"--collective broadcast --root 2", []string{`root "2": no such rank (0 to 1)`}},
		{"--scope grid", []string{`scope "grid": unknown`, "on_stream"}},
		{"--team node", []string{`team "node": unknown`, "sub"}},
		{"--lanes 1,2", []string{"lanes", "all_gather_many"}},
		{"--collective all_gather_many", []string{"lanes", "--lanes 1024,7,f32:0"}},
		{"--collective all_gather_many --lanes 1 --count 2", []string{`count "2"`, "--lanes"}},
		{"--collective all_gather_many --lanes 1,x", []string{`lanes "x"`}},
		{"--collective all_gather_many --lanes 1,half:2", []string{`dtype "half": unknown`}},

		// What implementations refuse.
		{"--src-offset 0,1 --dst-offset 0,1", []string{"symmetric"}},
		{"--mode f32", []string{"f32"}},
		{"--dtype e4m3", []string{"e4m3"}},
		{"--op avg", []string{"avg"}},

		// Inputs.
		{"--input gauss", []string{`input "gauss": unknown`, "normal"}},
		{"--input uniform:1", []string{"uniform:-1:1"}},
		{"--input uniform:2:1", []string{"uniform:2:1"}},
		{"--input normal --dtype i32", []string{"not defined on i32", "bits"}},
		{"--input file:/nonexistent", []string{"/nonexistent"}},
		{"--values 0x4380", []string{"values", "one for each of 2 ranks"}},
		{"--values 0x4380,0x13f80", []string{"0x13f80", "wider than bf16"}},
		{"--values 0x4380,zz", []string{`"zz" is no bit pattern`}},
		{"--values 1,2 --input ones", []string{"--input"}},
		{"--seed x", []string{`seed "x"`}},

		// Memory.
		{"--count 1099511627776", []string{"16384.1GiB", "8GiB", "explain needs no memory"}},
		{"--max-memory 1MiB", []string{"max-memory", "1MiB"}},
		{"--max-memory lots", []string{`max-memory "lots"`, "8GiB"}},
		{"--max-memory 0", []string{`max-memory "0"`}},
		{"--max-memory 99999999999TiB", []string{"max-memory"}},

		// Files.
		{"--left file:/nonexistent.jsonl", []string{"/nonexistent.jsonl"}},
		{"replay /nonexistent.jsonl --strikt", []string{"--strict"}},
		{"replay /nonexistent.jsonl --max-memory x", []string{"max-memory"}},
		{"-o /nonexistent/x --count 8", []string{"/nonexistent/x", "folder"}},
		{"record sim:nvshmem@pr131", []string{"-o"}},
		{"record sim:nvshmem@pr131 -o /nonexistent/x --counts 8", []string{"/nonexistent/x"}},
		{"record sim:nvshmem@pr131 -o x --counts 8x", []string{`counts "8x"`}},
		{"record sim:nvshmem@pr131 -o x --ranks 0", []string{`ranks "0"`}},
		{"record sim:nvshmem@pr131 -o x --in-place maybe", []string{`in-place "maybe"`, "both"}},
		{"record sim:nvshmem@pr131 -o x --seeds 0", []string{`seeds "0"`}},
		{"record sim:nvshmem@pr131 -o x --ops mean", []string{`op "mean"`}},
		{"record sim:nvshmem@pr131 -o x --collectives all_gather --in-place start", []string{"no sound call"}},
	} {
		t.Run(c.args, func(t *testing.T) {
			requireRefused(t, compare(strings.Fields(c.args)...), c.says...)
		})
	}
}

// TestHostileArguments must not reach the terminal as they are.
func TestHostileArguments(t *testing.T) {
	for _, arg := range []string{"--dtype=\x1b[2J", "--op=a\nb", "--count=\x00", "--left=sim:nvshmem@\xff\xfe", strings.Repeat("x", 1<<20), "--\x1b]0;x\x07", "-\xff", "--=", "---", "-=1"} {
		got := compare(arg)
		requireRefused(t, got)
		for _, r := range strings.TrimSuffix(got.stderr, "\n") {
			require.True(t, r >= ' ' && r != 0x7f, "%q", got.stderr)
		}
		require.Less(t, len(got.stderr), 16<<10)
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	requireRefused(t, compareIn(ctx), "interrupted")
}

func TestHelpIsNoError(t *testing.T) {
	for _, args := range []string{"--help", "-h", "run --help", "explain --help", "record --help", "replay --help", "list --help", "schema --help", "version --help"} {
		got := compare(strings.Fields(args)...)
		require.Equal(t, exitHolds, got.code)
		require.Contains(t, got.stdout, "Usage: compare")
		require.Empty(t, got.stderr)
	}
}
