package ptx

import (
	"context"
	"time"

	"example.com/tandem/api/gpu"
	"example.com/tandem/api/gpu/gpubook"
	"example.com/tandem/sim/ptx/vm"
)

// memory is what a handle stands for: a store, or a multicast object.
type memory struct {
	store *vm.Store
	cast  *cast
}

// physical is memory without an address, or a multicast object.
type physical = gpubook.Physical[memory]

func (c *vcontext) Granularity(s gpu.Share) (uint64, error) { return c.book.CheckShare(s) }

func (c *vcontext) Create(n uint64, s gpu.Share) (gpu.Physical, error) {
	return c.d.handles.Create(c.book, n, s, func() (memory, error) {
		if n > c.dev.info.Memory-c.d.used(c.dev) {
			return memory{}, &gpu.Error{Call: "cuMemCreate", Code: gpu.OutOfMemory}
		}
		return memory{store: vm.NewStore(n, c.dev.ordinal, false)}, nil
	})
}

// plain is a handle of memory that is no multicast object.
func plain(p *physical) *physical {
	if p == nil || p.Memory.cast != nil {
		return nil
	}
	return p
}

func (c *vcontext) ImportFile(fd int, n uint64) (gpu.Physical, error) {
	return c.d.handles.Import(c.book, n, gpu.ByFile, func() *physical { return plain(c.d.handles.File(fd)) })
}

func (c *vcontext) ImportFabric(h gpu.FabricHandle, n uint64) (gpu.Physical, error) {
	return c.d.handles.Import(c.book, n, gpu.ByFabric, func() *physical { return plain(c.d.handles.Fabric(h)) })
}

func (c *vcontext) Map(p gpu.Physical, others ...gpu.Device) (gpu.Ptr, error) {
	leave, err := c.enter("cuMemMap")
	if err != nil {
		return 0, err
	}
	defer leave()
	v, ok := p.(*physical)
	if !ok || !v.LiveIn(c.d.handles) || v.Memory.cast != nil {
		return 0, gpu.Refuse("cuMemMap", gpu.ErrInvalid, "the memory is another driver's, or released, or a multicast object")
	}
	reach := []int{c.dev.ordinal}
	for _, o := range others {
		dev, ok := o.(*device)
		if !ok || dev.d != c.d {
			return 0, gpu.Refuse("cuMemSetAccess", gpu.ErrInvalid, "the device is another driver's")
		}
		reach = append(reach, dev.ordinal)
	}
	owner := c.d.devices[v.Memory.store.Device].(*device)
	r := &region{Region: vm.Region{Bytes: v.Bytes(), Store: v.Memory.store, Devices: c.d.reachable(owner, reach)}, dev: owner, owner: c, mapping: true, share: v.Share()}
	return c.d.place(r, gpu.KindMapping), nil
}

// cast is what all handles of one multicast object share.
type cast struct {
	o       gpu.MulticastOptions
	devices []*device
	bound   map[int][]binding // by device
}

type binding struct {
	offset, from, bytes uint64
	store               *vm.Store
}

type multicaster struct{ c *vcontext }

// object is a handle of a multicast object.
type object struct {
	*physical
	c *vcontext
}

func (m multicaster) Granularity(o gpu.MulticastOptions) (least, best uint64, err error) {
	if o.Devices < 1 || !o.Share.Valid() {
		return 0, 0, gpu.Refuse("cuMulticastGetGranularity", gpu.ErrInvalid, "%d devices, %v", o.Devices, o.Share)
	}
	return gpubook.Granularity, gpubook.Granularity, nil
}

func (m multicaster) handle(call string, k *cast) (gpu.MulticastObject, error) {
	m.c.d.casts++
	return object{m.c.d.handles.New(m.c.book, gpu.KindMulticast, memory{cast: k}, k.o.Bytes, k.o.Share), m.c}, nil
}

func (m multicaster) Create(o gpu.MulticastOptions) (gpu.MulticastObject, error) {
	const call = "cuMulticastCreate"
	leave, err := m.c.enter(call)
	if err != nil {
		return nil, err
	}
	defer leave()
	if o.Devices < 1 || o.Devices > len(m.c.d.devices) || o.Bytes == 0 || o.Bytes%gpubook.Granularity != 0 || !o.Share.Valid() {
		return nil, gpu.Refuse(call, gpu.ErrInvalid, "%d devices of %d, %d bytes, a multiple of %d is needed", o.Devices, len(m.c.d.devices), o.Bytes, gpubook.Granularity)
	}
	return m.handle(call, &cast{o: o, bound: map[int][]binding{}})
}

func (m multicaster) imported(o gpu.MulticastOptions, of func() *physical) (gpu.MulticastObject, error) {
	const call = "cuMemImportFromShareableHandle"
	leave, err := m.c.enter(call)
	if err != nil {
		return nil, err
	}
	defer leave()
	p := of()
	if p == nil || p.Memory.cast == nil || p.Bytes() != o.Bytes {
		return nil, gpu.Refuse(call, gpu.ErrInvalid, "no multicast object of %d bytes behind the handle", o.Bytes)
	}
	return m.handle(call, p.Memory.cast)
}

func (m multicaster) ImportFile(fd int, o gpu.MulticastOptions) (gpu.MulticastObject, error) {
	return m.imported(o, func() *physical { return m.c.d.handles.File(fd) })
}

func (m multicaster) ImportFabric(h gpu.FabricHandle, o gpu.MulticastOptions) (gpu.MulticastObject, error) {
	return m.imported(o, func() *physical { return m.c.d.handles.Fabric(h) })
}

func (b object) AddDevice(v gpu.Device) error {
	const call = "cuMulticastAddDevice"
	leave, err := b.c.enter(call)
	if err != nil {
		return err
	}
	defer leave()
	dev, ok := v.(*device)
	k := b.Memory.cast
	if !ok || dev.d != b.c.d || !b.LiveIn(b.c.d.handles) || len(k.devices) == k.o.Devices {
		return gpu.Refuse(call, gpu.ErrInvalid, "another driver's device, a released object, or one device too many")
	}
	for _, have := range k.devices {
		if have == dev {
			return gpu.Refuse(call, gpu.ErrInvalid, "%s was added", dev.info.Name)
		}
	}
	k.devices = append(k.devices, dev)
	return nil
}

// complete waits until all devices are added, as the driver does.
func (b object) complete(ctx context.Context, call string) (leave func(), err error) {
	for {
		leave, err := b.c.enter(call)
		if err != nil {
			return nil, err
		}
		if !b.LiveIn(b.c.d.handles) {
			leave()
			return nil, gpu.Refuse(call, gpu.ErrClosed, "the object was released")
		}
		if len(b.Memory.cast.devices) == b.Memory.cast.o.Devices {
			return leave, nil
		}
		have := len(b.Memory.cast.devices)
		leave()
		if ctx.Err() != nil {
			return nil, gpu.Refuse(call, gpu.ErrDeadline, "%d of %d devices were added", have, b.Memory.cast.o.Devices)
		}
		b.c.d.Clock().Sleep(time.Microsecond)
	}
}

func (b object) Bind(ctx context.Context, offset uint64, memory gpu.Physical, from, bytes uint64) error {
	const call = "cuMulticastBindMem"
	leave, err := b.complete(ctx, call)
	if err != nil {
		return err
	}
	defer leave()
	p, ok := memory.(*physical)
	switch {
	case !ok || !p.LiveIn(b.c.d.handles) || p.Memory.cast != nil:
		return gpu.Refuse(call, gpu.ErrInvalid, "no memory of this driver")
	case (offset|from|bytes)%gpubook.Granularity != 0 || bytes == 0 || offset > b.Bytes() || bytes > b.Bytes()-offset || from > p.Bytes() || bytes > p.Bytes()-from:
		return gpu.Refuse(call, gpu.ErrInvalid, "%d bytes at %d behind the object at %d", bytes, from, offset)
	}
	if offset != 0 || from != 0 || bytes != b.Bytes() {
		return gpu.Refuse(call, gpu.ErrUnsupported, "only whole objects are bound here")
	}
	for _, v := range b.Memory.cast.devices {
		if v.ordinal == p.Memory.store.Device {
			if b.Memory.cast.bound[v.ordinal] != nil {
				return gpu.Refuse(call, gpu.ErrInvalid, "memory of %s is bound", v.info.Name)
			}
			b.Memory.cast.bound[v.ordinal] = []binding{{offset, from, bytes, p.Memory.store}}
			return nil
		}
	}
	return gpu.Refuse(call, gpu.ErrInvalid, "memory of a device that was not added")
}

func (b object) Unbind(v gpu.Device, offset, bytes uint64) error {
	const call = "cuMulticastUnbind"
	leave, err := b.c.release(call)
	if err != nil {
		return err
	}
	defer leave()
	if b.Memory.cast.bound[v.Ordinal()] == nil || offset != 0 || bytes != b.Bytes() {
		return gpu.Refuse(call, gpu.ErrInvalid, "nothing is bound there")
	}
	delete(b.Memory.cast.bound, v.Ordinal())
	return nil
}

func (b object) Map(ctx context.Context, c gpu.Context) (gpu.Ptr, error) {
	const call = "cuMemMap"
	leave, err := b.complete(ctx, call)
	if err != nil {
		return 0, err
	}
	defer leave()
	v, ok := c.(*vcontext)
	if !ok || v.d != b.c.d {
		return 0, gpu.Refuse(call, gpu.ErrInvalid, "the context is another driver's")
	}
	r := &region{Region: vm.Region{Bytes: b.Bytes(), Devices: func(from int) bool { return from == v.dev.ordinal }}, dev: v.dev, owner: v, mapping: true, share: b.Share()}
	for _, dev := range b.Memory.cast.devices {
		k := b.Memory.cast.bound[dev.ordinal]
		if k == nil {
			return 0, gpu.Refuse(call, gpu.ErrInvalid, "no memory of %s is bound", dev.info.Name)
		}
		r.Parts = append(r.Parts, k[0].store)
	}
	return v.d.place(r, gpu.KindMapping), nil
}
