package gpufake

import (
	"cmp"
	"slices"
	"unsafe"

	"example.com/tandem/api/gpu"
)

// region is an allocation or a mapping.
type region struct {
	gpu.Range
	data    []byte
	dev     *device // nil for host memory
	others  []*device
	owner   *fakeContext
	entry   *gpu.Entry
	mapping bool
	kept    bool
}

// cleared are 8-byte aligned, cleared memory.
func cleared(n uint64) []byte {
	words := make([]uint64, n/8+1)
	return unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), n)
}

func (d *driver) search(p gpu.Ptr) (int, bool) {
	return slices.BinarySearchFunc(d.regions, p, func(r *region, p gpu.Ptr) int { return cmp.Compare(r.Base, p) })
}

// find gives the region that holds n bytes at p. The lock is held.
func (d *driver) find(p gpu.Ptr, n uint64) *region {
	i, exact := d.search(p)
	if !exact {
		i--
	}
	if i < 0 || !d.regions[i].Holds(p, max(n, 1)) {
		return nil
	}
	return d.regions[i]
}

// place gives a region its address. The lock is held.
func (d *driver) place(r *region, k gpu.Kind) gpu.Ptr {
	const page = 1 << 16
	r.Base, r.Owned = d.next, true
	d.next = d.next.Add((r.Bytes+page)/page*page + page) // never adjacent
	r.entry = r.owner.ledger.Add(k, func() string { return k.String() })
	d.regions = append(d.regions, r) // addresses grow
	return r.Base
}

func (d *driver) used(v *device) (n uint64) {
	for _, r := range d.regions {
		if r.dev == v && !r.mapping {
			n += r.Bytes
		}
	}
	return n
}

func (c *fakeContext) Alloc(n uint64) (gpu.Ptr, error) {
	leave, err := c.enter("cuMemAlloc")
	if err != nil {
		return 0, err
	}
	defer leave()
	if n == 0 {
		return 0, gpu.Refuse("cuMemAlloc", gpu.ErrInvalid, "0 bytes")
	}
	if n > c.dev.info.Memory-c.d.used(c.dev) {
		return 0, &gpu.Error{Call: "cuMemAlloc", Code: gpu.OutOfMemory}
	}
	r := &region{Range: gpu.Range{Bytes: n, Device: c.dev.ordinal}, data: cleared(n), dev: c.dev, owner: c}
	for i := range r.data {
		r.data[i] = 0xdb // device memory is not cleared
	}
	return c.d.place(r, gpu.KindMemory), nil
}

func (c *fakeContext) AllocHost(n int) (gpu.HostMemory, error) {
	leave, err := c.enter("cuMemHostAlloc")
	if err != nil {
		return gpu.HostMemory{}, err
	}
	defer leave()
	if n <= 0 {
		return gpu.HostMemory{}, gpu.Refuse("cuMemHostAlloc", gpu.ErrInvalid, "%d bytes", n)
	}
	r := &region{Range: gpu.Range{Bytes: uint64(n), Device: -1}, data: cleared(uint64(n)), owner: c}
	return gpu.HostMemory{Ptr: c.d.place(r, gpu.KindHostMemory), Bytes: r.data}, nil
}

func (c *fakeContext) Free(p gpu.Ptr) error  { return c.giveBack("cuMemFree", p, false) }
func (c *fakeContext) Unmap(p gpu.Ptr) error { return c.giveBack("cuMemUnmap", p, true) }

func (c *fakeContext) giveBack(call string, p gpu.Ptr, mapping bool) error {
	leave, err := c.release(call)
	if err != nil {
		return err
	}
	defer leave()
	if err := c.busy(call); err != nil {
		return err
	}
	i, exact := c.d.search(p)
	if !exact || c.d.regions[i].owner != c || c.d.regions[i].kept || c.d.regions[i].mapping != mapping {
		return gpu.Refuse(call, gpu.ErrInvalid, "no such allocation at %#x", uint64(p))
	}
	c.d.regions[i].entry.Release()
	c.d.regions = slices.Delete(c.d.regions, i, i+1)
	return nil
}

func (c *fakeContext) Quarantine(p gpu.Ptr) error {
	leave, err := c.release("quarantine")
	if err != nil {
		return err
	}
	defer leave()
	i, exact := c.d.search(p)
	if !exact || c.d.regions[i].owner != c || c.d.regions[i].kept {
		return gpu.Refuse("quarantine", gpu.ErrInvalid, "no such allocation at %#x", uint64(p))
	}
	c.d.regions[i].kept = true
	c.d.regions[i].entry.Quarantine()
	return nil
}

func (c *fakeContext) Range(p gpu.Ptr) (gpu.Range, error) {
	leave, err := c.enter("cuPointerGetAttribute")
	if err != nil {
		return gpu.Range{}, err
	}
	defer leave()
	if r := c.d.find(p, 1); r != nil {
		return r.Range, nil
	}
	return gpu.Range{}, gpu.Refuse("cuPointerGetAttribute", gpu.ErrInvalid, "%#x is in no allocation", uint64(p))
}
