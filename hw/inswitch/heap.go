package inswitch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
	"example.com/tandem/hw/host"
)

// bindLimit is how long binding and mapping may take: both wait until every
// device was added.
const bindLimit = 20 * time.Second

// heap is memory of the same size on every GPU that has a unicast address each
// and one multicast address: an object bound to all.
type heap struct {
	gpus    []*host.GPU
	bytes   uint64
	object  gpu.MulticastObject
	memory  []gpu.Physical
	unicast []gpu.Ptr // of each GPU's memory, for all of them
	bound   []bool
	cast    []gpu.Ptr // for each GPU's own instructions
}

// multicasters asks every GPU, and is an *api.Unavailable where one may not.
// Nothing is created.
func multicasters(spec string, gpus []*host.GPU) ([]gpu.Multicaster, error) {
	var out []gpu.Multicaster
	for _, g := range gpus {
		m, err := g.Context.Multicast()
		if err != nil {
			hint := "multicast=off runs the same kernels with multicast emulated"
			if errors.Is(err, gpu.ErrMulticastOff) {
				hint = "multicast=on needs " + gpu.MulticastEnv + "=1 beside it, and none of the libraries' switches; " + hint
			}
			return nil, &api.Unavailable{Spec: spec, Reason: fmt.Sprintf("multicast on GPU %d: %v", g.Index, err), Hint: hint}
		}
		out = append(out, m)
	}
	return out, nil
}

// newHeap makes a heap of at least that many bytes a GPU. All devices are added
// before any memory is bound, and a failure anywhere undoes everything.
func newHeap(ctx context.Context, spec string, gpus []*host.GPU, bytes uint64) (*heap, error) {
	casters, err := multicasters(spec, gpus)
	if err != nil {
		return nil, err
	}
	h := &heap{gpus: gpus, bound: make([]bool, len(gpus))}
	if err := h.create(casters, bytes); err != nil {
		return nil, errors.Join(err, h.release(false))
	}
	ctx, cancel := context.WithTimeout(ctx, bindLimit)
	defer cancel()
	if err := h.bind(ctx); err != nil {
		return nil, errors.Join(err, h.release(false))
	}
	return h, nil
}

func (h *heap) create(casters []gpu.Multicaster, bytes uint64) error {
	o := gpu.MulticastOptions{Devices: len(h.gpus), Bytes: bytes}
	_, unit, err := casters[0].Granularity(o)
	if err != nil {
		return err
	}
	for _, g := range h.gpus {
		own, err := g.Context.Granularity(gpu.NotShared)
		if err != nil {
			return err
		}
		unit = max(unit, own) // both are powers of two
	}
	h.bytes = (bytes + unit - 1) / unit * unit
	o.Bytes = h.bytes
	if h.object, err = casters[0].Create(o); err != nil {
		return err
	}
	for _, g := range h.gpus {
		if err := h.object.AddDevice(g.Context.Device()); err != nil {
			return err
		}
	}
	return nil
}

func (h *heap) bind(ctx context.Context) error {
	for i, g := range h.gpus {
		m, err := g.Context.Create(h.bytes, gpu.NotShared)
		if err != nil {
			return err
		}
		h.memory = append(h.memory, m)
		var others []gpu.Device
		for j, o := range h.gpus {
			if j != i {
				others = append(others, o.Context.Device())
			}
		}
		p, err := g.Context.Map(m, others...)
		if err != nil {
			return err
		}
		h.unicast = append(h.unicast, p)
	}
	for i, m := range h.memory {
		if err := h.object.Bind(ctx, 0, m, 0, h.bytes); err != nil {
			return err
		}
		h.bound[i] = true
	}
	for _, g := range h.gpus {
		p, err := h.object.Map(ctx, g.Context)
		if err != nil {
			return err
		}
		h.cast = append(h.cast, p)
	}
	return nil
}

// release undoes what was done. Poisoned memory keeps its addresses and is set
// aside.
func (h *heap) release(poisoned bool) error {
	var errs []error
	drop := func(i int, p gpu.Ptr) {
		if poisoned {
			errs = append(errs, h.gpus[i].Context.Quarantine(p))
		} else {
			errs = append(errs, h.gpus[i].Context.Unmap(p))
		}
	}
	for i, p := range h.cast {
		drop(i, p)
	}
	for i, bound := range h.bound {
		if bound && !poisoned {
			errs = append(errs, h.object.Unbind(h.gpus[i].Context.Device(), 0, h.bytes))
		}
	}
	for i, p := range h.unicast {
		drop(i, p)
	}
	for _, m := range h.memory {
		errs = append(errs, m.Release())
	}
	if h.object != nil {
		errs = append(errs, h.object.Release())
	}
	h.cast, h.unicast, h.memory, h.object, h.bound = nil, nil, nil, nil, nil
	return errors.Join(errs...)
}

// AllocCast gives as many bytes on every GPU, which have a multicast address.
func (t *Team) AllocCast(bytes uint64) ([]gpu.Ptr, error) {
	h, err := newHeap(context.Background(), t.o.Spec.String(), t.on.GPUs, bytes)
	if err != nil {
		return nil, err
	}
	t.heaps = append(t.heaps, h)
	return h.unicast, nil
}

// FreeCast takes back what AllocCast gave; poisoned memory is set aside.
func (t *Team) FreeCast(p []gpu.Ptr, poisoned bool) error {
	for i, h := range t.heaps {
		if len(p) > 0 && h.unicast[0] == p[0] {
			t.heaps = slices.Delete(t.heaps, i, i+1)
			return h.release(poisoned)
		}
	}
	return gpu.Refuse("FreeCast", gpu.ErrInvalid, "no memory with a multicast address begins there")
}

// Casts gives, for a GPU, the multicast addresses of the objects of sources and
// destinations that lie at these addresses of the ranks. The error says that they
// are not at the same place everywhere.
func (t *Team) Casts(src, dst []uint64) (func(g int) (src, dst uint64), error) {
	for _, list := range [][]uint64{src, dst} {
		for r, p := range list {
			if p%ObjectAlign != list[0]%ObjectAlign {
				return nil, fmt.Errorf("rank %d has a buffer at 0x%x, rank 0 at 0x%x: at another place behind a multiple of %d", r, p, list[0], ObjectAlign)
			}
		}
	}
	if !t.o.native() {
		return func(int) (uint64, uint64) { return opaque(ObjectSource), opaque(ObjectTarget) }, nil
	}
	from, skip, err := t.within(src)
	if err != nil {
		return nil, err
	}
	to, over, err := t.within(dst)
	if err != nil {
		return nil, err
	}
	return func(g int) (uint64, uint64) { return uint64(from.cast[g]) + skip, uint64(to.cast[g]) + over }, nil
}

// within finds the heap that holds the buffers of all ranks, and where in it
// their object begins.
func (t *Team) within(list []uint64) (*heap, uint64, error) {
	for _, h := range t.heaps {
		off := list[0] - uint64(h.unicast[0])
		if list[0] < uint64(h.unicast[0]) || off >= h.bytes {
			continue
		}
		for r, p := range list {
			if p-uint64(h.unicast[t.on.Place[r]]) != off {
				return nil, 0, fmt.Errorf("rank %d has a buffer at 0x%x, which is not rank 0's place in the memory with a multicast address", r, p)
			}
		}
		return h, off &^ (ObjectAlign - 1), nil
	}
	return nil, 0, fmt.Errorf("0x%x is in no memory with a multicast address", list[0])
}
