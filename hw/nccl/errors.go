package nccl

import (
	"errors"
	"fmt"
)

// ErrLibrary is what every failed call of the library matches.
var ErrLibrary = errors.New("NCCL failure")

// Error is a call of the library that failed.
type Error struct {
	Call string
	Code int    // ncclResult_t
	Text string // the library's own words for the code
	Last string // its last warning; "" if it gave none
}

// Error is one line: the call, the code, and what the library says of it.
func (e *Error) Error() string {
	s := fmt.Sprintf("%s: %s (%d)", e.Call, e.Text, e.Code)
	if e.Last != "" {
		s += ": " + e.Last
	}
	return s
}

// Unwrap is ErrLibrary.
func (e *Error) Unwrap() error { return ErrLibrary }
