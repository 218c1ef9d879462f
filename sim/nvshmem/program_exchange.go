package nvshmem

import (
	"example.com/tandem/api"
	"example.com/tandem/sim/machine"
)

// exchangePart is the all-reduce by recursive exchange. In step 1 the ranks that
// do not fit the hypercube hand their source to one that does; in each phase of
// step 2 the ranks that differ in one digit swap what they have so far; in step 3
// the result goes back to who handed over in step 1.
//
// Every message has a slot of scratch and a signal of its own at the receiver.
type exchangePart struct {
	g       *program
	cta     *api.CTA
	ex      exchange
	scratch int64
	signals int64
}

func (g *program) newExchanging(cta *api.CTA) part {
	ex := newExchange(g.ranks, g.p)
	x := exchangePart{g: g, cta: cta, ex: ex}
	slots := (ex.radix - 1) * (1 + ex.phases)
	x.scratch = g.takeScratch(int64(slots) * cta.Count * g.size)
	x.signals = g.takeTemps(slots + 1)
	return x
}

// place is a rank's part in the hypercube, and where it is in its own steps.
func (e exchange) newRank(rank int) int {
	if rank < e.folded {
		return rank / e.radix
	}
	return rank - e.rest
}

// oldRank is newRank's inverse on the ranks that take part in step 2.
func (e exchange) oldRank(place int) int {
	if place < e.rest/(e.radix-1) {
		return place*e.radix + e.radix - 1
	}
	return place + e.rest
}

// digit is the phase's digit of a place; swap is the place with another one.
func (e exchange) digit(place, phase int) int { return place / e.weight(phase) % e.radix }

func (e exchange) swap(place, phase, digit int) int {
	return place + (digit-e.digit(place, phase))*e.weight(phase)
}

func (e exchange) weight(phase int) int {
	w := 1
	for range phase {
		w *= e.radix
	}
	return w
}

func (x exchangePart) slot(rank, slot int) machine.Ref {
	return machine.At(rank, machine.Scratch, x.scratch+int64(slot)*x.cta.Count*x.g.size)
}

func (x exchangePart) signal(rank, slot int) machine.Ref {
	return machine.At(rank, machine.Temp, x.signals+int64(slot))
}

// back is the signal of step 3.
func (x exchangePart) back() int { return (x.ex.radix - 1) * (1 + x.ex.phases) }

// phaseSteps is the length of a phase: a put and a signal for each partner, a
// wait for each, one fold.
func (x exchangePart) phaseSteps() int { return 3*(x.ex.radix-1) + 1 }

func (x exchangePart) len(rank int) int {
	if x.g.ranks == 1 {
		return 1
	}
	if x.ex.sendsTo(rank) >= 0 {
		return 3
	}
	n := x.ex.phases * x.phaseSteps()
	if got := x.ex.received(rank); got > 0 {
		n += got + 1 + 2*got
	}
	return n
}

func (x exchangePart) step(s *machine.Step, rank, i int) {
	if x.g.ranks == 1 {
		x.g.copyStep(s, x.g.dst(rank, x.cta.Start), x.g.src(rank, x.cta.Start), x.cta.Count)
		return
	}
	if to := x.ex.sendsTo(rank); to >= 0 {
		x.handOver(s, rank, to, i)
		return
	}
	got := x.ex.received(rank)
	if got > 0 {
		if i <= got {
			x.fold(s, rank, got, i)
			return
		}
		i -= got + 1
	}
	if i < x.ex.phases*x.phaseSteps() {
		x.phase(s, rank, i/x.phaseSteps(), i%x.phaseSteps())
		return
	}
	i -= x.ex.phases * x.phaseSteps()
	x.handBack(s, rank, rank-1-i/2, i%2)
}

// handOver is what a rank outside the hypercube does.
func (x exchangePart) handOver(s *machine.Step, rank, to, i int) {
	switch slot := to - rank - 1; i {
	case 0:
		x.g.copyStep(s, x.slot(to, slot), x.g.src(rank, x.cta.Start), x.cta.Count)
	case 1:
		x.raise(s, to, slot)
	default:
		x.await(s, rank, x.back(), to)
	}
}

// fold takes in what was handed over: rank-1 first.
func (x exchangePart) fold(s *machine.Step, rank, got, i int) {
	if i < got {
		x.await(s, rank, i, rank-1-i)
		return
	}
	x.g.reduceStep(s, x.g.dst(rank, x.cta.Start), x.cta.Count, x.g.src(rank, x.cta.Start))
	for k := range got {
		s.Srcs = append(s.Srcs, x.slot(rank, k))
	}
}

// phase is one step of a phase. Partners are taken in the order of their digit,
// and a message lies in the slot of its sender's digit, the receiver's own left
// out.
func (x exchangePart) phase(s *machine.Step, rank, phase, i int) {
	partners := x.ex.radix - 1
	place := x.ex.newRank(rank)
	own := x.ex.digit(place, phase)
	first := (1 + phase) * partners
	so := x.sofar(rank, phase)
	if i == 3*partners {
		x.g.reduceStep(s, x.g.dst(rank, x.cta.Start), x.cta.Count, so)
		for k := range partners {
			s.Srcs = append(s.Srcs, x.slot(rank, first+k))
		}
		return
	}
	k := i % partners
	if i < 2*partners {
		k = i / 2
	}
	digit := k
	if digit >= own {
		digit++
	}
	peer := x.ex.oldRank(x.ex.swap(place, phase, digit))
	theirs := own // the slot there
	if own > digit {
		theirs--
	}
	switch {
	case i >= 2*partners:
		x.await(s, rank, first+k, peer)
	case i%2 == 0:
		x.g.copyStep(s, x.slot(peer, first+theirs), so, x.cta.Count)
	default:
		x.raise(s, peer, first+theirs)
	}
}

// sofar is where a rank's value is before a phase.
func (x exchangePart) sofar(rank, phase int) machine.Ref {
	if phase == 0 && x.ex.received(rank) == 0 {
		return x.g.src(rank, x.cta.Start)
	}
	return x.g.dst(rank, x.cta.Start)
}

func (x exchangePart) handBack(s *machine.Step, rank, to, i int) {
	if i == 0 {
		x.g.copyStep(s, x.g.dst(to, x.cta.Start), x.g.dst(rank, x.cta.Start), x.cta.Count)
		return
	}
	x.raise(s, to, x.back())
}

func (x exchangePart) raise(s *machine.Step, rank, slot int) {
	s.Kind, s.Word, s.Value, s.Order = machine.Store, x.signal(rank, slot), 1, machine.Release
}

func (x exchangePart) await(s *machine.Step, rank, slot, peer int) {
	s.Kind, s.Word, s.Value, s.Order, s.Peer = machine.Wait, x.signal(rank, slot), 1, machine.Acquire, peer
}
