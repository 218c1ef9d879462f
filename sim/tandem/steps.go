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

func move(s *machine.Step, dst, src machine.Ref, bytes int64) {
	s.Kind, s.Dst, s.Bytes = machine.Copy, dst, bytes
	s.Srcs = append(s.Srcs, src)
}

// everyPeer makes the step one on a word for each peer: the first is s.Word.
func (l *launch) everyPeer(s *machine.Step, word func(peer int) machine.Ref) {
	s.Word = word(l.peer(0))
	for i := 1; i < l.ranks()-1; i++ {
		s.More = append(s.More, word(l.peer(i)))
	}
}

// patient makes the step a bounded wait of this rank.
func (l *launch) patient(s *machine.Step, deadline machine.Deadline, peer, otherwise int) {
	s.Deadline, s.Peer, s.Else = deadline, peer, otherwise
	s.Aborts = [2]machine.Ref{l.word(wAbort), l.word(wHostAbort)}
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

// enter: launched, and the team is alive. The other blocks leave that to block
// 0; it is gone if not.
func (k *kernel) enterSize(*phase) int {
	if k.block > 0 {
		return 2
	}
	return 5
}

func (k *kernel) enter(s *machine.Step, p *phase, i int) {
	switch i {
	case 0:
		s.Kind, s.Word, s.Value = machine.Await, k.temp(tLaunched), 1
	case 1:
		s.Kind = machine.Begin
	case 2:
		test(s, k.temp(tCancelled), machine.ZeroValue, 0, k.to(pUnstarted))
	case 3:
		test(s, k.word(wGeneration), machine.Equal, k.generation, k.to(pStale))
	case 4:
		test(s, k.word(wPoison), machine.ZeroValue, 0, k.to(pPoisoned))
		s.More = append(s.More, k.word(wAbort), k.word(wHostAbort))
	}
}

func (k *kernel) claimSize(*phase) int {
	if k.block > 0 {
		return 1
	}
	return 4
}

func (k *kernel) claim(s *machine.Step, p *phase, i int) {
	if k.block > 0 {
		s.Kind, s.Word, s.Value, s.Order, s.Scope = machine.Wait, k.word(wOwner), k.ticket, machine.Acquire, machine.GPU
		k.patient(s, machine.Arrive, machine.Nobody, k.to(pQuiet))
		s.Aborts[1], s.Note = k.temp(tGone), noteOwner
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
		s.More = append(s.More, k.word(wHostAbort))
	}
}

func (k *kernel) parity(s *machine.Step, p *phase, i int) {
	test(s, k.epoch(), machine.Equal, 0, k.odd)
	s.Mask, s.Note = 1, noteParity
}

// over ends the body for epochs of one parity.
func (k *kernel) over(s *machine.Step, p *phase, i int) { jump(s, k.to(pLeave)) }

// check looks at the abort word before a wait.
func (k *kernel) checkSize(*phase) int { return min(k.ranks()-1, 1) }

func (k *kernel) check(s *machine.Step, p *phase, i int) {
	test(s, k.word(wAbort), machine.ZeroValue, 0, k.to(pQuiet))
}

// headers: one line to every peer, each half a word.
func (k *kernel) headersSize(*phase) int {
	if k.block > 0 || k.ranks() == 1 {
		return 0
	}
	return 3
}

func (k *kernel) headers(s *machine.Step, p *phase, i int) {
	if i == 0 {
		fence(s)
		return
	}
	storeOf(s, machine.Ref{}, k.epoch(), k.headerHalf(i-1), machine.Relaxed, machine.System)
	k.everyPeer(s, func(to int) machine.Ref { return ref(to, header(k.ranks(), int(p.parity), k.rank, i-1)) })
	s.Note = noteHeader
}

// headerHalf is half of the hash above the place of the flag, which the epoch
// fills.
func (l *launch) headerHalf(half int) uint64 { return l.hash >> (32 * half) << 32 }

// header is where the header of a peer comes in.
func (k *kernel) header(p *phase, from, half int) machine.Ref {
	return k.word(header(k.ranks(), int(p.parity), from, half))
}

// agree waits for all headers; the other blocks wait for block 0 to have done so.
func (k *kernel) agree(s *machine.Step, p *phase, i int) {
	s.Kind, s.Base, s.Order = machine.Wait, k.epoch(), machine.Acquire
	if k.block > 0 {
		s.Word, s.Scope, s.Note = k.word(wAgreed), machine.GPU, noteAgreed
		k.patient(s, machine.Arrive, machine.Nobody, k.to(pQuiet))
		return
	}
	k.everyPeer(s, func(from int) machine.Ref { return k.header(p, from, 0) })
	for i := range k.ranks() - 1 {
		s.More = append(s.More, k.header(p, k.peer(i), 1))
	}
	s.Mask, s.Note = flagMask, noteHeader
	k.patient(s, machine.Arrive, machine.Nobody, int(p.twin))
}

// same requires that all headers say what ours says, and lets the other blocks
// go on.
func (k *kernel) sameSize(*phase) int {
	if k.block > 0 || k.ranks() == 1 {
		return 0
	}
	return 2 + min(k.grid-1, 1)
}

func (k *kernel) same(s *machine.Step, p *phase, i int) {
	if i == 2 {
		storeOf(s, k.word(wAgreed), k.epoch(), 0, machine.Release, machine.GPU)
		return
	}
	test(s, machine.Ref{}, machine.Equal, k.headerHalf(i), int(p.twin))
	k.everyPeer(s, func(from int) machine.Ref { return k.header(p, from, i) })
	s.Base, s.Note = k.epoch(), noteHeader
}

// signal tells every peer that this block has finished a flag phase.
func (k *kernel) signalSize(*phase) int { return 2 }

func (k *kernel) signal(s *machine.Step, p *phase, i int) {
	if i == 0 {
		fence(s)
		return
	}
	storeOf(s, machine.Ref{}, k.epoch(), uint64(p.chunk), machine.Relaxed, machine.System)
	k.everyPeer(s, func(to int) machine.Ref { return ref(to, flag(k.ranks(), k.block, int(p.which), k.rank)) })
	s.Shift, s.Note = chunkBits, phaseNotes[p.which]
}

var phaseNotes = [...]string{phaseReady: "staged", phaseShared: "shared", phaseDone: "done"}

var phaseCauses = [...]cause{phaseReady: causeReady, phaseShared: causeShare, phaseDone: causeDone}

// await waits for every peer's flag.
func (k *kernel) await(s *machine.Step, p *phase, i int) {
	k.flagged(s, p)
	k.everyPeer(s, func(from int) machine.Ref { return k.word(flag(k.ranks(), k.block, int(p.which), from)) })
	k.patient(s, machine.Progress, machine.Nobody, int(p.twin))
}

// flagged makes the step a wait for a flag phase.
func (k *kernel) flagged(s *machine.Step, p *phase) {
	s.Kind, s.Cmp, s.Order = machine.Wait, machine.Reached, machine.Acquire
	s.Base, s.Shift, s.Value = k.epoch(), chunkBits, uint64(p.chunk)
	s.Note = phaseNotes[p.which]
}
