package tandem

import (
	"slices"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
)

// unit is the grain of every split, in bytes: one vector access. Ranges begin
// on whole units counted from the start of a lane (or of a block of it),
// wherever the buffers lie.
const unit = 16

// lane is one lane of a call that has elements, or where boxes are used the
// part of one that lies in one tier of a box. The lanes of a call lie one after
// another in a space of units: the boxes, the stage and the shares of the CTAs
// are cut from it.
type lane struct {
	index int // in the call
	dtype num.DType
	block int64 // elements of a block of the lane
	from  int64 // element of the block at which it begins
	count int64 // elements
	first int64 // unit at which it begins
	units int64
}

func (l *lane) size() int64 { return int64(l.dtype.Size()) }

// span is a range of units.
type span struct{ lo, hi int64 }

func (s span) empty() bool { return s.lo >= s.hi }

// cut is part i of n of the span, all as even as whole units allow.
func (s span) cut(i, n int) span {
	if n == 1 {
		return s
	}
	size, parts := s.hi-s.lo, int64(n)
	at := func(i int64) int64 { return s.lo + size/parts*i + size%parts*i/parts }
	return span{at(int64(i)), at(int64(i) + 1)}
}

// piece is what a span has of one lane.
type piece struct {
	lane  *lane
	from  int64 // first element of the block
	count int64 // elements
	at    int64 // byte in the space of units
}

func (p piece) bytes() int64 { return p.count * p.lane.size() }

// shape is what a call moves.
type shape struct {
	lanes []lane
	units int64
}

func shapeOf(call *api.Call) shape {
	var s shape
	for i := range call.Lanes() {
		l := call.Lane(i)
		if l.Count == 0 {
			continue
		}
		n := ceil(l.Count*int64(l.DType.Size()), unit)
		s.lanes = append(s.lanes, lane{index: i, dtype: l.DType, block: l.Count, count: l.Count, first: s.units, units: n})
		s.units += n
	}
	return s
}

// cutAt cuts lanes at a unit.
func (s *shape) cutAt(u int64) {
	for i := range s.lanes {
		if l := s.lanes[i]; l.first < u && u < l.first+l.units {
			a, b := l, l
			a.units = u - l.first
			a.count = a.units * unit / l.size()
			b.first, b.units = u, l.units-a.units
			b.from, b.count = l.from+a.count, l.count-a.count
			s.lanes = slices.Replace(s.lanes, i, i+1, a, b)
			return
		}
	}
}

// all is every unit of the call.
func (s *shape) all() span { return span{0, s.units} }

// reach is the range of indices of the lanes that a span touches.
func (s *shape) reach(in span) (from, to int) {
	if in.empty() {
		return 0, 0
	}
	if len(s.lanes) == 1 {
		return 0, 1
	}
	at := func(u int64) int {
		i, found := slices.BinarySearchFunc(s.lanes, u, func(l lane, u int64) int {
			switch {
			case l.first < u:
				return -1
			case l.first > u:
				return 1
			}
			return 0
		})
		if !found {
			i--
		}
		return i
	}
	return at(in.lo), at(in.hi-1) + 1
}

// pieces is the number of lanes that a span touches.
func (s *shape) pieces(in span) int {
	from, to := s.reach(in)
	return to - from
}

// piece is piece i of a span.
func (s *shape) piece(in span, i int) piece {
	from, _ := s.reach(in)
	l := &s.lanes[from+i]
	lo := max(in.lo-l.first, 0)
	hi := min(in.hi-l.first, l.units)
	elems := unit / l.size()
	p := piece{lane: l, from: l.from + lo*elems, at: (l.first + lo) * unit}
	p.count = min(hi*elems, l.count) - lo*elems
	return p
}
