package inswitch

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
	"example.com/tandem/api/gpu/gpufake"
	"example.com/tandem/hw/host"
)

// fabric stands for the multicast part of a driver: what was called, and what of
// it lives.
type fabric struct {
	log    []string
	failAt int // the call to fail, from 1; 0 is none
	added  int
	want   int
	live   map[string]int
}

var errInjected = errors.New("injected")

func (f *fabric) call(what string) error {
	f.log = append(f.log, what)
	if len(f.log) == f.failAt {
		return errInjected
	}
	return nil
}

// fabricContext is a fake context on a fabric.
type fabricContext struct {
	gpu.Context
	f      *fabric
	denied error
}

func (c *fabricContext) Multicast() (gpu.Multicaster, error) {
	if c.denied != nil {
		return nil, c.denied
	}
	return fabricCaster{c.f}, nil
}

const mapped = gpu.Ptr(0x5000_0000_0000)

func (c *fabricContext) Unmap(p gpu.Ptr) error {
	if p >= mapped && p < mapped+1<<32 {
		c.f.live["mapping"]--
		return nil
	}
	return c.Context.Unmap(p)
}

func (c *fabricContext) Quarantine(p gpu.Ptr) error {
	if p >= mapped && p < mapped+1<<32 {
		c.f.live["quarantined"]++
		return nil
	}
	return c.Context.Quarantine(p)
}

type fabricCaster struct{ f *fabric }

func (m fabricCaster) Granularity(gpu.MulticastOptions) (uint64, uint64, error) {
	return 1 << 16, 2 << 20, m.f.call("granularity")
}

func (m fabricCaster) Create(o gpu.MulticastOptions) (gpu.MulticastObject, error) {
	if err := m.f.call("create"); err != nil {
		return nil, err
	}
	m.f.want = o.Devices
	m.f.live["object"]++
	return &fabricObject{f: m.f}, nil
}

func (fabricCaster) ImportFile(int, gpu.MulticastOptions) (gpu.MulticastObject, error) {
	return nil, errInjected
}

func (fabricCaster) ImportFabric(gpu.FabricHandle, gpu.MulticastOptions) (gpu.MulticastObject, error) {
	return nil, errInjected
}

type fabricObject struct {
	gpu.Physical
	f *fabric
}

func (o *fabricObject) AddDevice(gpu.Device) error {
	o.f.added++
	return o.f.call("add")
}

func (o *fabricObject) Bind(context.Context, uint64, gpu.Physical, uint64, uint64) error {
	if o.f.added != o.f.want {
		return fmt.Errorf("bound with %d of %d devices", o.f.added, o.f.want)
	}
	if err := o.f.call("bind"); err != nil {
		return err
	}
	o.f.live["bound"]++
	return nil
}

func (o *fabricObject) Unbind(gpu.Device, uint64, uint64) error {
	o.f.live["bound"]--
	return nil
}

func (o *fabricObject) Map(context.Context, gpu.Context) (gpu.Ptr, error) {
	if err := o.f.call("map"); err != nil {
		return 0, err
	}
	o.f.live["mapping"]++
	return mapped + gpu.Ptr(o.f.live["mapping"])<<24, nil
}

func (o *fabricObject) Release() error {
	o.f.live["object"]--
	return nil
}

func fabricGPUs(t *testing.T, f *fabric) (gpu.Driver, []*host.GPU) {
	f.live = map[string]int{}
	d := gpufake.Open(gpufake.Options{Devices: 3})
	var gpus []*host.GPU
	for i, v := range d.Devices() {
		c, err := v.Open()
		require.NoError(t, err)
		gpus = append(gpus, &host.GPU{Context: &fabricContext{Context: c, f: f}, Index: i})
	}
	return d, gpus
}

func closeAll(t *testing.T, d gpu.Driver, gpus []*host.GPU) {
	for _, g := range gpus {
		require.NoError(t, g.Context.Close(), "nothing of the context lives")
	}
	require.NoError(t, d.Close())
}

// TestHeapOrder: every device is added before anything is bound, and all is bound
// before anything is mapped.
func TestHeapOrder(t *testing.T) {
	f := &fabric{}
	d, gpus := fabricGPUs(t, f)
	h, err := newHeap(t.Context(), "x", gpus, 100)
	require.NoError(t, err)
	require.Equal(t, []string{"granularity", "create", "add", "add", "add", "bind", "bind", "bind", "map", "map", "map"}, f.log)
	require.Equal(t, uint64(2<<20), h.bytes)
	require.NoError(t, h.release(false))
	require.Equal(t, map[string]int{"object": 0, "bound": 0, "mapping": 0}, f.live)
	closeAll(t, d, gpus)
}

// TestHeapFails: whichever call fails, all that was done is undone.
func TestHeapFails(t *testing.T) {
	for n := 1; n <= 11; n++ {
		f := &fabric{failAt: n}
		d, gpus := fabricGPUs(t, f)
		_, err := newHeap(t.Context(), "x", gpus, 100)
		require.ErrorIs(t, err, errInjected, "call %d, %s", n, f.log[len(f.log)-1])
		for what, count := range f.live {
			require.Zero(t, count, "%s after call %d", what, n)
		}
		closeAll(t, d, gpus)
	}
}

// TestHeapIsRefused: where one device may not, nothing is created on any.
func TestHeapIsRefused(t *testing.T) {
	f := &fabric{}
	d, gpus := fabricGPUs(t, f)
	gpus[2].Context.(*fabricContext).denied = gpu.MulticastPolicy(true, func(name string) string { return map[string]string{"NCCL_NVLS_ENABLE": "0"}[name] })
	_, err := newHeap(t.Context(), "x", gpus, 100)
	require.ErrorIs(t, err, api.ErrUnavailable)
	require.ErrorContains(t, err, "GPU 2")
	require.ErrorContains(t, err, "NCCL_NVLS_ENABLE=0")
	require.Empty(t, f.log)
	closeAll(t, d, gpus)
}

// TestPoisonedHeap: memory that a kernel may still reach keeps its addresses.
func TestPoisonedHeap(t *testing.T) {
	f := &fabric{}
	d, gpus := fabricGPUs(t, f)
	h, err := newHeap(t.Context(), "x", gpus, 100)
	require.NoError(t, err)
	require.NoError(t, h.release(true))
	require.Equal(t, 3, f.live["quarantined"])
	require.Equal(t, 3, f.live["bound"], "it stays bound")
	closeAll(t, d, gpus)
}
