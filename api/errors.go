package api

import (
	"errors"
	"fmt"
	"strings"
)

// The sentinels. Every error of this module that a caller may want to tell
// apart wraps one of them and is one of the typed errors below.
var (
	ErrInvalid     = errors.New("invalid call")
	ErrRefused     = errors.New("refused")
	ErrFault       = errors.New("fault")
	ErrMismatch    = errors.New("mismatched calls")
	ErrAborted     = errors.New("aborted")
	ErrUnavailable = errors.New("not available here")
)

// InvalidError says what was asked, what is wrong with it and what would work.
type InvalidError struct {
	Field  string // what was given: a flag or field name
	Value  string // as given
	Reason string
	Hint   string // what would work
}

// Error is one line: field, value, reason and hint.
func (e *InvalidError) Error() string {
	return joinHint(fmt.Sprintf("%s %q: %s", e.Field, e.Value, e.Reason), e.Hint)
}

// Unwrap is ErrInvalid.
func (e *InvalidError) Unwrap() error { return ErrInvalid }

// Refused says that an implementation does not take a call, or that its model
// does not know what the real one would do. Nothing was touched.
type Refused struct {
	Spec   string
	What   string // what was asked
	Reason string // why not
	Hint   string // what would work
}

// Error is one line: who refuses what, why, and the hint.
func (e *Refused) Error() string {
	return joinHint(fmt.Sprintf("%s refuses %s: %s", e.Spec, e.What, e.Reason), e.Hint)
}

// Unwrap is ErrRefused.
func (e *Refused) Unwrap() error { return ErrRefused }

// Unavailable says that a backend cannot run on this machine.
type Unavailable struct {
	Spec   string
	Reason string
	Hint   string
}

// Error is one line: what is missing, why, and the hint.
func (e *Unavailable) Error() string {
	return joinHint(fmt.Sprintf("%s is not available here: %s", e.Spec, e.Reason), e.Hint)
}

// Unwrap is ErrUnavailable.
func (e *Unavailable) Unwrap() error { return ErrUnavailable }

// FaultKind is the kind of a Fault.
type FaultKind string

// The kinds of fault.
const (
	FaultMisaligned FaultKind = "misaligned_address"
	FaultAddress    FaultKind = "illegal_address" // out of bounds, not reachable, never written
	FaultAssert     FaultKind = "assert"
	FaultOverflow   FaultKind = "int32_overflow"
	FaultCapacity   FaultKind = "capacity"
	FaultHang       FaultKind = "hang"
	FaultAborted    FaultKind = "aborted"
	FaultRace       FaultKind = "race"
)

// Fault is what the modelled library or device does instead of finishing. When
// any rank faults the outputs of all ranks are unspecified.
type Fault struct {
	Kind   FaultKind `json:"kind"`
	Rank   int       `json:"rank"`
	CTA    int       `json:"cta"`
	Detail string    `json:"detail"`
}

// Error is one line: kind, rank, CTA and detail.
func (e *Fault) Error() string {
	return fmt.Sprintf("fault: %s on rank %d, CTA %d: %s", e.Kind, e.Rank, e.CTA, e.Detail)
}

// Unwrap is ErrFault.
func (e *Fault) Unwrap() error { return ErrFault }

// Mismatch says that two ranks of a team started different calls.
type Mismatch struct {
	Rank, Other         int
	Call, OtherCall     string
	CallHash, OtherHash uint64
}

// Error is one line: both ranks with their calls.
func (e *Mismatch) Error() string {
	return fmt.Sprintf("mismatched calls: rank %d started %s, rank %d started %s", e.Rank, e.Call, e.Other, e.OtherCall)
}

// Unwrap is ErrMismatch.
func (e *Mismatch) Unwrap() error { return ErrMismatch }

// Aborted says that a call ended because the team was poisoned: by a missed
// deadline, by a rank's error or by Close.
type Aborted struct {
	Rank   int   // the rank that reports
	Cause  int   // the rank blamed first; -1 where nobody is to blame
	Chain  []int // the waits-for chain that led there, reporting rank first
	Reason string
	// Leaked names buffers that must not be freed, because a late store is
	// still possible.
	Leaked []string
}

// Error is one line: who reports, why, who is to blame and what must be leaked.
func (e *Aborted) Error() string {
	s := fmt.Sprintf("aborted on rank %d: %s", e.Rank, e.Reason)
	if e.Cause >= 0 {
		s += fmt.Sprintf(" (rank %d is to blame)", e.Cause)
	}
	if len(e.Leaked) > 0 {
		s += "; must be leaked, not freed: " + strings.Join(e.Leaked, ", ")
	}
	return s
}

// Unwrap is ErrAborted.
func (e *Aborted) Unwrap() error { return ErrAborted }

func joinHint(s, hint string) string {
	if hint == "" {
		return s
	}
	return s + " (" + hint + ")"
}
