package file

import (
	"context"

	"example.com/tandem/api"
	"example.com/tandem/conformance/dumps"
)

// dumpTeam answers calls from a directory of dumps.
type dumpTeam struct {
	spec    api.Spec
	dir     *dumps.Dir
	members []api.Member
}

func newDumpTeam(spec api.Spec, dir *dumps.Dir, ranks int) *dumpTeam {
	t := &dumpTeam{spec: spec, dir: dir}
	for r := range ranks {
		t.members = append(t.members, &dumpMember{t, r})
	}
	return t
}

func (t *dumpTeam) Members() []api.Member       { return t.members }
func (t *dumpTeam) Close(context.Context) error { return nil }

// Promise is equal bits: nobody said anything weaker.
func (t *dumpTeam) Promise() (api.Contract, map[string]api.Evidence) {
	return api.Exact, map[string]api.Evidence{"dump": api.Assumed}
}

type dumpMember struct {
	team *dumpTeam
	rank int
}

func (m *dumpMember) Rank() int { return m.rank }

func (m *dumpMember) Start(call api.Call, mem api.Memory) (api.Pending, error) {
	if err := call.Validate(); err != nil {
		return nil, err
	}
	if err := call.CheckMemory(m.rank, mem); err != nil {
		return nil, err
	}
	if err := m.team.dir.Check(&call, call.DstElems); err != nil {
		return nil, err
	}
	return &dumpPending{m, mem}, nil
}

type dumpPending struct {
	member *dumpMember
	mem    api.Memory
}

// Wait reads the rank's file. What a store reached, a dump does not tell.
func (p *dumpPending) Wait(ctx context.Context) (api.Outcome, error) {
	if err := ctx.Err(); err != nil {
		return api.Outcome{}, err
	}
	var at int64
	for l := range p.mem {
		dst := p.mem[l].Dst.Payload()
		if err := p.member.team.dir.ReadAt(p.member.rank, dst, at); err != nil {
			return api.Outcome{}, err
		}
		at += int64(len(dst))
	}
	return api.Outcome{}, nil
}
