package nvshmem

import (
	"fmt"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
	"example.com/tandem/sim/machine"
	"example.com/tandem/sim/nvls"
)

// program is the steps of a plan: one kernel, the same CTAs on every rank. It
// takes every split, algorithm and word from the plan.
type program struct {
	p     Params
	plan  *api.Plan
	call  *api.Call
	ranks int
	size  int64 // bytes of an element
	flag  uint32
	parts []part
	needs machine.Needs
	// fold is the arithmetic of the switch on floats; nil where it has none.
	fold *nvls.Reducer
}

// part is what one CTA does.
type part interface {
	len(rank int) int
	step(s *machine.Step, rank, i int)
}

// newProgram turns a plan into steps. flag is the LL flag of the call: not 0, and
// not one that the team's last calls used.
func newProgram(p Params, plan *api.Plan, flag uint32) (*program, error) {
	g := &program{p: p, plan: plan, call: &plan.Call, ranks: plan.Call.Ranks, size: int64(plan.Call.DType.Size()), flag: flag}
	if m, err := p.Switch(g.call.DType, g.call.Op); err == nil && g.call.DType.Float() && g.call.Collective.Reduces() {
		if g.fold, err = nvls.NewReducer(m, g.call.DType, g.call.Op, g.ranks); err != nil {
			return nil, err
		}
	}
	ctas := plan.Kernels[0].CTAs
	g.parts = make([]part, len(ctas))
	for i := range ctas {
		pt, err := g.part(&ctas[i])
		if err != nil {
			return nil, err
		}
		g.parts[i] = pt
	}
	g.needs.Barriers = len(ctas)
	return g, nil
}

func (g *program) part(cta *api.CTA) (part, error) {
	switch cta.Algorithm {
	case algNone:
		return emptyPart{}, nil
	case algOneShot, algTwoShot:
		if len(cta.Slices) > g.ranks {
			return g.headAndTail(cta)
		}
		return g.inSwitch(cta), nil
	case algRecExch:
		return g.newExchanging(cta), nil
	case algSegment:
		return g.newSegment(cta), nil
	case algLL:
		return g.newReduceLL(cta), nil
	case algLinear:
		return g.scatter(cta), nil
	case algNVLS:
		if g.call.Collective == api.AllGather {
			return g.gatherWords(cta), nil
		}
		return g.scatter(cta), nil
	case algLL8:
		return g.newGatherLL8(cta), nil
	case algCopy:
		return g.copies(cta), nil
	case algTree:
		return g.newTree(cta), nil
	case algPutSignal:
		return g.newFlat(cta), nil
	}
	return nil, fmt.Errorf("nvshmem: a plan with the unknown algorithm %q", cta.Algorithm)
}

// CTAs is the number of CTAs of the plan's kernel.
func (g *program) CTAs() int { return len(g.parts) }

// Needs is the scratch, lines and words of all CTAs together.
func (g *program) Needs() machine.Needs { return g.needs }

// Len is the number of steps of a CTA.
func (g *program) Len(rank, cta int) int { return g.parts[cta].len(rank) }

// Step is one step of a CTA.
func (g *program) Step(s *machine.Step, rank, cta, i int) { g.parts[cta].step(s, rank, i) }

// takeScratch gives a CTA its own scratch, on every rank; takeLines and
// takeTemps likewise. They return where it begins.
func (g *program) takeScratch(bytes int64) int64 {
	at := g.needs.Scratch
	g.needs.Scratch += (bytes + 15) / 16 * 16
	return at
}

func (g *program) takeLines(bytes int64) int64 {
	at := g.needs.Line
	g.needs.Line += (bytes + 15) / 16 * 16
	return at
}

func (g *program) takeTemps(n int) int64 {
	at := g.needs.Temps
	g.needs.Temps += n
	return int64(at)
}

// src and dst are places in the user's buffers, in elements.
func (g *program) src(rank int, elem int64) machine.Ref {
	return machine.User(rank, machine.Src, 0, elem*g.size)
}

func (g *program) dst(rank int, elem int64) machine.Ref {
	return machine.User(rank, machine.Dst, 0, elem*g.size)
}

// stepwise is the arithmetic of the P2P algorithms: x op y in the element type,
// one rounding a step, min and max as (x < y) ? x : y.
func (g *program) stepwise() num.Scheme {
	return num.Scheme{Op: g.call.Op, MinMax: num.Ternary}
}

// switchStep has a step reduce floats as the switch does. at is the first element
// in the source of the call.
func (g *program) switchStep(s *machine.Step, at int64) {
	s.DType, s.Scheme = g.call.DType, num.Scheme{Op: g.call.Op}
	s.Fold, s.At = g.fold, at*g.size
}

func (g *program) copyStep(s *machine.Step, dst, src machine.Ref, elems int64) {
	s.Kind, s.Dst, s.Bytes = machine.Copy, dst, elems*g.size
	s.Srcs = append(s.Srcs, src)
}

func (g *program) reduceStep(s *machine.Step, dst machine.Ref, elems int64, srcs ...machine.Ref) {
	s.Kind, s.Dst, s.Bytes = machine.Reduce, dst, elems*g.size
	s.DType, s.Scheme = g.call.DType, g.stepwise()
	s.Srcs = append(s.Srcs, srcs...)
}

// barrierStep is the barrier of the team that works for one CTA.
func (g *program) barrierStep(s *machine.Step, cta int) {
	s.Kind, s.Value, s.Count = machine.Barrier, uint64(cta), g.ranks
}

// emptyPart is the part of a CTA without elements.
type emptyPart struct{}

func (emptyPart) len(int) int                  { return 0 }
func (emptyPart) step(*machine.Step, int, int) {}
