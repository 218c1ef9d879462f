package tandemnvls

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestShares: CTA i of n begins at the unit units*i/n, rounded down, as the
// kernels have it.
func TestShares(t *testing.T) {
	for units := range int64(40) {
		for grid := int64(1); grid < 10; grid++ {
			s := shape{units: units, grid: grid}
			for i := range grid {
				require.Equal(t, span{units * i / grid, units * (i + 1) / grid}, s.share(int(i)), "%d of %d, %d units", i, grid, units)
			}
		}
	}
}
