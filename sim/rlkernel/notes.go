package rlkernel

import "fmt"

// notes are the facts about the call that its kernels do not show.
func (s *schedule) notes(where places) []string {
	notes := s.stepNotes()
	if e, ok := s.estimate(where); ok {
		notes = append(notes, fmt.Sprintf("about %.1f us on B200 (%s)", e.Microseconds, e.Evidence))
	}
	notes = append(notes, s.stagingNotes(where)...)
	for i := range s.units {
		if s.units[i].hosted() {
			notes = append(notes, "host barriers: every rank synchronises its device and meets the others after staging and at the end")
			break
		}
	}
	return append(notes, s.pendingNote())
}

func (u *unit) hosted() bool {
	for _, o := range u.ops {
		if o.kind == opBarrier {
			return true
		}
	}
	return false
}

// stagingNotes name the first rank of each unit that stages byte by byte.
func (s *schedule) stagingNotes(where places) []string {
	var notes []string
	for i := range s.units {
		u := &s.units[i]
		if o := u.ops[0].kind; o != opFused && o != opStage {
			continue
		}
		n := laneBytes(&s.call, u.lanes[0])
		for rank := range s.call.Ranks {
			if p := where[rank][u.lanes[0]]; n > 0 && !wideStage(p, n) {
				notes = append(notes, fmt.Sprintf("lane %d: rank %d stages byte by byte, trips of one block: %d; source 0x%x and %d bytes are not both multiples of %d", u.lanes[0], rank, stageTrips(p, n), p.src, n, vector))
				break
			}
		}
	}
	return notes
}

// pendingNote says what an exception between two launches leaves behind.
func (s *schedule) pendingNote() string {
	u := &s.units[len(s.units)-1]
	switch {
	case u.path == algSingle:
		return "one launch: a failure to launch leaves nothing pending"
	case u.path == algCopies:
		return "a launch that fails after publishing leaves an unmatched sequence that the host does not see: the peers wait for ever in their next call"
	}
	return "a launch that fails after staging leaves the staged input pending: this rank refuses every later fused call, and its peers wait for ever in theirs"
}

// stepNotes flag the sizes at which a longer message is expected to take less
// time.
func (s *schedule) stepNotes() []string {
	var notes []string
	for _, st := range steps(s.config, s.call) {
		notes = append(notes, st.String())
	}
	return notes
}
