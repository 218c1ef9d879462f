package machine

import (
	"encoding/binary"

	"example.com/tandem/api/num"
	"example.com/tandem/sim/arith"
)

// moveAll executes the data steps in the order of the schedule.
func (m *Machine) moveAll() error {
	if m.guarded {
		if err := m.verify(); err != nil {
			return err
		}
	}
	fills := m.fills
	for i, lo := range m.batches {
		hi := len(m.trace)
		if i+1 < len(m.batches) {
			hi = m.batches[i+1]
		}
		// What scratch holds that nobody wrote is first touched by who reads it.
		for len(fills) > 0 && fills[0].at < hi {
			f := fills[0]
			fillPoison(m.mem[f.rank].scratch[f.lo:f.hi])
			fills = fills[1:]
		}
		if m.inOrder {
			m.moveInOrder(lo, hi)
		} else {
			m.moveBatch(lo, hi)
		}
	}
	return nil
}

// moveInOrder executes trace[lo:hi] as it was scheduled: the reference for
// moveBatch.
func (m *Machine) moveInOrder(lo, hi int) {
	for _, mv := range m.trace[lo:hi] {
		a := &m.live()[mv.agent]
		s := &m.step
		s.reset()
		m.program.Step(s, a.rank, a.cta, int(mv.step))
		m.move(s)
	}
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
	if s.Fold != nil {
		s.Fold.Fold(m.dsts[0], s.At, m.srcs...)
	} else {
		arith.Reduce(m.dsts[0], s.DType, s.Scheme, m.srcs...)
	}
	for _, d := range m.dsts[1:] {
		copy(d, m.dsts[0])
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
