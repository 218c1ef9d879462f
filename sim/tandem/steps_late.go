package tandem

import "example.com/tandem/sim/machine"

// recordAt is where a wait for peer goes when it ends without what it waited
// for.
func (k *kernel) recordAt(c cause, peer int) int {
	return k.to(pRecord) + 2*((int(c)-1)*k.ranks()+peer)
}

// back returns to the step after a wait that was told too early that it had
// ended: all that it missed has come.
func back(s *machine.Step, p *phase) { jump(s, int(p.twin)) }

// lateHeaders looks for the peer whose header has not come.
func (k *kernel) lateHeadersSize(*phase) int {
	if k.block > 0 {
		return 0
	}
	return 2*(k.ranks()-1) + 1
}

func (k *kernel) lateHeaders(s *machine.Step, p *phase, i int) {
	if i == 2*(k.ranks()-1) {
		back(s, p)
		return
	}
	from := k.peer(i / 2)
	s.Kind, s.Word, s.Base, s.Mask = machine.Wait, k.header(p, from, i%2), k.epoch(), flagMask
	s.Order, s.Note = machine.Acquire, noteHeader
	k.patient(s, machine.Arrive, from, k.recordAt(causeHeader, from))
}

// others looks for the peer whose header says something else.
func (k *kernel) othersSize(*phase) int { return 2*(k.ranks()-1) + 1 }

func (k *kernel) others(s *machine.Step, p *phase, i int) {
	if i == 2*(k.ranks()-1) {
		back(s, p) // only a failed step comes here
		return
	}
	from := k.peer(i / 2)
	test(s, k.header(p, from, i%2), machine.Equal, k.headerHalf(i%2), k.recordAt(causeMismatch, from))
	s.Base, s.Note = k.epoch(), noteHeader
}

// lateLines looks for the peer whose lines have not come.
func (k *kernel) lateLinesSize(p *phase) int { return k.senders()*k.arrivalsSize(p) + 1 }

func (k *kernel) lateLines(s *machine.Step, p *phase, i int) {
	n := k.arrivalsSize(p)
	if i == k.senders()*n {
		back(s, p)
		return
	}
	from := k.sender(i / n)
	k.arrival(s, p, i%n)
	s.Srcs = append(s.Srcs[:0], s.Srcs[i/n])
	k.patient(s, machine.Progress, from, k.recordAt(causeLines, from))
}

// lateFlags looks for the peer that has not finished a flag phase.
func (k *kernel) lateFlagsSize(*phase) int { return k.ranks() }

func (k *kernel) lateFlags(s *machine.Step, p *phase, i int) {
	if i == k.ranks()-1 {
		back(s, p)
		return
	}
	from := k.peer(i)
	k.flagged(s, p)
	s.Word = k.word(flag(k.ranks(), k.block, int(p.which), from))
	k.patient(s, machine.Progress, from, k.recordAt(phaseCauses[p.which], from))
}
