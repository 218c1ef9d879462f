package api

import "context"

// Capturer is implemented by teams that can record a sequence of calls and
// replay it as a unit, as CUDA graphs do.
type Capturer interface {
	// Capture records calls; mem[k] is the memory of call k, indexed like
	// Team.Members. Nothing is executed. The images must outlive the result.
	Capture(ctx context.Context, calls []Call, mem [][]Memory) (Captured, error)
}

// Captured is a recorded sequence of calls.
type Captured interface {
	// Replay executes the calls in order on what the images hold now and
	// waits for all ranks. Errors are those of Pending.Wait.
	Replay(ctx context.Context) error
	// Close releases the recording; Replay is an error afterwards, as it is
	// after the team's Close.
	Close() error
}
