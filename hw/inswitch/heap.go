package inswitch

import (
	"context"
	"errors"
	"fmt"
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
			return nil, &api.Unavailable{Spec: spec, Reason: fmt.Sprintf("multicast on GPU %d: %v", g.Index, err), Hint: "multicast=off runs the same kernels with multicast emulated"}
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
