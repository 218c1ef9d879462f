package sim

import (
	"context"
	"fmt"
	"sync"
	"time"

	"example.com/tandem/api"
	"example.com/tandem/sim/machine"
)

// Team is a team of simulated ranks.
type Team struct {
	spec    api.Spec
	cfg     api.TeamConfig
	session Session

	mu      sync.Mutex
	machine *machine.Machine
	options machine.Options
	rounds  []*round // incomplete ones, oldest first
	closed  bool
}

var _ api.Team = (*Team)(nil)

func newTeam(spec api.Spec, cfg api.TeamConfig, s Session) *Team {
	return &Team{
		spec: spec, cfg: cfg, session: s,
		machine: machine.New(machine.Config{Ranks: cfg.Ranks, Arrive: cfg.Arrive, Progress: cfg.Progress}),
	}
}

// Schedule sets how the calls that follow are scheduled; the zero Options are
// the fast scheduler, which a team starts with.
func (t *Team) Schedule(opt machine.Options) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.options = opt
}

// Members are all ranks of the team.
func (t *Team) Members() []api.Member {
	all := make([]api.Member, t.cfg.Ranks)
	for r := range all {
		all[r] = &member{team: t, rank: r}
	}
	return all
}

// Close ends the team; calls that some ranks have not started end aborted. It
// may be called again.
func (t *Team) Close(context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	closed := t.closed
	t.closed = true
	for _, r := range t.rounds {
		t.abandon(r, "the team was closed")
	}
	t.rounds = nil
	if c, ok := t.session.(Runner); ok && !closed {
		return c.Close(t.options)
	}
	return nil
}

// abandon ends a round that some ranks have not come to.
func (t *Team) abandon(r *round, why string) {
	if runner, ok := t.session.(Runner); ok {
		t.let(runner, r, why)
		r.end()
		return
	}
	r.abort(why)
}

// round is one call as the ranks start it.
type round struct {
	calls   []api.Call
	mem     []api.Memory
	started []bool
	missing int

	done     chan struct{}
	outcomes []api.Outcome
	errs     []error
}

func newRound(ranks int) *round {
	return &round{
		calls: make([]api.Call, ranks), mem: make([]api.Memory, ranks), started: make([]bool, ranks),
		missing: ranks, done: make(chan struct{}),
		outcomes: make([]api.Outcome, ranks), errs: make([]error, ranks),
	}
}

// end lets everybody go who waits. It is called once.
func (r *round) end() { close(r.done) }

// abort ends a round that some ranks have not come to.
func (r *round) abort(reason string) {
	absent := -1
	for rank := range r.started {
		if !r.started[rank] {
			absent = rank
			break
		}
	}
	for rank := range r.errs {
		r.errs[rank] = &api.Aborted{Rank: rank, Cause: absent, Chain: []int{rank, absent}, Reason: fmt.Sprintf("%s before rank %d had started the call", reason, absent)}
	}
	r.end()
}

// fail gives every rank the same error.
func (r *round) fail(err error) {
	for rank := range r.errs {
		r.errs[rank] = err
	}
}

type member struct {
	team *Team
	rank int
}

func (m *member) Rank() int { return m.rank }

// Start begins a call on this rank. The last rank to start executes it.
func (m *member) Start(call api.Call, mem api.Memory) (api.Pending, error) {
	t := m.team
	if err := t.check(m.rank, &call, mem); err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, &api.Aborted{Rank: m.rank, Cause: -1, Reason: "the team is closed"}
	}
	if p, ok := t.session.(Poisoner); ok {
		if err := p.Poisoned(m.rank); err != nil {
			return nil, err
		}
	}
	r := t.join(m.rank)
	r.calls[m.rank], r.mem[m.rank], r.started[m.rank] = call, mem, true
	if r.missing--; r.missing == 0 {
		t.rounds = t.rounds[1:] // the oldest: every rank starts calls in order
		t.execute(r)
		r.end()
	}
	return &pending{team: t, rank: m.rank, round: r}, nil
}

// check says whether the rank may start this call at all.
func (t *Team) check(rank int, call *api.Call, mem api.Memory) error {
	if err := call.Validate(); err != nil {
		return err
	}
	if call.Ranks != t.cfg.Ranks {
		return &api.InvalidError{Field: "ranks", Value: fmt.Sprint(call.Ranks), Reason: fmt.Sprintf("the team has %d", t.cfg.Ranks)}
	}
	if call.Team != t.cfg.Kind {
		return &api.InvalidError{Field: "team", Value: call.Team.String(), Reason: fmt.Sprintf("the team was opened as %s", t.cfg.Kind)}
	}
	if err := call.CheckMemory(rank, mem); err != nil {
		return err
	}
	if r, ok := t.session.(Runner); ok {
		if err := r.Check(rank, call, mem); err != nil {
			return err
		}
	}
	return checkAliasing(rank, mem)
}

// join is the round that rank comes to next.
func (t *Team) join(rank int) *round {
	for _, r := range t.rounds {
		if !r.started[rank] {
			return r
		}
	}
	r := newRound(t.cfg.Ranks)
	t.rounds = append(t.rounds, r)
	return r
}

// leave aborts a round that a rank stopped waiting for.
func (t *Team) leave(r *round, why string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, open := range t.rounds {
		if open == r {
			t.abandon(r, why)
			t.rounds = append(t.rounds[:i:i], t.rounds[i+1:]...)
			return
		}
	}
}

type pending struct {
	team  *Team
	rank  int
	round *round
}

// Wait ends when the call has; a context that ends first aborts the call on all
// ranks.
func (p *pending) Wait(ctx context.Context) (api.Outcome, error) {
	select {
	case <-p.round.done:
	default:
		var late <-chan time.Time
		if r, ok := p.team.session.(Runner); ok {
			timer := time.NewTimer(r.Patience())
			defer timer.Stop()
			late = timer.C
		}
		select {
		case <-p.round.done:
		case <-ctx.Done():
			p.team.leave(p.round, "a rank stopped waiting")
			<-p.round.done
		case <-late:
			p.team.leave(p.round, "its deadline passed")
			<-p.round.done
		}
	}
	return p.round.outcomes[p.rank], p.round.errs[p.rank]
}
