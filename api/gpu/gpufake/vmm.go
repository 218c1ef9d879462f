package gpufake

import (
	"encoding/binary"
	"os"

	"example.com/tandem/api/gpu"
)

const granularity = 1 << 21

// physical is memory without an address.
type physical struct {
	c     *fakeContext
	data  []byte
	share gpu.Share
	entry *gpu.Entry
	freed bool
}

func (c *fakeContext) Granularity(s gpu.Share) (uint64, error) {
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

func (c *fakeContext) Create(n uint64, s gpu.Share) (gpu.Physical, error) {
	leave, err := c.enter("cuMemCreate")
	if err != nil {
		return nil, err
	}
	defer leave()
	if n == 0 || n%granularity != 0 || !s.Valid() {
		return nil, gpu.Refuse("cuMemCreate", gpu.ErrInvalid, "%d bytes, %v; a multiple of %d is needed", n, s, granularity)
	}
	return c.physical(cleared(n), s), nil
}

func (c *fakeContext) physical(data []byte, s gpu.Share) *physical {
	return &physical{c: c, data: data, share: s, entry: c.ledger.Add(gpu.KindPhysical, nil)}
}

func (c *fakeContext) ImportFile(fd int, n uint64) (gpu.Physical, error) {
	return c.imported(n, gpu.ByFile, func() *physical { return c.d.files[fd] })
}

func (c *fakeContext) ImportFabric(h gpu.FabricHandle, n uint64) (gpu.Physical, error) {
	return c.imported(n, gpu.ByFabric, func() *physical { return c.d.fabric[h] })
}

func (c *fakeContext) imported(n uint64, s gpu.Share, of func() *physical) (gpu.Physical, error) {
	const call = "cuMemImportFromShareableHandle"
	leave, err := c.enter(call)
	if err != nil {
		return nil, err
	}
	defer leave()
	p := of()
	if p == nil || uint64(len(p.data)) != n {
		return nil, gpu.Refuse(call, gpu.ErrInvalid, "no memory of %d bytes behind the handle", n)
	}
	return c.physical(p.data, s), nil
}

func (p *physical) Bytes() uint64    { return uint64(len(p.data)) }
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

func (c *fakeContext) Map(p gpu.Physical, others ...gpu.Device) (gpu.Ptr, error) {
	leave, err := c.enter("cuMemMap")
	if err != nil {
		return 0, err
	}
	defer leave()
	v, ok := p.(*physical)
	if !ok || v.c.d != c.d || v.freed {
		return 0, gpu.Refuse("cuMemMap", gpu.ErrInvalid, "the memory is another driver's, or released")
	}
	r := &region{Range: gpu.Range{Bytes: v.Bytes(), Device: c.dev.ordinal, Share: v.share}, data: v.data, dev: c.dev, owner: c, mapping: true}
	for _, o := range others {
		dev, ok := o.(*device)
		if !ok || dev.d != c.d {
			return 0, gpu.Refuse("cuMemSetAccess", gpu.ErrInvalid, "the device is another driver's")
		}
		r.others = append(r.others, dev)
	}
	return c.d.place(r, gpu.KindMapping), nil
}
