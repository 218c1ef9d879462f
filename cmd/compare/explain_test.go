package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
)

// plan is what a test reads of the JSON of explain.
type plan struct {
	Contract  string
	Kernels   []struct{ CTAs []api.CTA }
	Cost      api.Cost
	Unwritten []int64
	Fault     *api.Fault
	Notes     []string
}

func explained(t *testing.T, args string) plan {
	t.Helper()
	got := compare(append(strings.Fields("explain --format json "+args), "--no-color")...)
	require.Equal(t, exitHolds, got.code, got.stderr)
	requireSchema(t, got.stdout)
	var p plan
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &p))
	return p
}

// TestExplainedSplits are plans literally, as the pull request has them.
func TestExplainedSplits(t *testing.T) {
	p := explained(t, "sim:nvshmem@2dca770 --count 131104")
	require.Len(t, p.Kernels[0].CTAs, 16)
	for _, c := range p.Kernels[0].CTAs {
		require.EqualValues(t, 8194, c.Count)
		require.Equal(t, "two_shot", c.Algorithm)
		var lost int64
		for _, s := range c.Slices {
			require.EqualValues(t, 4097, s.Count)
			lost += s.Unwritten
		}
		require.EqualValues(t, 4098, lost)
	}
	require.Equal(t, []int64{65568, 65568}, p.Unwritten)
	require.Equal(t, "faithful", p.Contract)

	p = explained(t, "sim:nvshmem@2dca770")
	for _, c := range p.Kernels[0].CTAs[:15] {
		require.EqualValues(t, 65535, c.Count)
		require.Equal(t, "segment", c.Algorithm)
		require.Contains(t, c.Why, "byte length no multiple of 4")
	}
	require.Equal(t, "two_shot", p.Kernels[0].CTAs[15].Algorithm)

	p = explained(t, "sim:nvshmem@pr131 --ranks 4 --count 524292")
	last := p.Kernels[0].CTAs[15]
	require.EqualValues(t, 32772, last.Count)
	require.Equal(t, "segment", last.Algorithm)
	require.Contains(t, last.Why, "8193 elements a rank")

	for _, args := range []string{"--count 1048574", "--ranks 4 --count 1048572", "--ranks 4 --count 131104"} {
		p = explained(t, "sim:nvshmem@2dca770 "+args)
		require.Len(t, p.Kernels[0].CTAs, 16)
		for _, c := range p.Kernels[0].CTAs {
			require.Equal(t, "segment", c.Algorithm, args)
		}
	}
	require.Contains(t, strings.Join(explained(t, "sim:nvshmem@2dca770 --count 131072").Notes, "\n"), ">= 262144 bytes")
}

// TestExplainedCosts are the counts behind the pull request's times.
func TestExplainedCosts(t *testing.T) {
	for _, c := range []struct {
		args  string
		words int64 // of the plan
		rnds  int64
	}{
		{"sim:nvshmem@2dca770 --scope block --count 1048574", 65537, 0},
		{"sim:nvshmem@2dca770 --scope block --ranks 4 --count 1048572", 131071, 0},
		{"sim:nvshmem@2dca770 --scope block --ranks 4 --count 524292", 65536, 0},
		{"sim:nvshmem@pr131 --scope block --count 1048574", 0, 64},
		{"sim:nvshmem@pr131 --scope block --ranks 4 --count 1048572", 0, 192},
		{"sim:nvshmem@pr131 --scope block --ranks 4 --count 524292", 0, 97},
		{"sim:nvshmem@pr131 --count 1048574", -1, 5},
		{"sim:nvshmem@pr131 --ranks 4 --count 1048572", -1, 13},
		{"sim:nvshmem@pr131 --ranks 4 --count 524292", -1, 7},
	} {
		p := explained(t, c.args)
		if c.words >= 0 {
			require.Equal(t, c.words, p.Cost.Words, c.args)
		}
		ctas := p.Kernels[0].CTAs
		require.Equal(t, c.rnds, ctas[len(ctas)-1].Rounds, c.args)
	}
}

func TestExplainText(t *testing.T) {
	got := compare("explain", "sim:nvshmem@2dca770").stdout
	for _, says := range []string{
		"65548 of 1048573 outputs stay unwritten on every rank\n  65548  odd_cta_start",
		"\n0-14  65535 each from 0  segment    byte length no multiple of 4",
		"\n15    65548 from 983025  two_shot",
		"ranks 0-1: slices of 32774, nothing written: odd_cta_start\n",
		"Evidence: segment source, two_shot reported (values faithful).",
	} {
		require.Contains(t, got, says)
	}
	got = compare("explain", "sim:nvshmem@2dca770", "--count", "131104").stdout
	require.Contains(t, got, "\n0-15  8194 each from 0  two_shot")
	require.Contains(t, got, "rank 0: slice of 4097, 512 to 2048 words of 16 or 8 or 4 B, 1 unwritten: odd_tail\n")
	require.Contains(t, got, "  65552  odd_slice_start  ")
}

// TestExplainFault: a plan that ends in a fault is a plan.
func TestExplainFault(t *testing.T) {
	p := explained(t, "sim:nvshmem@3.4.5 --collective all_gather --count 64 --src-offset 1 --dst-offset 1")
	require.Equal(t, api.FaultMisaligned, p.Fault.Kind)
	p = explained(t, "sim:nvshmem@3.4.5 --count 1099511627776 --ranks 1024")
	require.Equal(t, api.FaultOverflow, p.Fault.Kind)
	require.Contains(t, compare("explain", "sim:nvshmem@3.4.5", "--count", "1099511627776").stdout, "Ends in a fault: int32_overflow")
}

func TestExplainAgainst(t *testing.T) {
	got := compare("explain", "sim:nvshmem@2dca770", "--against", "sim:nvshmem@pr131", "--ranks", "4", "--count", "524292")
	require.Equal(t, exitHolds, got.code)
	for _, says := range []string{
		"16388 of 524292 outputs stay unwritten on every rank", "All 524292 outputs are written on every rank",
		"Slower on the right\n  CTA 15\n    left   two_shot", "7 rounds", "8193 elements a rank is an odd slice",
		"By its counts the right plan is slower.",
	} {
		require.Contains(t, got.stdout, says)
	}
	auto := compare("explain", "sim:nvshmem@auto?nvls=off", "--against", "sim:nvshmem@3.4.5")
	require.Equal(t, exitHolds, auto.code, auto.stderr)
	require.Contains(t, auto.stdout, "left   sim:nvshmem@3.4.5?nvls=off\n")
}

// TestExplainRefusals is where an implementation has no plan.
func TestExplainRefusals(t *testing.T) {
	requireRefused(t, compare("explain", "sim:nvshmem@pr131", "--dtype", "e5m2"), "e5m2")
	requireRefused(t, compare("explain", "sim:nvshmem@pr131", "--collective", "reduce_scatter", "--count", "262145"), "rs_align=pointer or rs_align=shifted")
	requireRefused(t, compare("explain", "file:testdata/golden/nccl-2.28.3-h200x2.jsonl.gz"), "has no plans")
	requireRefused(t, compare("explain", "sim:nvshmem@3.4.5?nccl=on&nvls=off"), "sim:nccl@2.28")
}
