package tandem

import "example.com/tandem/sim/machine"

// Helpers that fill in one step.

func store(s *machine.Step, word machine.Ref, value uint64, o machine.Order, sc machine.Scope) {
	s.Kind, s.Word, s.Value, s.Order, s.Scope = machine.Store, word, value, o, sc
}

// storeOf stores value plus the content of base.
func storeOf(s *machine.Step, word, base machine.Ref, value uint64, o machine.Order, sc machine.Scope) {
	store(s, word, value, o, sc)
	s.Base = base
}

func test(s *machine.Step, word machine.Ref, cmp machine.Compare, value uint64, otherwise int) {
	s.Kind, s.Word, s.Cmp, s.Value, s.Else = machine.Test, word, cmp, value, otherwise
	s.Order = machine.Acquire
}

// swapOnce sets a word that is 0, and goes on either way.
func swapOnce(s *machine.Step, word machine.Ref, value uint64, next int) {
	s.Kind, s.Word, s.Value, s.Order, s.Else = machine.Swap, word, value, machine.AcqRel, next
}

func fence(s *machine.Step) { s.Kind, s.Order = machine.Fence, machine.AcqRel }

func jump(s *machine.Step, to int) { s.Kind, s.Else = machine.Goto, to }

func count(s *machine.Step, event machine.Ref) { s.Kind, s.Word = machine.Record, event }

func move(s *machine.Step, dst, src machine.Ref, bytes int64) {
	s.Kind, s.Dst, s.Bytes = machine.Copy, dst, bytes
	s.Srcs = append(s.Srcs, src)
}

// patient makes the step a bounded wait of this rank.
func (l *launch) patient(s *machine.Step, deadline machine.Deadline, peer, otherwise int) {
	s.Deadline, s.Peer, s.Else = deadline, peer, otherwise
	s.Aborts = [2]machine.Ref{l.word(wAbort), l.word(wHostAbort)}
}

// recordAt is where a wait for peer goes when it ends without what it waited
// for.
func (k *kernel) recordAt(c cause, peer int) int {
	return k.to(pRecord) + 2*((int(c)-1)*k.ranks()+peer)
}

// enter: launched, and the team is alive.
func (k *kernel) enterSize(*phase) int { return 8 }

func (k *kernel) enter(s *machine.Step, p *phase, i int) {
	switch i {
	case 0: // stream order
		if k.previous != nil {
			s.Kind, s.Word, s.Value = machine.Await, k.previous.temp(tEnded), uint64(k.previous.grid)
		}
	case 1:
		s.Kind, s.Word, s.Value = machine.Await, k.temp(tLaunched), 1
	case 2:
		test(s, k.temp(tCancelled), machine.ZeroValue, 0, k.to(pUnstarted))
	case 3:
		s.Kind = machine.Begin
	case 4:
		test(s, k.word(wGeneration), machine.Equal, k.generation, k.to(pStale))
	default:
		word := [...]int64{wPoison, wAbort, wHostAbort}[i-5]
		test(s, k.word(word), machine.ZeroValue, 0, k.to(pPoisoned))
	}
}

func (k *kernel) claimSize(*phase) int {
	if k.block > 0 {
		return 1
	}
	return 5
}

func (k *kernel) claim(s *machine.Step, p *phase, i int) {
	if k.block > 0 {
		s.Kind, s.Word, s.Value, s.Order, s.Scope = machine.Wait, k.word(wOwner), k.ticket, machine.Acquire, machine.GPU
		s.Note = noteOwner
		k.patient(s, machine.Arrive, machine.Nobody, k.to(pQuiet))
		return
	}
	switch i {
	case 0:
		s.Kind, s.Word, s.Value, s.Else = machine.Swap, k.word(wOwner), k.ticket, k.to(pTwoCalls)
		s.Order, s.Scope = machine.AcqRel, machine.GPU
	case 1:
		storeOf(s, k.word(wEntered), k.epoch(), 0, machine.Release, machine.System)
	case 2: // a peer that aborts sees that we are in, or we see the abort
		fence(s)
	case 3:
		test(s, k.word(wAbort), machine.ZeroValue, 0, k.to(pQuiet))
	case 4:
		test(s, k.word(wHostAbort), machine.ZeroValue, 0, k.to(pQuiet))
	}
}

func (k *kernel) parity(s *machine.Step, p *phase, i int) {
	test(s, k.epoch(), machine.Equal, 0, k.odd)
	s.Mask, s.Note = 1, noteParity
}

// over ends the body for even epochs.
func (k *kernel) over(s *machine.Step, p *phase, i int) { jump(s, k.to(pLeave)) }

// check looks at the abort word before a group of waits.
func (k *kernel) checkSize(*phase) int { return min(k.ranks()-1, 1) }

func (k *kernel) check(s *machine.Step, p *phase, i int) {
	test(s, k.word(wAbort), machine.ZeroValue, 0, k.to(pQuiet))
}

// headers: one line to every peer.
func (k *kernel) headersSize(*phase) int {
	if k.block > 0 || k.ranks() == 1 {
		return 0
	}
	return 1 + 2*(k.ranks()-1)
}

func (k *kernel) headers(s *machine.Step, p *phase, i int) {
	if i == 0 {
		fence(s)
		return
	}
	to, half := k.peer((i-1)/2), (i-1)%2
	word := ref(to, header(k.ranks(), int(p.parity), k.rank, half))
	storeOf(s, word, k.epoch(), k.headerHalf(half), machine.Relaxed, machine.System)
	s.Note = noteHeader
}

// headerHalf is half of the hash above the place of the flag, which the epoch
// fills.
func (l *launch) headerHalf(half int) uint64 { return l.hash >> (32 * half) << 32 }

// agree: all headers, and that they say the same.
func (k *kernel) agreeSize(*phase) int {
	switch {
	case k.ranks() == 1:
		return 0
	case k.block > 0:
		return 1
	}
	return 4*(k.ranks()-1) + min(k.grid-1, 1)
}

func (k *kernel) agree(s *machine.Step, p *phase, i int) {
	if k.block > 0 {
		s.Kind, s.Word, s.Base, s.Order, s.Scope = machine.Wait, k.word(wAgreed), k.epoch(), machine.Acquire, machine.GPU
		s.Note = noteAgreed
		k.patient(s, machine.Arrive, machine.Nobody, k.to(pQuiet))
		return
	}
	n, what := i/4, i%4
	if n == k.ranks()-1 {
		storeOf(s, k.word(wAgreed), k.epoch(), 0, machine.Release, machine.GPU)
		return
	}
	from, half := k.peer(n), what%2
	s.Word, s.Base = k.word(header(k.ranks(), int(p.parity), from, half)), k.epoch()
	s.Order, s.Note = machine.Acquire, noteHeader
	if what < 2 {
		s.Kind, s.Mask = machine.Wait, flagMask
		k.patient(s, machine.Arrive, from, k.recordAt(causeHeader, from))
		return
	}
	s.Kind, s.Value, s.Else, s.Peer = machine.Test, k.headerHalf(half), k.recordAt(causeMismatch, from), from
}

// signal tells every peer that this block has finished a flag phase.
func (k *kernel) signalSize(*phase) int { return k.ranks() }

func (k *kernel) signal(s *machine.Step, p *phase, i int) {
	if i == 0 {
		fence(s)
		return
	}
	word := ref(k.peer(i-1), flag(k.ranks(), k.block, k.rank))
	storeOf(s, word, k.epoch(), phaseNumber(int64(p.chunk), int(p.which)), machine.Relaxed, machine.System)
	s.Shift, s.Note = phaseBits, phaseNotes[p.which]
}

// Notes tell the steps of the protocol apart, in traces and tests.
const (
	noteOwner  = "owner"
	noteHeader = "header"
	noteAgreed = "agreed"
	noteLines  = "lines"
	noteGone   = "gone"
	noteEpoch  = "epoch"
	noteParity = "even?"
	noteStamp  = "stamp?"
	noteFlag   = "flag 0?"
	noteAbort  = "abort"
	noteLaunch = "launch"
	noteKernel = "kernel"
	noteLeft   = "left"
	noteBusy   = "busy"
	noteIdle   = "idle"
	noteClose  = "close"
)

var phaseNotes = [...]string{phaseReady: "staged", phaseShared: "shared", phaseDone: "done"}

var phaseCauses = [...]cause{phaseReady: causeReady, phaseShared: causeShare, phaseDone: causeDone}

func (k *kernel) awaitSize(*phase) int { return k.ranks() - 1 }

func (k *kernel) await(s *machine.Step, p *phase, i int) {
	from := k.peer(i)
	s.Kind, s.Cmp, s.Order = machine.Wait, machine.Reached, machine.Acquire
	s.Word = k.word(flag(k.ranks(), k.block, from))
	s.Base, s.Shift, s.Value = k.epoch(), phaseBits, phaseNumber(int64(p.chunk), int(p.which))
	s.Note = phaseNotes[p.which]
	k.patient(s, machine.Progress, from, k.recordAt(phaseCauses[p.which], from))
}
