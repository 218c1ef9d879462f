package kernels

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestGenerated compares what is committed with what the sources give, where
// the compiler is installed.
func TestGenerated(t *testing.T) {
	if _, err := exec.LookPath("clang-22"); err != nil {
		t.Skip("clang-22 is not installed here; CI installs it")
	}
	if testing.Short() {
		t.Skip("compiling takes seconds; the test runs without -short")
	}
	for name, committed := range map[string][]byte{"tandem.ptx": Tandem, "rlkernel.ptx": RLKernel, "meter.ptx": Meter, "nvls.ptx": NVLS, "nvls_emulated.ptx": NVLSEmulated, "cascade.ptx": Cascade, "cascade_emulated.ptx": CascadeEmulated} {
		out := filepath.Join(t.TempDir(), name)
		log, err := exec.Command("./generate.sh", out).CombinedOutput()
		require.NoError(t, err, "%s", log)
		fresh, err := os.ReadFile(out)
		require.NoError(t, err)
		require.True(t, string(committed) == string(fresh), "%s: run go generate in this folder and commit the result", name)
	}
}
