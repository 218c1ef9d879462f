package ptx

import (
	"example.com/tandem/api/gpu"
	"example.com/tandem/sim/ptx/vm"
)

// region is an allocation or a mapping.
type region struct {
	vm.Region
	dev     *device // nil for host memory
	owner   *vcontext
	entry   *gpu.Entry
	share   gpu.Share
	mapping bool
	kept    bool
}

func (d *driver) used(v *device) (n uint64) {
	for _, r := range d.regions {
		if r.dev == v && !r.mapping {
			n += r.Bytes
		}
	}
	return n
}

// place gives a region its address. The lock is held.
func (d *driver) place(r *region, k gpu.Kind) gpu.Ptr {
	p := gpu.Ptr(d.m.Place(&r.Region))
	r.entry = r.owner.ledger.Add(k, k.String)
	d.regions[p] = r
	return p
}

// find gives the region that holds n bytes at p. The lock is held.
func (d *driver) find(p gpu.Ptr, n uint64) *region {
	if r := d.m.Find(uint64(p), max(n, 1)); r != nil {
		return d.regions[gpu.Ptr(r.Base)]
	}
	return nil
}

// reachable says which devices may access memory of v.
func (d *driver) reachable(v *device, others []int) func(int) bool {
	return func(from int) bool {
		if from == v.ordinal || d.peers[[2]int{from, v.ordinal}] {
			return true
		}
		for _, o := range others {
			if o == from {
				return true
			}
		}
		return false
	}
}

func (c *vcontext) Alloc(n uint64) (gpu.Ptr, error) {
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
	return c.d.place(c.allocation(n), gpu.KindMemory), nil
}

func (c *vcontext) allocation(n uint64) *region {
	return &region{Region: vm.Region{Bytes: n, Store: vm.NewStore(n, c.dev.ordinal, false), Devices: c.d.reachable(c.dev, nil)}, dev: c.dev, owner: c}
}

func (c *vcontext) AllocHost(n int) (gpu.HostMemory, error) {
	leave, err := c.enter("cuMemHostAlloc")
	if err != nil {
		return gpu.HostMemory{}, err
	}
	defer leave()
	if n <= 0 {
		return gpu.HostMemory{}, gpu.Refuse("cuMemHostAlloc", gpu.ErrInvalid, "%d bytes", n)
	}
	r := &region{Region: vm.Region{Bytes: uint64(n), Store: vm.NewStore(uint64(n), -1, true)}, owner: c}
	return gpu.HostMemory{Ptr: c.d.place(r, gpu.KindHostMemory), Bytes: r.Store.Data}, nil
}

func (c *vcontext) Free(p gpu.Ptr) error  { return c.giveBack("cuMemFree", p, false) }
func (c *vcontext) Unmap(p gpu.Ptr) error { return c.giveBack("cuMemUnmap", p, true) }

func (c *vcontext) giveBack(call string, p gpu.Ptr, mapping bool) error {
	leave, err := c.release(call)
	if err != nil {
		return err
	}
	defer leave()
	if err := c.busy(call); err != nil {
		return err
	}
	r := c.d.regions[p]
	if r == nil || r.owner != c || r.kept || r.mapping != mapping {
		return gpu.Refuse(call, gpu.ErrInvalid, "no such allocation at %#x", uint64(p))
	}
	c.d.remove(r)
	r.entry.Release()
	return nil
}

func (d *driver) remove(r *region) {
	delete(d.regions, gpu.Ptr(r.Base))
	d.m.Remove(&r.Region)
}

func (c *vcontext) Quarantine(p gpu.Ptr) error {
	leave, err := c.release("quarantine")
	if err != nil {
		return err
	}
	defer leave()
	r := c.d.regions[p]
	if r == nil || r.owner != c || r.kept {
		return gpu.Refuse("quarantine", gpu.ErrInvalid, "no such allocation at %#x", uint64(p))
	}
	r.kept = true
	r.entry.Quarantine()
	return nil
}

func (c *vcontext) Range(p gpu.Ptr) (gpu.Range, error) {
	leave, err := c.enter("cuPointerGetAttribute")
	if err != nil {
		return gpu.Range{}, err
	}
	defer leave()
	r := c.d.find(p, 1)
	if r == nil {
		return gpu.Range{}, gpu.Refuse("cuPointerGetAttribute", gpu.ErrInvalid, "%#x is in no allocation", uint64(p))
	}
	out := gpu.Range{Base: gpu.Ptr(r.Base), Bytes: r.Bytes, Device: -1, Owned: r.entry != nil, Share: r.share}
	if r.dev != nil {
		out.Device = r.dev.ordinal
	}
	return out, nil
}
