package nvshmem

import (
	"example.com/tandem/api"
	"example.com/tandem/sim/machine"
)

// segmentPart is the all-reduce by puts of at most one segment: the destination
// starts as a copy of the own source; each segment of the source goes to one
// peer after another and is folded into the destination there. What is shorter
// than a segment goes to as many peers at once as fit.
//
// A put reads the source when its turn comes. In place, on three ranks and more,
// that is after earlier rounds have changed it: the library's fault, and ours.
type segmentPart struct {
	g       *program
	cta     *api.CTA
	scratch int64
	unit    int64 // elements of a full segment
	full    int64 // full segments
	tail    int64 // elements of the rest
	slots   int64 // peers at once, for the rest
	rounds  int64 // of the rest
}

func (g *program) newSegment(cta *api.CTA) part {
	sg := segmentPart{g: g, cta: cta, unit: g.p.SegmentBytes() / g.size}
	sg.full, sg.tail = cta.Count/sg.unit, cta.Count%sg.unit
	peers := int64(g.ranks - 1)
	if sg.tail > 0 {
		sg.slots = min(sg.unit/sg.tail, peers)
	}
	if sg.slots > 0 {
		sg.rounds = (peers + sg.slots - 1) / sg.slots
	}
	bytes := sg.slots * sg.tail * g.size
	if sg.full > 0 && peers > 0 {
		bytes = sg.unit * g.size
	}
	sg.scratch = g.takeScratch(bytes)
	return sg
}

// Steps of a full segment for one peer: put, barrier, fold, barrier. Steps of a
// round of the rest: a put for each slot, barrier, one fold of all slots, barrier.
const (
	segmentSteps = 4
	roundSteps   = 3
)

func (sg segmentPart) len(int) int {
	peers := int64(sg.g.ranks - 1)
	return int(1 + sg.full*peers*segmentSteps + peers*min(sg.rounds, 1) + sg.rounds*roundSteps)
}

func (sg segmentPart) step(s *machine.Step, rank, i int) {
	if i == 0 {
		sg.g.copyStep(s, sg.g.dst(rank, sg.cta.Start), sg.g.src(rank, sg.cta.Start), sg.cta.Count)
		return
	}
	at, peers := int64(i-1), int64(sg.g.ranks-1)
	if n := sg.full * peers * segmentSteps; at < n {
		pair := at / segmentSteps
		sg.fullStep(s, rank, sg.cta.Start+pair/peers*sg.unit, int(pair%peers)+1, at%segmentSteps)
		return
	} else {
		at -= n
	}
	round := at / (sg.slots + roundSteps)
	sg.tailStep(s, rank, int(round*sg.slots), at%(sg.slots+roundSteps))
}

func (sg segmentPart) fullStep(s *machine.Step, rank int, elem int64, distance int, at int64) {
	g := sg.g
	switch at {
	case 0:
		g.copyStep(s, machine.At((rank+distance)%g.ranks, machine.Scratch, sg.scratch), g.src(rank, elem), sg.unit)
	case 2:
		g.reduceStep(s, g.dst(rank, elem), sg.unit, g.dst(rank, elem), machine.At(rank, machine.Scratch, sg.scratch))
	default:
		g.barrierStep(s, sg.cta.CTA)
	}
}

// tailStep is a step of the round that serves the peers from distance before+1
// on.
func (sg segmentPart) tailStep(s *machine.Step, rank, before int, at int64) {
	g := sg.g
	elem := sg.cta.Start + sg.full*sg.unit
	puts := min(sg.slots, int64(g.ranks-1-before))
	slot := func(r int, k int64) machine.Ref {
		return machine.At(r, machine.Scratch, sg.scratch+k*sg.tail*g.size)
	}
	switch {
	case at < puts:
		peer := (rank + before + 1 + int(at)) % g.ranks
		g.copyStep(s, slot(peer, at), g.src(rank, elem), sg.tail)
	case at == puts+1:
		g.reduceStep(s, g.dst(rank, elem), sg.tail, g.dst(rank, elem))
		for k := range puts {
			s.Srcs = append(s.Srcs, slot(rank, k))
		}
	default:
		g.barrierStep(s, sg.cta.CTA)
	}
}
