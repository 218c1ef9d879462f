package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/conformance/probe"
)

// probed runs `compare probe` and reads the profile it writes.
func probed(t *testing.T, spec string, args ...string) (*probe.Report, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "profile.json")
	got := compare(append([]string{"probe", spec, "-o", file}, args...)...)
	require.Equal(t, exitHolds, got.code, got.stderr)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var rep probe.Report
	require.NoError(t, json.Unmarshal(text, &rep))
	parsed, err := api.ParseSpec(spec)
	require.NoError(t, err)
	require.Equal(t, parsed.String(), rep.Of)
	return &rep, file
}

// TestProbeRecoversReducers: simulated reducers, of which the probe sees outputs
// only, come back as what they were made from; and a switch with the profile that
// it writes gives their bits.
func TestProbeRecoversReducers(t *testing.T) {
	withoutRaceDetector(t)
	for n, c := range []struct {
		spec, dtype string
		ranks       string
		want        probe.Model
		verdict     string
	}{
		{"sim:nvls?preset=ideal_rne", "bf16", "4", probe.Model{Kind: "exact", Final: "rne"}, "exact: exact, last rounding rne"},
		{"sim:nvls?dir=seeded&seed=9", "bf16", "4", probe.Model{Kind: "window", Granule: 16, ResultBits: 38, Final: "seeded"}, "faithful, direction not a function of the inputs"},
		{"sim:nvls?preset=bw_half_rz", "f16", "4", probe.Model{Kind: "window", Granule: 16, ResultBits: 38, Final: "rz"}, "exact: window"},
		{"sim:nvls?preset=bw_half_rne", "bf16", "3", probe.Model{Kind: "window", Granule: 16, ResultBits: 38, Final: "rne"}, "exact: window"},
		{"sim:nvls?preset=bw_half_g1", "bf16", "8", probe.Model{Kind: "window", Granule: 16, ResultBits: 38, Final: "g1"}, "exact: window"},
		{"sim:nvls?dir=away", "f16", "5", probe.Model{Kind: "window", Granule: 16, ResultBits: 38, Final: "away"}, "exact: window"},
		{"sim:nvls?dir=adversarial", "bf16", "4", probe.Model{Kind: "window", Granule: 16, ResultBits: 38, Final: "adversarial"}, "exact: window"},
		{"sim:nvls", "f32", "4", probe.Model{Kind: "window", Granule: 16, TermBits: 95, ResultBits: 86, Final: "rne"}, "exact: window"},
		{"sim:nvls", "f64", "4", probe.Model{Kind: "window", Granule: 16, TermBits: 95, ResultBits: 86, Final: "rne"}, "exact: window"},
		{"sim:nvls?preset=hop_native&order=2-0-3-1", "bf16", "4", probe.Model{Kind: "fold", Acc: "same", Step: "rne", Order: "0-2-3-1", Final: "rne"}, "exact: fold in same"},
		{"sim:nvls?preset=hop_native_rz&order=reverse", "bf16", "4", probe.Model{Kind: "fold", Acc: "same", Step: "rz", Order: "2-3-1-0", Final: "rne"}, "exact: fold in same, rz a step"},
		{"sim:nvls?preset=hop_acc32&order=3-1-0-2", "f16", "4", probe.Model{Kind: "fold", Acc: "f32", Step: "rne", Order: "1-3-0-2", Final: "rne"}, "exact: fold in f32"},
		{"sim:nvls?preset=hop_tree&order=rank", "bf16", "8", probe.Model{Kind: "tree", Acc: "same", Step: "rne", Order: "0-1-2-3-4-5-6-7", Final: "rne"}, "exact: tree in same"},
		{"sim:nvls?preset=ref_stepwise", "f32", "6", probe.Model{Kind: "fold", Acc: "same", Step: "rne", Order: "0-1-2-3-4-5", Final: "rne", KeepNeg0: true}, "exact: fold"},
		{"sim:nvls?preset=mma_like", "bf16", "4", probe.Model{Kind: "aligned", AlignBits: 25, Final: "rne"}, "exact: aligned 25 bits"},
		{"sim:nvls?fabric=custom&kind=window&granule=8&result_bits=30&term_bits=40&final=rna&ftz_out=on", "f32", "4", probe.Model{Kind: "window", Granule: 8, TermBits: 40, ResultBits: 30, Final: "rna", FTZOut: true}, "exact: window"},
		{"sim:nvls?fabric=custom&kind=fold&acc=f32&step=rz&order=1-2-0&final=odd&keep_neg_zero=on", "bf16", "3", probe.Model{Kind: "fold", Acc: "f32", Step: "rz", Order: "1-2-0", Final: "odd", KeepNeg0: true}, "exact: fold in f32, rz a step"},
		{"sim:tandem", "bf16", "8", probe.Model{Kind: "tree", Acc: "same", Step: "rne", Order: "0-1-2-3-4-5-6-7", Final: "rne", KeepNeg0: true}, "exact: tree in same"},
		{"sim:tandem", "f64", "8", probe.Model{Kind: "tree", Acc: "same", Step: "rne", Order: "0-1-2-3-4-5-6-7", Final: "rne", KeepNeg0: true, KeepNaN: true}, "exact: tree in same"},
		{"sim:tandem-nvls?seed=4", "f16", "5", probe.Model{Kind: "window", Granule: 16, ResultBits: 38, Final: "seeded"}, "faithful, direction not a function of the inputs"},
		{"sim:nvshmem@pr131?dir=rz", "bf16", "4", probe.Model{Kind: "window", Granule: 16, ResultBits: 38, Final: "rz"}, "exact: window"},
		{"sim:tandem?mode=f32", "bf16", "6", probe.Model{Kind: "tree", Acc: "f32", Step: "rne", Order: "0-1-2-3-4-5", Final: "rne", KeepNeg0: true}, "exact: tree in f32"},
	} {
		if testing.Short() && n%6 != 1 {
			continue
		}
		rep, file := probed(t, c.spec, "--dtypes", c.dtype, "--ranks", c.ranks)
		cell := rep.Cells[0]
		c.want.Name = "probed"
		require.Equal(t, c.want, cell.Model, "%s: %s\n%s", c.spec, cell.Verdict, strings.Join(cell.Evidence, "\n"))
		require.Contains(t, cell.Verdict, c.verdict)
		require.Equal(t, !strings.HasPrefix(c.verdict, "faithful"), cell.Exact)
		if !cell.Exact {
			continue
		}
		again := compare("run", "--left", c.spec, "--right", "sim:nvls?profile="+file, "--dtype", c.dtype, "--ranks", c.ranks, "--count", "5000")
		require.Equal(t, exitHolds, again.code, "%s\n%s", c.spec, again.stdout+again.stderr)
		require.Contains(t, again.stdout, "the exact contract", "a fitted profile makes its cells exact")
	}
}

// TestProbeOfRanksThatDiffer: each rank of the segment algorithm has an order of
// its own.
func TestProbeOfRanksThatDiffer(t *testing.T) {
	rep, _ := probed(t, "sim:nvshmem@3.4.5?nvls=off", "--dtypes", "bf16", "--ranks", "4", "--count", "65536")
	cell := rep.Cells[0]
	require.False(t, cell.Exact)
	require.Contains(t, cell.Verdict, "exact on every rank, and the ranks differ: fold in same")
	evidence := strings.Join(cell.Evidence, "\n")
	for _, says := range []string{"rank 0: (((0+3)+2)+1)", "rank 1: (((0+1)+3)+2)", "the ranks hold different bits", "every result is the model's"} {
		require.Contains(t, evidence, says)
	}
	require.Contains(t, rep.Cells[1].Verdict, "NaNs or zeros depend on the order", "min is (x < y) ? x : y")
}

// TestSwitchPlansFitTheSchema: plans of the families with a switch.
func TestSwitchPlansFitTheSchema(t *testing.T) {
	for _, args := range []string{
		"sim:nvshmem@pr131-tail --ranks 8 --count 1048704", "sim:nvshmem@pr131-team?minmax=pr --op max --ranks 6 --count 131136",
		"sim:tandem-nvls --ranks 8", "sim:tandem-nvls --collective all_gather --ranks 3 --count 100", "sim:tandem-nvls --op prod", "sim:nvls?fabric=nvswitch3",
	} {
		got := compare(append(append([]string{"explain"}, strings.Fields(args)...), "--format", "json")...)
		require.Equal(t, exitHolds, got.code, got.stderr)
		requireSchema(t, got.stdout)
	}
	got := compare("explain", "sim:nvshmem@pr131-tail", "--ranks", "8", "--count", "1048704")
	for _, says := range []string{"a tail of 8 is split off", "recexch", "two_shot"} {
		require.Contains(t, got.stdout, says)
	}
	got = compare("explain", "sim:tandem-nvls", "--ranks", "8")
	require.Contains(t, got.stdout, "values faithful")
	require.Contains(t, got.stdout, "off the switch: 122 of 2097146 bytes a rank, less than 16 x 8 ranks")
}

func TestProbeRefuses(t *testing.T) {
	requireRefused(t, compare("probe", "sim:nvls", "--ranks", "2"), "have no order to find", "3 to 16")
	requireRefused(t, compare("probe", "sim:nvls", "--ranks", "17"), "the square of the ranks", "3 to 16")
	requireRefused(t, compare("probe", "sim:nvls", "--dtypes", "i32"), "bf16, f16, f32 and f64")
	requireRefused(t, compare("probe", "sim:nvls", "--dtypes", "x"), "unknown dtype")
	requireRefused(t, compare("probe", "sim:nvls", "--count", "0x"), "not an integer")
	requireRefused(t, compare("probe", "sim:nvls", "--count", "0"), "tells nothing")
	requireRefused(t, compare("probe", "sim:nvls", "--ranks", "0"), "a team has ranks")
	requireRefused(t, compare("probe", "sim:nothing"), "unknown to sim")
	requireRefused(t, compare("probe", "sim:nvls?preset=bw_half", "--dtypes", "f32"), "nothing could be probed: sum of f32: preset bw_half is not about f32; min of f32: no")
	require.Equal(t, 1, strings.Count(compare("probe", "sim:nvls?preset=bw_half", "--dtypes", "f32").stderr, "refuses"), "what refuses is said once")
	requireRefused(t, compare("probe"), "SPEC is missing")
	got := compare("probe", "sim:nvls", "--dtypes", "f32", "--format", "json")
	require.Equal(t, exitHolds, got.code)
	requireSchema(t, got.stdout)
	require.Contains(t, got.stdout, "min of f32: no multimem.ld_reduce does min of f32", "what the target does not do is listed")
}
