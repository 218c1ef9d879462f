package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestExplainKernels: what the host decides for our kernels is a plan, here of the
// virtual GPUs and of GPUs that are not here.
func TestExplainKernels(t *testing.T) {
	for _, c := range []struct{ args, says string }{
		{"ptx:tandem --count 64 --dtype f32", "tandem_push2: blocks of 256 threads for a rank: 1; GPUs, with a cooperative launch each: 2"},
		{"ptx:tandem?gpus=1", "ranks of a GPU: 2"},
		{"hw:tandem?table=NVIDIA%20H200", "thresholds of NVIDIA H200 over NVLink 18"},
		{"hw:rlkernel@8ccb03c --collective all_gather", "blocks have 256 threads"},
		{"ptx:tandem-nvls --count 7", "multicast is emulated"},
		{"ptx:cascade@pr131", "each block chooses for its own range"},
	} {
		p := explained(t, c.args)
		require.Contains(t, strings.Join(p.Notes, "\n"), c.says, c.args)
		require.EqualValues(t, 0, p.Unwritten[0], c.args)
	}
	requireRefused(t, compare("explain", "ptx:testdata/kernel/allreduce.ptx"), "shows no plan")
	require.Contains(t, compare("explain", "ptx:tandem", "--count", "64").stdout, "push       128 bytes of a block, at most the 1048576 of a box")
}

// TestExplainedAlike: the kernels of cascade and the simulator split, select and
// lose alike, each by rules of its own.
func TestExplainedAlike(t *testing.T) {
	for _, ranks := range []int{2, 3, 4, 5, 8} {
		for _, version := range []string{"2dca770", "pr131"} {
			for _, args := range []string{"--count 1", "--count 7", "--count 1024 --src-offset 1 --dst-offset 1", "--count 4096", "--count 5000", "--count 131104", "--count 131105", "--count 524292", "--count 1048573",
				"--count 1048574 --scope block", "--count 65536 --dtype f32", "--count 301 --dtype i64 --op max", "--count 131072 --in-place", "--count 20000 --team sub", "--count 100000 --dtype f16 --dst-offset 3"} {
				args = fmt.Sprintf("%s --ranks %d", args, ranks)
				model, kernel := explained(t, "sim:nvshmem@"+version+" "+args), explained(t, "hw:cascade@"+version+" "+args)
				require.Equal(t, model.Unwritten, kernel.Unwritten, "%s %s", version, args)
				require.Equal(t, skeleton(model), skeleton(kernel), "%s %s", version, args)
			}
		}
	}
}

// skeleton is what a plan says of ranges, algorithms, slices, words and holes.
func skeleton(p plan) (lines []string) {
	for _, k := range p.Kernels {
		for _, c := range k.CTAs {
			if c.Count == 0 {
				continue
			}
			lines = append(lines, fmt.Sprintf("%d: %d+%d %s", c.CTA, c.Start, c.Count, c.Algorithm))
			if c.Algorithm != "one_shot" && c.Algorithm != "two_shot" {
				continue
			}
			lines = append(lines, fmt.Sprintf("%d words, %d rounds", c.Words, c.Rounds))
			for _, s := range c.Slices {
				lines = append(lines, fmt.Sprintf("  %d: %d+%d local %v %v holes %v", s.Rank, s.Start, s.Count, s.Local, s.Words, s.Holes))
			}
		}
	}
	return lines
}

// TestPlannedHoles: a run on the virtual GPU leaves unwritten what the plan says.
func TestPlannedHoles(t *testing.T) {
	for _, args := range []string{"--count 131105", "--count 1024 --src-offset 1 --dst-offset 1", "--count 4098 --scope block"} {
		want := explained(t, "ptx:cascade@2dca770 "+args).Unwritten
		var r struct {
			Left, Right struct{ Ranks []struct{ Unwritten int64 } }
		}
		got := compare(strings.Fields("run --left sim:nvshmem@pr131 --right ptx:cascade@2dca770?threads=32 --format json --no-color " + args)...)
		require.NoError(t, json.Unmarshal([]byte(got.stdout), &r), got.stderr)
		for rank, n := range want {
			require.Equal(t, n, r.Right.Ranks[rank].Unwritten, args)
		}
		require.NotZero(t, want[0], args)
	}
}
