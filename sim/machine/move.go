package machine

import (
	"encoding/binary"

	"example.com/tandem/api/num"
)

// moveAll executes the data steps in the order of the schedule.
func (m *Machine) moveAll() error {
	if m.guarded {
		if err := m.verify(); err != nil {
			return err
		}
	}
	fills := m.fills
	agents := m.live()
	for i, mv := range m.trace {
		for len(fills) > 0 && fills[0].at == i {
			f := fills[0]
			fillPoison(m.mem[f.rank].scratch[f.lo:f.hi])
			fills = fills[1:]
		}
		a := &agents[mv.agent]
		s := &m.step
		s.reset()
		m.program.Step(s, a.rank, a.cta, int(mv.step))
		m.move(s)
	}
	return nil
}

func fillPoison(b []byte) {
	for i := range b {
		b[i] = poison
	}
}

// gather resolves the step's sources and destinations.
func (m *Machine) gather(s *Step) {
	m.srcs, m.dsts = m.srcs[:0], m.dsts[:0]
	for _, r := range s.Srcs {
		m.srcs = m.ranges(m.srcs, r, s.Bytes)
	}
	m.dsts = m.ranges(m.dsts, s.Dst, s.Bytes)
}

func (m *Machine) ranges(to [][]byte, r Ref, n int64) [][]byte {
	if r.Rank != All {
		return append(to, m.mem[r.Rank].bytes(r, n))
	}
	for rank := range m.mem {
		to = append(to, m.mem[rank].bytes(r, n))
	}
	return to
}

// move executes one data step.
func (m *Machine) move(s *Step) {
	m.gather(s)
	if s.Kind == Copy {
		for _, d := range m.dsts {
			if &d[0] != &m.srcs[0][0] {
				copy(d, m.srcs[0])
			}
		}
		return
	}
	if len(m.dsts) == 1 {
		m.fold(s, m.dsts[0], 0, m.srcs)
		return
	}
	m.reduceToAll(s)
}

// fold is the arithmetic of a Reduce on a part of its ranges that begins lo bytes
// into them.
func (m *Machine) fold(s *Step, dst []byte, lo int64, srcs [][]byte) {
	if s.Fold != nil {
		s.Fold.Fold(dst, s.At+lo, srcs...)
		return
	}
	m.cfg.Reduce(dst, s.DType, s.Scheme, srcs...)
}

// toAllBytes is how much of a result is spread at a time: it is still in the
// second-level cache when it is copied.
const toAllBytes = 128 << 10

// reduceToAll reduces into the first destination and copies from there.
func (m *Machine) reduceToAll(s *Step) {
	for lo := int64(0); lo < s.Bytes; lo += toAllBytes {
		hi := min(lo+toAllBytes, s.Bytes)
		m.part = m.part[:0]
		for _, b := range m.srcs {
			m.part = append(m.part, b[lo:hi])
		}
		first := m.dsts[0][lo:hi]
		m.fold(s, first, lo, m.part)
		for _, d := range m.dsts[1:] {
			copy(d[lo:hi], first)
		}
	}
}

// verify refuses the guarded steps whose value is not known.
func (m *Machine) verify() error {
	agents := m.live()
	for _, mv := range m.trace {
		a := &agents[mv.agent]
		s := &m.step
		s.reset()
		m.program.Step(s, a.rank, a.cta, int(mv.step))
		if s.SumBelow == 0 {
			continue
		}
		m.gather(s)
		if i := firstSum(m.srcs, s.DType, s.SumBelow); i >= 0 {
			return &Unknown{Rank: a.rank, CTA: a.cta, Step: int(mv.step), Element: i, Reason: s.Unless}
		}
	}
	return nil
}

// firstSum is the first element whose sum over the sources, taken as unsigned
// numbers, reaches limit, or -1.
func firstSum(srcs [][]byte, d num.DType, limit uint64) int64 {
	size := d.Size()
	for at := 0; at < len(srcs[0]); at += size {
		sum := uint64(0)
		for _, b := range srcs {
			if size == 4 {
				sum += uint64(binary.LittleEndian.Uint32(b[at:]))
			} else {
				sum += min(num.Load(d, b[at:]), limit)
			}
			if sum >= limit {
				return int64(at / size)
			}
		}
	}
	return -1
}
