package kernelfile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
)

// defaultProgress is the virtual time that a call may take. It is longer than
// what the machine takes to call waiting threads deadlocked.
const defaultProgress = 200 * time.Second

// team is a kernel on a machine of its own.
type team struct {
	*options
	d         *Description
	driver    gpu.Driver
	contexts  []gpu.Context
	modules   []gpu.Module
	functions []gpu.Function
	streams   []gpu.Stream
	members   []api.Member
	limit     time.Duration

	mu     sync.Mutex
	round  *round
	broken error // why nothing runs on the machine any more
	closed bool
}

type member struct {
	team *team
	rank int
}

// round is one call, from the first Start to its end.
type round struct {
	call  api.Call
	mem   []api.Memory
	here  []bool
	ready chan struct{} // closed when all ranks have come
	once  sync.Once
	done  chan struct{}
	err   error
}

func (t *team) Members() []api.Member { return t.members }

func (m *member) Rank() int { return m.rank }

// same is the part of a call that all ranks agree on, as text.
func same(c api.Call) string {
	c.SrcOffset, c.DstOffset = nil, nil
	return c.String()
}

// Start brings a rank to a call; the last to come lets it begin.
func (m *member) Start(call api.Call, mem api.Memory) (api.Pending, error) {
	t := m.team
	if err := errors.Join(call.Validate()); err != nil {
		return nil, err
	}
	if call.Ranks != len(t.members) {
		return nil, &api.InvalidError{Field: "ranks", Value: fmt.Sprint(call.Ranks), Reason: fmt.Sprintf("the team has %d", len(t.members))}
	}
	if err := t.admit(&call); err != nil {
		return nil, err
	}
	if err := call.CheckMemory(m.rank, mem); err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed:
		return nil, &api.Aborted{Rank: m.rank, Cause: -1, Reason: "the team was closed"}
	case t.broken != nil:
		return nil, &api.Aborted{Rank: m.rank, Cause: -1, Reason: "an earlier call ended the team: " + t.broken.Error()}
	}
	r := t.round
	if r == nil {
		n := len(t.members)
		r = &round{call: call, mem: make([]api.Memory, n), here: make([]bool, n), ready: make(chan struct{}), done: make(chan struct{})}
		t.round = r
	}
	switch other := slices.Index(r.here, true); {
	case r.here[m.rank]:
		return nil, &api.Refused{Spec: t.spec.String(), What: fmt.Sprintf("a second call on rank %d", m.rank), Reason: "its last call has not been waited for"}
	case other >= 0 && same(call) != same(r.call):
		return nil, &api.Mismatch{Rank: m.rank, Other: other, Call: same(call), OtherCall: same(r.call)}
	}
	r.here[m.rank], r.mem[m.rank] = true, mem
	if !slices.Contains(r.here, false) {
		t.round = nil
		close(r.ready)
	}
	return &pending{t, r, m.rank}, nil
}

// admit holds a call to what the description claims.
func (t *team) admit(call *api.Call) error {
	d := t.d
	refuse := func(what, reason string) error {
		return &api.Refused{Spec: t.spec.String(), What: what, Reason: reason, Hint: "say in " + d.File + " what else the kernel takes"}
	}
	switch {
	case call.Collective != d.Collective:
		return refuse(call.Collective.Name(), "the kernel is "+d.Collective.Name())
	case !slices.Contains(d.DTypes, call.DType):
		return refuse("dtype "+call.DType.String(), fmt.Sprintf("the kernel takes %v", d.DTypes))
	case d.Collective.Reduces() && !slices.Contains(d.Ops, call.Op):
		return refuse("op "+call.Op.String(), fmt.Sprintf("the kernel takes %v", d.Ops))
	case !slices.Contains(d.InPlace, call.InPlace):
		return refuse("in place "+call.InPlace.String(), fmt.Sprintf("the kernel takes %v", d.InPlace))
	case call.Count%d.Multiple != 0:
		return refuse(fmt.Sprintf("count %d", call.Count), fmt.Sprintf("the kernel takes multiples of %d", d.Multiple))
	case call.Scope != api.OnStream:
		return refuse("scope "+call.Scope.String(), "a kernel of one's own is on a stream")
	case call.Mode != "":
		return refuse("mode "+call.Mode, "a kernel of one's own has no modes")
	}
	return nil
}

type pending struct {
	team  *team
	round *round
	rank  int
}

// Wait runs the call, if all ranks have come and nobody has run it yet.
func (p *pending) Wait(ctx context.Context) (api.Outcome, error) {
	r := p.round
	select {
	case <-r.ready:
	default:
		select {
		case <-r.ready:
		case <-ctx.Done():
			return api.Outcome{}, p.team.withdraw(r, p.rank, ctx)
		}
	}
	r.once.Do(func() {
		r.err = p.team.run(ctx, r)
		close(r.done)
	})
	<-r.done
	return api.Outcome{}, r.err
}

// withdraw takes a rank out of a call that has not begun.
func (t *team) withdraw(r *round, rank int, ctx context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.round == r {
		r.here[rank], r.mem[rank] = false, nil
		if !slices.Contains(r.here, true) {
			t.round = nil
		}
	}
	return context.Cause(ctx)
}

// run executes a call, and gives the machine up where that fails.
func (t *team) run(ctx context.Context, r *round) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	err := t.broken
	if err == nil {
		err = t.execute(ctx, r)
	}
	var refused *api.Refused
	if err != nil && !errors.As(err, &refused) {
		t.broken = err
	}
	return err
}

// Close ends the team. What a fault left behind goes with the machine, which
// holds nothing of the real one.
func (t *team) Close(context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || t.broken != nil {
		t.closed = true
		return nil
	}
	t.closed = true
	var errs []error
	for i := range t.contexts {
		errs = append(errs, t.streams[i].Destroy(), t.modules[i].Unload(), t.contexts[i].Close())
	}
	return errors.Join(append(errs, t.driver.Close())...)
}

// wait lets the machine run until all streams are done. A kernel that does not
// end is a fault of its rank.
func (t *team) wait(ctx context.Context) error {
	var all []gpu.Queryer
	for _, s := range t.streams {
		all = append(all, s)
	}
	err := gpu.Wait(ctx, t.driver.Clock(), t.limit, all...)
	if errors.Is(err, gpu.ErrDeadline) {
		var late []string
		first := -1
		for r, s := range t.streams {
			if done, err := s.Query(); !done && err == nil {
				late = append(late, fmt.Sprint(r))
				if first < 0 {
					first = r
				}
			}
		}
		return &api.Fault{Kind: api.FaultHang, Rank: max(first, 0), CTA: -1, Detail: fmt.Sprintf("%v of virtual time have passed, and the kernels of ranks %s run", t.limit, strings.Join(late, ", "))}
	}
	return err
}
