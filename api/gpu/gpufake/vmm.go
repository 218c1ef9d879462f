package gpufake

import (
	"example.com/tandem/api/gpu"
	"example.com/tandem/api/gpu/gpubook"
)

// physical is memory without an address.
type physical = gpubook.Physical[[]byte]

func (c *fakeContext) Granularity(s gpu.Share) (uint64, error) { return c.book.CheckShare(s) }

func (c *fakeContext) Create(n uint64, s gpu.Share) (gpu.Physical, error) {
	return c.d.handles.Create(c.book, n, s, func() ([]byte, error) { return cleared(n)[:n], nil })
}

func (c *fakeContext) ImportFile(fd int, n uint64) (gpu.Physical, error) {
	return c.d.handles.Import(c.book, n, gpu.ByFile, func() *physical { return c.d.handles.File(fd) })
}

func (c *fakeContext) ImportFabric(h gpu.FabricHandle, n uint64) (gpu.Physical, error) {
	return c.d.handles.Import(c.book, n, gpu.ByFabric, func() *physical { return c.d.handles.Fabric(h) })
}

func (c *fakeContext) Map(p gpu.Physical, others ...gpu.Device) (gpu.Ptr, error) {
	leave, err := c.enter("cuMemMap")
	if err != nil {
		return 0, err
	}
	defer leave()
	v, ok := p.(*physical)
	if !ok || !v.LiveIn(c.d.handles) {
		return 0, gpu.Refuse("cuMemMap", gpu.ErrInvalid, "the memory is another driver's, or released")
	}
	r := &region{Range: gpu.Range{Bytes: v.Bytes(), Device: c.dev.ordinal, Share: v.Share()}, data: v.Memory, dev: c.dev, owner: c, mapping: true}
	for _, o := range others {
		dev, ok := o.(*device)
		if !ok || dev.d != c.d {
			return 0, gpu.Refuse("cuMemSetAccess", gpu.ErrInvalid, "the device is another driver's")
		}
		r.others = append(r.others, dev)
	}
	return c.d.place(r, gpu.KindMapping), nil
}
