package kernelfile

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
)

// page is what buffers are aligned to, and images keep their address modulo of.
const page = 256

// layout is where the buffers of a rank lie in its memory, in bytes.
type layout struct {
	src, dst uint64 // payloads
	areas    map[string]uint64
	tables   map[string]uint64
	pieces   []piece
	end      uint64
	scratch  [2]uint64 // from, to
}

// piece is an image, guards and all.
type piece struct {
	at    uint64
	bytes []byte
}

// put finds room for the addresses [lo, hi).
func (l *layout) put(lo, hi uint64) uint64 {
	at := (l.end+page-1)/page*page + lo%page
	l.end = at + hi - lo
	return at
}

// plan lays out the memory of a rank.
func (t *team) plan(lane api.Lane, ranks int) *layout {
	l := &layout{areas: map[string]uint64{}, tables: map[string]uint64{}}
	span := func(m api.Image) (lo, hi uint64) {
		lo = m.Addr - uint64(m.Guard)
		return lo, lo + uint64(len(m.Bytes))
	}
	slo, shi := span(lane.Src)
	dlo, dhi := span(lane.Dst)
	if slo < dhi && dlo < shi {
		lo, hi := min(slo, dlo), max(shi, dhi)
		at := l.put(lo, hi)
		l.src, l.dst = at+lane.Src.Addr-lo, at+lane.Dst.Addr-lo
	} else {
		l.src = l.put(slo, shi) + uint64(lane.Src.Guard)
		l.dst = l.put(dlo, dhi) + uint64(lane.Dst.Guard)
	}
	l.pieces = []piece{{l.src - uint64(lane.Src.Guard), lane.Src.Bytes}, {l.dst - uint64(lane.Dst.Guard), lane.Dst.Bytes}}
	l.end = (l.end + page - 1) / page * page
	l.scratch[0] = l.end
	for _, a := range t.d.Scratch {
		l.areas[a.Name] = l.put(0, a.Bytes)
	}
	l.scratch[1] = max(l.end, l.scratch[0])
	for _, p := range t.d.Params {
		if _, have := l.tables[p.Area]; p.Source == All && !have {
			l.tables[p.Area] = l.put(0, uint64(8*ranks))
		}
	}
	return l
}

// at is the address of an area, given that of the memory.
func (l *layout) at(base gpu.Ptr, area string) gpu.Ptr {
	switch area {
	case "src":
		return base.Add(l.src)
	case "dst":
		return base.Add(l.dst)
	}
	return base.Add(l.areas[area])
}

// execute runs a call.
func (t *team) execute(ctx context.Context, r *round) error {
	n := len(t.members)
	plans := make([]*layout, n)
	need := uint64(0)
	for rank := range plans {
		plans[rank] = t.plan(r.mem[rank][0], n)
		need = max(need, plans[rank].end+page)
	}
	if t.d.multicast() {
		for rank, l := range plans {
			if l.src != plans[0].src || l.dst != plans[0].dst {
				return &api.Refused{Spec: t.spec.String(), What: fmt.Sprintf("offsets of rank %d other than rank 0's", rank), Reason: "one multicast address reaches the same place on every rank"}
			}
		}
	}
	mem, err := t.allocate(ctx, need)
	if err != nil {
		return err
	}
	if err := t.perform(ctx, r, plans, mem); err != nil {
		return err
	}
	return mem.free()
}

// perform fills the memory, launches, and takes the results.
func (t *team) perform(ctx context.Context, r *round, plans []*layout, mem *memory) error {
	at := addressesOf(plans, mem)
	for rank, l := range plans {
		l.fill(mem.pinned[rank].Bytes, at, t.d)
		s := t.streams[rank]
		errs := []error{s.Set8(mem.own[rank].Add(l.scratch[0]), 0, l.scratch[1]-l.scratch[0])}
		for _, off := range l.tables {
			errs = append(errs, s.Copy(mem.own[rank].Add(off), mem.pinned[rank].Ptr.Add(off), uint64(8*len(plans))))
		}
		if err := errors.Join(errs...); err != nil {
			return err
		}
	}
	if err := t.wait(ctx); err != nil { // scratch is zero before anybody starts
		return err
	}
	if err := t.each(plans, func(rank int, p piece) error {
		return t.streams[rank].Copy(mem.own[rank].Add(p.at), mem.pinned[rank].Ptr.Add(p.at), uint64(len(p.bytes)))
	}); err != nil {
		return err
	}
	if t.d.AllSources {
		if err := t.wait(ctx); err != nil {
			return err
		}
	}
	for rank := range plans {
		if err := t.launch(r, rank, at); err != nil {
			return err
		}
	}
	if t.d.AllSources {
		if err := t.wait(ctx); err != nil {
			return err
		}
	}
	return t.collect(ctx, plans, mem)
}

// collect gives the images what the kernels left. Where nothing has waited for
// all of them, a rank's stream may overwrite its source by now: it does, with
// what is there, so that a peer that still reads it is found.
func (t *team) collect(ctx context.Context, plans []*layout, mem *memory) error {
	if err := t.each(plans, func(rank int, p piece) error {
		dev, host, n := mem.own[rank].Add(p.at), mem.pinned[rank].Ptr.Add(p.at), uint64(len(p.bytes))
		return errors.Join(t.streams[rank].Copy(dev, dev, n), t.streams[rank].Copy(host, dev, n))
	}); err != nil {
		return err
	}
	if err := t.wait(ctx); err != nil {
		return err
	}
	return t.each(plans, func(rank int, p piece) error {
		copy(p.bytes, mem.pinned[rank].Bytes[p.at:])
		return nil
	})
}

func (t *team) each(plans []*layout, do func(rank int, p piece) error) error {
	for rank, l := range plans {
		for _, p := range l.pieces {
			if err := do(rank, p); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *team) launch(r *round, rank int, at *addresses) error {
	f := t.functions[rank]
	args, err := t.d.pack(&r.call, rank, at, f.Params())
	if err != nil {
		return err
	}
	return t.streams[rank].Launch(gpu.Launch{Function: f, Grid: t.d.Grid, Block: t.d.Block, Shared: t.d.Shared,
		Cooperative: t.d.Cooperative, Args: args, Ranks: []int{rank}})
}

// addressesOf are the addresses of every area.
func addressesOf(plans []*layout, mem *memory) *addresses {
	at := &addresses{}
	for rank, l := range plans {
		own, multi, table := map[string]gpu.Ptr{}, map[string]gpu.Ptr{}, map[string]gpu.Ptr{}
		names := []string{"src", "dst"}
		for name := range l.areas {
			names = append(names, name)
		}
		for _, name := range names {
			own[name] = l.at(mem.own[rank], name)
			if mem.multi != nil {
				multi[name] = l.at(mem.multi[rank], name)
			}
		}
		for name, off := range l.tables {
			table[name] = mem.own[rank].Add(off)
		}
		at.own, at.multi, at.table = append(at.own, own), append(at.multi, multi), append(at.table, table)
	}
	return at
}

// fill writes images and tables into pinned memory.
func (l *layout) fill(b []byte, at *addresses, d *Description) {
	for _, p := range l.pieces {
		copy(b[p.at:], p.bytes)
	}
	for name, off := range l.tables {
		for r := range at.own {
			binary.LittleEndian.PutUint64(b[off+uint64(8*r):], uint64(at.own[r][name]))
		}
	}
}
