package gpufake

import (
	"context"
	"os"
	"sync"

	"example.com/tandem/api/gpu"
	"example.com/tandem/api/gpu/gpubook"
)

// Options describe the machine; the zero value has one device and no kernels.
type Options struct {
	Devices int // 0 is 1
	// Kernels are the bodies of the kernels, by the name of the PTX entry. A
	// module with an entry that has none here is not accepted.
	Kernels map[string]Kernel
	// Fail, if given, is asked before every call, by the driver's name of it;
	// an error makes the call fail with it.
	Fail func(call string) error
	// Info, if given, changes what a device says of itself.
	Info func(*gpu.Info)
}

// driver is the fake. One lock guards all of it, memory included.
type driver struct {
	opts    Options
	devices []gpu.Device
	clock   gpu.Clock
	ledger  gpu.Ledger

	mu       sync.Mutex
	closed   bool
	next     gpu.Ptr
	regions  []*region // by base
	handles  *gpubook.Handles[[]byte]
	lost     map[*device]*gpu.Error
	peers    map[[2]*device]bool
	contexts map[*fakeContext]bool // open ones
}

// Open makes the machine.
func Open(o Options) gpu.Driver {
	d := &driver{
		opts: o, clock: gpu.WallClock(), next: 0x7000_0000_0000,
		lost: map[*device]*gpu.Error{}, peers: map[[2]*device]bool{}, contexts: map[*fakeContext]bool{},
	}
	d.handles = gpubook.NewHandles[[]byte](&d.mu)
	for i := range max(o.Devices, 1) {
		v := &device{d: d, ordinal: i, info: gpubook.Info("Fake GPU", i, 0xfa, 0x4e)}
		v.info.SMs, v.info.Memory = 4, 1<<30
		if o.Info != nil {
			o.Info(&v.info)
		}
		d.devices = append(d.devices, v)
	}
	return d
}

// call is the beginning of every call: it may be told to fail.
func (d *driver) call(name string) error {
	if d.opts.Fail != nil {
		return d.opts.Fail(name)
	}
	return nil
}

func (d *driver) Name() string          { return "fake" }
func (d *driver) Devices() []gpu.Device { return d.devices }
func (d *driver) Clock() gpu.Clock      { return d.clock }
func (d *driver) Counts() gpu.Counts    { return d.ledger.Counts() }

func (d *driver) Close() error {
	if err := d.ledger.Check("the fake driver"); err != nil {
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
	if err := v.d.call("cuDeviceGetP2PAttribute"); err != nil {
		return gpu.PeerInfo{}, err
	}
	if o, ok := other.(*device); !ok || o.d != v.d {
		return gpu.PeerInfo{}, gpu.Refuse("cuDeviceGetP2PAttribute", gpu.ErrInvalid, "the device is another driver's")
	}
	return gpu.PeerInfo{Access: true, Atomics: true}, nil
}

// Lock counts only: the machine is this process's own.
func (v *device) Lock(context.Context) (func() error, error) {
	if err := v.d.call("lock"); err != nil {
		return nil, err
	}
	entry := v.d.ledger.Add(gpu.KindLock, v.info.UUID.String)
	return func() error { entry.Release(); return nil }, nil
}

func (v *device) Open() (gpu.Context, error) {
	if err := v.d.call("cuDevicePrimaryCtxRetain"); err != nil {
		return nil, err
	}
	v.d.mu.Lock()
	defer v.d.mu.Unlock()
	if v.d.closed {
		return nil, gpu.Refuse("cuDevicePrimaryCtxRetain", gpu.ErrClosed, "the driver was closed")
	}
	c := &fakeContext{d: v.d, dev: v, streams: map[*stream]bool{}}
	c.book = gpubook.NewContext(gpubook.Options{Name: c.String(), Lock: &v.d.mu, Ledger: &v.d.ledger, Before: v.d.call,
		Lost: func() *gpu.Error { return v.d.lost[v] }})
	c.ledger = c.book.Ledger
	v.d.contexts[c] = true
	return c, nil
}

// fakeContext is one use of a device.
type fakeContext struct {
	d       *driver
	dev     *device
	book    *gpubook.Context
	ledger  *gpu.Ledger
	streams map[*stream]bool
}

func (c *fakeContext) String() string     { return c.dev.info.Name }
func (c *fakeContext) Device() gpu.Device { return c.dev }
func (c *fakeContext) SMs() int           { return c.dev.info.SMs }

func (c *fakeContext) enter(call string) (leave func(), err error)   { return c.book.Enter(call) }
func (c *fakeContext) release(call string) (leave func(), err error) { return c.book.Release(call) }

// busy says whether a release would wait. The lock is held.
func (c *fakeContext) busy(call string) error {
	for use := range c.d.contexts {
		for s := range use.streams {
			if use.dev == c.dev && len(s.queue) > 0 {
				return gpu.Refuse(call, gpu.ErrBusy, "a stream of %v still has work", c)
			}
		}
	}
	return nil
}

func (c *fakeContext) MemInfo() (free, total uint64, err error) {
	leave, err := c.enter("cuMemGetInfo")
	if err != nil {
		return 0, 0, err
	}
	defer leave()
	return c.dev.info.Memory - c.d.used(c.dev), c.dev.info.Memory, nil
}

func (c *fakeContext) EnablePeer(peer gpu.Context) error {
	leave, err := c.enter("cuCtxEnablePeerAccess")
	if err != nil {
		return err
	}
	defer leave()
	p, ok := peer.(*fakeContext)
	if !ok || p.d != c.d {
		return gpu.Refuse("cuCtxEnablePeerAccess", gpu.ErrInvalid, "the peer is another driver's")
	}
	c.d.peers[[2]*device{c.dev, p.dev}] = true
	return nil
}

// Multicast is never to be had.
func (c *fakeContext) Multicast() (gpu.Multicaster, error) {
	if err := gpu.MulticastPolicy(false, os.Getenv); err != nil {
		return nil, err
	}
	return nil, gpu.Refuse("multicast", gpu.ErrUnsupported, "%v does not have the attribute", c)
}

func (c *fakeContext) Abandon() {
	c.book.Abandon(func() {
		for _, r := range c.d.regions {
			if r.owner == c {
				r.kept = true
			}
		}
	})
}

func (c *fakeContext) Close() error {
	if err := c.book.Close(); err != nil {
		return err
	}
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	delete(c.d.contexts, c)
	return nil
}
