package gputest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api/gpu"
)

func TestMeant(t *testing.T) {
	for name, c := range map[string]struct {
		env  map[string]string
		file bool
		want string
	}{
		"nothing":             {},
		"required":            {env: map[string]string{"HW_REQUIRE_GPU": "1"}, want: "HW_REQUIRE_GPU=1"},
		"required not":        {env: map[string]string{"HW_REQUIRE_GPU": "0"}},
		"device file":         {file: true, want: "/dev/nvidiactl exists"},
		"devices named":       {env: map[string]string{"CUDA_VISIBLE_DEVICES": "0,1"}, want: "CUDA_VISIBLE_DEVICES=0,1"},
		"devices hidden":      {env: map[string]string{"CUDA_VISIBLE_DEVICES": ""}, file: true},
		"hidden by number":    {env: map[string]string{"CUDA_VISIBLE_DEVICES": "-1", "SLURM_JOB_GPUS": "3"}, file: true},
		"hidden by word":      {env: map[string]string{"CUDA_VISIBLE_DEVICES": "NoDevFiles"}, file: true},
		"hidden but demanded": {env: map[string]string{"CUDA_VISIBLE_DEVICES": "", "HW_REQUIRE_GPU": "1"}, want: "HW_REQUIRE_GPU=1"},
		"job with GPUs":       {env: map[string]string{"SLURM_JOB_GPUS": "0"}, want: "SLURM_JOB_GPUS=0"},
		"job without":         {env: map[string]string{"SLURM_JOB_GPUS": ""}},
	} {
		got := meant(func(n string) (string, bool) { v, ok := c.env[n]; return v, ok }, func(path string) bool { return c.file && path == "/dev/nvidiactl" })
		require.Equal(t, c.want, got, name)
	}
}

// verdict is a test that notes how it ended.
type verdict struct {
	testing.TB
	text string
}

func (v *verdict) Helper()                        {}
func (v *verdict) Fatal(args ...any)              { v.end("fail: " + fmt.Sprint(args...)) }
func (v *verdict) Fatalf(format string, a ...any) { v.end("fail: " + fmt.Sprintf(format, a...)) }
func (v *verdict) Skipf(format string, a ...any)  { v.end("skip: " + fmt.Sprintf(format, a...)) }
func (v *verdict) end(s string)                   { v.text = s; panic(v) }

func TestOpenVerdicts(t *testing.T) {
	noDriver := gpu.Refuse("", gpu.ErrNoDriver, "libcuda.so.1: none")
	notBuilt := gpu.Refuse("", gpu.ErrNotBuiltIn, "no tag")
	broken := gpu.Refuse("cuDeviceGetName", gpu.ErrDriver, "odd")
	for _, c := range []struct {
		err       error
		why, want string
	}{
		{noDriver, "", "skip: no GPU here: no CUDA driver: libcuda.so.1: none"},
		{noDriver, "/dev/nvidiactl exists", "fail: no CUDA driver: libcuda.so.1: none, but a GPU is meant to be here: /dev/nvidiactl exists"},
		{noDriver, "HW_REQUIRE_GPU=1", "fail: no CUDA driver: libcuda.so.1: none, but a GPU is meant to be here: HW_REQUIRE_GPU=1"},
		{notBuilt, "", "skip: no GPU here: no GPU support built in: no tag"},
		{notBuilt, "/dev/nvidiactl exists", "skip: no GPU here: no GPU support built in: no tag"},
		{notBuilt, "HW_REQUIRE_GPU=1", "fail: no GPU support built in: no tag, but a GPU is meant to be here: HW_REQUIRE_GPU=1"},
		{broken, "", "fail: cuDeviceGetName: driver failure: odd"},
	} {
		v := &verdict{TB: t}
		require.Panics(t, func() { refuse(v, newTally(), c.err, c.why) })
		require.Equal(t, c.want, v.text)
	}
}

// exits is a test run that ends with a code.
type exits int

func (e exits) Run() int { return int(e) }

func TestLastLine(t *testing.T) {
	y := newTally()
	var out strings.Builder
	require.Equal(t, 3, counted{exits(3), y, &out}.Run())
	require.Empty(t, out.String(), "nobody asked for a GPU")
	y.got(t)
	y.got(t)
	for range 2 {
		v := &verdict{TB: t}
		require.Panics(t, func() { refuse(v, y, gpu.Refuse("", gpu.ErrNoDriver, "libcuda.so.1: none"), "") })
	}
	require.Equal(t, 0, counted{exits(0), y, &out}.Run())
	require.Equal(t, "tests that ask for a GPU: 1 ran on one, 2 skipped (2: no CUDA driver: libcuda.so.1: none)\n", out.String())
	require.Panics(t, func() { refuse(&verdict{TB: t}, y, gpu.Refuse("", gpu.ErrNoDriver, "none"), "HW_REQUIRE_GPU=1") })
	require.Contains(t, y.line(), ", 1 failed for want of one (")
}
