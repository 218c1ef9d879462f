package conformance

import (
	"context"
	"sync"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
)

// fake is a backend whose every step can be broken. With no hook it executes
// the definition, reductions under its scheme.
type fake struct {
	name   string
	scheme num.Scheme // Op is that of the call
	// order permutes the inputs of a rank; nil keeps rank order.
	order func(rank, n int) []int
	// pick chooses scheme and order of a call, in place of the two above.
	pick func(call *api.Call, rank int) (num.Scheme, []int)
	// value replaces a result.
	value func(x *execution, rank, lane int, i int64, in []uint64, v uint64) uint64
	// skip leaves an element unwritten.
	skip func(call *api.Call, rank, lane int, i int64) bool
	// after runs when all is written.
	after func(x *execution)
	// fault ends the call.
	fault *api.Fault
	// refuse keeps it from starting.
	refuse error
	// blind backends do not know what they wrote.
	blind bool
	impl  api.Implementation
}

// execution is one call of a fake.
type execution struct {
	call api.Call
	mem  []api.Memory
	in   *sources
	// run counts the calls of the team.
	run int
}

func (f *fake) side() Side {
	name := f.name
	if name == "" {
		name = "plain"
	}
	return Side{Backend: f, Spec: api.Spec{Backend: "fake", Implementation: name}}
}

func (f *fake) Name() string                          { return "fake" }
func (f *fake) Implementations() []api.Implementation { return []api.Implementation{f.impl} }

func (f *fake) Open(_ context.Context, _ api.Spec, cfg api.TeamConfig) (api.Team, error) {
	t := &fakeTeam{fake: f}
	for r := range cfg.Ranks {
		t.members = append(t.members, &fakeMember{t, r})
	}
	return t, nil
}

type fakeTeam struct {
	*fake
	members []api.Member
	mu      sync.Mutex
	x       *execution
	started int
	runs    int
	written [][]api.Interval
}

func (t *fakeTeam) Members() []api.Member       { return t.members }
func (t *fakeTeam) Close(context.Context) error { return nil }

type fakeMember struct {
	team *fakeTeam
	rank int
}

func (m *fakeMember) Rank() int { return m.rank }

func (m *fakeMember) Start(call api.Call, mem api.Memory) (api.Pending, error) {
	t := m.team
	if t.refuse != nil {
		return nil, t.refuse
	}
	if err := call.CheckMemory(m.rank, mem); err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.started%len(t.members) == 0 {
		t.x = &execution{call: call, mem: make([]api.Memory, call.Ranks), run: t.runs}
		t.runs++
	}
	t.x.mem[m.rank] = mem
	if t.started++; t.started%len(t.members) == 0 {
		t.execute()
	}
	return m, nil
}

// Wait is also that of the pending call: the last start has done everything.
func (m *fakeMember) Wait(context.Context) (api.Outcome, error) {
	t := m.team
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.fault != nil {
		return api.Outcome{}, t.fault
	}
	if t.blind {
		return api.Outcome{}, nil
	}
	return api.Outcome{Written: t.written[m.rank]}, nil
}

func (t *fakeTeam) execute() {
	x := t.x
	x.in = &sources{call: &x.call}
	for _, mem := range x.mem {
		var lanes [][]byte
		for _, l := range mem {
			lanes = append(lanes, append([]byte(nil), l.Src.Payload()...))
		}
		x.in.data = append(x.in.data, lanes)
	}
	t.written = make([][]api.Interval, len(x.mem))
	g := x.in.gatherer()
	for rank, mem := range x.mem {
		t.written[rank] = []api.Interval{}
		for l := range mem {
			t.lane(x, g, rank, l)
		}
	}
	if t.after != nil {
		t.after(x)
	}
}

func (t *fakeTeam) lane(x *execution, g *gatherer, rank, l int) {
	d := x.call.Lane(l).DType
	size := int64(d.Size())
	dst := x.mem[rank][l].Dst.Payload()
	for i := range x.call.DstElems(l) {
		if t.skip != nil && t.skip(&x.call, rank, l, i) {
			continue
		}
		in := append([]uint64(nil), g.inputs(l, rank, i)...)
		v := in[0]
		if x.call.Collective.Reduces() {
			v = t.reduce(&x.call, d, rank, in)
		}
		if t.value != nil {
			v = t.value(x, rank, l, i, in, v)
		}
		num.Store(d, dst[i*size:], v)
		w := t.written[rank]
		if n := len(w); n > 0 && w[n-1].Lane == l && w[n-1].End == i*size {
			w[n-1].End += size
		} else {
			w = append(w, api.Interval{Lane: l, Start: i * size, End: (i + 1) * size})
		}
		t.written[rank] = w
	}
}

func (t *fakeTeam) reduce(call *api.Call, d api.DType, rank int, in []uint64) uint64 {
	s := t.scheme
	var perm []int
	switch {
	case t.pick != nil:
		s, perm = t.pick(call, rank)
	case t.order != nil:
		perm = t.order(rank, len(in))
	}
	s.Op = call.Op
	if perm != nil {
		ordered := make([]uint64, len(in))
		for k, from := range perm {
			ordered[k] = in[from]
		}
		in = ordered
	}
	return num.Eval(d, s, in)
}

// planned is a fake that can plan.
type planned struct {
	*fake
	plan func(call api.Call) (*api.Plan, error)
}

func (p *planned) Plan(spec api.Spec, call api.Call) (*api.Plan, error) {
	plan, err := p.plan(call)
	if plan != nil {
		plan.Spec, plan.Call = spec.String(), call
	}
	return plan, err
}

func (p *planned) side() Side {
	s := p.fake.side()
	s.Backend = p
	return s
}

func allReduce(d api.DType, ranks int, count int64) api.Call {
	return api.Call{Collective: api.AllReduce, DType: d, Op: api.Sum, Ranks: ranks, Count: count}
}
