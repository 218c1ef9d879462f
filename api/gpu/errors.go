package gpu

import (
	"errors"
	"fmt"
	"strings"

	"example.com/tandem/api"
)

// sentinel is an error to compare with; the ones below ErrUnavailable are also
// ErrUnavailable.
type sentinel struct {
	text   string
	parent error
}

func (s *sentinel) Error() string { return s.text }
func (s *sentinel) Unwrap() error { return s.parent }

// ErrUnavailable says that no GPU can be used here. The four kinds below all
// match it, and so does api.ErrUnavailable, which is the same value.
var ErrUnavailable = api.ErrUnavailable

// Why no GPU can be used.
var (
	ErrNotBuiltIn   error = &sentinel{"no GPU support built in", ErrUnavailable}
	ErrNoDriver     error = &sentinel{"no CUDA driver", ErrUnavailable}
	ErrDriverTooOld error = &sentinel{"CUDA driver too old", ErrUnavailable}
	ErrNoDevice     error = &sentinel{"no GPU", ErrUnavailable}
)

// What else goes wrong.
var (
	ErrInvalid      = errors.New("invalid argument")
	ErrOutOfMemory  = errors.New("out of memory")
	ErrUnsupported  = errors.New("not supported by this device or driver")
	ErrNotFound     = errors.New("not found")
	ErrBadImage     = errors.New("module not accepted")
	ErrTooLarge     = errors.New("launch too large")
	ErrCapture      = errors.New("not possible in stream capture")
	ErrBusy         = errors.New("device busy")
	ErrDeadline     = errors.New("deadline passed")
	ErrContextLost  = errors.New("context lost")
	ErrClosed       = errors.New("closed")
	ErrLeaked       = errors.New("objects left")
	ErrMulticastOff = errors.New("multicast is off")
	ErrDriver       = errors.New("driver failure")
)

// Error is a call of the driver that failed, or that was refused before it was
// made (Code is then Success).
type Error struct {
	Call   string // the driver's name of it, without a version suffix: cuMemAlloc
	Code   Code
	Name   string // the driver's own name of the code: CUDA_ERROR_OUT_OF_MEMORY
	Detail string // what was asked, what is wrong, what would work
	// Log is the compiler's log where a module was not accepted. It is printed
	// by %+v only.
	Log string
	// Err is the sentinel; nil means the one that belongs to Code.
	Err error
}

// Error is one line: what was called, with what, and what came of it.
func (e *Error) Error() string {
	var parts []string
	if e.Call != "" {
		parts = append(parts, e.Call)
	}
	switch {
	case e.Code != Success:
		name := e.Name
		if name == "" {
			name = e.Code.String()
		}
		parts = append(parts, fmt.Sprintf("%s (%d)", name, int(e.Code)))
	default:
		parts = append(parts, e.Unwrap().Error())
	}
	if e.Detail != "" {
		parts = append(parts, e.Detail)
	}
	return strings.Join(parts, ": ")
}

// Unwrap is the sentinel.
func (e *Error) Unwrap() error {
	if e.Err != nil {
		return e.Err
	}
	return e.Code.Sentinel()
}

// Format prints the error in one line, and the log below it under %+v.
func (e *Error) Format(f fmt.State, verb rune) {
	text := e.Error()
	if verb == 'q' {
		text = fmt.Sprintf("%q", text)
	}
	if verb == 'v' && f.Flag('+') && e.Log != "" {
		text += "\n" + e.Log
	}
	_, _ = f.Write([]byte(text))
}

// Sticky reports whether the error killed the context: every later call in it
// fails with the same code, and what lived in it is gone.
func (e *Error) Sticky() bool { return e.Code.Sticky() }

// Refuse is the error of a call that was not made.
func Refuse(call string, why error, format string, args ...any) *Error {
	return &Error{Call: call, Err: why, Detail: fmt.Sprintf(format, args...)}
}

// LeakError says what still lives where nothing should.
type LeakError struct {
	Owner string // the context or driver that was to be closed
	Left  Counts
	What  []string // the first few of them, oldest first
}

// Error is one line: who left what.
func (e *LeakError) Error() string {
	s := fmt.Sprintf("%s: %s left", e.Owner, e.Left)
	if len(e.What) > 0 {
		s += ": " + strings.Join(e.What, ", ")
	}
	return s
}

// Unwrap is ErrLeaked.
func (e *LeakError) Unwrap() error { return ErrLeaked }
