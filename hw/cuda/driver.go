//go:build gpu && linux && cgo

package cuda

/*
#include "abi.h"

#cgo noescape call_cuDeviceGetCount
#cgo nocallback call_cuDeviceGetCount
#cgo noescape call_cuGetErrorName
#cgo nocallback call_cuGetErrorName
#cgo noescape call_cuGetErrorString
#cgo nocallback call_cuGetErrorString
*/
import "C"

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"example.com/tandem/api/gpu"
)

// driver is libcuda, started.
type driver struct {
	table   C.uintptr_t
	opts    Options
	version int
	devices []gpu.Device
	clock   gpu.Clock
	ledger  gpu.Ledger
	memory  ranges

	mu       sync.Mutex
	closed   bool
	locks    map[gpu.UUID]*heldLock
	contexts map[*primary]bool // open ones
}

// Open loads and starts the CUDA driver. Where that is not possible the error
// matches gpu.ErrUnavailable and says why.
func Open(o Options) (gpu.Driver, error) {
	o = o.withDefaults()
	addresses, version, err := load(&dynamic{}, o.Library, symbols(), C.FN_REQUIRED)
	if err != nil {
		return nil, err
	}
	table, err := newTable(addresses)
	if err != nil {
		return nil, err
	}
	d := &driver{table: table, opts: o, version: version, clock: gpu.WallClock(),
		locks: make(map[gpu.UUID]*heldLock), contexts: make(map[*primary]bool)}
	var n C.int
	if rc := C.call_cuDeviceGetCount(table, &n); rc != 0 {
		return nil, d.fail(rc, "cuDeviceGetCount", "")
	}
	if n == 0 {
		return nil, gpu.Refuse("cuDeviceGetCount", gpu.ErrNoDevice, "the driver lists none; CUDA_VISIBLE_DEVICES may hide them")
	}
	for i := range int(n) {
		dev, err := d.newDevice(i)
		if err != nil {
			return nil, err
		}
		d.devices = append(d.devices, dev)
	}
	return d, nil
}

// Name is the CUDA version that the driver supports.
func (d *driver) Name() string { return "CUDA " + versionString(d.version) }

// Devices are the GPUs that CUDA_VISIBLE_DEVICES leaves.
func (d *driver) Devices() []gpu.Device { return d.devices }

// Clock is wall time.
func (d *driver) Clock() gpu.Clock { return d.clock }

// Counts is our own table of what lives.
func (d *driver) Counts() gpu.Counts { return d.ledger.Counts() }

// Close checks that nothing is left. The library stays loaded.
func (d *driver) Close() error {
	d.ledger.UndoAll()
	if err := d.ledger.Check(d.Name()); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	return nil
}

// open refuses calls on a closed driver.
func (d *driver) open(call string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return gpu.Refuse(call, gpu.ErrClosed, "the driver was closed")
	}
	return nil
}

// fail is the error of a call; a negative code is that of cuCtxSetCurrent
// before it.
func (d *driver) fail(rc C.CUresult, call, format string, args ...any) error {
	if rc < 0 {
		rc, call = -rc, "cuCtxSetCurrent before "+call
	}
	e := &gpu.Error{Call: call, Code: gpu.Code(rc), Detail: fmt.Sprintf(format, args...)}
	var text *C.char
	if C.call_cuGetErrorName(d.table, rc, &text) == 0 && text != nil {
		e.Name = C.GoString(text)
	}
	// The usual codes speak for themselves.
	if is := e.Code.Sentinel(); errors.Is(is, gpu.ErrDriver) || errors.Is(is, gpu.ErrUnavailable) {
		if C.call_cuGetErrorString(d.table, rc, &text) == 0 && text != nil {
			e.Detail = strings.TrimSuffix(C.GoString(text)+": "+e.Detail, ": ")
		}
	}
	return e
}

// gone reports whether err leaves nothing to release: the context is dead and
// took its objects with it.
func gone(err error) bool {
	var e *gpu.Error
	return errors.As(err, &e) && e.Sticky()
}

// flag is a C truth value.
func flag(v C.int) bool { return v != 0 }
