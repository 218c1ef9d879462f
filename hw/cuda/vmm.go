//go:build gpu && linux && cgo

package cuda

/*
#include "abi.h"

#cgo noescape tandem_granularity
#cgo nocallback tandem_granularity
#cgo noescape tandem_create
#cgo nocallback tandem_create
#cgo noescape tandem_set_access
#cgo nocallback tandem_set_access
#cgo noescape tandem_import_file
#cgo nocallback tandem_import_file
#cgo nocallback call_cuMemRelease
#cgo noescape call_cuMemAddressReserve
#cgo nocallback call_cuMemAddressReserve
#cgo nocallback call_cuMemAddressFree
#cgo nocallback call_cuMemMap
#cgo nocallback call_cuMemUnmap
#cgo noescape call_cuMemExportToShareableHandle
#cgo nocallback call_cuMemExportToShareableHandle
#cgo noescape call_cuMemImportFromShareableHandle
#cgo nocallback call_cuMemImportFromShareableHandle
*/
import "C"

import (
	"fmt"
	"syscall"
	"unsafe"

	"example.com/tandem/api/gpu"
)

// Handle types of CUmemAllocationHandleType.
const typeFile, typeFabric = 1, 8

func typesOf(s gpu.Share) C.int {
	var t C.int
	if s&gpu.ByFile != 0 {
		t |= typeFile
	}
	if s&gpu.ByFabric != 0 {
		t |= typeFabric
	}
	return t
}

func shareOf(types int) gpu.Share {
	var s gpu.Share
	if types&typeFile != 0 {
		s |= gpu.ByFile
	}
	if types&typeFabric != 0 {
		s |= gpu.ByFabric
	}
	return s
}

// Granularity is the recommended one.
func (c *primary) Granularity(share gpu.Share) (uint64, error) {
	const call = "cuMemGetAllocationGranularity"
	if err := c.sharable(call, share); err != nil {
		return 0, err
	}
	var n C.size_t
	if rc := C.tandem_granularity(c.d.table, c.ctx, c.dev.dev, typesOf(share), &n); rc != 0 {
		return 0, c.fail(rc, call, "memory %v", share)
	}
	return uint64(n), nil
}

func (c *primary) sharable(call string, share gpu.Share) error {
	if err := c.usable(call); err != nil {
		return err
	}
	if !share.Valid() {
		return gpu.Refuse(call, gpu.ErrInvalid, "unknown way of sharing %#x", uint8(share))
	}
	if !c.dev.info.VirtualMemory {
		return gpu.Refuse(call, gpu.ErrUnsupported, "%v has no virtual memory management", c)
	}
	return nil
}

// physical is a handle of the driver.
type physical struct {
	c     *primary
	h     C.CUmemHandle
	bytes uint64
	share gpu.Share
	freed bool
	entry *gpu.Entry
}

func (c *primary) newPhysical(k gpu.Kind, h C.CUmemHandle, bytes uint64, share gpu.Share) *physical {
	return &physical{c: c, h: h, bytes: bytes, share: share,
		entry: c.ledger.Add(k, func() string { return fmt.Sprintf("%v of %d bytes, %v", k, bytes, share) })}
}

// Create gives memory without an address.
func (c *primary) Create(bytes uint64, share gpu.Share) (gpu.Physical, error) {
	const call = "cuMemCreate"
	if err := c.sharable(call, share); err != nil {
		return nil, err
	}
	if bytes == 0 {
		return nil, gpu.Refuse(call, gpu.ErrInvalid, "0 bytes")
	}
	var h C.CUmemHandle
	if rc := C.tandem_create(c.d.table, c.ctx, c.dev.dev, typesOf(share), C.size_t(bytes), &h); rc != 0 {
		return nil, c.fail(rc, call, "%d bytes, %v", bytes, share)
	}
	return c.newPhysical(gpu.KindPhysical, h, bytes, share), nil
}

// ImportFile gives the memory behind a descriptor.
func (c *primary) ImportFile(fd int, bytes uint64) (gpu.Physical, error) {
	h, err := c.importFile(fd)
	if err != nil {
		return nil, err
	}
	return c.newPhysical(gpu.KindPhysical, h, bytes, gpu.ByFile), nil
}

func (c *primary) importFile(fd int) (C.CUmemHandle, error) {
	const call = "cuMemImportFromShareableHandle"
	if err := c.sharable(call, gpu.ByFile); err != nil {
		return 0, err
	}
	// The driver takes a bad descriptor badly.
	var stat syscall.Stat_t
	if err := syscall.Fstat(fd, &stat); err != nil {
		return 0, gpu.Refuse(call, gpu.ErrInvalid, "descriptor %d: %v", fd, err)
	}
	var h C.CUmemHandle
	if rc := C.tandem_import_file(c.d.table, c.ctx, &h, C.int(fd)); rc != 0 {
		return 0, c.fail(rc, call, "descriptor %d", fd)
	}
	return h, nil
}

// ImportFabric gives the memory behind a fabric handle.
func (c *primary) ImportFabric(f gpu.FabricHandle, bytes uint64) (gpu.Physical, error) {
	h, err := c.importFabric(f)
	if err != nil {
		return nil, err
	}
	return c.newPhysical(gpu.KindPhysical, h, bytes, gpu.ByFabric), nil
}

func (c *primary) importFabric(f gpu.FabricHandle) (C.CUmemHandle, error) {
	const call = "cuMemImportFromShareableHandle"
	if err := c.sharable(call, gpu.ByFabric); err != nil {
		return 0, err
	}
	var h C.CUmemHandle
	if rc := C.call_cuMemImportFromShareableHandle(c.d.table, c.ctx, &h, unsafe.Pointer(&f[0]), typeFabric); rc != 0 {
		return 0, c.fail(rc, call, "a fabric handle")
	}
	return h, nil
}

func (p *physical) live(call string) error {
	if p.freed {
		return gpu.Refuse(call, gpu.ErrClosed, "the handle was released")
	}
	return p.c.usable(call)
}

// Bytes is the size of the memory.
func (p *physical) Bytes() uint64 { return p.bytes }

// Share is the set of ways that it can travel.
func (p *physical) Share() gpu.Share { return p.share }

func (p *physical) export(to unsafe.Pointer, way gpu.Share) error {
	const call = "cuMemExportToShareableHandle"
	if err := p.live(call); err != nil {
		return err
	}
	if p.share&way == 0 {
		return gpu.Refuse(call, gpu.ErrInvalid, "the memory was made %v, and is asked for %v", p.share, way)
	}
	if rc := C.call_cuMemExportToShareableHandle(p.c.d.table, p.c.ctx, to, p.h, typesOf(way), 0); rc != 0 {
		return p.c.fail(rc, call, "%d bytes, %v", p.bytes, way)
	}
	return nil
}

// ExportFile gives a descriptor of the memory.
func (p *physical) ExportFile() (gpu.Descriptor, error) {
	var fd C.int
	if err := p.export(unsafe.Pointer(&fd), gpu.ByFile); err != nil {
		return nil, err
	}
	syscall.CloseOnExec(int(fd))
	return &descriptor{fd: int(fd), entry: p.c.ledger.Add(gpu.KindDescriptor, nil)}, nil
}

// ExportFabric gives a fabric handle of the memory.
func (p *physical) ExportFabric() (f gpu.FabricHandle, err error) {
	err = p.export(unsafe.Pointer(&f[0]), gpu.ByFabric)
	return f, err
}

// Release gives the handle back.
func (p *physical) Release() error {
	const call = "cuMemRelease"
	if err := p.live(call); err != nil {
		return err
	}
	if rc := C.call_cuMemRelease(p.c.d.table, p.c.ctx, p.h); rc != 0 {
		if err := p.c.fail(rc, call, "%d bytes", p.bytes); !gone(err) {
			return err
		}
	}
	p.freed = true
	p.entry.Release()
	return nil
}

// descriptor is an exported file descriptor.
type descriptor struct {
	fd    int // -1 once closed
	entry *gpu.Entry
}

// FD is the number.
func (d *descriptor) FD() int { return d.fd }

// Close closes the descriptor.
func (d *descriptor) Close() error {
	if d.fd < 0 {
		return gpu.Refuse("close", gpu.ErrClosed, "the descriptor was closed")
	}
	err := syscall.Close(d.fd)
	d.fd = -1 // Linux closes it whatever close answers
	d.entry.Release()
	if err != nil {
		return gpu.Refuse("close", gpu.ErrDriver, "%v", err)
	}
	return nil
}

// Map gives memory an address.
func (c *primary) Map(p gpu.Physical, others ...gpu.Device) (gpu.Ptr, error) {
	v, ok := p.(*physical)
	if !ok || v == nil || v.c.d != c.d {
		return 0, gpu.Refuse("cuMemMap", gpu.ErrInvalid, "the memory is another driver's, or a multicast object, which maps itself")
	}
	if err := v.live("cuMemMap"); err != nil {
		return 0, err
	}
	if err := c.usable("cuMemMap"); err != nil {
		return 0, err
	}
	devs := []C.int{C.int(c.dev.dev)}
	for _, o := range others {
		dev, err := c.d.own("cuMemSetAccess", o)
		if err != nil {
			return 0, err
		}
		if dev != c.dev {
			devs = append(devs, C.int(dev.dev))
		}
	}
	return c.mapHandle(v.h, v.bytes, v.share, devs)
}

// mapping is an address range on its way to being mapped, or back.
type mapping struct {
	c      *primary
	p      C.CUdeviceptr
	bytes  C.size_t
	mapped bool
}

func (c *primary) mapHandle(h C.CUmemHandle, bytes uint64, share gpu.Share, devs []C.int) (gpu.Ptr, error) {
	m := &mapping{c: c, bytes: C.size_t(bytes)}
	if rc := C.call_cuMemAddressReserve(c.d.table, c.ctx, &m.p, m.bytes, 0, 0, 0); rc != 0 {
		return 0, c.fail(rc, "cuMemAddressReserve", "%d bytes", bytes)
	}
	if err := m.fill(h, devs); err != nil {
		c.undo(gpu.KindMapping, m.free)
		return 0, err
	}
	c.keep(gpu.KindMapping, block{
		Range: gpu.Range{Base: gpu.Ptr(m.p), Bytes: bytes, Device: c.dev.ordinal, Share: share},
		free:  m.free, mapping: true,
	})
	return gpu.Ptr(m.p), nil
}

func (m *mapping) fill(h C.CUmemHandle, devs []C.int) error {
	c := m.c
	if rc := C.call_cuMemMap(c.d.table, c.ctx, m.p, m.bytes, 0, h, 0); rc != 0 {
		return c.fail(rc, "cuMemMap", "%d bytes at %#x", uint64(m.bytes), uint64(m.p))
	}
	m.mapped = true
	if rc := C.tandem_set_access(c.d.table, c.ctx, m.p, m.bytes, &devs[0], C.size_t(len(devs))); rc != 0 {
		return c.fail(rc, "cuMemSetAccess", "%d bytes at %#x for %d devices", uint64(m.bytes), uint64(m.p), len(devs))
	}
	return nil
}

// free goes back step by step; where a step fails, the next call goes on there.
func (m *mapping) free() error {
	c := m.c
	if m.mapped {
		if rc := C.call_cuMemUnmap(c.d.table, c.ctx, m.p, m.bytes); rc != 0 {
			return c.fail(rc, "cuMemUnmap", "%d bytes at %#x", uint64(m.bytes), uint64(m.p))
		}
		m.mapped = false
	}
	if rc := C.call_cuMemAddressFree(c.d.table, c.ctx, m.p, m.bytes); rc != 0 {
		return c.fail(rc, "cuMemAddressFree", "%d bytes at %#x", uint64(m.bytes), uint64(m.p))
	}
	return nil
}
