package matrix

import (
	"context"
	"sync/atomic"

	"example.com/tandem/api"
	"example.com/tandem/conformance"
)

// altered is the definition with something done to what its calls leave.
type altered struct {
	api.Backend
	promises []api.Check
	after    func(call api.Call, rank int, mem api.Memory) error
	opened   atomic.Int64
	closed   atomic.Int64
}

func side(b *altered) conformance.Side {
	def := conformance.Definition()
	b.Backend = def.Backend
	return conformance.Side{Backend: b, Spec: def.Spec}
}

// sides are the altered definition and the definition.
func sides(after func(call api.Call, rank int, mem api.Memory) error) (l, r conformance.Side) {
	return side(&altered{after: after}), conformance.Definition()
}

func (b *altered) Implementations() []api.Implementation {
	all := b.Backend.Implementations()
	if b.promises != nil {
		all[0].Promises = b.promises
	}
	return all
}

func (b *altered) Open(ctx context.Context, spec api.Spec, cfg api.TeamConfig) (api.Team, error) {
	t, err := b.Backend.Open(ctx, spec, cfg)
	if err != nil {
		return nil, err
	}
	b.opened.Add(1)
	return &alteredTeam{t, b}, nil
}

type alteredTeam struct {
	api.Team
	b *altered
}

func (t *alteredTeam) Close(ctx context.Context) error {
	t.b.closed.Add(1)
	return t.Team.Close(ctx)
}

func (t *alteredTeam) Members() []api.Member {
	var out []api.Member
	for _, m := range t.Team.Members() {
		out = append(out, &alteredMember{m, t.b})
	}
	return out
}

type alteredMember struct {
	api.Member
	b *altered
}

func (m *alteredMember) Start(call api.Call, mem api.Memory) (api.Pending, error) {
	p, err := m.Member.Start(call, mem)
	if err != nil {
		return nil, err
	}
	return &alteredPending{p, func() error { return m.b.after(call, m.Rank(), mem) }}, nil
}

type alteredPending struct {
	api.Pending
	after func() error
}

func (p *alteredPending) Wait(ctx context.Context) (api.Outcome, error) {
	out, err := p.Pending.Wait(ctx)
	if err == nil {
		err = p.after()
	}
	return out, err
}

// flip changes a bit of the last output.
func flip(mem api.Memory) {
	if p := mem[0].Dst.Payload(); len(p) > 0 {
		p[len(p)-1] ^= 1
	}
}
