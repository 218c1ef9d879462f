package conformance

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// writeDumps makes a directory of n bytes a rank, counting up.
func writeDumps(t *testing.T, ranks, n int) string {
	dir := t.TempDir()
	for r := range ranks {
		p := make([]byte, n)
		for i := range p {
			p[i] = byte(16*r + i)
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("r%d.bin", r)), p, 0o600))
	}
	return dir
}
