//go:build gpu && linux && cgo

package cuda

/*
#include "abi.h"

#cgo noescape call_cuMemAlloc_v2
#cgo nocallback call_cuMemAlloc_v2
#cgo nocallback call_cuMemFree_v2
#cgo noescape call_cuMemHostAlloc
#cgo nocallback call_cuMemHostAlloc
#cgo nocallback call_cuMemFreeHost
#cgo noescape call_cuMemHostGetDevicePointer_v2
#cgo nocallback call_cuMemHostGetDevicePointer_v2
#cgo noescape call_cuPointerGetAttribute
#cgo nocallback call_cuPointerGetAttribute
*/
import "C"

import (
	"errors"
	"fmt"
	"unsafe"

	"example.com/tandem/api/gpu"
)

// Flags of cuMemHostAlloc: pinned for all contexts, mapped into the device's
// addresses.
const hostPortable, hostMapped = 1, 2

// Alloc gives device memory.
func (c *primary) Alloc(bytes uint64) (gpu.Ptr, error) {
	const call = "cuMemAlloc"
	if err := c.usable(call); err != nil {
		return 0, err
	}
	if bytes == 0 {
		return 0, gpu.Refuse(call, gpu.ErrInvalid, "0 bytes")
	}
	var p C.CUdeviceptr
	if rc := C.call_cuMemAlloc_v2(c.d.table, c.ctx, &p, C.size_t(bytes)); rc != 0 {
		return 0, c.fail(rc, call, "%d bytes", bytes)
	}
	c.keep(gpu.KindMemory, block{
		Range: gpu.Range{Base: gpu.Ptr(p), Bytes: bytes, Device: c.dev.ordinal},
		free: func() error {
			if rc := C.call_cuMemFree_v2(c.d.table, c.ctx, p); rc != 0 {
				return c.fail(rc, "cuMemFree", "%d bytes at %#x", bytes, uint64(p))
			}
			return nil
		},
	})
	return gpu.Ptr(p), nil
}

// AllocHost gives pinned host memory, cleared.
func (c *primary) AllocHost(bytes int) (gpu.HostMemory, error) {
	const call = "cuMemHostAlloc"
	if err := c.usable(call); err != nil {
		return gpu.HostMemory{}, err
	}
	if bytes <= 0 {
		return gpu.HostMemory{}, gpu.Refuse(call, gpu.ErrInvalid, "%d bytes", bytes)
	}
	var host unsafe.Pointer
	if rc := C.call_cuMemHostAlloc(c.d.table, c.ctx, &host, C.size_t(bytes), hostPortable|hostMapped); rc != 0 {
		return gpu.HostMemory{}, c.fail(rc, call, "%d bytes", bytes)
	}
	b := block{Range: gpu.Range{Bytes: uint64(bytes), Device: -1}, free: func() error {
		if rc := C.call_cuMemFreeHost(c.d.table, c.ctx, host); rc != 0 {
			return c.fail(rc, "cuMemFreeHost", "%d bytes", bytes)
		}
		return nil
	}}
	var p C.CUdeviceptr
	if rc := C.call_cuMemHostGetDevicePointer_v2(c.d.table, c.ctx, &p, host, 0); rc != 0 {
		err := c.fail(rc, "cuMemHostGetDevicePointer", "%d bytes of host memory", bytes)
		c.undo(gpu.KindHostMemory, b.free)
		return gpu.HostMemory{}, err
	}
	b.Base = gpu.Ptr(p)
	m := gpu.HostMemory{Bytes: unsafe.Slice((*byte)(host), bytes), Ptr: b.Base}
	clear(m.Bytes)
	c.keep(gpu.KindHostMemory, b)
	return m, nil
}

// keep enters an allocation in the ledger and the table of addresses.
func (c *primary) keep(k gpu.Kind, b block) {
	b.owner, b.Owned = c, true
	b.entry = c.ledger.Add(k, func() string { return fmt.Sprintf("%v of %d bytes at %#x", k, b.Bytes, uint64(b.Base)) })
	c.d.memory.add(b)
}

// undo releases what a call that failed half-way holds. What cannot be released
// now is an orphan, which Close tries again.
func (c *primary) undo(k gpu.Kind, free func() error) {
	if err := free(); err != nil && !gone(err) {
		c.ledger.Add(k, func() string { return "half-made " + k.String() }).Orphan(free)
	}
}

// Free releases what Alloc and AllocHost gave.
func (c *primary) Free(p gpu.Ptr) error { return c.giveBack("cuMemFree", p, false) }

// Unmap releases what Map gave.
func (c *primary) Unmap(p gpu.Ptr) error { return c.giveBack("cuMemUnmap", p, true) }

func (c *primary) giveBack(call string, p gpu.Ptr, mapping bool) error {
	if err := c.usable(call); err != nil {
		return err
	}
	if err := c.idle(call); err != nil {
		return err
	}
	b, err := c.d.memory.take(p, func(b block) error {
		switch {
		case b.owner != any(c):
			return gpu.Refuse(call, gpu.ErrInvalid, "%#x belongs to another context", uint64(p))
		case b.kept:
			return gpu.Refuse(call, gpu.ErrInvalid, "%#x is quarantined", uint64(p))
		case b.mapping && !mapping:
			return gpu.Refuse(call, gpu.ErrInvalid, "%#x is a mapping; Unmap ends it", uint64(p))
		case mapping && !b.mapping:
			return gpu.Refuse(call, gpu.ErrInvalid, "%#x is no mapping; Free releases it", uint64(p))
		}
		return nil
	})
	if errors.Is(err, errNoRange) {
		return gpu.Refuse(call, gpu.ErrInvalid, "no allocation begins at %#x (freed twice, or another's)", uint64(p))
	}
	if err != nil {
		return err
	}
	err = b.free()
	if err != nil && !gone(err) {
		c.d.memory.add(b) // it is still there, and can be tried again
		return err
	}
	b.entry.Release()
	return err
}

// Quarantine sets an allocation aside for good.
func (c *primary) Quarantine(p gpu.Ptr) error {
	if err := c.usable("quarantine"); err != nil {
		return err
	}
	if c.d.memory.keep(func(b block) bool { return b.Base == p && b.owner == any(c) }) == 0 {
		return gpu.Refuse("quarantine", gpu.ErrInvalid, "no allocation of %v begins at %#x", c, uint64(p))
	}
	return nil
}

// Range looks in our own table first, and asks the driver about memory of other
// users of the process.
func (c *primary) Range(p gpu.Ptr) (gpu.Range, error) {
	if b, ok := c.d.memory.find(p); ok {
		return b.Range, nil
	}
	if err := c.usable("cuPointerGetAttribute"); err != nil {
		return gpu.Range{}, err
	}
	return c.foreign(p)
}

// Attributes of a pointer (CUpointer_attribute), and the memory type of host
// memory.
const (
	pointerType    = 2
	pointerOrdinal = 9
	pointerStart   = 11
	pointerSize    = 12
	pointerShare   = 14
	typeHost       = 1
)

func (c *primary) foreign(p gpu.Ptr) (gpu.Range, error) {
	// Each answer is 8 bytes or fewer, little-endian.
	values := map[C.int]uint64{pointerType: 0, pointerOrdinal: 0, pointerStart: 0, pointerSize: 0, pointerShare: 0}
	for attribute := range values {
		var v uint64
		if rc := C.call_cuPointerGetAttribute(c.d.table, c.ctx, unsafe.Pointer(&v), attribute, C.CUdeviceptr(p)); rc != 0 {
			if attribute == pointerShare {
				continue // not for all memory; it is then not to be shared
			}
			if gpu.Code(rc) == gpu.InvalidValue {
				return gpu.Range{}, gpu.Refuse("cuPointerGetAttribute", gpu.ErrInvalid, "%#x is in no allocation of a GPU or of pinned memory", uint64(p))
			}
			return gpu.Range{}, c.fail(rc, "cuPointerGetAttribute", "attribute %d of %#x", attribute, uint64(p))
		}
		values[attribute] = v
	}
	r := gpu.Range{Base: gpu.Ptr(values[pointerStart]), Bytes: values[pointerSize], Device: int(int32(values[pointerOrdinal]))}
	if values[pointerType] == typeHost {
		r.Device = -1
	}
	r.Share = shareOf(int(values[pointerShare]))
	return r, nil
}

// reach says whether n bytes at p lie in one allocation.
func (c *primary) reach(call string, p gpu.Ptr, n uint64) error {
	r, err := c.Range(p)
	if err != nil {
		return err
	}
	if !r.Holds(p, n) {
		return gpu.Refuse(call, gpu.ErrInvalid, "%d bytes at %#x reach beyond their allocation of %d bytes at %#x", n, uint64(p), r.Bytes, uint64(r.Base))
	}
	return nil
}
