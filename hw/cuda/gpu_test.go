package cuda

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api/gpu"
	"example.com/tandem/api/gpu/gputest"
)

// TestGPU is the suite of package gputest on the real driver: vector add,
// parameters, graph replay, cooperative launch, pinned flags and the rest.
func TestGPU(t *testing.T) {
	gputest.Run(t, gputest.Open(t, func() (gpu.Driver, error) { return Open(Options{}) }))
}

// TestGPUFault has a child process lose its context to a misaligned load. The
// error must say so, and nothing may hang or be counted as left.
func TestGPUFault(t *testing.T) {
	const child = "TANDEM_TEST_FAULT"
	if os.Getenv(child) != "" {
		fault(t)
		return
	}
	gputest.Open(t, func() (gpu.Driver, error) { return Open(Options{}) })
	exe, err := os.Executable()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, exe, "-test.run=^TestGPUFault$", "-test.v")
	cmd.Env = append(append(os.Environ(), gpu.MulticastOffEnv()...), child+"=1")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "fault reported and all released")
}

// fault is the child: the parent holds the locks.
func fault(t *testing.T) {
	d, err := Open(Options{NoLocks: true})
	require.NoError(t, err)
	c, err := d.Devices()[0].Open()
	require.NoError(t, err)
	m, err := c.LoadModule("kernels.ptx", gputest.Kernels)
	require.NoError(t, err)
	k, err := m.Function("await")
	require.NoError(t, err)
	s, err := c.NewStream(gpu.StreamOptions{})
	require.NoError(t, err)
	e, err := c.NewEvent(gpu.EventOptions{})
	require.NoError(t, err)
	p, err := c.Alloc(64)
	require.NoError(t, err)
	h, err := c.AllocHost(64)
	require.NoError(t, err)
	require.NoError(t, s.Launch(gpu.Launch{Function: k, Args: new(gpu.Args).Ptr(p + 2).Ptr(p).Uint64(0)}))
	err = gpu.Wait(context.Background(), d.Clock(), 20*time.Second, s)
	require.ErrorIs(t, err, gpu.ErrContextLost)
	var g *gpu.Error
	require.ErrorAs(t, err, &g)
	require.Equal(t, gpu.MisalignedAddress, g.Code, "%v", err)
	_, err = c.Alloc(64)
	require.ErrorIs(t, err, gpu.ErrContextLost, "and every later call says so")
	for _, release := range []func() error{
		func() error { return c.Free(h.Ptr) }, func() error { return c.Free(p) }, e.Destroy, s.Destroy, m.Unload, c.Close,
	} {
		if err := release(); err != nil {
			require.ErrorIs(t, err, gpu.ErrContextLost)
		}
	}
	require.True(t, d.Counts().None(), "%v", d.Counts())
	require.NoError(t, d.Close())
	fmt.Println("fault reported and all released")
}
