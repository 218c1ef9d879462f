package hwtest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"example.com/tandem/api/gpu"
)

// Kernel stands for a kernel: it runs a launch on a device.
type Kernel func(d *Driver, device int, l gpu.Launch)

// Driver is the stand-in. Set its fields before use.
type Driver struct {
	// Kernels are the functions of every module, by name.
	Kernels map[string]Kernel
	// Params are the sizes of the parameters of the kernels, but for those that
	// ParamsOf has by name.
	Params   []gpu.Param
	ParamsOf map[string][]gpu.Param
	// Peers tells whether a device reaches another; nil is always.
	Peers func(from, to int) bool
	// Info changes what devices say of themselves.
	Info func(i int, info *gpu.Info)
	// Capacity bounds the device memory, in bytes; 0 does not.
	Capacity uint64

	mu     sync.Mutex
	n      int
	used   uint64
	now    time.Duration
	next   gpu.Ptr
	blocks []*block
	ledger gpu.Ledger
	log    []string
	native []*stream
	failAt int // the call to fail, counting from 1; 0 is none
	calls  int
}

type block struct {
	base  gpu.Ptr
	bytes []byte
	dev   int // -1 is host memory
	entry *gpu.Entry
	kept  bool
}

// New is a driver with n devices.
func New(n int) *Driver { return &Driver{n: n, next: 0x7f0000000000} }

// FailAt makes the n-th call from now on fail; 0 ends that. Launches and
// queries count, releases do not.
func (d *Driver) FailAt(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failAt, d.calls = n, 0
}

// Calls is the number of calls since FailAt.
func (d *Driver) Calls() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls
}

// Log is what was done, a line a launch, allocation or release.
func (d *Driver) Log() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.log)
}

// enter counts a call and says whether it fails; d.mu is held by nobody.
func (d *Driver) enter(call string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls++
	if d.calls == d.failAt {
		return &gpu.Error{Call: call, Code: gpu.Unknown, Detail: "injected"}
	}
	return nil
}

func (d *Driver) note(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.log = append(d.log, fmt.Sprintf(format, args...))
}

// Name is the driver's name.
func (d *Driver) Name() string { return "stand-in" }

// Devices are all alike.
func (d *Driver) Devices() []gpu.Device {
	var out []gpu.Device
	for i := range d.n {
		out = append(out, &device{d, i})
	}
	return out
}

// Clock is virtual time: it moves when somebody sleeps.
func (d *Driver) Clock() gpu.Clock { return clock{d} }

type clock struct{ d *Driver }

func (c clock) Now() time.Duration {
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	return c.d.now
}

func (c clock) Sleep(t time.Duration) {
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	c.d.now += max(t, time.Microsecond)
}

// Pass lets virtual time pass, as a kernel that takes so long does.
func (d *Driver) Pass(t time.Duration) { clock{d}.Sleep(t) }

// Counts is what lives.
func (d *Driver) Counts() gpu.Counts { return d.ledger.Counts() }

// Close complains about what lives.
func (d *Driver) Close() error { return d.ledger.Check("stand-in") }

// Bytes is memory from p on, up to the end of its allocation; nil if there is
// none.
func (d *Driver) Bytes(p gpu.Ptr) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	if b := d.find(p); b != nil {
		return b.bytes[p-b.base:]
	}
	return nil
}

func (d *Driver) find(p gpu.Ptr) *block {
	for _, b := range d.blocks {
		if p >= b.base && uint64(p-b.base) < uint64(len(b.bytes)) {
			return b
		}
	}
	return nil
}

type device struct {
	d *Driver
	i int
}

func (v *device) Ordinal() int { return v.i }

func (v *device) Info() gpu.Info {
	info := gpu.Info{Name: "stand-in", Major: 9, SMs: 132, ClockKHz: 1_000_000, Memory: 1 << 40, WarpSize: 32, MaxThreadsPerBlock: 1024,
		MaxBlock: gpu.Dim3{X: 1024, Y: 1024, Z: 64}, MaxGrid: gpu.Dim3{X: 1<<31 - 1, Y: 65535, Z: 65535}, SharedPerBlockMax: 1 << 16,
		CooperativeLaunch: true, HostMapping: true, UnifiedAddresses: true, UUID: gpu.UUID{byte(v.i)}}
	if v.d.Info != nil {
		v.d.Info(v.i, &info)
	}
	return info
}

func (v *device) Peer(other gpu.Device) (gpu.PeerInfo, error) {
	return gpu.PeerInfo{Access: v.d.Peers == nil || v.d.Peers(v.i, other.Ordinal())}, nil
}

func (v *device) Open() (gpu.Context, error) {
	if err := v.d.enter("cuDevicePrimaryCtxRetain"); err != nil {
		return nil, err
	}
	return &gpuContext{d: v.d, dev: v, entry: v.d.ledger.Add(gpu.KindContext, nil)}, nil
}

func (v *device) Lock(context.Context) (func() error, error) {
	return func() error { return nil }, nil
}
