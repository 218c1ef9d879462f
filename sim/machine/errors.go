package machine

import "fmt"

// Access is one access of a race.
type Access struct {
	Rank, CTA, Step int
	Store           bool
	Multicast       bool
}

// String names the CTA, the step and what it did.
func (a Access) String() string {
	what := "load"
	if a.Store {
		what = "store"
	}
	if a.Multicast {
		what = "multicast " + what
	}
	return fmt.Sprintf("%s by rank %d, CTA %d, step %d", what, a.Rank, a.CTA, a.Step)
}

// Race says that two accesses to the same bytes, one of them a store, are not
// ordered, so that what the program returns depends on chance.
type Race struct {
	Rank       int   // whose memory
	Space      Space // which part of it
	Lane       int
	Start, End int64 // bytes in that space
	// First came first in this run; where both are one step, threads of one
	// CTA race, because its ranges overlap without being the same.
	First, Second Access
}

// Error names the bytes and both accesses.
func (e *Race) Error() string {
	where := fmt.Sprintf("bytes %d to %d of the %s of rank %d", e.Start, e.End, e.Space, e.Rank)
	if e.Space == Src || e.Space == Dst {
		where += fmt.Sprintf(", lane %d", e.Lane)
	}
	return fmt.Sprintf("race on %s: %s and %s are not ordered", where, e.First, e.Second)
}

// Unknown says that the value of a step cannot be known.
type Unknown struct {
	Rank, CTA, Step int
	Element         int64 // of the step's range
	Reason          string
}

// Error is the reason and the place.
func (e *Unknown) Error() string {
	return fmt.Sprintf("%s (rank %d, CTA %d, step %d, element %d)", e.Reason, e.Rank, e.CTA, e.Step, e.Element)
}

// BadStep says that a program is wrong: a range outside its space, an unknown
// step, a jump to nowhere. It is a mistake in the program, not in the call.
type BadStep struct {
	Rank, CTA, Step int
	Reason          string
}

// Error names the step and the reason.
func (e *BadStep) Error() string {
	return fmt.Sprintf("bad step %d of rank %d, CTA %d: %s", e.Step, e.Rank, e.CTA, e.Reason)
}
