package nccl

import (
	"example.com/tandem/api"
	"example.com/tandem/api/num"
	"example.com/tandem/sim/machine"
)

// program executes a plan. A chunk is folded in one step by its owner, in ring
// order, and then copied round.
type program struct {
	call   api.Call
	ctas   []api.CTA
	size   int64
	scheme num.Scheme
}

func newProgram(plan *api.Plan) machine.Program {
	p := &program{call: plan.Call, ctas: plan.Kernels[0].CTAs, size: int64(plan.Call.DType.Size())}
	p.scheme = num.Scheme{Op: p.call.Op}
	if p.call.Op == api.Avg && p.call.DType.Float() {
		p.scheme.Avg = num.AvgPremulFused
	}
	return p
}

func (p *program) CTAs() int { return len(p.ctas) }

func (p *program) Needs() machine.Needs { return machine.Needs{Barriers: len(p.ctas)} }

// Len is the two barriers and, between them, ranks steps for every loop.
func (p *program) Len(_, cta int) int {
	switch c := &p.ctas[cta]; c.Algorithm {
	case algNone:
		return 0
	case algOneRank:
		return 1
	case algCopy, algRing:
		return 2 + p.call.Ranks
	default:
		return 2 + p.loops(c)*p.call.Ranks
	}
}

func (p *program) loops(c *api.CTA) int {
	ranks := int64(p.call.Ranks)
	return int(ceilDiv(c.Count, ranks*(protoOf(c.Algorithm).chunk/p.size)))
}

func (p *program) Step(s *machine.Step, rank, cta, i int) {
	c := &p.ctas[cta]
	if c.Algorithm == algOneRank {
		p.copy(s, rank, rank, c.Slices[0].Start, c.Slices[0].Start, c.Slices[0].Count)
		return
	}
	if i == 0 || i == p.Len(rank, cta)-1 {
		*s = machine.Step{Kind: machine.Barrier, Value: uint64(cta), Count: p.call.Ranks, Peer: machine.Nobody, Srcs: s.Srcs[:0], Order: machine.AcqRel}
		return
	}
	ranks := p.call.Ranks
	loop, k := (i-1)/ranks, (i-1)%ranks
	to := (rank + k) % ranks
	switch {
	case c.Algorithm == algCopy:
		p.move(s, rank, to)
	case c.Algorithm == algRing:
		if k == 0 {
			p.reduce(s, rank, int64(rank)*p.call.Count, 0, p.call.Count)
		}
	default:
		start, count := p.owned(c, rank, int64(loop))
		if k == 0 {
			p.reduce(s, rank, start, start, count)
			return
		}
		s.Kind, s.Bytes, s.Note = machine.Copy, count*p.size, "the reduced chunk goes round"
		s.Dst = machine.User(to, machine.Dst, 0, start*p.size)
		s.Srcs = append(s.Srcs, machine.User(rank, machine.Dst, 0, start*p.size))
	}
}

// owned is the chunk of rank in one loop of an all-reduce channel.
func (p *program) owned(c *api.CTA, rank int, loop int64) (start, count int64) {
	proto, ranks := protoOf(c.Algorithm), int64(p.call.Ranks)
	off := loop * ranks * (proto.chunk / p.size)
	rem := c.Count - off
	n := chunkElems(rem, ranks, p.size, proto)
	own := min(int64(rank)*n, rem)
	return c.Start + off + own, min(n, rem-own)
}

// reduce folds count elements in ring order, beginning after the owner.
func (p *program) reduce(s *machine.Step, owner int, src, dst, count int64) {
	s.Kind, s.Bytes, s.DType, s.Scheme = machine.Reduce, count*p.size, p.call.DType, p.scheme
	s.Note = "the chunk comes to its owner last"
	s.Dst = machine.User(owner, machine.Dst, 0, dst*p.size)
	for k := 1; k <= p.call.Ranks; k++ {
		s.Srcs = append(s.Srcs, machine.User((owner+k)%p.call.Ranks, machine.Src, 0, src*p.size))
	}
}

// move is what rank gives to another rank in a call that only copies.
func (p *program) move(s *machine.Step, rank, to int) {
	n := p.call.Count
	inPlace := p.call.InPlace != api.OutOfPlace && rank == to
	switch p.call.Collective {
	case api.AllGather:
		if !inPlace {
			p.copy(s, rank, to, 0, int64(rank)*n, n)
		}
	case api.Broadcast:
		if rank == p.call.Root && !inPlace {
			p.copy(s, rank, to, 0, 0, n)
		}
	case api.AllToAll:
		p.copy(s, rank, to, int64(to)*n, int64(rank)*n, n)
	default: // a reduction of one rank
		if !inPlace {
			p.copy(s, rank, to, 0, 0, n)
		}
	}
}

func (p *program) copy(s *machine.Step, from, to int, src, dst, count int64) {
	s.Kind, s.Bytes = machine.Copy, count*p.size
	s.Dst = machine.User(to, machine.Dst, 0, dst*p.size)
	s.Srcs = append(s.Srcs, machine.User(from, machine.Src, 0, src*p.size))
}
