package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/conformance"
)

const headersKernel = "testdata/kernel/headers.ptx"

// TestKernelFileHeaders: a kernel that nvcc made of CUDA's own headers, with
// atomic references, packed halves, cooperative groups and assertions, gives the
// bits of the balanced tree.
func TestKernelFileHeaders(t *testing.T) {
	for _, call := range [][]string{
		{"--ranks", "2", "--count", "266"},
		{"--ranks", "3", "--count", "130", "--input", "bits"},
		{"--ranks", "5", "--count", "2"},
		{"--ranks", "8", "--count", "334", "--src-offset", "2"},
	} {
		rep := report(t, exitHolds, append([]string{"--left", "sim:tandem", "--right", "ptx:" + headersKernel, "--dtype", "bf16"}, call...)...)
		require.Equal(t, conformance.Agree, rep.Verdict)
	}
}

// TestKernelFileHeadersBroken: the same kernel without the order of its flags
// races, and one that counts wrong fails its assertion.
func TestKernelFileHeadersBroken(t *testing.T) {
	text, err := os.ReadFile(headersKernel)
	require.NoError(t, err)
	description, err := os.ReadFile("testdata/kernel/headers.json")
	require.NoError(t, err)
	for says, edit := range map[string][2]string{
		"race: ":                     {"st.release.sys.b32", "st.relaxed.sys.b32"},
		"an assertion of the kernel": {"mov.u32 \t%r95, 16;", "mov.u32 \t%r95, 0;"},
	} {
		require.Contains(t, string(text), edit[0])
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "k.ptx"), []byte(strings.ReplaceAll(string(text), edit[0], edit[1])), 0o644))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "k.json"), description, 0o644))
		rep := report(t, exitBroken, "--left", "sim:tandem", "--right", "ptx:"+filepath.Join(dir, "k.ptx"), "--dtype", "bf16", "--count", "778")
		fault := faultOf(&rep, nil)
		require.NotNil(t, fault)
		require.Contains(t, fault.Detail, says)
	}
}

// TestKernelFileHeadersIsGenerated: the PTX is what nvcc 13.0 makes of the source
// beside it.
func TestKernelFileHeadersIsGenerated(t *testing.T) {
	nvcc := os.Getenv(nvccEnv)
	if nvcc == "" {
		t.Skipf("%s is not set: the headers are for nvcc", nvccEnv)
	}
	out := filepath.Join(t.TempDir(), "headers.ptx")
	include := filepath.Join(filepath.Dir(nvcc), "..", "include")
	c := exec.Command(nvcc, "-ptx", "-arch=sm_90", "-std=c++17", "-I", filepath.Join(include, "cccl"), "-I", include, "-o", out, "headers.cu")
	c.Dir = filepath.Dir(headersKernel)
	log, err := c.CombinedOutput()
	require.NoError(t, err, "%s", log)
	want, err := os.ReadFile(out)
	require.NoError(t, err)
	have, err := os.ReadFile(headersKernel)
	require.NoError(t, err)
	require.Equal(t, string(want), string(have))
}
