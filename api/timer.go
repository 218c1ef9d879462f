package api

import (
	"context"
	"time"
)

// Work is what is timed.
type Work uint8

// The kinds of work. All but the first are what calls are compared with.
const (
	WorkCalls   Work = iota // the calls
	WorkNothing             // none, so that only the gaps are left
	WorkEmpty               // a kernel that does nothing in place of each call
	WorkFlag                // one flag from every GPU to every other
	WorkCopy                // copy engine: as many bytes as a rank's source, every GPU to the next, all at once
	WorkPush                // the same by stores of 16 bytes
	WorkPull                // the same by loads of 16 bytes
)

var workNames = []string{"calls", "nothing", "empty", "flag", "copy", "push", "pull"}

// String is the name of the work.
func (w Work) String() string { return workNames[min(int(w), len(workNames)-1)] }

// Timing is what a Timer is to time: a sequence of calls after a barrier of all
// ranks that is not timed.
type Timing struct {
	Call  Call
	Work  Work
	Calls int // of a sequence
	// Graph replays the sequence as a captured graph, which begins with the
	// barrier; otherwise each call is launched by itself.
	Graph bool
	// Gap is how long a kernel that fills the GPU runs after each call; 0
	// leaves it out.
	Gap time.Duration
	// Sets is the number of sets of buffers, taken in turn; 0 is 1.
	Sets int
}

// Timer is implemented by teams that can time calls on the device, without the
// host's part in starting a graph or in waiting.
type Timer interface {
	Time(ctx context.Context, t Timing) (Timed, error)
}

// Timed is a sequence ready to be timed. Nothing is allocated or loaded from
// now on.
type Timed interface {
	// Prepare writes all sources anew and waits for that; it is no part of a
	// sample.
	Prepare(ctx context.Context) error
	// Sample runs the sequence once and gives, for each rank, the time
	// between the barrier and the end.
	Sample(ctx context.Context) ([]time.Duration, error)
	// Close releases the sequence's memory.
	Close() error
}
