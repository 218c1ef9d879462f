package ptx

import (
	"context"
	"os"
	"sync"
	"time"

	"example.com/tandem/api/gpu"
	"example.com/tandem/api/gpu/gpubook"
	"example.com/tandem/sim/ptx/vm"
)

// Options describe the machine; the zero value has one device.
type Options struct {
	Devices int    // 0 is 1
	Seed    uint64 // of the schedule
	// Stale is how many of 256 strong reads that may return an older value do;
	// 0 is 32, negative is none.
	Stale int
	// Multicast gives the devices the attribute. Objects are simulated, and
	// made only where gpu.MulticastPolicy allows it with Multicast as the asker.
	Multicast bool
	Sum       vm.Sum          // of multimem.ld_reduce.add; nil is the exact sum, rounded once
	Info      func(*gpu.Info) // changes what a device says of itself
	// MaxSteps is how many instructions may run from one moment at which no
	// kernel runs to the next; more is taken to be a hang. 0 is no limit.
	MaxSteps uint64
	// Race, if given, is told of every race, with a way to describe it, and says
	// whether it is a fault; else all are. Code that relies on more order than
	// PTX promises runs so.
	Race func(describe func() *vm.Fault) bool
	// Fenced, if given, is told the line of every fence that a thread executes.
	Fenced func(module string, line int)
	// Edit, if given, changes the text of modules before they are read, so that
	// tests can break a kernel.
	Edit func(text []byte) []byte
}

type driver struct {
	opts    Options
	devices []gpu.Device
	ledger  gpu.Ledger

	mu       sync.Mutex
	m        *vm.Machine
	modules  map[string]*vm.Module // by name and text
	known    vm.Known              // to the host
	closed   bool
	streams  []*stream // in order of their numbers; nil once destroyed
	regions  map[gpu.Ptr]*region
	lost     map[*device]*gpu.Error
	peers    map[[2]int]bool
	handles  *gpubook.Handles[memory]
	sleepers map[uint64]time.Duration
	sleeps   uint64
	idle     []*stream // lent to nodes of graphs
	casts    int       // multicast calls made
	acts     uint64    // Machine.Acts when it last moved
	moved    time.Duration
	idleAt   uint64 // Machine.Steps when no kernel ran last
}

// Open makes the machine.
func Open(o Options) gpu.Driver {
	const kHz = 1_000_000
	d := &driver{
		opts: o, m: vm.New(vm.Options{Seed: o.Seed, ClockKHz: kHz, Stale: o.Stale, Sum: o.Sum, Race: o.Race, Fenced: o.Fenced}), modules: map[string]*vm.Module{},
		regions: map[gpu.Ptr]*region{}, lost: map[*device]*gpu.Error{}, peers: map[[2]int]bool{},
		sleepers: map[uint64]time.Duration{},
	}
	d.handles = gpubook.NewHandles[memory](&d.mu)
	for i := range max(o.Devices, 1) {
		v := &device{d: d, ordinal: i, info: gpubook.Info("Virtual GPU", i, 0x70, 0x74, 0x78)}
		v.info.SMs, v.info.ClockKHz, v.info.Memory, v.info.Multicast = 8, kHz, 64<<30, o.Multicast
		if o.Info != nil {
			o.Info(&v.info)
		}
		d.devices = append(d.devices, v)
	}
	return d
}

func (d *driver) Name() string          { return "virtual GPU" }
func (d *driver) Devices() []gpu.Device { return d.devices }
func (d *driver) Clock() gpu.Clock      { return (*clock)(d) }
func (d *driver) Counts() gpu.Counts    { return d.ledger.Counts() }

func (d *driver) Close() error {
	if err := d.ledger.Check("the virtual GPU"); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	return nil
}

type device struct {
	d       *driver
	ordinal int
	info    gpu.Info
}

func (v *device) Ordinal() int   { return v.ordinal }
func (v *device) Info() gpu.Info { return v.info }

func (v *device) Peer(other gpu.Device) (gpu.PeerInfo, error) {
	if o, ok := other.(*device); !ok || o.d != v.d {
		return gpu.PeerInfo{}, gpu.Refuse("cuDeviceGetP2PAttribute", gpu.ErrInvalid, "the device is another driver's")
	}
	return gpu.PeerInfo{Access: true, Atomics: true}, nil
}

// Lock counts only: the machine is this process's own.
func (v *device) Lock(context.Context) (func() error, error) {
	entry := v.d.ledger.Add(gpu.KindLock, v.info.UUID.String)
	return func() error { entry.Release(); return nil }, nil
}

func (v *device) Open() (gpu.Context, error) {
	v.d.mu.Lock()
	defer v.d.mu.Unlock()
	if v.d.closed {
		return nil, gpu.Refuse("cuDevicePrimaryCtxRetain", gpu.ErrClosed, "the driver was closed")
	}
	c := &vcontext{d: v.d, dev: v}
	c.book = gpubook.NewContext(gpubook.Options{Name: c.String(), Lock: &v.d.mu, Ledger: &v.d.ledger, Lost: func() *gpu.Error { return v.d.lost[v] }})
	c.ledger = c.book.Ledger
	return c, nil
}

// vcontext is one use of a device.
type vcontext struct {
	d      *driver
	dev    *device
	book   *gpubook.Context
	ledger *gpu.Ledger
}

func (c *vcontext) String() string     { return c.dev.info.Name }
func (c *vcontext) Device() gpu.Device { return c.dev }
func (c *vcontext) SMs() int           { return c.dev.info.SMs }

func (c *vcontext) enter(call string) (leave func(), err error)   { return c.book.Enter(call) }
func (c *vcontext) release(call string) (leave func(), err error) { return c.book.Release(call) }

// busy says whether a release would wait. The lock is held.
func (c *vcontext) busy(call string) error {
	c.d.advance()
	for _, s := range c.d.streams {
		if s != nil && s.c.dev == c.dev && len(s.queue) > 0 {
			return gpu.Refuse(call, gpu.ErrBusy, "a stream of %v still has work", c)
		}
	}
	return nil
}

func (c *vcontext) MemInfo() (free, total uint64, err error) {
	leave, err := c.enter("cuMemGetInfo")
	if err != nil {
		return 0, 0, err
	}
	defer leave()
	return c.dev.info.Memory - c.d.used(c.dev), c.dev.info.Memory, nil
}

func (c *vcontext) EnablePeer(peer gpu.Context) error {
	leave, err := c.enter("cuCtxEnablePeerAccess")
	if err != nil {
		return err
	}
	defer leave()
	p, ok := peer.(*vcontext)
	if !ok || p.d != c.d {
		return gpu.Refuse("cuCtxEnablePeerAccess", gpu.ErrInvalid, "the peer is another driver's")
	}
	c.d.peers[[2]int{c.dev.ordinal, p.dev.ordinal}] = true
	return nil
}

func (c *vcontext) Multicast() (gpu.Multicaster, error) {
	if err := gpu.MulticastPolicy(c.d.opts.Multicast, os.Getenv); err != nil {
		return nil, err
	}
	if !c.dev.info.Multicast {
		return nil, gpu.Refuse("multicast", gpu.ErrUnsupported, "%v does not have the attribute", c)
	}
	return multicaster{c}, nil
}

func (c *vcontext) Abandon() {
	c.book.Abandon(func() {
		for _, r := range c.d.regions {
			if r.owner == c {
				r.kept = true
			}
		}
	})
}

func (c *vcontext) Close() error { return c.book.Close() }
