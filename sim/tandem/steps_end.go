package tandem

import "example.com/tandem/sim/machine"

// statuses is how a block ends that departs from a phase.
var statuses = [phaseKinds]uint64{
	pQuiet: statusAborted, pTwoCalls: statusTwoCalls, pStale: statusStale,
	pPoisoned: statusPoisoned, pUnstarted: statusUnstarted, pCrash: statusCrashed,
}

// depart are the last steps of a block for which it did not go well: its status,
// and that it touches nothing any more.
func (k *kernel) departSize(*phase) int { return departSteps }

const departSteps = 3

func (k *kernel) depart(s *machine.Step, p *phase, i int) {
	switch i {
	case 0:
		store(s, k.temp(tStatus(k.grid, k.block)), statuses[p.kind], machine.Release, machine.System)
	case 1:
		k.isGone(s)
	case 2:
		jump(s, k.to(pEnd))
		s.Fails = k.to(pEnd) // it has ended
	}
}

// isGone ends a block: what its kernel's end is to the host.
func (k *kernel) isGone(s *machine.Step) {
	store(s, k.temp(tGone+int64(k.block)), 1, machine.Release, machine.System)
	s.Note = noteGone
}

// siblings is how many blocks block 0 waits for before it leaves.
func (k *kernel) siblings() int {
	if k.block > 0 {
		return 0
	}
	return k.grid - 1
}

// gone waits for the siblings to touch nothing any more. It looks at no abort
// word: an aborted sibling goes all by itself.
func (k *kernel) gone(s *machine.Step, otherwise int) {
	k.allGone(s, 1)
	s.Scope, s.Deadline, s.Else, s.Note = machine.GPU, machine.Progress, otherwise, noteGone
}

// allGone makes the step a wait for the blocks from one on to be gone.
func (l *launch) allGone(s *machine.Step, from int) {
	s.Kind, s.Word, s.Value, s.Order = machine.Wait, l.temp(tGone+int64(from)), 1, machine.Acquire
	for b := from + 1; b < l.grid; b++ {
		s.More = append(s.More, l.temp(tGone+int64(b)))
	}
}

// patience is the number of steps that waiting for siblings takes.
func (k *kernel) patience() int { return 2 * min(k.siblings(), 1) }

func (k *kernel) wait(s *machine.Step, i, otherwise int) {
	if i == 0 {
		s.Kind = machine.Begin
		return
	}
	k.gone(s, otherwise)
}

// leave ends a call that went well. It comes last, so that it leads to the end.
func (k *kernel) leaveSize(*phase) int {
	if k.block > 0 {
		return 1
	}
	return k.patience() + leaveSteps
}

const (
	leaveSteps = 5
	leaveOwner = 3 // of them
)

func (k *kernel) leave(s *machine.Step, p *phase, i int) {
	n := k.patience()
	if k.block == 0 && i < n {
		k.wait(s, i, k.to(pQuiet))
		return
	}
	if k.block > 0 {
		k.isGone(s)
		return
	}
	switch i - n {
	case 0:
		storeOf(s, k.word(wLeft), k.epoch(), 0, machine.Release, machine.System)
	case 1:
		s.Kind, s.Word, s.Value, s.Order, s.Note = machine.Add, k.epoch(), 1, machine.AcqRel, noteEpoch
	case 2:
		test(s, k.epoch(), machine.NotEqual, 0, k.to(pSkip))
		s.Mask, s.Note = flagMask, noteFlag
	case leaveOwner:
		store(s, k.word(wOwner), 0, machine.Release, machine.GPU)
	case leaveSteps - 1:
		k.isGone(s)
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
	jump(s, k.to(pLeave)+k.patience()+leaveOwner)
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
const tellSteps = 4

func (k *kernel) tell(s *machine.Step, next, i int) {
	switch i {
	case 0:
		fence(s)
	case 1:
		swapOnce(s, k.word(wAbort), state(causeAborted, k.rank), next)
	case 2:
		store(s, k.word(wPoison), 1, machine.Release, machine.System)
	case 3:
		if k.ranks() > 1 {
			storeOf(s, machine.Ref{}, k.word(wAbort), 0, machine.Release, machine.System)
			k.everyPeer(s, func(peer int) machine.Ref { return ref(peer, wAbort) })
			s.Note = noteAbort
		}
	}
}

func (k *kernel) abortSize(*phase) int { return tellSteps }

func (k *kernel) abort(s *machine.Step, p *phase, i int) {
	k.tell(s, int(p.start)+i+1, i)
}

// quiet leaves a call that is over, telling nobody. What block 0 records last
// counts only if no block has waited for a peer.
func (k *kernel) quietSize(*phase) int {
	if k.block > 0 {
		return quietSteps + departSteps
	}
	return quietSteps + k.patience() + 2 + departSteps
}

const quietSteps = 3

func (k *kernel) quiet(s *machine.Step, p *phase, i int) {
	next := int(p.start) + i + 1
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
	n, departs := k.patience(), k.quietSize(p)-departSteps
	switch i -= quietSteps; {
	case i >= departs-quietSteps:
		k.depart(s, p, i+quietSteps-departs)
	case i < n:
		k.wait(s, i, int(p.start)+departs) // a sibling that stays keeps us from having left
	case i == n:
		swapOnce(s, k.word(wState), 0, next)
		s.Base = k.word(wAbort)
	default:
		storeOf(s, k.word(wLeft), k.epoch(), 0, machine.Release, machine.System)
	}
}

// twoCalls: another kernel of the team is running on this rank.
func (k *kernel) twoCallsSize(*phase) int {
	if k.block > 0 {
		return 0
	}
	return 1 + tellSteps + departSteps
}

func (k *kernel) twoCalls(s *machine.Step, p *phase, i int) {
	next := int(p.start) + i + 1
	switch {
	case i == 0:
		swapOnce(s, k.word(wState), state(causeTwoCalls, k.rank), next)
	case i <= tellSteps:
		k.tell(s, next, i-1)
	default:
		k.depart(s, p, i-1-tellSteps)
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
