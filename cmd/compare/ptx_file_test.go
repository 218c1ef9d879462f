package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/conformance"
)

// TestKernelFile compares a kernel of one's own, from its PTX, with the model of
// the fixed tree.
func TestKernelFile(t *testing.T) {
	const kernel = "ptx:testdata/kernel/allreduce.ptx"
	for _, call := range [][]string{
		{"--ranks", "2", "--count", "1003"},
		{"--ranks", "3", "--count", "77", "--src-offset", "1,2,3", "--dst-offset", "3"},
		{"--ranks", "8", "--count", "129", "--input", "bits"},
		{"--ranks", "8", "--count", "0"},
	} {
		args := append([]string{"--left", "sim:tandem", "--right", kernel + "?entry=allreduce", "--dtype", "f32"}, call...)
		if call[3] == "0" {
			requireRefused(t, compare(append([]string{"run"}, args...)...), "nothing was compared")
			continue
		}
		rep := report(t, exitHolds, args...)
		require.Equal(t, conformance.Agree, rep.Verdict)
		for _, r := range rep.Right.Ranks {
			require.Equal(t, int64(0), *r.Unwritten)
			require.Zero(t, r.GuardHits)
		}
	}
	got := compare("sweep", "--left", "sim:tandem", "--right", kernel, "--collectives", "all_reduce", "--dtypes", "f32", "--ops", "sum", "--ranks", "2,5", "--counts", "1,64,301", "--modes", "default", "--in-place", "false")
	require.Equal(t, exitHolds, got.code, got.stderr)
	require.Contains(t, got.stdout, " 0 diverge, 0 refused")
}

// TestKernelFileRace: the same kernel with flags that are not released is a
// fault of a rank, and the line is told, of the PTX and of the source.
func TestKernelFileRace(t *testing.T) {
	for _, seed := range []string{"1", "2", "3"} {
		rep := report(t, exitBroken, "--left", "sim:tandem", "--right", "ptx:testdata/kernel/racy.ptx?seed="+seed, "--dtype", "f32", "--count", "1003")
		require.Equal(t, conformance.Diverge, rep.Verdict)
		require.Equal(t, api.CauseFault, rep.Causes[0].Class)
		var fault *api.Fault
		for _, r := range rep.Right.Ranks {
			if r.Fault != nil {
				fault = r.Fault
			}
		}
		require.NotNil(t, fault)
		require.Equal(t, api.FaultRace, fault.Kind)
		require.Contains(t, fault.Detail, "testdata/kernel/racy.ptx:")
		require.Contains(t, fault.Detail, "from ./allreduce.cu:53")
	}
}

// TestKernelFileErrors: bad files are told by their lines.
func TestKernelFileErrors(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.json")
	require.NoError(t, os.WriteFile(bad, []byte("{\n\"collective\": \"all_reduce\",\n\"dtype\": \"f32\"}"), 0o644))
	run := func(spec string) result {
		return compare("run", "--left", "sim:tandem", "--right", spec, "--dtype", "f32")
	}
	requireRefused(t, run("ptx:testdata/kernel/none.ptx"), "none.ptx", "there is no such file")
	requireRefused(t, run("ptx:testdata/kernel/allreduce.ptx?args="+bad), "bad.json:3: there is no \"dtype\"; known are")
	requireRefused(t, run("ptx:testdata/kernel/allreduce.ptx?args="+dir), "it is no file")
	requireRefused(t, run("ptx:testdata/kernel/allreduce.ptx?entry=add"), "no such kernel", "entry=allreduce")
	requireRefused(t, compare("run", "--left", "sim:tandem", "--right", "ptx:testdata/kernel/allreduce.ptx"), "refuses dtype bf16", "the kernel takes [f32]")
	requireRefused(t, compare("run", "--left", "sim:tandem", "--right", "ptx:testdata/kernel/allreduce.ptx", "--dtype", "f32", "--ranks", "9"), "9 ranks", "2 to 8")
	requireRefused(t, compare("explain", "ptx:testdata/kernel/allreduce.ptx", "--dtype", "f32"), "ptx")
}

// TestKernelFileIsGenerated: the PTX is what the compiler makes of the source
// beside it.
func TestKernelFileIsGenerated(t *testing.T) {
	clang, err := exec.LookPath("clang-22")
	if err != nil {
		t.Skip("clang-22 is not installed")
	}
	for file, define := range map[string]string{"allreduce.ptx": "-DNO_RACE", "racy.ptx": "-DRACE"} {
		c := exec.Command(clang, strings.Fields("-x cuda --cuda-device-only -nocudainc -nocudalib -O2 -ffp-contract=off -gline-tables-only -fdebug-compilation-dir=. --cuda-gpu-arch=sm_90 --cuda-feature=+ptx84 "+define+" -S -o - allreduce.cu")...)
		c.Dir = "testdata/kernel"
		want, err := c.Output()
		require.NoError(t, err)
		have, err := os.ReadFile(filepath.Join(c.Dir, file))
		require.NoError(t, err)
		require.Equal(t, string(want), string(have))
	}
}
