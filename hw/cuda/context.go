//go:build gpu && linux && cgo

package cuda

/*
#include "abi.h"

#cgo noescape call_cuDevicePrimaryCtxRetain
#cgo nocallback call_cuDevicePrimaryCtxRetain
#cgo nocallback call_cuDevicePrimaryCtxRelease_v2
#cgo noescape tandem_sm_count
#cgo nocallback tandem_sm_count
#cgo nocallback call_cuCtxEnablePeerAccess
#cgo noescape call_cuMemGetInfo_v2
#cgo nocallback call_cuMemGetInfo_v2
*/
import "C"

import (
	"fmt"
	"sync"
	"sync/atomic"

	"example.com/tandem/api/gpu"
)

// primary is one use of a device's primary context.
type primary struct {
	d      *driver
	dev    *device
	ctx    C.CUcontext
	sms    int
	ledger *gpu.Ledger
	entry  *gpu.Entry

	closed, abandoned atomic.Bool

	mu      sync.Mutex // taken before a stream's
	streams map[*stream]bool
}

// Open retains the device's primary context.
func (v *device) Open() (gpu.Context, error) {
	if err := v.d.open("cuDevicePrimaryCtxRetain"); err != nil {
		return nil, err
	}
	c := &primary{d: v.d, dev: v, ledger: gpu.NewLedger(&v.d.ledger), streams: make(map[*stream]bool)}
	if rc := C.call_cuDevicePrimaryCtxRetain(v.d.table, &c.ctx, v.dev); rc != 0 {
		return nil, v.d.fail(rc, "cuDevicePrimaryCtxRetain", "%v", c)
	}
	c.entry = v.d.ledger.Add(gpu.KindContext, c.String)
	var n C.int
	if rc := C.tandem_sm_count(v.d.table, c.ctx, &n); rc != 0 {
		err := v.d.fail(rc, "cuCtxGetDevResource", "%v", c)
		if c.release() != nil {
			c.entry.Orphan(c.release)
		}
		return nil, err
	}
	c.sms = int(n)
	v.d.mu.Lock()
	defer v.d.mu.Unlock()
	v.d.contexts[c] = true
	return c, nil
}

func (c *primary) String() string {
	return fmt.Sprintf("GPU %d (%s)", c.dev.ordinal, c.dev.info.Name)
}

func (c *primary) release() error {
	if rc := C.call_cuDevicePrimaryCtxRelease_v2(c.d.table, c.dev.dev); rc != 0 {
		if err := c.d.fail(rc, "cuDevicePrimaryCtxRelease", "%v", c); !gone(err) {
			return err
		}
	}
	c.entry.Release()
	return nil
}

// Close releases the primary context, unless something is kept in it.
func (c *primary) Close() error {
	c.ledger.UndoAll()
	if err := c.ledger.Check(c.String()); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed.Load() {
		return nil
	}
	if c.ledger.Counts() != (gpu.Counts{}) {
		// Quarantined memory needs its context.
		c.entry.Quarantine()
	} else if err := c.release(); err != nil {
		return err
	}
	c.closed.Store(true)
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	delete(c.d.contexts, c)
	return nil
}

// Abandon gives up on everything in the context.
func (c *primary) Abandon() {
	c.abandoned.Store(true)
	c.d.memory.keep(func(b block) bool { return b.owner == any(c) })
	c.ledger.QuarantineAll()
}

// usable refuses calls on a closed or abandoned context.
func (c *primary) usable(call string) error {
	if c.closed.Load() || c.abandoned.Load() {
		return gpu.Refuse(call, gpu.ErrClosed, "the context of %v was closed or abandoned", c)
	}
	return nil
}

func (c *primary) fail(rc C.CUresult, call, format string, args ...any) error {
	return c.d.fail(rc, call, "%s on %v", fmt.Sprintf(format, args...), c)
}

// Device is the device of the context.
func (c *primary) Device() gpu.Device { return c.dev }

// SMs is what cuCtxGetDevResource answers: green contexts and MPS counted.
func (c *primary) SMs() int { return c.sms }

// MemInfo asks the driver.
func (c *primary) MemInfo() (free, total uint64, err error) {
	if err := c.usable("cuMemGetInfo"); err != nil {
		return 0, 0, err
	}
	var f, t C.size_t
	if rc := C.call_cuMemGetInfo_v2(c.d.table, c.ctx, &f, &t); rc != 0 {
		return 0, 0, c.fail(rc, "cuMemGetInfo", "asking for free memory")
	}
	return uint64(f), uint64(t), nil
}

// EnablePeer gives kernels of this context access to another's memory.
func (c *primary) EnablePeer(peer gpu.Context) error {
	const call = "cuCtxEnablePeerAccess"
	p, ok := peer.(*primary)
	if !ok || p.d != c.d {
		return gpu.Refuse(call, gpu.ErrInvalid, "the peer is another driver's")
	}
	if err := c.usable(call); err != nil {
		return err
	}
	if p.dev == c.dev {
		return nil
	}
	rc := C.call_cuCtxEnablePeerAccess(c.d.table, c.ctx, p.ctx, 0)
	if rc != 0 && gpu.Code(rc) != gpu.PeerAccessEnabled {
		return c.fail(rc, call, "access to %v", p)
	}
	return nil
}

// idle says whether a release would not wait. It would for the work of any
// stream of the device's context, also of one made through another use of it;
// ErrBusy says so.
func (c *primary) idle(call string) error {
	for _, use := range c.d.uses(c.dev) {
		if use.busy() {
			return gpu.Refuse(call, gpu.ErrBusy, "a stream of %v still has work; wait for it first", c)
		}
	}
	return nil
}

func (c *primary) busy() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for s := range c.streams {
		if s.busy() {
			return true
		}
	}
	return false
}

// uses are the open contexts of a device.
func (d *driver) uses(dev *device) (list []*primary) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for c := range d.contexts {
		if c.dev == dev {
			list = append(list, c)
		}
	}
	return list
}
