package host

import (
	"errors"
	"unsafe"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
)

// align is what addresses of images are kept modulo of.
const align = 256

// Arena is memory on one GPU that images are copied into, guards and all, each
// at its address modulo 256; and pinned memory of the same layout.
type Arena struct {
	machine *Machine
	gpu     *GPU
	device  gpu.Ptr
	pinned  gpu.HostMemory
	bytes   uint64
	used    uint64
	pieces  []piece
	// old is what grew too small; it is freed at the end, since other teams
	// may be at work.
	old []gpu.Ptr
	// lent says that device memory is the engine's (Allocator).
	lent bool
}

// piece is one image in an arena.
type piece struct {
	at    uint64
	bytes []byte
}

// reset forgets the images.
func (a *Arena) reset() { a.used, a.pieces = 0, a.pieces[:0] }

// span is the addresses of an image, guards included.
func span(m api.Image) (lo, hi uint64) {
	lo = m.Addr - uint64(m.Guard)
	return lo, lo + uint64(len(m.Bytes))
}

// extent is where the payload lies in this process.
func extent(m api.Image) (lo, hi uintptr) {
	p := m.Payload()
	lo = uintptr(unsafe.Pointer(unsafe.SliceData(p)))
	return lo, lo + uintptr(len(p))
}

// place finds room for a lane: one place for both images where their addresses
// overlap. It gives the offsets of the payloads.
func (a *Arena) place(l api.Lane) (src, dst uint64) {
	slo, shi := span(l.Src)
	dlo, dhi := span(l.Dst)
	payloads := l.Src.Addr < l.Dst.Addr+uint64(l.Dst.Len()) && l.Dst.Addr < l.Src.Addr+uint64(l.Src.Len())
	if !payloads {
		return a.put(slo, shi) + uint64(l.Src.Guard), a.put(dlo, dhi) + uint64(l.Dst.Guard)
	}
	lo, hi := min(slo, dlo), max(shi, dhi)
	at := a.put(lo, hi)
	return at + l.Src.Addr - lo, at + l.Dst.Addr - lo
}

// put finds room for the addresses [lo, hi).
func (a *Arena) put(lo, hi uint64) uint64 {
	at := (a.used+align-1)/align*align + lo%align
	a.used = at + (hi - lo)
	return at
}

// hold notes the images of a lane that was placed.
func (a *Arena) hold(l api.Lane, src, dst uint64) {
	a.pieces = append(a.pieces, piece{src - uint64(l.Src.Guard), l.Src.Bytes}, piece{dst - uint64(l.Dst.Guard), l.Dst.Bytes})
}

// reserve is room for n bytes that are not an image's.
func (a *Arena) reserve(n int) uint64 { return a.put(0, uint64(n)) }

// need is what was placed, rounded up.
func (a *Arena) need() uint64 { return (a.used + align) / align * align }

// grow makes the memory large enough for what was placed. Nothing may run.
func (a *Arena) grow() error {
	need := a.need()
	if need <= a.bytes {
		return nil
	}
	need = max(need, 2*a.bytes, 1<<16)
	d, err := a.gpu.Context.Alloc(need)
	if err != nil {
		return err
	}
	h, err := a.gpu.Context.AllocHost(int(need))
	if err != nil {
		return errors.Join(err, a.machine.Free(a.gpu, d))
	}
	a.retire()
	a.device, a.pinned, a.bytes = d, h, need
	return nil
}

// grow makes the memory of arenas, one for each GPU, large enough for what was
// placed. What an engine lends is as large on every GPU.
func (t *Team) grow(arenas []*Arena) error {
	lender, ok := t.engine.(Allocator)
	if !ok {
		for _, a := range arenas {
			if err := a.grow(); err != nil {
				return err
			}
		}
		return nil
	}
	need, have := uint64(1<<16), arenas[0].bytes
	for _, a := range arenas {
		need = max(need, a.need())
	}
	if need <= have {
		return nil
	}
	need = max(need, 2*have)
	var pinned []gpu.HostMemory
	fail := func(err error) error {
		for i, h := range pinned {
			err = errors.Join(err, t.machine.Free(t.gpus[i], h.Ptr))
		}
		return err
	}
	for _, g := range t.gpus {
		h, err := g.Context.AllocHost(int(need))
		if err != nil {
			return fail(err)
		}
		pinned = append(pinned, h)
	}
	device, err := lender.Alloc(need)
	if err != nil {
		return fail(err)
	}
	if have > 0 {
		err = lender.Free(devices(arenas), false)
	}
	for i, a := range arenas {
		a.retire()
		a.device, a.pinned, a.bytes, a.lent = device[i], pinned[i], need, true
	}
	return err
}

func devices(arenas []*Arena) []gpu.Ptr {
	var p []gpu.Ptr
	for _, a := range arenas {
		p = append(p, a.device)
	}
	return p
}

// releaseArenas frees all memory of a set of arenas, or sets it aside.
func (t *Team) releaseArenas(arenas []*Arena) error {
	poisoned := t.poison != nil
	var errs []error
	if lender, ok := t.engine.(Allocator); ok && arenas[0].bytes > 0 {
		errs = append(errs, lender.Free(devices(arenas), poisoned))
	}
	for _, a := range arenas {
		errs = append(errs, a.release(poisoned))
	}
	return errors.Join(errs...)
}

// retire puts the memory with the old.
func (a *Arena) retire() {
	switch {
	case a.bytes == 0:
	case a.lent:
		a.old = append(a.old, a.pinned.Ptr)
	default:
		a.old = append(a.old, a.device, a.pinned.Ptr)
	}
	a.device, a.pinned, a.bytes = 0, gpu.HostMemory{}, 0
}

// release frees all memory, or sets it aside.
func (a *Arena) release(poisoned bool) error {
	a.retire()
	var errs []error
	for _, p := range a.old {
		if poisoned {
			errs = append(errs, a.gpu.Context.Quarantine(p))
		} else {
			errs = append(errs, a.machine.Free(a.gpu, p))
		}
	}
	a.old = nil
	return errors.Join(errs...)
}

// load queues the copy of the images to the GPU.
func (a *Arena) load(s gpu.Stream) error {
	for _, p := range a.pieces {
		copy(a.pinned.Bytes[p.at:], p.bytes)
	}
	return s.Copy(a.device, a.pinned.Ptr, a.used)
}

// fetch queues the copy of the images from the GPU; store ends it.
func (a *Arena) fetch(s gpu.Stream) error { return s.Copy(a.pinned.Ptr, a.device, a.used) }

func (a *Arena) store() {
	for _, p := range a.pieces {
		copy(p.bytes, a.pinned.Bytes[p.at:])
	}
}
