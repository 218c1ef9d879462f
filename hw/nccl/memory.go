package nccl

import (
	"errors"
	"math/bits"
	"slices"

	"example.com/tandem/api/gpu"
	"example.com/tandem/hw/host"
)

// lender is an engine whose buffers the library knows. Memory that is given back
// serves the next call for as much, and is released with the communicators.
type lender struct {
	*engine
	sets []*set
}

var _ host.Allocator = (*lender)(nil)

// set is memory of one size on every GPU.
type set struct {
	bytes   uint64
	p       []uint64
	handles []uintptr
	free    bool
	lost    bool // set aside
}

// Alloc gives memory that is registered with every rank's communicator.
func (l *lender) Alloc(bytes uint64) ([]gpu.Ptr, error) {
	size := uint64(1) << max(21, bits.Len64(bytes-1))
	for _, s := range l.sets {
		if s.free && !s.lost && s.bytes == size {
			s.free = false
			return s.ptrs(), nil
		}
	}
	s := &set{bytes: size}
	if err := l.fill(s); err != nil {
		return nil, errors.Join(err, l.drop(s))
	}
	l.sets = append(l.sets, s)
	return s.ptrs(), nil
}

func (s *set) ptrs() []gpu.Ptr {
	var out []gpu.Ptr
	for _, p := range s.p {
		out = append(out, gpu.Ptr(p))
	}
	return out
}

func (l *lender) windows() bool { return l.config.buffers == symmetric }

func (l *lender) fill(s *set) error {
	for i, g := range l.gpus {
		var p uint64
		var err error
		if l.windows() {
			p, err = l.lib.Alloc(l.ranks[i].context, s.bytes)
		} else {
			var q gpu.Ptr
			q, err = g.Context.Alloc(s.bytes)
			p = uint64(q)
		}
		if err != nil {
			return err
		}
		s.p = append(s.p, p)
	}
	var err error
	s.handles, err = l.lib.Register(l.windows(), l.ranks, s.p, s.bytes)
	return err
}

// drop releases what there is of a set; its work has ended.
func (l *lender) drop(s *set) error {
	var errs []error
	if len(s.handles) == len(l.ranks) {
		errs = append(errs, l.lib.Deregister(l.windows(), l.ranks, s.handles))
	}
	for i, p := range s.p {
		if l.windows() {
			errs = append(errs, l.lib.Free(l.ranks[i].context, p))
		} else {
			errs = append(errs, l.machine.Free(l.gpus[i], gpu.Ptr(p)))
		}
	}
	s.p, s.handles = nil, nil
	return errors.Join(errs...)
}

// Free takes memory back; poisoned memory is set aside for good.
func (l *lender) Free(p []gpu.Ptr, poisoned bool) error {
	for _, s := range l.sets {
		if !s.free && slices.Equal(s.ptrs(), p) {
			s.free, s.lost = true, poisoned
			return nil
		}
	}
	return gpu.Refuse("ncclMemFree", gpu.ErrInvalid, "that memory was not given out")
}

// Release gives up the memory, then the communicators. Memory that a late store
// may reach is quarantined.
func (l *lender) Release(poisoned bool) error {
	var errs []error
	for _, s := range l.sets {
		switch {
		case !poisoned && !s.lost:
			errs = append(errs, l.drop(s))
		case !l.windows():
			for i, p := range s.p {
				errs = append(errs, l.gpus[i].Context.Quarantine(gpu.Ptr(p)))
			}
		}
	}
	l.sets = nil
	return errors.Join(errors.Join(errs...), l.engine.Release(poisoned))
}
