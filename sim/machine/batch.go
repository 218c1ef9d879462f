package machine

import (
	"cmp"
	"slices"

	"example.com/tandem/api/num"
	"example.com/tandem/sim/arith"
)

// job is what is done with ranges at once: a move and the copies of its result, and
// moves that lie next to it.
type job struct {
	kind       Kind
	dtype      num.DType
	scheme     num.Scheme
	fold       Folder
	at         int64 // what fold is told of the first byte
	bytes      int64
	srcs, dsts []Ref // dsts in order
}

// jobs are those of one batch; all memory is used again.
type jobs struct {
	list  []job
	order []int32
	srcs  [][]byte
	dsts  [][]byte
}

// add makes room for a job, without references.
func (j *jobs) add() *job {
	if n := len(j.list); n < cap(j.list) {
		j.list = j.list[:n+1]
	} else {
		j.list = append(j.list, job{})
	}
	b := &j.list[len(j.list)-1]
	b.srcs, b.dsts = b.srcs[:0], b.dsts[:0]
	return b
}

// moveBatch executes trace[lo:hi], in which only copies of results depend on
// anything else: in an order that goes through memory once.
func (m *Machine) moveBatch(lo, hi int) {
	j := &m.jobs
	j.list = j.list[:0]
	for i := lo; i < hi; i++ {
		if mv := &m.trace[i]; int(mv.root) == i {
			m.collect(j.add(), mv)
		}
	}
	j.order = j.order[:0]
	for i := range j.list {
		j.order = append(j.order, int32(i))
	}
	slices.SortFunc(j.order, func(a, b int32) int {
		return compareRefs(j.list[a].srcs[0], j.list[b].srcs[0])
	})
	last := &j.list[j.order[0]]
	for _, i := range j.order[1:] {
		next := &j.list[i]
		if last.reaches(next) {
			last.bytes += next.bytes
			continue
		}
		m.do(last)
		last = next
	}
	m.do(last)
}

// collect makes a job of a move and the copies of its result.
func (m *Machine) collect(b *job, mv *move) {
	a := &m.live()[mv.agent]
	s := &m.step
	s.reset()
	m.program.Step(s, a.rank, a.cta, int(mv.step))
	b.kind, b.dtype, b.scheme, b.bytes = s.Kind, s.DType, s.Scheme, s.Bytes
	b.fold, b.at = s.Fold, s.At
	b.srcs = append(b.srcs, s.Srcs...)
	b.dsts = append(b.dsts, s.Dst)
	for i := mv.first; i >= 0; i = m.trace[i].next {
		b.dsts = append(b.dsts, m.trace[i].dst)
	}
	slices.SortFunc(b.dsts, compareRefs)
}

func compareRefs(a, b Ref) int {
	switch {
	case a.Rank != b.Rank:
		return cmp.Compare(a.Rank, b.Rank)
	case a.Space != b.Space:
		return cmp.Compare(a.Space, b.Space)
	case a.Lane != b.Lane:
		return cmp.Compare(a.Lane, b.Lane)
	}
	return cmp.Compare(a.Off, b.Off)
}

// reaches reports whether next does the same with the bytes that follow.
func (b *job) reaches(next *job) bool {
	if b.kind != next.kind || b.dtype != next.dtype || b.scheme != next.scheme ||
		b.fold != next.fold || b.fold != nil && b.at+b.bytes != next.at ||
		len(b.srcs) != len(next.srcs) || len(b.dsts) != len(next.dsts) {
		return false
	}
	for i := range b.srcs {
		if !b.srcs[i].reaches(next.srcs[i], b.bytes) {
			return false
		}
	}
	for i := range b.dsts {
		if !b.dsts[i].reaches(next.dsts[i], b.bytes) {
			return false
		}
	}
	return true
}

func (r Ref) reaches(next Ref, n int64) bool {
	r.Off += n
	return r == next
}

// do moves the bytes of a job.
func (m *Machine) do(b *job) {
	j := &m.jobs
	j.srcs, j.dsts = j.srcs[:0], j.dsts[:0]
	for _, r := range b.srcs {
		j.srcs = m.ranges(j.srcs, r, b.bytes)
	}
	for _, r := range b.dsts {
		j.dsts = m.ranges(j.dsts, r, b.bytes)
	}
	if b.kind == Copy {
		arith.Spread(j.dsts, j.srcs[0])
		return
	}
	if b.fold != nil {
		b.fold.Fold(j.dsts[0], b.at, j.srcs...)
		arith.Spread(j.dsts, j.dsts[0])
		return
	}
	arith.ReduceAll(j.dsts, b.dtype, b.scheme, j.srcs...)
}
