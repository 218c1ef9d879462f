package nvshmem

import (
	"example.com/tandem/api"
	"example.com/tandem/sim/machine"
)

// reduceLLPart is the all-reduce that gathers all sources by LL lines and folds them
// locally: a0 op a1, then a_i op t. The lines are those of the team of the whole
// node, whatever the CTA: several CTAs race for them.
type reduceLLPart struct {
	g   *program
	cta *api.CTA
}

func (g *program) newReduceLL(cta *api.CTA) part {
	g.needs.Line = max(g.needs.Line, int64(g.ranks)*cta.Count*g.size)
	return reduceLLPart{g, cta}
}

func (x reduceLLPart) len(int) int {
	return x.g.ranks + max(x.g.ranks-1, 1)
}

func (x reduceLLPart) block(rank, from int) machine.Ref {
	return machine.Lines(rank, from, int64(from)*x.cta.Count*x.g.size)
}

func (x reduceLLPart) step(s *machine.Step, rank, i int) {
	g := x.g
	s.Value = uint64(g.flag)
	dst := g.dst(rank, x.cta.Start)
	if i < g.ranks {
		to := (rank + i) % g.ranks
		g.copyStep(s, x.block(to, rank), g.src(rank, x.cta.Start), x.cta.Count)
		return
	}
	switch i -= g.ranks; {
	case g.ranks == 1:
		g.copyStep(s, dst, x.block(rank, 0), x.cta.Count)
	case i == 0:
		g.reduceStep(s, dst, x.cta.Count, x.block(rank, 0), x.block(rank, 1))
	default:
		g.reduceStep(s, dst, x.cta.Count, x.block(rank, i+1), dst)
	}
}

// gatherLL8Part is the all-gather by LL lines of two 32-bit data words. It is not
// told the CTA's offset into the destination: block j goes to j*m.
type gatherLL8Part struct {
	g     *program
	cta   *api.CTA
	lines int64
}

func (g *program) newGatherLL8(cta *api.CTA) part {
	return gatherLL8Part{g, cta, g.takeLines(int64(g.ranks) * cta.Count * g.size)}
}

func (x gatherLL8Part) len(int) int { return 2 * x.g.ranks }

func (x gatherLL8Part) step(s *machine.Step, rank, i int) {
	g, m := x.g, x.cta.Count
	s.Value, s.Width = uint64(g.flag), 4
	block := func(at, from int) machine.Ref {
		return machine.Lines(at, from, x.lines+int64(from)*m*g.size)
	}
	peer := (rank + i) % g.ranks
	if i < g.ranks {
		g.copyStep(s, block(peer, rank), g.src(rank, x.cta.Start), m)
		return
	}
	g.copyStep(s, g.dst(rank, int64(peer)*m), block(rank, peer), m)
}

// treePart is the broadcast by LL lines down a binary tree whose root is place 0.
type treePart struct {
	g     *program
	cta   *api.CTA
	lines int64
}

func (g *program) newTree(cta *api.CTA) part {
	return treePart{g, cta, g.takeLines(cta.Count * g.size)}
}

func (x treePart) place(rank int) int { return (rank - x.g.call.Root + x.g.ranks) % x.g.ranks }

func (x treePart) rank(place int) int { return (place + x.g.call.Root) % x.g.ranks }

func (x treePart) children(place int) int { return min(max(x.g.ranks-1-2*place, 0), 2) }

// own is 1 if the rank stores into its destination: all but the root in place.
func (x treePart) own(place int) int {
	if place == 0 && x.g.call.InPlace != api.OutOfPlace {
		return 0
	}
	return 1
}

func (x treePart) len(rank int) int {
	place := x.place(rank)
	return x.own(place) + x.children(place)
}

func (x treePart) step(s *machine.Step, rank, i int) {
	g := x.g
	s.Value = uint64(g.flag)
	place := x.place(rank)
	from := g.src(rank, 0)
	if place > 0 {
		from = g.dst(rank, 0)
	}
	if i -= x.own(place); i >= 0 {
		to := x.rank(2*place + 1 + i)
		g.copyStep(s, machine.Lines(to, rank, x.lines), from, x.cta.Count)
		return
	}
	if place > 0 {
		from = machine.Lines(rank, x.rank((place-1)/2), x.lines)
	}
	g.copyStep(s, g.dst(rank, 0), from, x.cta.Count)
}
