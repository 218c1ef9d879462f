package gpu

import "time"

// StreamOptions are the options of a stream; the zero value is a good one.
type StreamOptions struct {
	// Priority orders streams: lower runs first, 0 is the default, and what
	// the device does not have is clamped.
	Priority int
}

// EventOptions are the options of an event; the zero value makes one that only
// orders work.
type EventOptions struct {
	Timing bool
}

// Stream is a queue of work on one device. Its methods queue and return. One
// goroutine at a time uses it.
type Stream interface {
	Queryer
	// Launch queues a kernel. What can be checked is checked before the
	// driver sees it: a refused launch leaves the context usable.
	Launch(l Launch) error
	// Copy queues a copy of n bytes between any two addresses, which lie on
	// this device, on a peer, or in pinned host memory. Such memory is read
	// and written when the copy runs, not when it is queued.
	Copy(dst, src Ptr, n uint64) error
	// Set8 queues the filling of n bytes.
	Set8(dst Ptr, value uint8, n uint64) error
	// Set32 queues the filling of n 4-byte words; dst is a multiple of 4.
	Set32(dst Ptr, value uint32, n uint64) error
	// Record marks the present end of the queue.
	Record(e Event) error
	// WaitEvent holds later work until the event's last Record is reached.
	WaitEvent(e Event) error
	// BeginCapture makes the following calls build a graph instead of run.
	// Other streams join by waiting for an event recorded here, and must be
	// waited for in the same way before the end. Everything but queueing is
	// allowed meanwhile (CUDA's relaxed mode, since goroutines move between
	// threads).
	BeginCapture() error
	// EndCapture gives the graph, or why the capture failed; the stream is
	// usable again either way.
	EndCapture() (Graph, error)
	// Destroy releases the stream; ErrBusy where it still has work. A capture
	// under way is ended and thrown away.
	Destroy() error
}

// Event is a point in a stream.
type Event interface {
	// Queryer says whether the last Record was reached; an event that was
	// never recorded counts as reached.
	Queryer
	// Since is the device's time from an earlier event to this one. Both
	// were made with Timing and reached.
	Since(earlier Event) (time.Duration, error)
	Destroy() error
}

// Graph is captured work.
type Graph interface {
	// Instantiate makes it launchable. Launch arguments were copied at
	// capture; memory they point to must outlive the result.
	Instantiate() (GraphExec, error)
	Destroy() error
}

// GraphExec is a graph that can be launched again and again. Launches of one
// GraphExec do not overlap: a later one waits for the earlier.
type GraphExec interface {
	// Upload puts it on the device of the stream, so that the first Launch
	// does not. Wait for the stream on all ranks before the first Launch of
	// any.
	Upload(s Stream) error
	Launch(s Stream) error
	// Destroy releases it; a launch under way runs to its end.
	Destroy() error
}

// EventNodes is implemented by streams whose graphs can hold a record of an event
// as a node, which every launch of the graph reaches anew. A plain Record in a
// capture only orders.
type EventNodes interface {
	Stream
	// RecordNode adds the record to the capture under way.
	RecordNode(e Event) error
}

// NativeStream is implemented by the streams of a driver that other libraries in
// the process can use too.
type NativeStream interface {
	Stream
	// Native gives the driver's own handles of the stream and of its
	// context: a CUstream and a CUcontext. They live as long as the stream.
	Native() (stream, context uintptr, err error)
}
