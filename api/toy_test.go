package api_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
)

// prefixReverse is a collective that no other file knows: rank r gets the
// reduction of ranks 0..r, back to front.
type prefixReverse struct{}

func (prefixReverse) Name() string              { return "prefix_reverse" }
func (prefixReverse) Reduces() bool             { return true }
func (prefixReverse) Rooted() bool              { return false }
func (prefixReverse) Symmetric() bool           { return false }
func (prefixReverse) Blocks(int) (int64, int64) { return 1, 1 }

func (prefixReverse) Inputs(dst []api.Input, g api.Geometry, rank int, index int64) []api.Input {
	for r := range rank + 1 {
		dst = append(dst, api.Input{Rank: r, Index: g.Count - 1 - index})
	}
	return dst
}

func (prefixReverse) InPlace(api.Geometry, int, api.InPlace) (int64, bool) { return 0, false }

// TestToyCollective is the promise that adding a collective touches nothing
// else: this one is defined above, and runs.
func TestToyCollective(t *testing.T) {
	call := api.Call{Collective: prefixReverse{}, DType: api.I32, Op: api.Sum, Ranks: 3, Count: 4}
	require.NoError(t, call.Validate())
	require.Equal(t, "--collective prefix_reverse --dtype i32 --op sum --ranks 3 --count 4", call.String())

	ctx := context.Background()
	team, err := byDefinition{}.Open(ctx, api.Spec{Backend: "fake"}, api.TeamConfig{Ranks: 3})
	require.NoError(t, err)
	dst := [3][]int32{make([]int32, 4), make([]int32, 4), make([]int32, 4)}
	out, err := api.Run(ctx, team, call, []api.Memory{
		api.MemoryOf([]int32{1, 2, 3, 4}, dst[0]),
		api.MemoryOf([]int32{10, 20, 30, 40}, dst[1]),
		api.MemoryOf([]int32{100, 200, 300, 400}, dst[2]),
	})
	require.NoError(t, err)
	require.Equal(t, [3][]int32{{4, 3, 2, 1}, {44, 33, 22, 11}, {444, 333, 222, 111}}, dst)
	require.Equal(t, []api.Interval{{Lane: 0, Start: 0, End: 16}}, out[2].Written)
	require.NoError(t, team.Close(ctx))

	call.InPlace = api.InPlaceOwn
	require.ErrorContains(t, call.Validate(), "prefix_reverse has no such in-place form")
	call.InPlace, call.Root = api.OutOfPlace, 1
	require.ErrorContains(t, call.Validate(), "prefix_reverse has no root")
}

// byDefinition is the smallest backend there is: it executes any collective
// the way its definition reads, with the scalar reference.
type byDefinition struct {
	failStart, failWait map[int]error // by rank, for the tests of api.Run
}

func (byDefinition) Name() string                          { return "fake" }
func (byDefinition) Implementations() []api.Implementation { return nil }

func (b byDefinition) Open(_ context.Context, _ api.Spec, cfg api.TeamConfig) (api.Team, error) {
	t := &definitionTeam{backend: b, sources: make([][][]byte, cfg.Ranks)}
	for r := range cfg.Ranks {
		t.members = append(t.members, &definitionMember{t, r, 0})
	}
	return t, nil
}

type definitionTeam struct {
	backend byDefinition
	members []api.Member
	sources [][][]byte // by rank and lane, as they were at Start
}

func (t *definitionTeam) Members() []api.Member       { return t.members }
func (t *definitionTeam) Close(context.Context) error { return nil }

type definitionMember struct {
	team  *definitionTeam
	rank  int
	waits int
}

func (m *definitionMember) Rank() int { return m.rank }

func (m *definitionMember) Start(call api.Call, mem api.Memory) (api.Pending, error) {
	if err := m.team.backend.failStart[m.rank]; err != nil {
		return nil, err
	}
	if err := call.CheckMemory(m.rank, mem); err != nil {
		return nil, err
	}
	for _, lane := range mem {
		m.team.sources[m.rank] = append(m.team.sources[m.rank], append([]byte(nil), lane.Src.Payload()...))
	}
	return &definitionPending{m, call, mem}, nil
}

type definitionPending struct {
	member *definitionMember
	call   api.Call
	mem    api.Memory
}

func (p *definitionPending) Wait(ctx context.Context) (api.Outcome, error) {
	p.member.waits++
	if err := p.member.team.backend.failWait[p.member.rank]; err != nil {
		return api.Outcome{}, err
	}
	for r, s := range p.member.team.sources {
		if s == nil {
			<-ctx.Done() // a rank that never comes
			return api.Outcome{}, fmt.Errorf("rank %d has not come: %w", r, ctx.Err())
		}
	}
	var out api.Outcome
	for lane := range p.mem {
		p.reduce(lane)
		out.Written = append(out.Written, api.Interval{Lane: lane, End: p.mem[lane].Dst.Len()})
	}
	return out, nil
}

func (p *definitionPending) reduce(lane int) {
	d := p.call.Lane(lane).DType
	size, dst := int64(d.Size()), p.mem[lane].Dst.Payload()
	for i := range p.call.DstElems(lane) {
		var values []uint64
		for _, in := range p.call.Inputs(nil, lane, p.member.rank, i) {
			values = append(values, num.Load(d, p.member.team.sources[in.Rank][lane][size*in.Index:]))
		}
		value := values[0]
		if p.call.Collective.Reduces() {
			value = num.Eval(d, num.Scheme{Op: p.call.Op}, values)
		}
		num.Store(d, dst[size*i:], value)
	}
}

func TestRunReportsTheLowestRankThatFailed(t *testing.T) {
	one, two := errors.New("one"), errors.New("two")
	call := api.Call{Collective: api.AllReduce, DType: api.U8, Op: api.Max, Ranks: 3, Count: 2}
	for _, c := range []struct {
		name    string
		backend byDefinition
		want    error
		waits   []int // how often each rank was waited for
	}{
		{"well", byDefinition{}, nil, []int{1, 1, 1}},
		{"a start fails", byDefinition{failStart: map[int]error{1: one, 2: two}}, one, []int{1, 0, 0}},
		{"the first start fails", byDefinition{failStart: map[int]error{0: one}}, one, []int{0, 0, 0}},
		{"waits fail", byDefinition{failWait: map[int]error{1: one, 2: two}}, one, []int{1, 1, 1}},
		{"starts before waits", byDefinition{failStart: map[int]error{2: two}, failWait: map[int]error{0: one}}, two, []int{1, 1, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx := context.Background()
			team, err := c.backend.Open(ctx, api.Spec{}, api.TeamConfig{Ranks: 3})
			require.NoError(t, err)
			var mem []api.Memory
			for r := range 3 {
				mem = append(mem, api.MemoryOf([]uint8{byte(r), byte(9 - r)}, make([]uint8, 2)))
			}
			out, err := api.Run(ctx, team, call, mem)
			if c.want == nil {
				require.NoError(t, err)
				require.Len(t, out, 3)
				require.Equal(t, []byte{2, 9}, mem[1][0].Dst.Payload())
			} else {
				require.ErrorIs(t, err, c.want)
			}
			for r, m := range team.Members() {
				require.Equal(t, c.waits[r], m.(*definitionMember).waits, "rank %d", r)
			}
		})
	}
}

func TestRunWantsMemoryForEveryMember(t *testing.T) {
	team, err := byDefinition{}.Open(context.Background(), api.Spec{}, api.TeamConfig{Ranks: 2})
	require.NoError(t, err)
	_, err = api.Run(context.Background(), team, sound(), make([]api.Memory, 1))
	require.ErrorIs(t, err, api.ErrInvalid)
}
