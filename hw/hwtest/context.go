package hwtest

import (
	"example.com/tandem/api/gpu"
)

type gpuContext struct {
	gpu.VirtualMemory // there is none
	d                 *Driver
	dev               *device
	entry             *gpu.Entry
}

func (c *gpuContext) Device() gpu.Device { return c.dev }
func (c *gpuContext) SMs() int           { return c.dev.Info().SMs }

func (c *gpuContext) alloc(call string, n uint64, dev int, k gpu.Kind) (*block, error) {
	if err := c.d.enter(call); err != nil {
		return nil, err
	}
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	if n == 0 {
		return nil, gpu.Refuse(call, gpu.ErrInvalid, "no bytes")
	}
	if c.d.Capacity > 0 && c.d.used+n > c.d.Capacity {
		return nil, &gpu.Error{Call: call, Code: gpu.OutOfMemory}
	}
	c.d.used += n
	b := &block{base: c.d.next, bytes: make([]byte, n), dev: dev, entry: c.d.ledger.Add(k, func() string { return call })}
	c.d.next += gpu.Ptr((n + 4095) / 4096 * 4096)
	c.d.blocks = append(c.d.blocks, b)
	return b, nil
}

func (c *gpuContext) Alloc(n uint64) (gpu.Ptr, error) {
	b, err := c.alloc("cuMemAlloc", n, c.dev.i, gpu.KindMemory)
	if err != nil {
		return 0, err
	}
	return b.base, nil
}

func (c *gpuContext) AllocHost(n int) (gpu.HostMemory, error) {
	b, err := c.alloc("cuMemHostAlloc", uint64(n), -1, gpu.KindHostMemory)
	if err != nil {
		return gpu.HostMemory{}, err
	}
	return gpu.HostMemory{Bytes: b.bytes, Ptr: b.base}, nil
}

func (c *gpuContext) Free(p gpu.Ptr) error {
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	for i, b := range c.d.blocks {
		if b.base == p && !b.kept {
			b.entry.Release()
			c.d.used -= uint64(len(b.bytes))
			c.d.blocks = append(c.d.blocks[:i], c.d.blocks[i+1:]...)
			return nil
		}
	}
	return gpu.Refuse("cuMemFree", gpu.ErrInvalid, "no allocation begins at %#x", uint64(p))
}

func (c *gpuContext) Quarantine(p gpu.Ptr) error {
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	if b := c.d.find(p); b != nil && b.base == p && !b.kept {
		b.kept = true
		b.entry.Quarantine()
		return nil
	}
	return gpu.Refuse("quarantine", gpu.ErrInvalid, "no allocation begins at %#x", uint64(p))
}

func (c *gpuContext) MemInfo() (free, total uint64, err error) { return 1 << 40, 1 << 40, nil }

func (c *gpuContext) Range(p gpu.Ptr) (gpu.Range, error) {
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	if b := c.d.find(p); b != nil {
		return gpu.Range{Base: b.base, Bytes: uint64(len(b.bytes)), Device: b.dev, Owned: true}, nil
	}
	return gpu.Range{}, gpu.Refuse("range", gpu.ErrInvalid, "%#x is in no allocation", uint64(p))
}

func (c *gpuContext) EnablePeer(gpu.Context) error { return c.d.enter("cuCtxEnablePeerAccess") }

func (c *gpuContext) NewStream(gpu.StreamOptions) (gpu.Stream, error) {
	if err := c.d.enter("cuStreamCreate"); err != nil {
		return nil, err
	}
	return &stream{c: c, entry: c.d.ledger.Add(gpu.KindStream, nil)}, nil
}

func (c *gpuContext) NewEvent(o gpu.EventOptions) (gpu.Event, error) {
	if err := c.d.enter("cuEventCreate"); err != nil {
		return nil, err
	}
	return &event{c.d, o.Timing, 0, c.d.ledger.Add(gpu.KindEvent, nil)}, nil
}

func (c *gpuContext) LoadModule(string, []byte) (gpu.Module, error) {
	if err := c.d.enter("cuModuleLoadData"); err != nil {
		return nil, err
	}
	return &module{c.d, c.d.ledger.Add(gpu.KindModule, nil)}, nil
}

func (c *gpuContext) Multicast() (gpu.Multicaster, error) {
	return nil, gpu.Refuse("multicast", gpu.ErrMulticastOff, "the stand-in has none")
}

func (c *gpuContext) Abandon() {
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	c.d.ledger.QuarantineAll()
}

func (c *gpuContext) Close() error {
	c.entry.Release()
	return nil
}

type module struct {
	d     *Driver
	entry *gpu.Entry
}

func (m *module) Function(name string) (gpu.Function, error) {
	k := m.d.Kernels[name]
	if k == nil {
		return nil, gpu.Refuse("cuModuleGetFunction", gpu.ErrNotFound, "%s", name)
	}
	return &function{m.d, name, k}, nil
}

func (m *module) Global(string) (gpu.Ptr, uint64, error) {
	return 0, 0, gpu.Refuse("cuModuleGetGlobal", gpu.ErrNotFound, "the stand-in has none")
}

func (m *module) Unload() error {
	m.entry.Release()
	return nil
}

type function struct {
	d    *Driver
	name string
	run  Kernel
}

func (f *function) Name() string { return f.name }
func (f *function) Attributes() gpu.FunctionAttributes {
	return gpu.FunctionAttributes{MaxThreads: 1024}
}
func (f *function) Params() []gpu.Param {
	if p, ok := f.d.ParamsOf[f.name]; ok {
		return p
	}
	return f.d.Params
}
func (f *function) SetDynamicShared(int) error        { return nil }
func (f *function) BlocksPerSM(int, int) (int, error) { return 1, nil }
