package hw_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
	"example.com/tandem/hw"
	"example.com/tandem/hw/hwtest"
)

func TestNoDriver(t *testing.T) {
	why := gpu.Refuse("dlopen", gpu.ErrNoDriver, "libcuda.so.1: not found")
	b := hw.Missing("hw", why)
	require.Equal(t, "hw", b.Name())
	list := b.Implementations()
	require.NotEmpty(t, list)
	for _, i := range list {
		require.Contains(t, i.Unavailable, "libcuda.so.1")
	}
	_, err := b.Open(context.Background(), api.Spec{Backend: "hw", Implementation: "tandem"}, api.TeamConfig{Ranks: 2})
	require.ErrorIs(t, err, api.ErrUnavailable)
	require.NoError(t, b.Close())
}

func TestUnknownImplementation(t *testing.T) {
	d := hwtest.New(1)
	b := hw.New("ptx", d)
	require.Empty(t, b.Implementations()[0].Unavailable)
	_, err := b.Open(context.Background(), api.Spec{Backend: "ptx", Implementation: "mystery"}, api.TeamConfig{Ranks: 2})
	require.ErrorIs(t, err, api.ErrInvalid)
	require.ErrorContains(t, err, "tandem")
	_, err = b.Open(context.Background(), api.Spec{Backend: "ptx", Implementation: "tandem"}, api.TeamConfig{Ranks: 2})
	require.True(t, errors.Is(err, gpu.ErrNotFound), "the stand-in has no kernels: %v", err)
	require.NoError(t, b.Close())
	_, err = b.Open(context.Background(), api.Spec{Backend: "ptx", Implementation: "tandem"}, api.TeamConfig{Ranks: 2})
	require.ErrorIs(t, err, api.ErrUnavailable)
	require.True(t, d.Counts().None())
}

func TestTooOldADevice(t *testing.T) {
	d := hwtest.New(1)
	d.Info = func(_ int, i *gpu.Info) { i.Major, i.Minor = 8, 6 }
	require.Contains(t, hw.New("hw", d).Implementations()[0].Unavailable, "8.6")
}

// TestPlans: plans without a driver where nothing needs one, and who has none.
func TestPlans(t *testing.T) {
	why := gpu.Refuse("dlopen", gpu.ErrNoDriver, "libcuda.so.1: not found")
	b := hw.Missing("hw", why, hw.Implementation{Describe: func() api.Implementation { return api.Implementation{Name: "library"} }})
	call := api.Call{Collective: api.AllReduce, DType: api.F32, Op: api.Sum, Ranks: 2, Count: 100}
	for _, i := range b.Implementations() {
		spec := api.Spec{Backend: "hw", Implementation: i.Name, Version: i.Version}
		p, err := b.Plan(spec, call)
		switch i.Name {
		case "tandem":
			require.ErrorIs(t, err, api.ErrUnavailable)
			require.ErrorContains(t, err, "libcuda.so.1")
			spec.Params = map[string]string{"table": "any"}
			p, err = b.Plan(spec, call)
		case "library":
			require.ErrorIs(t, err, api.ErrUnavailable)
			require.ErrorContains(t, err, "shows no plan")
			continue
		}
		require.NoError(t, err, spec.String())
		require.NoError(t, hwtest.Covers(p))
		require.Equal(t, spec.String(), p.Spec)
		for alg := range p.Algorithms {
			require.Contains(t, i.Evidence, alg, "%s: the list and the plan name algorithms alike", spec)
		}
	}
	_, err := b.Plan(api.Spec{Backend: "hw", Implementation: "mystery"}, call)
	require.ErrorIs(t, err, api.ErrInvalid)
	_, err = b.Plan(api.Spec{Backend: "hw", Implementation: "rlkernel", Version: "0"}, call)
	require.ErrorIs(t, err, api.ErrInvalid)
}
