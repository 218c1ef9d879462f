package tandem

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestThresholdTable: every team has a row, measured only where the GPU is named,
// and rows that differ have different hashes.
func TestThresholdTable(t *testing.T) {
	seen := map[uint64]thresholds{}
	for _, gpu := range []string{"", "NVIDIA H200", "another"} {
		for ranks := 1; ranks <= MaxRanks; ranks++ {
			r := thresholdsOf(gpu, ranks)
			require.GreaterOrEqual(t, r.Ranks, ranks)
			require.Equal(t, r.GPU != "", r.Measured)
			require.Equal(t, gpu == "NVIDIA H200" && ranks == 2, r.Measured)
			require.Positive(t, r.Push)
			require.Zero(t, r.Push%boxGrain, "slots are whole groups of lines")
			require.GreaterOrEqual(t, r.TwoShot, r.Push)
			require.GreaterOrEqual(t, r.Block, int64(16*threads))
			if old, ok := seen[r.hash()]; ok {
				require.Equal(t, old, r)
			}
			seen[r.hash()] = r
		}
	}
	require.Len(t, seen, 6)
}
