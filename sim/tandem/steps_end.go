package tandem

import "example.com/tandem/sim/machine"

// depart are the last steps of every block, whatever happened: it touches
// nothing any more, its status, the event. They end the kernel.
const departSteps = 4

func departSize(*kernel, *phase) int { return departSteps }

// statuses is how a block ends that departs from a phase.
var statuses = [phaseKinds]uint64{
	pQuiet: statusAborted, pTwoCalls: statusTwoCalls, pStale: statusStale,
	pPoisoned: statusPoisoned, pUnstarted: statusUnstarted, pCrash: statusCrashed,
}

func (k *kernel) depart(s *machine.Step, p *phase, i int) {
	switch i {
	case 0:
		store(s, k.temp(tGone+int64(k.block)), 1, machine.Release, machine.GPU)
	case 1:
		store(s, k.temp(tStatus(k.grid, k.block)), statuses[p.kind], machine.Release, machine.GPU)
	case 2:
		count(s, k.temp(tEnded))
	case 3:
		jump(s, k.to(pEnd))
		s.Fails = k.to(pEnd) // it has ended
	}
}

// siblings is how many blocks block 0 waits for before it leaves.
func (k *kernel) siblings() int {
	if k.block > 0 {
		return 0
	}
	return k.grid - 1
}

// gone waits for a sibling to touch nothing any more. It looks at no abort
// word: an aborted sibling goes all by itself.
func (k *kernel) gone(s *machine.Step, sibling, otherwise int) {
	s.Kind, s.Word, s.Value = machine.Wait, k.temp(tGone+int64(sibling)), 1
	s.Order, s.Scope = machine.Acquire, machine.GPU
	s.Deadline, s.Else, s.Note = machine.Progress, otherwise, noteGone
}

// leave ends a call that went well.
func (k *kernel) leaveSize(*phase) int {
	if k.block > 0 {
		return departSteps
	}
	return 1 + k.siblings() + leaveSteps + departSteps
}

const (
	leaveSteps  = 4
	leaveOwner  = 3 // of them
	leaveOffset = 1 // of the first wait
)

func (k *kernel) leave(s *machine.Step, p *phase, i int) {
	if k.block > 0 {
		k.depart(s, p, i)
		return
	}
	n := k.siblings()
	switch i -= leaveOffset; {
	case i < 0:
		s.Kind = machine.Begin
	case i < n:
		k.gone(s, i+1, k.to(pQuiet))
	case i >= n+leaveSteps:
		k.depart(s, p, i-n-leaveSteps)
	default:
		k.hand(s, i-n)
	}
}

// hand gives the team to the next call.
func (k *kernel) hand(s *machine.Step, i int) {
	switch i {
	case 0:
		storeOf(s, k.word(wLeft), k.epoch(), 0, machine.Release, machine.System)
	case 1:
		s.Kind, s.Word, s.Value, s.Order, s.Note = machine.Add, k.epoch(), 1, machine.AcqRel, noteEpoch
	case 2:
		test(s, k.epoch(), machine.NotEqual, 0, k.to(pSkip))
		s.Mask, s.Note = flagMask, noteFlag
	case leaveOwner:
		store(s, k.word(wOwner), 0, machine.Release, machine.GPU)
	}
}

// skip leaves out epochs whose flag would be 0.
func (k *kernel) skipSize(*phase) int {
	if k.block > 0 {
		return 0
	}
	return 2
}

func (k *kernel) skip(s *machine.Step, p *phase, i int) {
	if i == 0 {
		s.Kind, s.Word, s.Value, s.Order = machine.Add, k.epoch(), skipEpoch, machine.AcqRel
		return
	}
	jump(s, k.to(pLeave)+leaveOffset+k.siblings()+leaveOwner)
}

// record writes the state word: two steps for each cause and peer.
func (k *kernel) recordSize(*phase) int {
	if k.ranks() == 1 {
		return 0
	}
	return 2 * int(causeMismatch) * k.ranks()
}

func (k *kernel) record(s *machine.Step, p *phase, i int) {
	if i%2 == 1 {
		jump(s, k.to(pAbort))
		return
	}
	c, peer := cause(i/2/k.ranks()+1), i/2%k.ranks()
	swapOnce(s, k.word(wState), state(c, peer), k.to(pAbort))
}

// tell are the steps that end the call on this rank and on every peer. A rank
// that has been told itself passes on by whom.
func (k *kernel) tellSize() int { return 3 + k.ranks() - 1 }

func (k *kernel) tell(s *machine.Step, next, i int) {
	switch i {
	case 0:
		fence(s)
	case 1:
		swapOnce(s, k.word(wAbort), state(causeAborted, k.rank), next)
	case 2:
		store(s, k.word(wPoison), 1, machine.Release, machine.System)
	default:
		storeOf(s, ref(k.peer(i-3), wAbort), k.word(wAbort), 0, machine.Release, machine.System)
		s.Note = noteAbort
	}
}

func (k *kernel) abortSize(*phase) int { return k.tellSize() }

func (k *kernel) abort(s *machine.Step, p *phase, i int) {
	k.tell(s, int(p.start)+i+1, i)
}

// quiet leaves a call that is over, telling nobody. What block 0 records last
// counts only if no block has waited for a peer.
func (k *kernel) quietSize(*phase) int {
	if k.block > 0 {
		return quietSteps + departSteps
	}
	return quietSteps + 1 + k.siblings() + 2 + departSteps
}

const quietSteps = 3

func (k *kernel) quiet(s *machine.Step, p *phase, i int) {
	n, next := k.siblings(), int(p.start)+i+1
	switch i {
	case 0: // the siblings must know, whoever told this block
		swapOnce(s, k.word(wAbort), 0, next)
		s.Base = k.word(wHostAbort)
		return
	case 1:
		swapOnce(s, k.word(wAbort), state(causeAborted, k.rank), next)
		return
	case 2:
		store(s, k.word(wPoison), 1, machine.Release, machine.System)
		return
	}
	departs := int(p.start) + k.quietSize(p) - departSteps
	switch i -= quietSteps; {
	case k.block > 0:
		k.depart(s, p, i)
	case i == 0:
		s.Kind = machine.Begin
	case i <= n:
		k.gone(s, i, departs) // a sibling that stays keeps us from having left
	case i == n+1:
		swapOnce(s, k.word(wState), 0, next)
		s.Base = k.word(wAbort)
	case i == n+2:
		storeOf(s, k.word(wLeft), k.epoch(), 0, machine.Release, machine.System)
	default:
		k.depart(s, p, i-n-3)
	}
}

// twoCalls: another kernel of the team is running on this rank.
func (k *kernel) twoCallsSize(*phase) int {
	if k.block > 0 {
		return 0
	}
	return 1 + k.tellSize() + departSteps
}

func (k *kernel) twoCalls(s *machine.Step, p *phase, i int) {
	n := k.tellSize()
	switch {
	case i == 0:
		swapOnce(s, k.word(wState), state(causeTwoCalls, k.rank), int(p.start)+1)
	case i <= n:
		k.tell(s, int(p.start)+i+1, i-1)
	default:
		k.depart(s, p, i-1-n)
	}
}

// crash is not the kernel's doing: it is the driver that says that a kernel has
// failed and will not run on.
func (k *kernel) crashSize(*phase) int { return 3 + departSteps }

func (k *kernel) crash(s *machine.Step, p *phase, i int) {
	next := int(p.start) + i + 1
	switch i {
	case 0:
		store(s, k.temp(tCrashed), 1, machine.Release, machine.System)
	case 1:
		swapOnce(s, k.word(wState), state(causeKernel, k.rank), next)
	case 2:
		swapOnce(s, k.word(wAbort), state(causeAborted, k.rank), next)
	default:
		k.depart(s, p, i-3)
	}
}
