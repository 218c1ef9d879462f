package gpubook

import (
	"encoding/binary"
	"os"
	"sync"

	"example.com/tandem/api/gpu"
)

// Granularity is what sizes of memory without an address are multiples of, in
// bytes; the one of NVIDIA's driver.
const Granularity = 1 << 21

// Handles are the ways to memory of type M: descriptors and fabric handles.
type Handles[M any] struct {
	lock   *sync.Mutex
	files  map[int]*Physical[M]
	fabric map[gpu.FabricHandle]*Physical[M]
}

// NewHandles are the handles of a driver with that lock.
func NewHandles[M any](lock *sync.Mutex) *Handles[M] {
	return &Handles[M]{lock, map[int]*Physical[M]{}, map[gpu.FabricHandle]*Physical[M]{}}
}

// File is what a descriptor names; nil if it names nothing. The lock is held.
func (h *Handles[M]) File(fd int) *Physical[M] { return h.files[fd] }

// Fabric is what a fabric handle names, as File.
func (h *Handles[M]) Fabric(f gpu.FabricHandle) *Physical[M] { return h.fabric[f] }

// Physical is a handle of memory without an address; it is a gpu.Physical.
type Physical[M any] struct {
	Memory M
	c      *Context
	of     *Handles[M]
	bytes  uint64
	share  gpu.Share
	entry  *gpu.Entry // nil once released
}

// New is a handle of memory, which counts as kind k in the context. The lock is
// held.
func (h *Handles[M]) New(c *Context, k gpu.Kind, memory M, bytes uint64, s gpu.Share) *Physical[M] {
	return &Physical[M]{memory, c, h, bytes, s, c.Ledger.Add(k, nil)}
}

// Create checks a size and makes a handle of new memory.
func (h *Handles[M]) Create(c *Context, n uint64, s gpu.Share, memory func() (M, error)) (gpu.Physical, error) {
	leave, err := c.Enter("cuMemCreate")
	if err != nil {
		return nil, err
	}
	defer leave()
	if n == 0 || n%Granularity != 0 || !s.Valid() {
		return nil, gpu.Refuse("cuMemCreate", gpu.ErrInvalid, "%d bytes, %v; a multiple of %d is needed", n, s, Granularity)
	}
	m, err := memory()
	if err != nil {
		return nil, err
	}
	return h.New(c, gpu.KindPhysical, m, n, s), nil
}

// Import makes another handle of the memory that find, called under the lock,
// gives: nil is none.
func (h *Handles[M]) Import(c *Context, n uint64, s gpu.Share, find func() *Physical[M]) (gpu.Physical, error) {
	const call = "cuMemImportFromShareableHandle"
	leave, err := c.Enter(call)
	if err != nil {
		return nil, err
	}
	defer leave()
	p := find()
	if p == nil || p.bytes != n {
		return nil, gpu.Refuse(call, gpu.ErrInvalid, "no memory of %d bytes behind the handle", n)
	}
	return h.New(c, gpu.KindPhysical, p.Memory, n, s), nil
}

// Bytes is the size.
func (p *Physical[M]) Bytes() uint64 { return p.bytes }

// Share says how the memory may travel.
func (p *Physical[M]) Share() gpu.Share { return p.share }

// LiveIn reports whether the handle is one of h and was not released. The lock is
// held.
func (p *Physical[M]) LiveIn(h *Handles[M]) bool { return p.of == h && p.entry != nil }

func (p *Physical[M]) export(way gpu.Share) (leave func(), err error) {
	const call = "cuMemExportToShareableHandle"
	if leave, err = p.c.Enter(call); err != nil {
		return nil, err
	}
	if p.entry == nil || p.share&way == 0 {
		leave()
		return nil, gpu.Refuse(call, gpu.ErrInvalid, "released, or not to be shared so")
	}
	return leave, nil
}

// ExportFile gives a descriptor that names the memory.
func (p *Physical[M]) ExportFile() (gpu.Descriptor, error) {
	leave, err := p.export(gpu.ByFile)
	if err != nil {
		return nil, err
	}
	defer leave()
	f, err := os.Open(os.DevNull)
	if err != nil {
		return nil, gpu.Refuse("cuMemExportToShareableHandle", gpu.ErrDriver, "%v", err)
	}
	p.of.files[int(f.Fd())] = p
	return &descriptor[M]{f, p.of, p.c.Ledger.Add(gpu.KindDescriptor, nil)}, nil
}

// ExportFabric gives a fabric handle that names the memory.
func (p *Physical[M]) ExportFabric() (h gpu.FabricHandle, err error) {
	leave, err := p.export(gpu.ByFabric)
	if err != nil {
		return h, err
	}
	defer leave()
	binary.LittleEndian.PutUint64(h[:], uint64(len(p.of.fabric))+1)
	p.of.fabric[h] = p
	return h, nil
}

// Release gives the handle back.
func (p *Physical[M]) Release() error {
	leave, err := p.c.Release("cuMemRelease")
	if err != nil {
		return err
	}
	defer leave()
	if p.entry == nil {
		return gpu.Refuse("cuMemRelease", gpu.ErrClosed, "the handle was released")
	}
	p.entry.Release()
	p.entry = nil
	return nil
}

// descriptor is a file that stands for memory.
type descriptor[M any] struct {
	f     *os.File
	of    *Handles[M]
	entry *gpu.Entry // nil once closed
}

func (d *descriptor[M]) FD() int { return int(d.f.Fd()) }

func (d *descriptor[M]) Close() error {
	d.of.lock.Lock()
	defer d.of.lock.Unlock()
	if d.entry == nil {
		return gpu.Refuse("close", gpu.ErrClosed, "the descriptor was closed")
	}
	delete(d.of.files, int(d.f.Fd()))
	d.entry.Release()
	d.entry = nil
	return d.f.Close()
}

// CheckShare is the granularity of memory that is to travel so, or why it cannot.
func (c *Context) CheckShare(s gpu.Share) (uint64, error) {
	leave, err := c.Enter("cuMemGetAllocationGranularity")
	if err != nil {
		return 0, err
	}
	defer leave()
	if !s.Valid() {
		return 0, gpu.Refuse("cuMemGetAllocationGranularity", gpu.ErrInvalid, "unknown way of sharing")
	}
	return Granularity, nil
}
