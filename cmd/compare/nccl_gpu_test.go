//go:build gpu

package main

import (
	"bytes"
	"context"
	_ "embed"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
	"example.com/tandem/api/gpu/gputest"
	"example.com/tandem/hw/cuda"
)

// The recording is embedded: a test binary that is carried elsewhere has no
// testdata.
//
//go:embed testdata/golden/nccl-2.28.3-h200x2.jsonl.gz
var ncclRecording []byte

// onGPUs runs command lines in this process on the machine's GPUs, which the
// test holds the locks of; the test is skipped where there are fewer.
func onGPUs(t *testing.T, gpus int) func(args ...string) result {
	d := gputest.Open(t, func() (gpu.Driver, error) { return cuda.Open(cuda.Options{}) })
	if n := len(d.Devices()); n < gpus {
		t.Skipf("the test needs %d GPUs, there are %d", gpus, n)
	}
	hw := newHW()
	hw.open = func() (gpu.Driver, error) { return cuda.Open(cuda.Options{NoLocks: true}) }
	list := backends()
	for i := range list {
		if list[i].Name() == hw.Name() {
			list[i] = hw
		}
	}
	t.Cleanup(func() { require.NoError(t, hw.Close()) })
	return func(args ...string) result {
		var out, errs bytes.Buffer
		a := &app{ctx: context.Background(), stdout: &out, stderr: &errs, getenv: os.Getenv, backends: list}
		code := a.run(args)
		return result{code, out.String(), errs.String()}
	}
}

// needNCCL skips where the library is not installed.
func needNCCL(t *testing.T) {
	if v, err := newHW().nccl.Version(); err != nil {
		require.ErrorIs(t, err, api.ErrUnavailable)
		t.Skip(err)
	} else {
		t.Logf("NCCL %d", v)
	}
}

// TestGPUNCCLReplay: the installed NCCL gives the bits that NCCL 2.28.3 was
// recorded with, live.
func TestGPUNCCLReplay(t *testing.T) {
	compare := onGPUs(t, 2)
	needNCCL(t)
	file := filepath.Join(t.TempDir(), "nccl.jsonl.gz")
	require.NoError(t, os.WriteFile(file, ncclRecording, 0o600))
	for _, spec := range []string{"hw:nccl", "hw:nccl?buffers=registered"} {
		got := compare("replay", file, "--against", spec)
		require.Equal(t, exitHolds, got.code, got.stdout+got.stderr)
		require.True(t, strings.HasSuffix(got.stdout, "674 passed, 0 failed, 0 refused\n"), got.stdout)
	}
	got := compare("run", "--left", "sim:nccl@2.28", "--right", "hw:nccl", "--dtype", "f16", "--op", "avg", "--input", "bits", "--count", "8194", "--src-offset", "1", "--dst-offset", "1")
	require.Equal(t, exitHolds, got.code, got.stdout+got.stderr)
}

// TestGPUGathers: our all_gather and NCCL's are equal byte for byte.
func TestGPUGathers(t *testing.T) {
	compare := onGPUs(t, 2)
	needNCCL(t)
	for _, dtype := range []string{"u8", "bf16", "f32", "f64"} {
		got := compare("sweep", "--left", "hw:tandem", "--right", "hw:nccl", "--collectives", "all_gather", "--dtypes", dtype, "--ranks", "2",
			"--counts", "0,1,2,7,8,63,64,65,1023,1024,4095,4096,4097,65537,1048577", "--src-offsets", "0,1,3", "--dst-offsets", "0,1,3", "--inputs", "bits", "--in-place", "both", "--full")
		require.Equal(t, exitHolds, got.code, got.stdout+got.stderr)
	}
}
