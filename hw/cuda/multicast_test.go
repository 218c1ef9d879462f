//go:build gpu && linux && cgo

package cuda

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api/gpu"
)

// TestMulticastFailsClosed: without being asked, or with any of the switches,
// everything else works and no cuMulticast function is called.
func TestMulticastFailsClosed(t *testing.T) {
	for name, c := range map[string]struct {
		asked bool
		env   map[string]string
		want  error
	}{
		"by default":         {want: gpu.ErrMulticastOff},
		"NCCL's switch":      {asked: true, env: map[string]string{"NCCL_NVLS_ENABLE": "0"}, want: gpu.ErrMulticastOff},
		"NVSHMEM's switch":   {asked: true, env: map[string]string{"NVSHMEM_DISABLE_NVLS": "1"}, want: gpu.ErrMulticastOff},
		"PyTorch's switch":   {asked: true, env: map[string]string{"TORCH_SYMM_MEM_DISABLE_MULTICAST": "1"}, want: gpu.ErrMulticastOff},
		"asked for in vain":  {env: map[string]string{"TANDEM_MULTICAST": "yes"}, want: gpu.ErrMulticastOff},
		"asked and switched": {env: map[string]string{"TANDEM_MULTICAST": "1", "NCCL_NVLS_ENABLE": "0"}, want: gpu.ErrMulticastOff},
		"asked":              {asked: true},
		"asked by variable":  {env: map[string]string{"TANDEM_MULTICAST": "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, "")
			d := f.open(t, Options{Multicast: c.asked, Getenv: func(name string) string { return c.env[name] }})
			var s scene
			require.ErrorIs(t, s.play(d), c.want)
			require.NoError(t, s.cleanUp())
			require.Equal(t, c.want == nil, f.multicastCalls > 0, "%d calls", f.multicastCalls)
		})
	}
}

// TestMulticastBlocks: calls that wait for other ranks are left behind at the
// deadline, and what they were about is set aside.
func TestMulticastBlocks(t *testing.T) {
	f := newFake(t, "")
	o := f.options()
	o.Multicast, o.Getenv = true, nothing
	d, err := Open(o)
	require.NoError(t, err)
	c := f.context(t, d, 0)
	m, err := c.Multicast()
	require.NoError(t, err)
	of := gpu.MulticastOptions{Devices: 2, Bytes: 1 << 21, Share: gpu.ByFile}
	p, err := c.Create(1<<21, gpu.NotShared)
	require.NoError(t, err)
	calls := map[string]func(context.Context, gpu.MulticastObject) error{
		"map":  func(ctx context.Context, mc gpu.MulticastObject) error { _, err := mc.Map(ctx, c); return err },
		"bind": func(ctx context.Context, mc gpu.MulticastObject) error { return mc.Bind(ctx, 0, p, 0, 1<<21) },
	}
	for _, name := range []string{"map", "bind"} {
		call := calls[name]
		mc, err := m.Create(of)
		require.NoError(t, err)
		require.ErrorIs(t, mc.Bind(context.Background(), 0, p, 1, 1<<21), gpu.ErrInvalid, "beyond the memory")
		_, err = c.Map(mc)
		require.ErrorIs(t, err, gpu.ErrInvalid, "an object maps itself")
		f.blocked = map[string]uint32{"bind": 1, "map": 2}[name]
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		start := time.Now()
		require.ErrorIs(t, call(ctx, mc), gpu.ErrDeadline, name)
		cancel()
		require.Less(t, time.Since(start), 2*time.Second)
		require.ErrorIs(t, call(ctx, mc), gpu.ErrClosed, name)
		require.ErrorIs(t, mc.Release(), gpu.ErrClosed, name)
		require.ErrorIs(t, mc.AddDevice(d.Devices()[0]), gpu.ErrClosed, name)
		f.blocked = 0
		require.Eventually(t, func() bool { return atomic.LoadUint32(&f.waiting) == 0 }, 5*time.Second, time.Millisecond)
	}
	require.ErrorIs(t, p.Release(), gpu.ErrClosed, "the abandoned call may still bind it")
	got := d.Counts()
	require.Equal(t, 2, got.Quarantined[gpu.KindMulticast])
	require.Equal(t, 1, got.Quarantined[gpu.KindPhysical])
	// The mapping that came after its deadline belongs to nobody.
	require.Eventually(t, func() bool { return d.Counts().Quarantined[gpu.KindMapping] == 1 }, 5*time.Second, time.Millisecond)
	t.Cleanup(func() {
		require.Equal(t, [12]uint32{0: 1, 3: 1, 4: 2, 5: 1}, f.live, "that much stays in the driver, and is meant to")
		f.live = [12]uint32{}
	})
}

// TestForeignObjects: what another driver made is refused, not followed.
func TestForeignObjects(t *testing.T) {
	one, two := newFake(t, ""), newFake(t, "")
	_ = one.page
	d := two.open(t, Options{})
	c := two.context(t, d, 0)
	s, err := c.NewStream(gpu.StreamOptions{})
	require.NoError(t, err)
	end(t, s.Destroy)
	e, err := c.NewEvent(gpu.EventOptions{})
	require.NoError(t, err)
	require.NoError(t, s.BeginCapture())
	g, err := s.EndCapture()
	require.NoError(t, err)
	x, err := g.Instantiate()
	require.NoError(t, err)
	_, errPeer := d.Devices()[0].Peer(nil)
	_, errMap := c.Map(nil)
	_, errMapFor := func() (gpu.Ptr, error) {
		p, err := c.Create(1, gpu.NotShared)
		if err != nil {
			return 0, nil
		}
		_, err = c.Map(p, nil)
		return 0, errors.Join(err, p.Release())
	}()
	_, errSince := e.Since(nil)
	for _, err := range []error{errPeer, errMap, errMapFor, errSince, c.EnablePeer(nil), s.Record(nil), s.WaitEvent(nil), x.Upload(nil), x.Launch(nil), s.Launch(gpu.Launch{})} {
		require.ErrorIs(t, err, gpu.ErrInvalid)
	}
	for _, release := range []func() error{x.Destroy, g.Destroy, e.Destroy} {
		require.NoError(t, release())
		require.ErrorIs(t, release(), gpu.ErrClosed)
	}
	for _, err := range []error{x.Upload(s), x.Launch(s), s.Record(e), s.WaitEvent(e)} {
		require.ErrorIs(t, err, gpu.ErrClosed)
	}
}
