package machine

import (
	"fmt"

	"example.com/tandem/api"
)

// data schedules a step on ranges: it checks the step, waits for its lines,
// records its accesses and appends it to the trace.
func (m *Machine) data(a *agent, s *Step) (ready bool, err error) {
	if err := m.checkData(a, s); err != nil {
		return false, err
	}
	flag := uint32(0)
	if v, err := m.value(a, s); err != nil {
		return false, err
	} else {
		flag = uint32(v)
	}
	if !m.linesReady(a, s, flag) {
		return false, nil
	}
	if s.Bytes > 0 {
		m.order.begin(len(m.trace))
		if err := m.touchSources(a, s); err != nil {
			return false, err
		}
		m.source(s)
		if s.Dst.Space == Line {
			if err := m.setLines(a, s, flag); err != nil {
				return false, err
			}
		} else if err := m.touchRef(a, s, s.Dst, true); err != nil {
			return false, err
		}
		if s.Kind != Stamp {
			m.record(a, s)
		}
		m.guarded = m.guarded || s.SumBelow != 0
	}
	m.advance(a, s, "")
	return true, nil
}

// arrival waits for lines without reading their data.
func (m *Machine) arrival(a *agent, s *Step) (ready bool, err error) {
	for i := range s.Srcs {
		if s.Srcs[i].Space != Line {
			return false, m.bad(a, fmt.Sprintf("%v has no flags to wait for", s.Srcs[i]))
		}
		if err := m.checkRef(a, s, s.Srcs[i]); err != nil {
			return false, err
		}
	}
	flag, err := m.value(a, s)
	if err != nil || !m.linesReady(a, s, uint32(flag)) {
		return false, err
	}
	m.advance(a, s, "")
	return true, nil
}

// checkData says whether the step makes sense.
func (m *Machine) checkData(a *agent, s *Step) error {
	want := 1
	switch s.Kind {
	case Stamp:
		want = 0
		if s.Dst.Space != Line {
			return m.bad(a, "only lines are stamped")
		}
	case Reduce:
		want = max(1, len(s.Srcs))
		if !s.DType.Valid() || s.Bytes%int64(s.DType.Size()) != 0 {
			return m.bad(a, fmt.Sprintf("%d bytes of %v", s.Bytes, s.DType))
		}
	}
	if len(s.Srcs) != want || s.Bytes < 0 {
		return m.bad(a, fmt.Sprintf("%v of %d bytes from %d sources", s.Kind, s.Bytes, len(s.Srcs)))
	}
	for i := range s.Srcs {
		if err := m.checkRef(a, s, s.Srcs[i]); err != nil {
			return err
		}
	}
	return m.checkRef(a, s, s.Dst)
}

func (m *Machine) checkRef(a *agent, s *Step, r Ref) error {
	first, last := int(r.Rank), int(r.Rank)
	if r.Rank == All {
		first, last = 0, m.cfg.Ranks-1
		if r.Space == Line {
			return m.bad(a, "lines are not multicast")
		}
	} else if r.Rank < 0 || int(r.Rank) >= m.cfg.Ranks {
		return m.bad(a, fmt.Sprintf("%v: there are %d ranks", r, m.cfg.Ranks))
	}
	for rank := first; rank <= last; rank++ {
		mem := &m.mem[rank]
		lo, hi, err := mem.limits(r)
		if err != nil {
			return m.bad(a, err.Error())
		}
		if r.Off < lo || s.Bytes > hi-r.Off {
			return m.bad(a, fmt.Sprintf("bytes %d to %d of a %v that ends at %d", r.Off, r.Off+s.Bytes, r, hi))
		}
		if w := int64(s.Width); w > 0 && s.Bytes > 0 && (mem.key(r)%w != 0 || s.Bytes%w != 0) {
			return &api.Fault{Kind: api.FaultMisaligned, Rank: a.rank, CTA: a.cta, Detail: fmt.Sprintf("step %d accesses %v, address 0x%x, by words of %d bytes", a.pc, r, uint64(mem.key(r)), w)}
		}
		if rank != first && m.symmetric {
			break
		}
	}
	return nil
}

// linesReady reports whether every line the step reads carries the flag.
func (m *Machine) linesReady(a *agent, s *Step, flag uint32) bool {
	lines := false
	for _, r := range s.Srcs {
		if r.Space != Line {
			continue
		}
		lines = true
		if !m.mem[r.Rank].flags.all(r.Off, r.Off+s.Bytes, flag, nil) {
			return false
		}
	}
	if !lines {
		return true
	}
	for _, r := range s.Srcs {
		if r.Space == Line {
			m.mem[r.Rank].flags.all(r.Off, r.Off+s.Bytes, flag, func(l *run) {
				m.observe(a, &l.from, s.Order, s.Scope)
			})
		}
	}
	return true
}

// setLines writes lines. They are atomic, but a line that two CTAs write without
// an order between them ends with the flag and data of either.
func (m *Machine) setLines(a *agent, s *Step, flag uint32) error {
	f := &m.mem[s.Dst.Rank].flags
	lo, hi := s.Dst.Off, s.Dst.Off+s.Bytes
	self := touch{agent: a.id, time: a.time, step: uint32(a.pc)}
	var err error
	m.multicast = false
	f.writers(lo, hi, func(l *run) bool {
		if first := (touch{agent: l.from.agent, time: l.from.time, step: l.from.step}); !m.ordered(first) {
			err = m.race(a, s.Dst, int(s.Dst.Rank), clash{first, true, max(lo, l.lo), min(hi, l.hi)}, self, true)
		}
		return err == nil
	})
	if err != nil {
		return err
	}
	from := stamp{agent: a.id, scope: s.Scope}
	if out := m.published(a, s.Order, s.Scope); out != nil {
		from = *out
	}
	from.time, from.step = self.time, self.step
	f.set(lo, hi, flag, from)
	m.version++
	return nil
}

// touchRef records one access of the step, of all ranks for a multicast one.
func (m *Machine) touchRef(a *agent, s *Step, r Ref, store bool) error {
	if r.Space == Line {
		return nil // flags order lines
	}
	if store {
		if err := m.checkOverlap(a, s); err != nil {
			return err
		}
	}
	m.multicast = r.Rank == All
	t := touch{agent: a.id, time: a.time, step: uint32(a.pc), multicast: m.multicast}
	if !m.multicast {
		return m.touchRank(a, s, r, int(r.Rank), t, store)
	}
	if m.symmetric && r.isUser() {
		return m.touchAll(a, s, r, t, store)
	}
	for rank := range m.cfg.Ranks {
		if err := m.touchRank(a, s, r, rank, t, store); err != nil {
			return err
		}
	}
	return nil
}

// touchSources records the loads of a step.
func (m *Machine) touchSources(a *agent, s *Step) error {
	if m.everywhere(s.Srcs) {
		m.multicast = false
		return m.touchAll(a, s, s.Srcs[0], touch{agent: a.id, time: a.time, step: uint32(a.pc)}, false)
	}
	for i := range s.Srcs {
		if err := m.touchRef(a, s, s.Srcs[i], false); err != nil {
			return err
		}
	}
	return nil
}

// everywhere reports whether sources are one address on every rank, each by an
// address of its own.
func (m *Machine) everywhere(srcs []Ref) bool {
	if !m.symmetric || len(srcs) != m.cfg.Ranks || len(srcs) < 2 || !srcs[0].isUser() {
		return false
	}
	for i, r := range srcs {
		if want := srcs[0]; r.Rank != int32(i) || r.Space != want.Space || r.Lane != want.Lane || r.Off != want.Off {
			return false
		}
	}
	return true
}

// touchAll records an access to one address on all ranks once.
func (m *Machine) touchAll(a *agent, s *Step, r Ref, t touch, store bool) error {
	lo := m.mem[0].key(r)
	hi := lo + s.Bytes
	for rank := range m.mem {
		if x, bad := m.mem[rank].userShadow.check(lo, hi, store, m.before); bad {
			return m.race(a, r, rank, x, t, store)
		}
	}
	if x, bad := m.all.record(lo, hi, store, t, m.before); bad {
		return m.race(a, r, 0, x, t, store)
	}
	return nil
}

func (m *Machine) touchRank(a *agent, s *Step, r Ref, rank int, t touch, store bool) error {
	mem := &m.mem[rank]
	lo := mem.key(r)
	hi := lo + s.Bytes
	sh := mem.shadow(r.Space)
	if r.isUser() && m.all.touches(lo, hi) {
		if x, bad := m.all.check(lo, hi, store, m.before); bad {
			return m.race(a, r, rank, x, t, store)
		}
	}
	if !store && r.Space == Scratch {
		sh.gaps(lo, hi, func(lo, hi int64) {
			m.fills = append(m.fills, fill{len(m.trace), rank, lo, hi})
		})
	}
	if x, bad := sh.record(lo, hi, store, t, m.before); bad {
		return m.race(a, r, rank, x, t, store)
	}
	return nil
}

// checkOverlap finds a destination that overlaps a source of the same step
// without being it: the threads of the CTA would race.
func (m *Machine) checkOverlap(a *agent, s *Step) error {
	for _, src := range s.Srcs {
		if src.isUser() != s.Dst.isUser() || !src.isUser() && src.Space != s.Dst.Space || src.Space == Line {
			continue
		}
		rank := int(src.Rank)
		if src.Rank == All {
			rank = int(s.Dst.Rank)
		}
		if s.Dst.Rank != All && int(s.Dst.Rank) != rank {
			continue
		}
		rank = max(rank, 0) // all on all: one stands for every rank
		from, to := m.mem[rank].key(src), m.mem[rank].key(s.Dst)
		if from != to && from < to+s.Bytes && to < from+s.Bytes {
			self := touch{agent: a.id, step: uint32(a.pc)}
			return m.race(a, s.Dst, rank, clash{self, false, max(from, to), min(from, to) + s.Bytes}, self, true)
		}
	}
	return nil
}

func (m *Machine) race(a *agent, r Ref, rank int, x clash, t touch, store bool) error {
	shift := m.mem[rank].key(r) - r.Off // from keys to offsets in the space
	return &Race{
		Rank: rank, Space: r.Space, Lane: int(r.Lane), Start: x.lo - shift, End: x.hi - shift,
		First:  m.accessOf(x.first, x.store),
		Second: m.accessOf(t, store),
	}
}

func (m *Machine) accessOf(t touch, store bool) Access {
	a := &m.agents[t.agent]
	return Access{Rank: a.rank, CTA: a.cta, Step: int(t.step), Store: store, Multicast: t.multicast}
}
