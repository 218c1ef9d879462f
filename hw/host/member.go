package host

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
)

type member struct {
	team *Team
	rank int
}

// Rank is the member's rank.
func (m *member) Rank() int { return m.rank }

// round is one call, from the first rank's Start to the last rank's Wait.
type round struct {
	team  *Team
	call  api.Call
	mem   []api.Memory
	since time.Duration // of the first Start

	mu      sync.Mutex
	started []bool
	count   int
	ready   bool // launched, or failed
	running bool // one of the waiters drives the GPUs
	done    bool
	errs    []error // once done
}

// Start brings one rank to a call. The call is launched when all ranks have
// come; a rank has one call at a time.
func (m *member) Start(call api.Call, mem api.Memory) (api.Pending, error) {
	t := m.team
	if err := t.check(&call, m.rank, mem); err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.refusal(m.rank); err != nil {
		return nil, err
	}
	r := t.round
	if r == nil || r.over() {
		r = &round{team: t, call: call, mem: make([]api.Memory, len(t.members)), started: make([]bool, len(t.members)), since: t.clock.Now()}
		t.round = r
	}
	return r.join(m.rank, call, mem)
}

// check is what a rank can say of its call alone.
func (t *Team) check(call *api.Call, rank int, mem api.Memory) error {
	if err := call.Validate(); err != nil {
		return err
	}
	if call.Ranks != len(t.members) {
		return &api.InvalidError{Field: "ranks", Value: fmt.Sprint(call.Ranks), Reason: fmt.Sprintf("the team has %d", len(t.members))}
	}
	if err := t.engine.Admit(call); err != nil {
		return err
	}
	if err := call.CheckMemory(rank, mem); err != nil {
		return err
	}
	return checkAliases(call, rank, mem)
}

func (r *round) over() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.done
}

func (r *round) idle() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.done || !r.running
}

// Same is the part of a call that all ranks must agree on, as text.
func Same(c *api.Call) string {
	same := *c
	same.SrcOffset, same.DstOffset = nil, nil
	return same.String()
}

func (r *round) join(rank int, call api.Call, mem api.Memory) (api.Pending, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.started[rank] {
		return nil, &api.Refused{Spec: r.team.spec, What: "a second call on rank " + fmt.Sprint(rank), Reason: "its last call has not been waited for"}
	}
	if other := slices.Index(r.started, true); other >= 0 && Same(&call) != Same(&r.call) {
		err := &api.Mismatch{Rank: rank, Other: other, Call: Same(&call), OtherCall: Same(&r.call), CallHash: Hash(&call), OtherHash: Hash(&r.call)}
		r.end(err)
		r.team.setPoison(err)
		return nil, err
	}
	r.call = call
	r.started[rank], r.mem[rank] = true, mem
	r.count++
	return &pending{r, rank}, nil
}

// end ends the round before it was launched; r.mu is held.
func (r *round) end(err error) {
	if r.running || r.done {
		return
	}
	r.done = true
	r.errs = slices.Repeat([]error{err}, len(r.started))
}

func (r *round) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.end(err)
}

type pending struct {
	round *round
	rank  int
}

// Wait drives the call: whoever waits first, once all ranks have come, launches
// it and waits for the GPUs on behalf of all.
func (p *pending) Wait(ctx context.Context) (api.Outcome, error) {
	r, t := p.round, p.round.team
	arrive, _ := t.engine.Deadlines()
	for {
		lead := false
		wait := r.since + arrive - t.clock.Now()
		err := gpu.Poll(ctx, t.clock, max(wait, 1), func() (bool, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			lead = !r.done && !r.running && r.count == len(r.started)
			if lead {
				r.running = true
			}
			return r.done || lead || r.running, nil
		})
		if lead {
			errs := t.execute(ctx, r)
			r.mu.Lock()
			r.done, r.errs = true, errs
			r.mu.Unlock()
			return p.outcome()
		}
		if err == nil {
			err = gpu.Poll(context.Background(), t.clock, 0, func() (bool, error) { return r.over(), nil })
		}
		if err == nil {
			return p.outcome()
		}
		if ctx.Err() != nil {
			return api.Outcome{}, r.withdraw(p.rank, ctx)
		}
		r.late()
	}
}

func (p *pending) outcome() (api.Outcome, error) {
	p.round.mu.Lock()
	defer p.round.mu.Unlock()
	err := p.round.errs[p.rank]
	if a, ok := err.(*api.Aborted); ok && a.Rank != p.rank {
		own := *a
		own.Rank = p.rank
		err = &own
	}
	return api.Outcome{}, err
}

// withdraw takes a rank out of a call that has not begun.
func (r *round) withdraw(rank int, ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.started[rank] && !r.running && !r.done {
		r.started[rank], r.mem[rank] = false, nil
		r.count--
		if r.count == 0 {
			r.end(context.Cause(ctx))
		}
	}
	return context.Cause(ctx)
}

// late ends a round whose ranks have not all come in time, and poisons the team.
func (r *round) late() {
	t := r.team
	t.mu.Lock()
	defer t.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running || r.done || r.count == len(r.started) {
		return
	}
	missing := slices.Index(r.started, false)
	arrive, _ := t.engine.Deadlines()
	err := &api.Aborted{Cause: missing, Chain: []int{missing}, Reason: fmt.Sprintf("rank %d had not come to %s within %v", missing, Same(&r.call), arrive)}
	r.end(err)
	t.setPoison(err)
}

// execute copies in, launches, waits and copies out.
func (t *Team) execute(ctx context.Context, r *round) []error {
	for _, a := range t.arenas {
		a.reset()
	}
	bound, err := t.bind(t.arenas, []*api.Call{&r.call}, [][]api.Memory{r.mem})
	if err != nil {
		// Nothing was launched: the team is as good as before.
		return slices.Repeat([]error{err}, len(t.members))
	}
	return t.run(ctx, &r.call, 1, func() error { return t.launch(bound[0]) }, t.arenas)
}

// ready is a call with its buffers, and its launches unless the engine queues it.
type ready struct {
	call  *api.Call
	bufs  []Buffers
	steps Bound
}

// launch queues the steps of a call on all GPUs, each step everywhere first.
func (t *Team) launch(b ready) error {
	if q, ok := t.engine.(Queuer); ok {
		return q.Queue(b.call, b.bufs, t.streams)
	}
	return b.steps.launch(t.streams)
}

// bind places calls in arenas, one after the other, and makes their launches.
func (t *Team) bind(arenas []*Arena, calls []*api.Call, mem [][]api.Memory) ([]ready, error) {
	type spot struct{ src, dst uint64 }
	spots := make([][][]spot, len(calls))
	tables := make([][]uint64, len(calls))
	for k, call := range calls {
		for rank, lanes := range mem[k] {
			a := arenas[t.place[rank]]
			var s []spot
			for _, l := range lanes {
				src, dst := a.place(l)
				a.hold(l, src, dst)
				s = append(s, spot{src, dst})
			}
			spots[k] = append(spots[k], s)
		}
		for _, a := range arenas {
			tables[k] = append(tables[k], a.reserve(t.engine.TableBytes(call)))
		}
	}
	if err := t.grow(arenas); err != nil {
		return nil, err
	}
	var out []ready
	for k, call := range calls {
		bufs := make([]Buffers, len(t.members))
		for rank, lanes := range spots[k] {
			base := arenas[t.place[rank]].device
			for _, s := range lanes {
				bufs[rank] = append(bufs[rank], Pair{base.Add(s.src), base.Add(s.dst)})
			}
		}
		table := t.engine.Table(call, bufs)
		ptrs := make([]gpu.Ptr, len(arenas))
		for i, a := range arenas {
			if len(table) > 0 {
				ptrs[i] = a.device.Add(tables[k][i])
				a.pieces = append(a.pieces, piece{tables[k][i], table})
			}
		}
		b, err := t.engine.Bind(call, bufs, ptrs)
		if err != nil {
			return nil, err
		}
		out = append(out, ready{call, bufs, b})
	}
	return out, nil
}
