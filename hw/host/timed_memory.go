package host

import (
	"context"
	"errors"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
)

// timedMemory is the buffers of a sequence: no images, since nobody looks at the
// results.
type timedMemory struct {
	team   *Team
	device []gpu.Ptr // of each GPU
	lent   bool
	total  uint64
	spans  [][]stretch // the sources on each GPU, to be written before a sample
	// sets and bytes are for copies in place of calls: in every set a source
	// of that many bytes, and as many after it.
	sets  int
	bytes uint64
}

// stretch is a range of bytes of an allocation.
type stretch struct{ at, n uint64 }

// piece is where the set of the k-th copy begins on a GPU.
func (m *timedMemory) piece(i, k int) gpu.Ptr {
	if m.bytes == 0 {
		return 0
	}
	return m.device[i].Add(uint64(k%m.sets) * 2 * m.bytes)
}

// place makes the buffers, and the launches of the calls on them.
func (m *timed) place(ctx context.Context) error {
	t, call := m.team, &m.what.Call
	mem := &timedMemory{team: t, sets: m.what.Sets, spans: make([][]stretch, len(t.gpus))}
	m.memory = mem
	if m.what.Work != api.WorkCalls {
		return mem.forCopies(m.what)
	}
	arenas := make([]Arena, len(t.gpus)) // for their arithmetic only
	offsets := make([][][][2]uint64, m.what.Sets)
	tables := make([][]uint64, m.what.Sets)
	for k := range offsets {
		for rank, i := range t.place {
			var lanes [][2]uint64
			for lane := range call.Lanes() {
				lanes = append(lanes, mem.lane(&arenas[i], i, call, lane, rank))
			}
			offsets[k] = append(offsets[k], lanes)
		}
		for i := range arenas {
			tables[k] = append(tables[k], arenas[i].reserve(t.engine.TableBytes(call)))
		}
	}
	for i := range arenas {
		mem.total = max(mem.total, arenas[i].need())
	}
	if err := mem.alloc(); err != nil {
		return err
	}
	for k := range offsets {
		bufs := make([]Buffers, len(t.place))
		for rank, lanes := range offsets[k] {
			base := mem.device[t.place[rank]]
			for _, l := range lanes {
				bufs[rank] = append(bufs[rank], Pair{base.Add(l[0]), base.Add(l[1])})
			}
		}
		if err := m.bind(ctx, bufs, tables[k]); err != nil {
			return err
		}
	}
	return nil
}

// lane finds room for a lane of a rank, at the addresses modulo 256 that its
// offsets ask for, and notes its source.
func (m *timedMemory) lane(a *Arena, i int, call *api.Call, lane, rank int) (at [2]uint64) {
	size := uint64(call.Lane(lane).DType.Size())
	src, dst := call.Addrs(lane, rank)
	ns, nd := uint64(call.SrcElems(lane))*size, uint64(call.DstElems(lane))*size
	if call.InPlace == api.OutOfPlace {
		at = [2]uint64{a.put(src, src+ns), a.put(dst, dst+nd)}
	} else {
		lo := min(src, dst)
		base := a.put(lo, max(src+ns, dst+nd))
		at = [2]uint64{base + src - lo, base + dst - lo}
	}
	m.spans[i] = append(m.spans[i], stretch{at[0], ns})
	return at
}

// bind makes the launches of one set, with its table filled in.
func (m *timed) bind(ctx context.Context, bufs []Buffers, tables []uint64) error {
	t, call := m.team, &m.what.Call
	table := t.engine.Table(call, bufs)
	ptrs := make([]gpu.Ptr, len(t.gpus))
	for i := range ptrs {
		if len(table) == 0 {
			continue
		}
		ptrs[i] = m.memory.device[i].Add(tables[i])
		if err := t.machine.Write(ctx, t.gpus[i], t.streams[i], ptrs[i], table); err != nil {
			return err
		}
	}
	b, err := t.engine.Bind(call, bufs, ptrs)
	m.ready = append(m.ready, ready{call, bufs, b})
	return err
}

// forCopies makes the buffers of what stands in place of calls.
func (m *timedMemory) forCopies(what api.Timing) error {
	switch what.Work {
	case api.WorkCopy, api.WorkPush, api.WorkPull:
	default:
		return nil
	}
	for lane := range what.Call.Lanes() {
		m.bytes += uint64(what.Call.SrcElems(lane)) * uint64(what.Call.Lane(lane).DType.Size())
	}
	m.bytes = max((m.bytes+align-1)/align*align, align)
	m.total = uint64(m.sets) * 2 * m.bytes
	for i := range m.spans {
		for k := range m.sets {
			m.spans[i] = append(m.spans[i], stretch{uint64(k) * 2 * m.bytes, m.bytes})
		}
	}
	return m.alloc()
}

func (m *timedMemory) alloc() error {
	if lender, ok := m.team.engine.(Allocator); ok {
		var err error
		m.device, err = lender.Alloc(m.total)
		m.lent = err == nil
		return err
	}
	for _, g := range m.team.gpus {
		p, err := g.Context.Alloc(m.total)
		if err != nil {
			return err
		}
		m.device = append(m.device, p)
	}
	return nil
}

// pattern is what sources are filled with: small normal numbers in every type.
const pattern = 0x33

// refill queues the writing of all sources.
func (m *timedMemory) refill(streams []gpu.Stream) error {
	for i, list := range m.spans {
		for _, s := range list {
			if err := streams[i].Set8(m.device[i].Add(s.at), pattern, s.n); err != nil {
				return err
			}
		}
	}
	return nil
}

// release frees the memory, or sets it aside.
func (m *timedMemory) release(poisoned bool) error {
	if m.lent {
		return m.team.engine.(Allocator).Free(m.device, poisoned)
	}
	var errs []error
	for i, p := range m.device {
		if poisoned {
			errs = append(errs, m.team.gpus[i].Context.Quarantine(p))
		} else {
			errs = append(errs, m.team.machine.Free(m.team.gpus[i], p))
		}
	}
	return errors.Join(errs...)
}
