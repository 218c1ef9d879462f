package ptx

import (
	"context"
	"encoding/binary"
	"os"
	"time"

	"example.com/tandem/api/gpu"
	"example.com/tandem/sim/ptx/vm"
)

const granularity = 1 << 21

// physical is memory without an address, or a multicast object.
type physical struct {
	c     *vcontext
	store *vm.Store
	bytes uint64
	share gpu.Share
	cast  *cast // of a multicast object
	entry *gpu.Entry
	freed bool
}

func (c *vcontext) Granularity(s gpu.Share) (uint64, error) {
	leave, err := c.enter("cuMemGetAllocationGranularity")
	if err != nil {
		return 0, err
	}
	defer leave()
	if !s.Valid() {
		return 0, gpu.Refuse("cuMemGetAllocationGranularity", gpu.ErrInvalid, "unknown way of sharing")
	}
	return granularity, nil
}

func (c *vcontext) Create(n uint64, s gpu.Share) (gpu.Physical, error) {
	leave, err := c.enter("cuMemCreate")
	if err != nil {
		return nil, err
	}
	defer leave()
	if n == 0 || n%granularity != 0 || !s.Valid() {
		return nil, gpu.Refuse("cuMemCreate", gpu.ErrInvalid, "%d bytes, %v; a multiple of %d is needed", n, s, granularity)
	}
	if n > c.dev.info.Memory-c.d.used(c.dev) {
		return nil, &gpu.Error{Call: "cuMemCreate", Code: gpu.OutOfMemory}
	}
	return c.physical(vm.NewStore(n, c.dev.ordinal, false), n, s), nil
}

func (c *vcontext) physical(store *vm.Store, n uint64, s gpu.Share) *physical {
	return &physical{c: c, store: store, bytes: n, share: s, entry: c.ledger.Add(gpu.KindPhysical, nil)}
}

func (c *vcontext) ImportFile(fd int, n uint64) (gpu.Physical, error) {
	return c.imported(n, gpu.ByFile, func() *physical { return c.d.files[fd] })
}

func (c *vcontext) ImportFabric(h gpu.FabricHandle, n uint64) (gpu.Physical, error) {
	return c.imported(n, gpu.ByFabric, func() *physical { return c.d.fabric[h] })
}

func (c *vcontext) imported(n uint64, s gpu.Share, of func() *physical) (gpu.Physical, error) {
	const call = "cuMemImportFromShareableHandle"
	leave, err := c.enter(call)
	if err != nil {
		return nil, err
	}
	defer leave()
	p := of()
	if p == nil || p.bytes != n || p.cast != nil {
		return nil, gpu.Refuse(call, gpu.ErrInvalid, "no memory of %d bytes behind the handle", n)
	}
	return c.physical(p.store, n, s), nil
}

func (p *physical) Bytes() uint64    { return p.bytes }
func (p *physical) Share() gpu.Share { return p.share }

func (p *physical) export(way gpu.Share) (leave func(), err error) {
	const call = "cuMemExportToShareableHandle"
	if leave, err = p.c.enter(call); err != nil {
		return nil, err
	}
	if p.freed || p.share&way == 0 {
		leave()
		return nil, gpu.Refuse(call, gpu.ErrInvalid, "released, or not to be shared so")
	}
	return leave, nil
}

func (p *physical) ExportFile() (gpu.Descriptor, error) {
	leave, err := p.export(gpu.ByFile)
	if err != nil {
		return nil, err
	}
	defer leave()
	f, err := os.Open(os.DevNull)
	if err != nil {
		return nil, gpu.Refuse("cuMemExportToShareableHandle", gpu.ErrDriver, "%v", err)
	}
	p.c.d.files[int(f.Fd())] = p
	return &descriptor{f: f, d: p.c.d, entry: p.c.ledger.Add(gpu.KindDescriptor, nil)}, nil
}

func (p *physical) ExportFabric() (h gpu.FabricHandle, err error) {
	leave, err := p.export(gpu.ByFabric)
	if err != nil {
		return h, err
	}
	defer leave()
	binary.LittleEndian.PutUint64(h[:], uint64(len(p.c.d.fabric))+1)
	p.c.d.fabric[h] = p
	return h, nil
}

func (p *physical) Release() error {
	leave, err := p.c.release("cuMemRelease")
	if err != nil {
		return err
	}
	defer leave()
	if p.freed {
		return gpu.Refuse("cuMemRelease", gpu.ErrClosed, "the handle was released")
	}
	p.freed = true
	p.entry.Release()
	return nil
}

type descriptor struct {
	f     *os.File
	d     *driver
	entry *gpu.Entry
}

func (f *descriptor) FD() int { return int(f.f.Fd()) }

func (f *descriptor) Close() error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if f.entry == nil {
		return gpu.Refuse("close", gpu.ErrClosed, "the descriptor was closed")
	}
	delete(f.d.files, int(f.f.Fd()))
	f.entry.Release()
	f.entry = nil
	return f.f.Close()
}

func (c *vcontext) Map(p gpu.Physical, others ...gpu.Device) (gpu.Ptr, error) {
	leave, err := c.enter("cuMemMap")
	if err != nil {
		return 0, err
	}
	defer leave()
	v, ok := p.(*physical)
	if !ok || v.c.d != c.d || v.freed || v.cast != nil {
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
	owner := c.d.devices[v.store.Device].(*device)
	r := &region{Region: vm.Region{Bytes: v.bytes, Store: v.store, Devices: c.d.reachable(owner, reach)}, dev: owner, owner: c, mapping: true, share: v.share}
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
type object struct{ *physical }

func (m multicaster) Granularity(o gpu.MulticastOptions) (least, best uint64, err error) {
	if o.Devices < 1 || !o.Share.Valid() {
		return 0, 0, gpu.Refuse("cuMulticastGetGranularity", gpu.ErrInvalid, "%d devices, %v", o.Devices, o.Share)
	}
	return granularity, granularity, nil
}

func (m multicaster) handle(call string, k *cast) (gpu.MulticastObject, error) {
	m.c.d.casts++
	p := &physical{c: m.c, bytes: k.o.Bytes, share: k.o.Share, cast: k, entry: m.c.ledger.Add(gpu.KindMulticast, nil)}
	return object{p}, nil
}

func (m multicaster) Create(o gpu.MulticastOptions) (gpu.MulticastObject, error) {
	const call = "cuMulticastCreate"
	leave, err := m.c.enter(call)
	if err != nil {
		return nil, err
	}
	defer leave()
	if o.Devices < 1 || o.Devices > len(m.c.d.devices) || o.Bytes == 0 || o.Bytes%granularity != 0 || !o.Share.Valid() {
		return nil, gpu.Refuse(call, gpu.ErrInvalid, "%d devices of %d, %d bytes, a multiple of %d is needed", o.Devices, len(m.c.d.devices), o.Bytes, granularity)
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
	if p == nil || p.cast == nil || p.bytes != o.Bytes {
		return nil, gpu.Refuse(call, gpu.ErrInvalid, "no multicast object of %d bytes behind the handle", o.Bytes)
	}
	return m.handle(call, p.cast)
}

func (m multicaster) ImportFile(fd int, o gpu.MulticastOptions) (gpu.MulticastObject, error) {
	return m.imported(o, func() *physical { return m.c.d.files[fd] })
}

func (m multicaster) ImportFabric(h gpu.FabricHandle, o gpu.MulticastOptions) (gpu.MulticastObject, error) {
	return m.imported(o, func() *physical { return m.c.d.fabric[h] })
}

func (b object) AddDevice(v gpu.Device) error {
	const call = "cuMulticastAddDevice"
	leave, err := b.c.enter(call)
	if err != nil {
		return err
	}
	defer leave()
	dev, ok := v.(*device)
	k := b.cast
	if !ok || dev.d != b.c.d || b.freed || len(k.devices) == k.o.Devices {
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
		if b.freed {
			leave()
			return nil, gpu.Refuse(call, gpu.ErrClosed, "the object was released")
		}
		if len(b.cast.devices) == b.cast.o.Devices {
			return leave, nil
		}
		have := len(b.cast.devices)
		leave()
		if ctx.Err() != nil {
			return nil, gpu.Refuse(call, gpu.ErrDeadline, "%d of %d devices were added", have, b.cast.o.Devices)
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
	case !ok || p.c.d != b.c.d || p.freed || p.cast != nil:
		return gpu.Refuse(call, gpu.ErrInvalid, "no memory of this driver")
	case (offset|from|bytes)%granularity != 0 || bytes == 0 || offset > b.bytes || bytes > b.bytes-offset || from > p.bytes || bytes > p.bytes-from:
		return gpu.Refuse(call, gpu.ErrInvalid, "%d bytes at %d behind the object at %d", bytes, from, offset)
	}
	if offset != 0 || from != 0 || bytes != b.bytes {
		return gpu.Refuse(call, gpu.ErrUnsupported, "only whole objects are bound here")
	}
	for _, v := range b.cast.devices {
		if v.ordinal == p.store.Device {
			if b.cast.bound[v.ordinal] != nil {
				return gpu.Refuse(call, gpu.ErrInvalid, "memory of %s is bound", v.info.Name)
			}
			b.cast.bound[v.ordinal] = []binding{{offset, from, bytes, p.store}}
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
	if b.cast.bound[v.Ordinal()] == nil || offset != 0 || bytes != b.bytes {
		return gpu.Refuse(call, gpu.ErrInvalid, "nothing is bound there")
	}
	delete(b.cast.bound, v.Ordinal())
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
	r := &region{Region: vm.Region{Bytes: b.bytes, Devices: func(from int) bool { return from == v.dev.ordinal }}, dev: v.dev, owner: v, mapping: true, share: b.share}
	for _, dev := range b.cast.devices {
		k := b.cast.bound[dev.ordinal]
		if k == nil {
			return 0, gpu.Refuse(call, gpu.ErrInvalid, "no memory of %s is bound", dev.info.Name)
		}
		r.Parts = append(r.Parts, k[0].store)
	}
	return v.d.place(r, gpu.KindMapping), nil
}
