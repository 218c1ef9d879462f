package nvshmem

import (
	"cmp"

	"example.com/tandem/api"
	"example.com/tandem/sim/machine"
)

// scatterPart is a CTA of a reduce-scatter. The ranks need not agree on the
// algorithm: each runs the one of its slice, and both meet in one barrier.
type scatterPart struct {
	wordsPart
	linear linearPart
}

func (g *program) scatter(cta *api.CTA) part {
	sc := scatterPart{wordsPart: wordsPart{g, cta, scatterWords}}
	for r := range cta.Slices {
		if sc.isLinear(r) {
			sc.linear = linearPart{g, cta, g.takeScratch(int64(g.ranks) * cta.Count * g.size)}
			break
		}
	}
	return sc
}

func (sc scatterPart) isLinear(rank int) bool {
	return cmp.Or(sc.cta.Slices[rank].Algorithm, sc.cta.Algorithm) == algLinear
}

func (sc scatterPart) len(rank int) int {
	if sc.isLinear(rank) {
		return sc.linear.len(rank)
	}
	return sc.wordsPart.len(rank)
}

func (sc scatterPart) step(s *machine.Step, rank, i int) {
	if sc.isLinear(rank) {
		sc.linear.step(s, rank, i)
		return
	}
	sc.wordsPart.step(s, rank, i)
}

// linearPart puts block j into rank j's scratch, meets the others and folds all
// blocks in rank order. It takes block j from j*m, whatever part of the call the
// CTA was given.
type linearPart struct {
	g       *program
	cta     *api.CTA
	scratch int64
}

// The fold is two steps where the destination may be the own block: what came
// from lower ranks has overwritten it when its turn comes.
func (l linearPart) folds(rank int) int {
	if l.g.call.InPlace == api.InPlaceOwn && rank >= 2 {
		return 2
	}
	return 1
}

func (l linearPart) len(rank int) int { return l.g.ranks - 1 + 1 + l.folds(rank) }

func (l linearPart) slot(rank, from int) machine.Ref {
	return machine.At(rank, machine.Scratch, l.scratch+int64(from)*l.cta.Count*l.g.size)
}

// block is where rank finds what another rank gives it.
func (l linearPart) block(rank, from int) machine.Ref {
	if from == rank {
		return l.g.src(rank, int64(rank)*l.cta.Count)
	}
	return l.slot(rank, from)
}

func (l linearPart) step(s *machine.Step, rank, i int) {
	g := l.g
	puts := g.ranks - 1
	switch {
	case i < puts:
		to := (rank + 1 + i) % g.ranks
		g.copyStep(s, l.slot(to, rank), g.src(rank, int64(to)*l.cta.Count), l.cta.Count)
		return
	case i == puts:
		g.barrierStep(s, l.cta.CTA)
		return
	}
	dst := g.dst(rank, l.cta.Start)
	first, last := 0, g.ranks
	g.reduceStep(s, dst, l.cta.Count)
	if l.folds(rank) == 2 {
		if i == puts+1 {
			last = rank
		} else {
			first = rank
			s.Srcs = append(s.Srcs, dst)
		}
	}
	for from := first; from < last; from++ {
		s.Srcs = append(s.Srcs, l.block(rank, from))
	}
}
