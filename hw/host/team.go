package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
)

// Team is an api.Team over an Engine; this process holds all its ranks.
type Team struct {
	spec    string
	machine *Machine
	clock   gpu.Clock
	gpus    []*GPU
	streams []gpu.Stream
	place   []int // GPU of each rank
	engine  Engine
	members []api.Member
	arenas  []*Arena

	mu       sync.Mutex // guards what follows, not held while waiting
	round    *round     // ranks that have come to the present call
	poison   func(rank int) error
	closed   bool
	released bool
	captured map[*Captured]bool
	timed    map[*timed]bool
}

// Config is what NewTeam needs.
type Config struct {
	Spec    string
	Machine *Machine
	GPUs    []*GPU
	Place   []int // GPU, by index into GPUs, of each rank
	// Streams are one for each GPU; the team destroys them.
	Streams []gpu.Stream
	Engine  Engine
}

// NewTeam makes a team of an engine that is ready.
func NewTeam(c Config) *Team {
	t := &Team{spec: c.Spec, machine: c.Machine, clock: c.Machine.Driver.Clock(), gpus: c.GPUs, streams: c.Streams,
		place: c.Place, engine: c.Engine, captured: make(map[*Captured]bool), timed: make(map[*timed]bool)}
	for r := range c.Place {
		t.members = append(t.members, &member{t, r})
	}
	t.arenas = t.newArenas()
	return t
}

func (t *Team) newArenas() []*Arena {
	var out []*Arena
	for _, g := range t.gpus {
		out = append(out, &Arena{machine: t.machine, gpu: g})
	}
	return out
}

// Members are all ranks.
func (t *Team) Members() []api.Member { return t.members }

// Engine is the implementation's part of the team.
func (t *Team) Engine() Engine { return t.engine }

// limit is more than the GPUs take for n calls, their own deadlines and a
// delayed rank included.
func (t *Team) limit(n int) time.Duration {
	arrive, progress := t.engine.Deadlines()
	return time.Duration(n)*(arrive+4*progress) + 30*time.Second
}

// Streams are the GPUs' queues, to be waited for after Captured.Enqueue.
func (t *Team) Streams() []gpu.Queryer {
	var q []gpu.Queryer
	for _, s := range t.streams {
		q = append(q, s)
	}
	return q
}

// settle waits for the GPUs, whatever happens to ctx: its end only makes the
// kernels stop. Nothing runs on the GPUs once it has returned, or they are
// abandoned.
func (t *Team) settle(ctx context.Context, limit time.Duration) error {
	err := gpu.Wait(ctx, t.clock, limit, t.Streams()...)
	if err == nil {
		return nil
	}
	t.engine.Stop()
	late := gpu.Wait(context.Background(), t.clock, stopLimit, t.Streams()...)
	if late != nil {
		t.abandon()
		return errors.Join(err, fmt.Errorf("the GPUs were abandoned: %w", late))
	}
	return err
}

// stopLimit is how long kernels may take to see that they are to stop.
const stopLimit = 10 * time.Second

// run launches calls that are bound, in order, and says how each rank ended.
func (t *Team) run(ctx context.Context, call *api.Call, calls int, launch func() error, arenas []*Arena) []error {
	fail := func(err error) []error {
		t.poisonAll(err)
		return slices.Repeat([]error{err}, len(t.members))
	}
	for i, a := range arenas {
		if err := a.load(t.streams[i]); err != nil {
			return fail(errors.Join(err, t.settle(ctx, t.limit(1))))
		}
	}
	if err := launch(); err != nil {
		t.engine.Stop()
		return fail(errors.Join(err, t.settle(ctx, t.limit(1))))
	}
	if err := t.settle(ctx, t.limit(calls)); err != nil {
		return fail(t.stopped(ctx, err))
	}
	for i, a := range arenas {
		if err := a.fetch(t.streams[i]); err != nil {
			return fail(errors.Join(err, t.settle(ctx, t.limit(1))))
		}
	}
	if err := t.settle(context.WithoutCancel(ctx), t.limit(1)); err != nil {
		return fail(err)
	}
	for _, a := range arenas {
		a.store()
	}
	verdicts := t.engine.Verdicts(call)
	if verdicts == nil {
		return make([]error, len(t.members))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	first := slices.IndexFunc(verdicts, func(e error) bool { return e != nil })
	t.setPoison(verdicts[first])
	return verdicts
}

// stopped is the error of a call that was ended from outside.
func (t *Team) stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return &api.Aborted{Cause: -1, Reason: "the caller stopped waiting: " + context.Cause(ctx).Error()}
	}
	if e, ok := t.engine.(Explainer); ok {
		return e.Explain(err)
	}
	return err
}

func (t *Team) poisonAll(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.setPoison(err)
}

// setPoison makes every later call fail with the first cause; t.mu is held.
func (t *Team) setPoison(err error) {
	if t.poison != nil {
		return
	}
	var a *api.Aborted
	cause := -1
	if errors.As(err, &a) {
		cause = a.Cause
	}
	t.poison = func(rank int) error {
		return &api.Aborted{Rank: rank, Cause: cause, Reason: "an earlier call poisoned the team: " + err.Error()}
	}
}

// refusal is why the team takes no call; t.mu is held.
func (t *Team) refusal(rank int) error {
	if t.closed {
		return &api.Aborted{Rank: rank, Cause: -1, Reason: "the team was closed"}
	}
	if t.poison != nil {
		return t.poison(rank)
	}
	return nil
}

// Close ends the team. Kernels that still run are stopped, and waited for until
// ctx ends.
func (t *Team) Close(ctx context.Context) error {
	t.mu.Lock()
	if t.released {
		t.mu.Unlock()
		return nil
	}
	t.closed = true
	r := t.round
	t.mu.Unlock()
	if r != nil {
		r.fail(&api.Aborted{Cause: -1, Reason: "the team was closed"})
	}
	t.engine.Stop()
	if r != nil {
		if err := gpu.Poll(ctx, t.clock, 0, func() (bool, error) { return r.idle(), nil }); err != nil {
			return err
		}
	}
	if t.lost() {
		return t.release()
	}
	err := gpu.Wait(ctx, t.clock, stopLimit, t.Streams()...)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return err // it can be tried again
	case errors.Is(err, gpu.ErrDeadline):
		t.abandon()
	default:
		t.poisonAll(err)
	}
	return errors.Join(err, t.release())
}

// abandon gives up GPUs on which a kernel does not end.
func (t *Team) abandon() {
	for _, g := range t.gpus {
		t.machine.abandon(g)
	}
}

func (t *Team) lost() bool {
	return slices.ContainsFunc(t.gpus, func(g *GPU) bool { return g.lost.Load() })
}

func (t *Team) release() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.released {
		return nil
	}
	t.released = true
	if t.lost() {
		return nil // all of it is set aside already
	}
	var errs []error
	for c := range t.captured {
		errs = append(errs, c.free())
	}
	for m := range t.timed {
		errs = append(errs, m.release(t.poison != nil))
	}
	poisoned := t.poison != nil
	errs = append(errs, t.releaseArenas(t.arenas), t.engine.Release(poisoned))
	for _, s := range t.streams {
		errs = append(errs, s.Destroy())
	}
	return errors.Join(errs...)
}

// Discard releases a team that never ran a call.
func (t *Team) Discard() error {
	t.mu.Lock()
	t.closed = true
	t.setPoison(errDiscarded)
	t.mu.Unlock()
	_ = t.settle(context.Background(), stopLimit)
	return t.release()
}

var errDiscarded = errors.New("the team could not be opened")
