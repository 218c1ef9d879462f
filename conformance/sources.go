package conformance

import (
	"example.com/tandem/api"
	"example.com/tandem/api/num"
	"example.com/tandem/conformance/inputs"
)

// sources are the inputs of a call as they were before it, by rank and lane.
type sources struct {
	call *api.Call
	data [][][]byte
}

// newSources generates them.
func newSources(call *api.Call, gen *inputs.Generator, a *arena, workers int) (*sources, error) {
	s := &sources{call: call, data: make([][][]byte, call.Ranks)}
	for r := range s.data {
		var n int64
		for l := range call.Lanes() {
			b, _ := laneBytes(call, l)
			n += b
		}
		slab := a.take(r, n)
		for l := range call.Lanes() {
			b, _ := laneBytes(call, l)
			s.data[r] = append(s.data[r], slab[:b:b])
			slab = slab[b:]
		}
	}
	// Ranges rather than ranks: one rank alone can be large.
	type piece struct {
		rank, lane int
		start      int64
	}
	var work []piece
	const elems = 1 << 17
	for r := range s.data {
		for l := range s.data[r] {
			for at := int64(0); at < call.SrcElems(l); at += elems {
				work = append(work, piece{r, l, at})
			}
		}
	}
	return s, parallel(workers, len(work), func(i int) error {
		w := work[i]
		size := int64(call.Lane(w.lane).DType.Size())
		p := s.data[w.rank][w.lane][w.start*size:]
		return gen.Fill(p[:min(int64(len(p)), elems*size)], w.lane, w.rank, w.start)
	})
}

// fill copies one source, as images.prepare wants it.
func (s *sources) fill(rank int) func(dst []byte, lane int) error {
	return func(dst []byte, lane int) error {
		copy(dst, s.data[rank][lane])
		return nil
	}
}

// gatherer looks inputs up by the definition of the call; one a goroutine.
type gatherer struct {
	*sources
	refs []api.Input
	vals []uint64
	// Of the lane asked for last:
	lane int
	d    api.DType
	size int64
	geo  api.Geometry
}

func (s *sources) gatherer() *gatherer {
	g := &gatherer{sources: s}
	g.turn(0)
	return g
}

// turn looks up what is the same for all elements of a lane.
func (g *gatherer) turn(lane int) {
	g.lane, g.d, g.geo = lane, g.call.Lane(lane).DType, g.call.Geometry(lane)
	g.size = int64(g.d.Size())
}

// inputs are the patterns that contribute to an output, in rank order, valid
// until the next call.
func (g *gatherer) inputs(lane, rank int, index int64) []uint64 {
	if lane != g.lane {
		g.turn(lane)
	}
	g.refs = g.call.Collective.Inputs(g.refs[:0], g.geo, rank, index)
	g.vals = g.vals[:0]
	for _, in := range g.refs {
		g.vals = append(g.vals, num.Load(g.d, g.data[in.Rank][lane][in.Index*g.size:]))
	}
	return g.vals
}

// right is the output by the definition: a copy, or the exact reduction rounded
// once to nearest.
func (g *gatherer) right(lane, rank int, index int64) uint64 {
	in := g.inputs(lane, rank, index)
	if !g.call.Collective.Reduces() {
		return in[0]
	}
	return num.Eval(g.d, num.Scheme{Op: g.call.Op, Acc: num.AccExact}, in)
}
