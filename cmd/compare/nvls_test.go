package main

import (
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
)

// switchValues are the values of the first elements that `compare run --values`
// reports for the left side.
func switchValues(t *testing.T, d api.DType, left string, in []string) []uint64 {
	count := "1" // the order of a fold is the same for all elements
	if strings.Contains(left, "half") {
		count = "64"
	}
	t.Helper()
	got := compare("run", "--format", "json", "--left", left, "--right", left, "--dtype", d.String(),
		"--ranks", strconv.Itoa(len(in)), "--count", count, "--values", "0x"+strings.Join(in, ",0x"))
	require.Equal(t, exitHolds, got.code, got.stderr)
	_, after, ok := strings.Cut(got.stdout, `"out_hex": "`)
	require.True(t, ok, got.stdout)
	text, _, _ := strings.Cut(after, `"`)
	raw, err := hex.DecodeString(text)
	require.NoError(t, err)
	var out []uint64
	for i := 0; i < len(raw); i += d.Size() {
		out = append(out, num.Load(d, raw[i:]))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// TestProbeVectorsThroughRun: every line of the probe vectors, through the
// command: what a preset gives over its elements, directions and orders is the
// set that the line allows.
func TestProbeVectorsThroughRun(t *testing.T) {
	text, err := os.ReadFile("../../sim/nvls/testdata/probe_vectors.tsv")
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	require.Len(t, lines, 197)
	for n, line := range lines {
		if testing.Short() && n%20 != 0 {
			continue
		}
		cells := strings.Split(line, "\t")
		d, err := num.ParseDType(cells[1])
		require.NoError(t, err)
		in := strings.Split(cells[2], " ")
		for _, cell := range cells[4:] {
			name, set, _ := strings.Cut(cell, "=")
			var want []uint64
			for p := range strings.SplitSeq(set, "|") {
				v, err := strconv.ParseUint(p, 16, 64)
				require.NoError(t, err)
				want = append(want, v)
			}
			slices.Sort(want)
			seen := switchValues(t, d, "sim:nvls?preset="+name, in)
			require.Subset(t, want, seen, "%s under %s", cells[0], name)
			if len(want) > 3 {
				continue // many orders; the package's own tests fill the set
			}
			for _, more := range otherWays(name, len(in)) {
				if len(seen) == len(want) {
					break
				}
				seen = append(seen, switchValues(t, d, fmt.Sprintf("sim:nvls?preset=%s&%s", name, more), in)...)
				slices.Sort(seen)
				seen = slices.Compact(seen)
			}
			require.Equal(t, want, seen, "%s under %s", cells[0], name)
		}
	}
}

// otherWays are parameters under which a preset may give other members of its
// set: directions, and orders of the operands.
func otherWays(name string, ranks int) []string {
	out := []string{"dir=rz", "dir=away"}
	if strings.HasPrefix(name, "hop_") || name == "bw_fp8" {
		out = nil
		for seed := range 400 * ranks {
			out = append(out, fmt.Sprintf("order=perm&seed=%d", seed))
		}
	}
	return out
}

// TestSmallSwitchSums: sums in steps against sums in the switch differ in the
// accumulator, on however few elements.
func TestSmallSwitchSums(t *testing.T) {
	for _, args := range []string{
		"--left sim:nvls --right sim:tandem-nvls --ranks 4 --count 6",
		"--left sim:tandem --right sim:nvls --ranks 4 --count 6",
		"--left sim:nvls --right sim:tandem-nvls --ranks 4 --count 6 --dtype f32",
		"--left sim:nvls --right sim:tandem-nvls --ranks 8 --count 12 --dtype e4m3",
		"--left sim:nvls --right sim:tandem-nvls --ranks 3 --count 5 --dtype e5m2",
	} {
		got := compare(append([]string{"run"}, strings.Fields(args)...)...)
		require.Equal(t, exitBroken, got.code, args)
		require.Contains(t, got.stdout, "\n  accumulator  ", args)
		require.NotContains(t, got.stdout, "unknown", args)
		require.NotContains(t, got.stdout, "\n  order  ", args)
	}
}
