package file

import (
	"bytes"
	"context"
	"slices"
	"sync"

	"example.com/tandem/api"
	"example.com/tandem/conformance/vectors"
)

// rowTeam answers calls from a vector file.
type rowTeam struct {
	spec    api.Spec
	book    *book
	members []api.Member
	kind    api.TeamKind
	mu      sync.Mutex
	rounds  []*round // the k-th call of each member belongs to the k-th round
}

// round is one call of the team. Inputs tell which row it is, and a rank alone
// may not: so the row is chosen when all have come.
type round struct {
	rows    []*vectors.Row // that fit every rank so far
	started int
	all     chan struct{} // closed when all have started
}

func newRowTeam(spec api.Spec, b *book, cfg api.TeamConfig) *rowTeam {
	t := &rowTeam{spec: spec, book: b, kind: cfg.Kind}
	for r := range cfg.Ranks {
		t.members = append(t.members, &rowMember{team: t, rank: r})
	}
	return t
}

func (t *rowTeam) Members() []api.Member       { return t.members }
func (t *rowTeam) Close(context.Context) error { return nil }

// Promise is what the recording's header allows.
func (t *rowTeam) Promise() (api.Contract, map[string]api.Evidence) {
	e := map[string]api.Evidence{"recording": api.Recorded}
	if t.book.header.NVLS {
		return api.Faithful, e
	}
	return api.Exact, e
}

type rowMember struct {
	team  *rowTeam
	rank  int
	calls int
}

func (m *rowMember) Rank() int { return m.rank }

func (m *rowMember) Start(call api.Call, mem api.Memory) (api.Pending, error) {
	if err := call.Validate(); err != nil {
		return nil, err
	}
	if err := call.CheckMemory(m.rank, mem); err != nil {
		return nil, err
	}
	rows, err := m.candidates(&call, mem)
	if err != nil {
		return nil, err
	}
	t := m.team
	t.mu.Lock()
	defer t.mu.Unlock()
	if m.calls == len(t.rounds) {
		t.rounds = append(t.rounds, &round{rows: rows, all: make(chan struct{})})
	}
	r := t.rounds[m.calls]
	m.calls++
	r.rows = slices.DeleteFunc(slices.Clone(r.rows), func(row *vectors.Row) bool { return !slices.Contains(rows, row) })
	if r.started++; r.started == len(t.members) {
		close(r.all)
	}
	return &rowPending{member: m, round: r, call: call, mem: mem}, nil
}

// candidates are the rows of the call whose inputs are what this rank brings.
func (m *rowMember) candidates(call *api.Call, mem api.Memory) ([]*vectors.Row, error) {
	var fit []*vectors.Row
	for _, row := range m.team.book.rows[key(call)] {
		ok, err := sameSource(row, m.rank, mem)
		if err != nil {
			return nil, err
		}
		if ok {
			fit = append(fit, row)
		}
	}
	if len(fit) == 0 {
		return nil, missing(m.team.spec, call)
	}
	usable := slices.DeleteFunc(slices.Clone(fit), func(r *vectors.Row) bool { return r.Fault == nil && !r.HasOutput() })
	if len(usable) == 0 {
		return nil, hashesOnly(m.team.spec, call)
	}
	return usable, nil
}

// sameSource reports whether a rank's source is that of the row.
func sameSource(row *vectors.Row, rank int, mem api.Memory) (bool, error) {
	gen, err := row.Input.Open(&row.Call)
	if err != nil {
		return false, err
	}
	const piece = 1 << 16 // elements
	for l := range mem {
		src := mem[l].Src.Payload()
		size := row.Call.Lane(l).DType.Size()
		want := make([]byte, min(len(src), piece*size))
		for at := 0; at < len(src); at += len(want) {
			part := want[:min(len(want), len(src)-at)]
			if err := gen.Fill(part, l, rank, int64(at/size)); err != nil {
				return false, err
			}
			if !bytes.Equal(part, src[at:at+len(part)]) {
				return false, nil
			}
		}
	}
	return true, nil
}

type rowPending struct {
	member *rowMember
	round  *round
	call   api.Call
	mem    api.Memory
}

// Wait copies the outputs, and leaves alone what the recording says no store
// reached.
func (p *rowPending) Wait(ctx context.Context) (api.Outcome, error) {
	select {
	case <-p.round.all:
	case <-ctx.Done():
		return api.Outcome{}, ctx.Err()
	}
	if len(p.round.rows) == 0 {
		return api.Outcome{}, missing(p.member.team.spec, &p.call)
	}
	row := p.round.rows[0]
	if row.Fault != nil {
		return api.Outcome{}, row.Fault
	}
	out := row.Output[p.member.rank]
	holes, known := row.Holes(p.member.rank)
	written := []api.Interval{}
	for l := range p.mem {
		dst := p.mem[l].Dst.Payload()
		size := int64(row.Call.Lane(l).DType.Size())
		at := int64(0)
		store := func(end int64) {
			if at < end {
				copy(dst[at:end], out[at:])
				written = append(written, api.Interval{Lane: l, Start: at, End: end})
			}
		}
		if known {
			for _, h := range holes[l] {
				store(h.Start * size)
				at = h.End * size
			}
		}
		store(int64(len(dst)))
		out = out[len(dst):]
	}
	if !known {
		written = nil
	}
	return api.Outcome{Written: written}, nil
}
