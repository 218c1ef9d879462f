package nccl

import (
	"fmt"
	"sync"
	"time"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
	"example.com/tandem/hw/host"
)

// engine is a team's part of host.Team.
type engine struct {
	config  *config
	owner   *Library
	lib     library
	version int
	machine *host.Machine
	gpus    []*host.GPU
	streams []gpu.Stream
	ranks   []task // communicator, stream and context of each rank

	deadlines host.Deadlines

	mu      sync.Mutex
	aborted chan struct{} // closed when the communicators are gone; nil before Stop
}

var _ host.Queuer = (*engine)(nil)

// Admit says whether the library takes the call.
func (e *engine) Admit(call *api.Call) error {
	if err := admit(e.config.spec.String(), e.version, call); err != nil {
		return err
	}
	if e.config.buffers == symmetric && !(call.SrcOffset.Uniform() && call.DstOffset.Uniform()) {
		return &api.Refused{Spec: e.config.spec.String(), What: "offsets that differ between ranks", Reason: "symmetric buffers lie at the same place on every rank", Hint: "equal offsets, or buffers=registered"}
	}
	return nil
}

// TableBytes is 0: the library has its own way to its kernels.
func (e *engine) TableBytes(*api.Call) int { return 0 }

// Table is empty.
func (e *engine) Table(*api.Call, []host.Buffers) []byte { return nil }

// Bind gives no launches; Queue makes the calls.
func (e *engine) Bind(*api.Call, []host.Buffers, []gpu.Ptr) (host.Bound, error) { return nil, nil }

// Queue makes the calls of all ranks in one group.
func (e *engine) Queue(call *api.Call, mem []host.Buffers, _ []gpu.Stream) error {
	return e.lib.Group(tasks(call, mem, e.ranks))
}

// Verdicts asks the communicators.
func (e *engine) Verdicts(*api.Call) []error {
	out := make([]error, len(e.ranks))
	failed := false
	for r, t := range e.ranks {
		if err := e.lib.AsyncError(t.comm); err != nil {
			out[r] = &api.Aborted{Rank: r, Cause: -1, Reason: err.Error()}
			failed = true
		}
	}
	if !failed {
		return nil
	}
	return out
}

// Stop aborts the communicators if they have work: the library's kernels look
// for that. It does not wait, since aborting does.
func (e *engine) Stop() {
	busy := false
	for _, s := range e.streams {
		done, err := s.Query()
		busy = busy || err == nil && !done
	}
	if busy {
		e.abort()
	}
}

func (e *engine) abort() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.aborted == nil {
		done := make(chan struct{})
		e.aborted = done
		go func() {
			defer close(done)
			for _, t := range e.ranks {
				_ = e.lib.Abort(t.comm)
			}
		}()
	}
	return e.aborted
}

// Deadlines are those of the team.
func (e *engine) Deadlines() (arrive, progress time.Duration) {
	return e.deadlines.Arrive, e.deadlines.Progress
}

// abortLimit is how long an abort may take.
const abortLimit = 20 * time.Second

// Release gives the communicators back, or aborts them.
func (e *engine) Release(poisoned bool) error {
	e.mu.Lock()
	aborted := e.aborted != nil
	e.mu.Unlock()
	if !poisoned && !aborted {
		var comms []uintptr
		for _, t := range e.ranks {
			comms = append(comms, t.comm)
		}
		e.owner.keep(e.config, comms)
		return nil
	}
	select {
	case <-e.abort():
		return nil
	case <-time.After(abortLimit):
		return fmt.Errorf("%w: the communicators were not gone %v after ncclCommAbort", ErrLibrary, abortLimit)
	}
}
