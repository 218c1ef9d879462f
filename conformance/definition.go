package conformance

import (
	"context"
	"sync"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
)

// Definition is a side that executes the definition of the collectives, element
// by element: copies keep every pattern, and reductions are exact and rounded
// once to nearest even. It is slow and right.
func Definition() Side {
	return Side{Backend: definition{}, Spec: api.Spec{Backend: "definition", Implementation: "exact"}}
}

type definition struct{}

func (definition) Name() string { return "definition" }

func (definition) Implementations() []api.Implementation {
	return []api.Implementation{{
		Name: "exact", Summary: "the definition, reductions rounded once", Collectives: api.Collectives(), DTypes: api.DTypes(),
		Promises: api.Checks(), Evidence: map[string]api.Evidence{"definition": api.FromSource},
	}}
}

func (definition) Open(_ context.Context, spec api.Spec, cfg api.TeamConfig) (api.Team, error) {
	if spec.Implementation != "exact" || spec.Version != "" || len(spec.Params) > 0 {
		return nil, &api.InvalidError{Field: "spec", Value: spec.String(), Reason: "unknown", Hint: "definition:exact takes no version and no parameters"}
	}
	t := &definitionTeam{}
	for r := range cfg.Ranks {
		t.members = append(t.members, &definitionMember{t, r})
	}
	return t, nil
}

// definitionTeam executes a call when the last rank has started it.
type definitionTeam struct {
	members []api.Member
	mu      sync.Mutex
	round   *definitionRound
}

type definitionRound struct {
	call    api.Call
	mem     []api.Memory
	started int
	done    chan struct{}
}

func (t *definitionTeam) Members() []api.Member       { return t.members }
func (t *definitionTeam) Close(context.Context) error { return nil }

type definitionMember struct {
	team *definitionTeam
	rank int
}

func (m *definitionMember) Rank() int { return m.rank }

func (m *definitionMember) Start(call api.Call, mem api.Memory) (api.Pending, error) {
	if err := call.Validate(); err != nil {
		return nil, err
	}
	if err := call.CheckMemory(m.rank, mem); err != nil {
		return nil, err
	}
	t := m.team
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.round == nil {
		t.round = &definitionRound{call: call, mem: make([]api.Memory, call.Ranks), done: make(chan struct{})}
	}
	round := t.round
	round.mem[m.rank] = mem
	if round.started++; round.started == len(t.members) {
		t.round = nil
		round.execute()
		close(round.done)
	}
	return &definitionPending{round, m.rank}, nil
}

type definitionPending struct {
	round *definitionRound
	rank  int
}

func (p *definitionPending) Wait(ctx context.Context) (api.Outcome, error) {
	select {
	case <-p.round.done:
	case <-ctx.Done():
		return api.Outcome{}, ctx.Err()
	}
	out := api.Outcome{Written: []api.Interval{}}
	for l, lane := range p.round.mem[p.rank] {
		out.Written = append(out.Written, api.Interval{Lane: l, End: lane.Dst.Len()})
	}
	return out, nil
}

// execute reads every source before it writes anything, so that in place is no
// special case.
func (r *definitionRound) execute() {
	in := &sources{call: &r.call}
	for _, mem := range r.mem {
		var lanes [][]byte
		for _, l := range mem {
			lanes = append(lanes, append([]byte(nil), l.Src.Payload()...))
		}
		in.data = append(in.data, lanes)
	}
	g := in.gatherer()
	for rank, mem := range r.mem {
		for l := range mem {
			d := r.call.Lane(l).DType
			dst := mem[l].Dst.Payload()
			for i := range r.call.DstElems(l) {
				num.Store(d, dst[i*int64(d.Size()):], g.right(l, rank, i))
			}
		}
	}
}
