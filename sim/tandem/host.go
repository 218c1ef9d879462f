package tandem

import "example.com/tandem/sim/machine"

// host is the host's part of a launch: it launches the kernel, waits for it, and
// returns an error only when nothing of the call can touch the caller's memory
// any more, or else says which memory that is.
//
//	launch   busy, and the kernel goes
//	wait     until it has ended; it bounds itself, and if not is told to stop
//	check    it did not fail, and the team is not poisoned
//	failed   tell the peers; wait for each that is in the call to have left it
//	seen     the peers' state words, for blame
//	done     no longer busy; then what the caller does
type host struct {
	*launch
	starts [hostParts]int

	filler, caller []machine.Step
}

type hostPart uint8

const (
	hBefore hostPart = iota
	hLaunch
	hWait
	hCheck
	hNoLaunch // the launch failed
	hBroken   // the host itself failed
	hCrashed
	hFailed
	hLeft
	hOver
	hLost
	hSeen
	hDone
	hAfter
	hEnd
	hostParts
)

var hostTable = [hostParts]struct {
	size func(*host) int
	step func(*host, *machine.Step, int)
}{
	hBefore:   {func(h *host) int { return len(h.filler) }, (*host).fill},
	hLaunch:   {steps(3), (*host).start},
	hWait:     {steps(12), (*host).wait},
	hCheck:    {steps(5), (*host).check},
	hNoLaunch: {steps(6), (*host).noLaunch},
	hBroken:   {steps(5), (*host).broken},
	hCrashed:  {steps(1), (*host).crashed},
	hFailed:   {steps(7), (*host).failed},
	hLeft:     {func(h *host) int { return leftSteps * (h.ranks() - 1) }, (*host).left},
	hOver:     {steps(2), (*host).over},
	hLost:     {steps(1), (*host).lost},
	hSeen:     {func(h *host) int { return h.ranks() + 1 }, (*host).seen},
	hDone:     {steps(1), (*host).done},
	hAfter:    {func(h *host) int { return len(h.caller) }, (*host).returned},
	hEnd:      {steps(0), nil},
}

func steps(n int) func(*host) int { return func(*host) int { return n } }

func newHost(l *launch) *host {
	h := &host{launch: l}
	if l.before != nil {
		h.filler = l.before(l)
	}
	if l.after != nil {
		h.caller = l.after(l)
	}
	at := 0
	for part := range hostParts {
		h.starts[part] = at
		at += hostTable[part].size(h)
	}
	return h
}

func (h *host) size() int { return h.starts[hEnd] }

// step is step i; its jumps count from the host's first step of this launch.
func (h *host) step(s *machine.Step, i int) {
	part := hBefore
	for h.starts[part+1] <= i {
		part++
	}
	if s.Fails = i + 1; part < hNoLaunch { // what fails in the aftermath is passed over
		s.Fails = h.starts[hBroken]
	}
	hostTable[part].step(h, s, i-h.starts[part])
}

// fill is what the caller does with his memory before the call.
func (h *host) fill(s *machine.Step, i int) {
	given(s, &h.filler[i], h.size())
	s.Fails = h.starts[hNoLaunch]
}

func (h *host) start(s *machine.Step, i int) {
	s.Fails = h.starts[hNoLaunch]
	switch i {
	case 0:
		s.Kind = machine.Begin
	case 1:
		store(s, h.word(wBusy), 1, machine.Release, machine.System)
		s.Note = noteBusy
	case 2:
		launched(s, h.temp(tLaunched))
	}
}

func launched(s *machine.Step, event machine.Ref) {
	s.Kind, s.Word, s.Note = machine.Record, event, noteLaunch
}

// ended waits for the kernel to have ended.
func (h *host) ended(s *machine.Step, d machine.Deadline, otherwise int) {
	h.allGone(s, 0)
	s.Deadline, s.Else, s.Note = d, otherwise, noteKernel
}

func (h *host) wait(s *machine.Step, i int) {
	at := h.starts[hWait]
	switch i {
	case 0, 3, 6:
		d := machine.Progress
		if i == 0 {
			d = machine.Arrive
		}
		h.ended(s, d, at+i+2)
	case 1, 4, 7:
		jump(s, h.starts[hCheck])
	case 2, 5, 9:
		s.Kind = machine.Begin
	case 8:
		store(s, h.word(wHostAbort), state(causeAborted, h.rank), machine.Release, machine.System)
	case 10:
		h.ended(s, machine.Progress, h.starts[hLost])
		s.Fails = h.starts[hLost]
	case 11:
		jump(s, h.starts[hCheck])
	}
}

func (h *host) check(s *machine.Step, i int) {
	failed := h.starts[hFailed]
	switch i {
	case 0:
		test(s, h.temp(tCrashed), machine.ZeroValue, 0, h.starts[hCrashed])
	case 1:
		test(s, h.word(wPoison), machine.ZeroValue, 0, failed)
	case 2:
		test(s, h.temp(tStatus(h.grid, 0)), machine.Equal, statusOK, failed)
	case 3:
		store(s, h.temp(tOutcome), outcomeGood, machine.Release, machine.System)
	case 4:
		jump(s, h.starts[hDone])
	}
}

func (h *host) noLaunch(s *machine.Step, i int) {
	switch i {
	case 0:
		store(s, h.temp(tCancelled), 1, machine.Release, machine.System)
	case 1:
		swapOnce(s, h.word(wState), state(causeLaunch, h.rank), h.starts[hNoLaunch]+2)
	case 2:
		launched(s, h.temp(tLaunched)) // so that the model's CTAs end
	default:
		h.stop(s, i-3)
	}
}

func (h *host) broken(s *machine.Step, i int) {
	switch i {
	case 0:
		swapOnce(s, h.word(wState), state(causeHost, h.rank), h.starts[hBroken]+1)
	case 1:
		store(s, h.word(wHostAbort), state(causeAborted, h.rank), machine.Release, machine.System)
	default:
		h.stop(s, i-2)
	}
}

// stop waits for a kernel that has been told to end.
func (h *host) stop(s *machine.Step, i int) {
	switch i {
	case 0:
		s.Kind = machine.Begin
	case 1:
		h.ended(s, machine.Progress, h.starts[hLost])
		s.Fails = h.starts[hLost]
	case 2:
		jump(s, h.starts[hFailed])
	}
}

func (h *host) crashed(s *machine.Step, i int) {
	swapOnce(s, h.word(wState), state(causeKernel, h.rank), h.starts[hFailed])
}

// failed: the kernel has ended, so it has left, whatever it could still say.
func (h *host) failed(s *machine.Step, i int) {
	next := h.starts[hFailed] + i + 1
	switch i {
	case 0:
		storeOf(s, h.word(wLeft), h.word(wEntered), 0, machine.Release, machine.System)
	case 1:
		store(s, h.word(wPoison), 1, machine.Release, machine.System)
	case 2:
		swapOnce(s, h.word(wAbort), state(causeAborted, h.rank), next)
	case 3:
		swapOnce(s, h.word(wState), 0, next)
		s.Base = h.word(wAbort)
	case 4:
		if h.ranks() > 1 {
			storeOf(s, machine.Ref{}, h.word(wAbort), 0, machine.Release, machine.System)
			h.everyPeer(s, func(peer int) machine.Ref { return ref(peer, wAbort) })
			s.Note = noteAbort
		}
	case 5: // a peer that comes in later sees the abort, or we see it in
		fence(s)
	case 6:
		s.Kind = machine.Begin
	}
}

const leftSteps = 4

// left waits for every peer that is in this call to touch our memory no more.
func (h *host) left(s *machine.Step, i int) {
	peer, unit := h.peer(i/leftSteps), h.starts[hLeft]+i/leftSteps*leftSteps
	missing, next := unit+3, unit+leftSteps
	s.Base, s.Cmp = h.word(wEntered), machine.Reached
	switch i % leftSteps {
	case 0:
		test(s, ref(peer, wEntered), machine.Reached, 0, next)
	case 1:
		s.Kind, s.Word, s.Order = machine.Wait, ref(peer, wLeft), machine.Acquire
		s.Deadline, s.Peer, s.Else, s.Note = machine.Progress, peer, missing, noteLeft
	case 2:
		jump(s, next)
	case 3:
		s.Base = machine.Ref{}
		store(s, h.temp(tLeaked(h.ranks(), h.grid, peer)), 1, machine.Release, machine.System)
	}
	s.Fails = missing
}

func (h *host) over(s *machine.Step, i int) {
	if i == 0 {
		store(s, h.temp(tOutcome), outcomeFailed, machine.Release, machine.System)
		return
	}
	jump(s, h.starts[hSeen])
}

func (h *host) lost(s *machine.Step, i int) {
	store(s, h.temp(tOutcome), outcomeLost, machine.Release, machine.System)
}

func (h *host) seen(s *machine.Step, i int) {
	switch i {
	case h.ranks():
		test(s, h.temp(tOutcome), machine.NotEqual, outcomeLost, h.starts[hEnd])
	default:
		storeOf(s, h.temp(tSeen(h.ranks(), h.grid, i)), ref(i, wState), 0, machine.Relaxed, machine.System)
	}
}

func (h *host) done(s *machine.Step, i int) {
	store(s, h.word(wBusy), 0, machine.Release, machine.System)
	s.Note = noteIdle
}

// returned is what the caller does with his memory when the call has returned.
func (h *host) returned(s *machine.Step, i int) {
	given(s, &h.caller[i], h.size())
}

// given makes a step a copy of one that was given; a jump to -1 leads to end.
func given(s, from *machine.Step, end int) {
	srcs, more := s.Srcs, s.More
	*s = *from
	s.Srcs, s.More = append(srcs[:0], from.Srcs...), append(more[:0], from.More...)
	if s.Else < 0 {
		s.Else = end
	}
}
