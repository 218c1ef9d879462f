package host

import (
	"time"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
)

// Pair is the payloads of one lane of one rank in device memory.
type Pair struct{ Src, Dst gpu.Ptr }

// Buffers are the lanes of one rank.
type Buffers []Pair

// Bound is a call ready to be launched: steps in order, each a launch for every
// GPU of the team. A launch without a Function is left out.
type Bound [][]gpu.Launch

// Engine is an implementation on the GPUs of one team.
type Engine interface {
	// Admit says whether the implementation takes the call.
	Admit(call *api.Call) error
	// TableBytes is what the call needs of device memory on every GPU, for
	// what does not fit the parameters.
	TableBytes(call *api.Call) int
	// Table fills in those bytes; the same for every GPU.
	Table(call *api.Call, mem []Buffers) []byte
	// Bind makes the launches; mem is indexed by rank, tables by GPU.
	Bind(call *api.Call, mem []Buffers, tables []gpu.Ptr) (Bound, error)
	// Verdicts are the errors of the ranks once the GPUs are done; nil where
	// a rank ended well. It returns nil if all did.
	Verdicts(call *api.Call) []error
	// Stop ends running kernels at their next look.
	Stop()
	// Deadlines are how long ranks wait for each other to come, and how long
	// for the next step afterwards.
	Deadlines() (arrive, progress time.Duration)
	// Release gives up the engine's memory; if poisoned, by setting it aside.
	Release(poisoned bool) error
}

// Queuer is an Engine that queues a call itself, as a library does that launches
// its own kernels. Its Bind checks the call and may give no launches.
type Queuer interface {
	// Queue queues the call on the streams, one for each GPU, of a capture
	// or not, and does not wait.
	Queue(call *api.Call, mem []Buffers, streams []gpu.Stream) error
}

// Explainer is an Engine that can say more of a failure of the driver than the
// driver does.
type Explainer interface {
	Explain(err error) error
}

// Allocator is an Engine whose buffers must come from it.
type Allocator interface {
	// Alloc gives as many bytes of device memory on every GPU.
	Alloc(bytes uint64) ([]gpu.Ptr, error)
	// Free takes back what Alloc gave; poisoned memory is set aside.
	Free(p []gpu.Ptr, poisoned bool) error
}
