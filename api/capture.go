package api

import "context"

// Capturer is implemented by teams that can prepare a call once and launch it
// many times, as a CUDA graph does. Captured and started calls may alternate
// freely; they are one sequence, in the order in which they are launched.
type Capturer interface {
	Team
	// Capture prepares a call over memory indexed like Members. It starts and
	// touches nothing: what the images hold is looked at by each Launch.
	Capture(ctx context.Context, call Call, mem []Memory) (Captured, error)
}

// Captured is a prepared call. Its launches do not overlap.
type Captured interface {
	// Launch runs the call on what the images hold now, on all members, and
	// waits for it. It returns what Run does.
	Launch(ctx context.Context) ([]Outcome, error)
	// Close releases it; after the team's Close a Launch is an *Aborted, and
	// Close still works.
	Close(ctx context.Context) error
}
