//go:build gpu

package main

import (
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/cmd/compare/internal/bench"
)

// TestGPUBenchSmoke times four collectives at three sizes on two GPUs: 12 valid
// rows of every spec that is here.
func TestGPUBenchSmoke(t *testing.T) {
	compare := onGPUs(t, 2)
	specs := []string{"hw:tandem"}
	if _, err := newHW().nccl.Version(); err == nil {
		specs = append(specs, "hw:nccl", "hw:nccl?buffers=symmetric")
	}
	for _, launch := range []string{"graph", "gap", "eager"} {
		file := filepath.Join(t.TempDir(), "smoke.json")
		args := append([]string{"bench"}, specs...)
		got := compare(append(args, "--collective", "all_reduce,reduce_scatter,all_gather,all_gather_many", "--bytes", "1KiB,32KiB,128KiB", "--launch", launch, "--samples", "30", "--warm-up", "5", "-o", file)...)
		t.Log(got.stdout)
		require.Equal(t, exitHolds, got.code, got.stderr)
		rep, err := bench.Read(file)
		require.NoError(t, err)
		require.Len(t, rep.Rows, 12*len(specs))
		for _, r := range rep.Rows {
			require.Empty(t, r.Refused)
			require.Len(t, r.RankSamples, 2)
			require.True(t, r.Us > 0.5 && r.Us < 1000 && !math.IsNaN(r.Us), "%s %s: %v us", r.Spec, r.Collective, r.Us)
			require.Equal(t, slices.Max(r.RankUs), r.Us)
			require.True(t, r.P10 <= r.Us && r.Us <= r.P90)
			require.Len(t, r.RankSamples[0], 30)
			require.Positive(t, r.BusGBs)
		}
		f := rep.Floors
		require.True(t, f.F0 > 0 && f.F0 < f.F1 && f.F1 < 20, "%+v", f)
		require.True(t, f.B > 50 && f.B < 2000, "%+v", f)
		require.Equal(t, 2, rep.Ranks)
		require.NotEmpty(t, rep.Environment["driver"])
		require.NotEmpty(t, rep.GPU)
	}
}
