//go:build gpu && linux && cgo

package cuda

/*
#include "abi.h"

#cgo noescape tandem_multicast_granularity
#cgo nocallback tandem_multicast_granularity
#cgo noescape tandem_multicast_create
#cgo nocallback tandem_multicast_create
#cgo nocallback call_cuMulticastAddDevice
#cgo nocallback call_cuMulticastBindMem
#cgo nocallback call_cuMulticastUnbind
*/
import "C"

import (
	"context"
	"sync"

	"example.com/tandem/api/gpu"
)

// multicaster is the only way to a cuMulticast function. There is one only
// where the policy allows it and every device has the attribute.
type multicaster struct{ c *primary }

// Multicast fails closed: gpu.MulticastPolicy, and then the attribute of every
// visible device. Nothing is created to find out.
func (c *primary) Multicast() (gpu.Multicaster, error) {
	if err := c.usable("multicast"); err != nil {
		return nil, err
	}
	if err := gpu.MulticastPolicy(c.d.opts.Multicast, c.d.opts.Getenv); err != nil {
		return nil, err
	}
	for _, dev := range c.d.devices {
		if i := dev.Info(); !i.Multicast {
			return nil, gpu.Refuse("multicast", gpu.ErrUnsupported, "GPU %d (%s) does not have the attribute", dev.Ordinal(), i.Name)
		}
	}
	return &multicaster{c}, nil
}

func (m *multicaster) check(call string, o gpu.MulticastOptions) error {
	if o.Devices < 1 || o.Bytes == 0 || !o.Share.Valid() {
		return gpu.Refuse(call, gpu.ErrInvalid, "%d devices, %d bytes, sharing %#x", o.Devices, o.Bytes, uint8(o.Share))
	}
	return m.c.usable(call)
}

// Granularity asks for both granularities.
func (m *multicaster) Granularity(o gpu.MulticastOptions) (minimum, recommended uint64, err error) {
	const call = "cuMulticastGetGranularity"
	if err := m.check(call, o); err != nil {
		return 0, 0, err
	}
	for option, to := range []*uint64{&minimum, &recommended} {
		var n C.size_t
		if rc := C.tandem_multicast_granularity(m.c.d.table, C.uint(o.Devices), C.size_t(o.Bytes), typesOf(o.Share), C.int(option), &n); rc != 0 {
			return 0, 0, m.c.fail(rc, call, "%d bytes on %d devices", o.Bytes, o.Devices)
		}
		*to = uint64(n)
	}
	return minimum, recommended, nil
}

// Create makes an object.
func (m *multicaster) Create(o gpu.MulticastOptions) (gpu.MulticastObject, error) {
	const call = "cuMulticastCreate"
	if err := m.check(call, o); err != nil {
		return nil, err
	}
	var h C.CUmemHandle
	if rc := C.tandem_multicast_create(m.c.d.table, C.uint(o.Devices), C.size_t(o.Bytes), typesOf(o.Share), &h); rc != 0 {
		return nil, m.c.fail(rc, call, "%d bytes on %d devices", o.Bytes, o.Devices)
	}
	return m.object(h, o), nil
}

func (m *multicaster) object(h C.CUmemHandle, o gpu.MulticastOptions) gpu.MulticastObject {
	return &multicast{physical: m.c.newPhysical(gpu.KindMulticast, h, o.Bytes, o.Share)}
}

// ImportFile gives the object behind a descriptor.
func (m *multicaster) ImportFile(fd int, o gpu.MulticastOptions) (gpu.MulticastObject, error) {
	if err := m.check("cuMemImportFromShareableHandle", o); err != nil {
		return nil, err
	}
	h, err := m.c.importFile(fd)
	if err != nil {
		return nil, err
	}
	return m.object(h, o), nil
}

// ImportFabric gives the object behind a fabric handle.
func (m *multicaster) ImportFabric(f gpu.FabricHandle, o gpu.MulticastOptions) (gpu.MulticastObject, error) {
	if err := m.check("cuMemImportFromShareableHandle", o); err != nil {
		return nil, err
	}
	h, err := m.c.importFabric(f)
	if err != nil {
		return nil, err
	}
	return m.object(h, o), nil
}

// multicast is a multicast object.
type multicast struct {
	*physical

	mu        sync.Mutex
	abandoned bool // a call into the driver was left behind
}

func (m *multicast) usable(call string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.abandoned {
		return gpu.Refuse(call, gpu.ErrClosed, "an earlier call on the multicast object never came back")
	}
	return m.live(call)
}

// AddDevice adds a device, once each.
func (m *multicast) AddDevice(d gpu.Device) error {
	const call = "cuMulticastAddDevice"
	if err := m.usable(call); err != nil {
		return err
	}
	dev, err := m.c.d.own(call, d)
	if err != nil {
		return err
	}
	if rc := C.call_cuMulticastAddDevice(m.c.d.table, m.h, dev.dev); rc != 0 {
		return m.c.fail(rc, call, "GPU %d", dev.ordinal)
	}
	return nil
}

// within runs a call that may block for ever, until ctx ends. Then giveUp sets
// aside what the call holds besides the object, and late is told if it comes
// back after all.
func (m *multicast) within(ctx context.Context, call string, do func() error, giveUp, late func()) error {
	if err := context.Cause(ctx); err != nil {
		return gpu.Refuse(call, gpu.ErrDeadline, "%v", err)
	}
	done := make(chan error, 1)
	go func() {
		err := do()
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.abandoned && err == nil {
			late()
		}
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	select {
	case err := <-done: // it came back in this very moment
		return err
	default:
	}
	m.abandoned = true
	m.entry.Quarantine()
	giveUp()
	return gpu.Refuse(call, gpu.ErrDeadline, "the driver still waits for devices to be added: %v", context.Cause(ctx))
}

// Bind puts memory behind the object.
func (m *multicast) Bind(ctx context.Context, offset uint64, memory gpu.Physical, from, bytes uint64) error {
	const call = "cuMulticastBindMem"
	if err := m.usable(call); err != nil {
		return err
	}
	p, ok := memory.(*physical)
	if !ok || p == nil || p.c.d != m.c.d {
		return gpu.Refuse(call, gpu.ErrInvalid, "the memory is another driver's, or a multicast object itself")
	}
	if err := p.live(call); err != nil {
		return err
	}
	if bytes == 0 || from > p.bytes || bytes > p.bytes-from || offset > m.bytes || bytes > m.bytes-offset {
		return gpu.Refuse(call, gpu.ErrInvalid, "%d bytes from %d of %d, at %d of %d", bytes, from, p.bytes, offset, m.bytes)
	}
	return m.within(ctx, call, func() error {
		if rc := C.call_cuMulticastBindMem(m.c.d.table, m.h, C.size_t(offset), p.h, C.size_t(from), C.size_t(bytes), 0); rc != 0 {
			return m.c.fail(rc, call, "%d bytes of %v", bytes, p.c)
		}
		return nil
	}, func() {
		p.freed = true // the driver may bind it at any time
		p.entry.Quarantine()
	}, func() {})
}

// Unbind takes a device's memory away again.
func (m *multicast) Unbind(d gpu.Device, offset, bytes uint64) error {
	const call = "cuMulticastUnbind"
	if err := m.usable(call); err != nil {
		return err
	}
	dev, err := m.c.d.own(call, d)
	if err != nil {
		return err
	}
	if rc := C.call_cuMulticastUnbind(m.c.d.table, m.h, dev.dev, C.size_t(offset), C.size_t(bytes)); rc != 0 {
		return m.c.fail(rc, call, "%d bytes of GPU %d", bytes, dev.ordinal)
	}
	return nil
}

// Map gives the object an address in a context.
func (m *multicast) Map(ctx context.Context, c gpu.Context) (gpu.Ptr, error) {
	const call = "cuMemMap"
	if err := m.usable(call); err != nil {
		return 0, err
	}
	p, ok := c.(*primary)
	if !ok || p.d != m.c.d {
		return 0, gpu.Refuse(call, gpu.ErrInvalid, "the context is another driver's")
	}
	if err := p.usable(call); err != nil {
		return 0, err
	}
	var at gpu.Ptr
	err := m.within(ctx, call, func() (err error) {
		at, err = p.mapHandle(m.h, m.bytes, m.share, []C.int{C.int(p.dev.dev)})
		return err
	}, func() {}, func() { _ = p.Quarantine(at) })
	if err != nil {
		return 0, err // at may still be written
	}
	return at, nil
}

// Release gives the object back, unless a call on it never returned.
func (m *multicast) Release() error {
	if err := m.usable("cuMemRelease"); err != nil {
		return err
	}
	return m.physical.Release()
}
