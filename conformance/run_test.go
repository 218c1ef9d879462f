package conformance

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
	"example.com/tandem/conformance/inputs"
)

func counts(s *SideReport, f func(*RankReport) int64) []int64 {
	var out []int64
	for i := range s.Ranks {
		out = append(out, f(&s.Ranks[i]))
	}
	return out
}

// TestNotFaithfulFigures has the figures published for NVSHMEM's segmented
// all-reduce: 4 PEs, bf16, 65536 elements.
func TestNotFaithfulFigures(t *testing.T) {
	own := (&fake{order: ownFirst}).side()
	figures := []struct {
		input string
		want  []int64
	}{
		{"normal", []int64{7295, 7307, 7326, 7325}},
		{"uniform:-0.5:1", []int64{7583, 7629, 7656, 7631}},
		{"uniform:-0.4:1", []int64{5820, 5709, 5803, 5863}},
	}
	if testing.Short() {
		figures = figures[:1]
	}
	for _, c := range figures {
		in, err := inputs.Parse(c.input, 1)
		require.NoError(t, err)
		rep := run(t, &Runner{Input: in}, own, own, allReduce(api.BF16, 4, 65536))
		require.Equal(t, c.want, counts(&rep.Left, func(r *RankReport) int64 { return r.NotFaithful }), c.input)
		require.Equal(t, Agree, rep.Verdict, "a side agrees with itself")
		require.False(t, *rep.RankAgreement.Left, "though its ranks disagree")
	}
	rep := run(t, &Runner{}, own, own, allReduce(api.BF16, 2, 65536))
	require.Equal(t, []int64{0, 0}, counts(&rep.Left, func(r *RankReport) int64 { return r.NotFaithful }))
	require.True(t, *rep.RankAgreement.Left)
}

// BenchmarkOutsiders looks for outputs that are no neighbours of the exact sum.
func BenchmarkOutsiders(b *testing.B) {
	for _, c := range []api.Call{allReduce(api.BF16, 2, 1<<20), allReduce(api.BF16, 4, 1<<16), allReduce(api.F32, 8, 1<<16)} {
		b.Run(fmt.Sprintf("%v/ranks=%d/n=%d", c.DType, c.Ranks, c.Count), func(b *testing.B) {
			gen, err := inputs.Input{}.Open(&c)
			require.NoError(b, err)
			in, err := newSources(&c, gen, new(arena), 2)
			require.NoError(b, err)
			obs := &observation{out: in.data}
			for b.Loop() {
				outsiders(in, runtime.GOMAXPROCS(0), obs, obs)
			}
		})
	}
}

func TestFaults(t *testing.T) {
	fault := &fake{fault: &api.Fault{Kind: api.FaultHang, Rank: 1, CTA: 4, Detail: "nobody signals"}}
	plain := &fake{}
	rep := run(t, &Runner{}, fault.side(), plain.side(), allReduce(api.F32, 2, 3))
	require.Equal(t, Diverge, rep.Verdict)
	for i, r := range rep.Left.Ranks {
		require.Nil(t, r.Unwritten)
		require.Nil(t, r.FNV1a64)
		require.Nil(t, r.OutHex)
		require.Equal(t, i == 1, r.Fault != nil)
	}
	require.NotNil(t, rep.Right.Ranks[0].FNV1a64)
	require.Equal(t, int64(6), rep.Differing.Elements)
	require.Nil(t, rep.First.Left)
	require.NotNil(t, rep.First.Right)
	require.Nil(t, rep.RankAgreement.Left)
	require.True(t, *rep.RankAgreement.Right)
	require.Nil(t, rep.ULPHistogram)

	empty := run(t, &Runner{}, plain.side(), fault.side(), allReduce(api.F32, 2, 0))
	require.Equal(t, Diverge, empty.Verdict, "a call without elements can fault too")

	_, err := Run(context.Background(), fault.side(), fault.side(), allReduce(api.F32, 2, 3))
	var nothing *NothingCompared
	require.ErrorAs(t, err, &nothing)
	require.ErrorIs(t, err, api.ErrFault)
	require.ErrorContains(t, err, "left: fault: hang on rank 1, CTA 4: nobody signals; right: fault: hang")
}

// aborting is a team whose every wait ends as the error says.
type aborting struct {
	fake
	err    error
	opened int
}

func (a *aborting) Open(ctx context.Context, s api.Spec, cfg api.TeamConfig) (api.Team, error) {
	a.opened++
	t, err := a.fake.Open(ctx, s, cfg)
	return &abortingTeam{t.(*fakeTeam), a}, err
}

type abortingTeam struct {
	*fakeTeam
	a *aborting
}

func (t *abortingTeam) Members() []api.Member {
	var out []api.Member
	for _, m := range t.fakeTeam.Members() {
		out = append(out, &abortingMember{m.(*fakeMember), t.a})
	}
	return out
}

type abortingMember struct {
	*fakeMember
	a *aborting
}

func (m *abortingMember) Start(api.Call, api.Memory) (api.Pending, error) { return m, nil }
func (m *abortingMember) Wait(context.Context) (api.Outcome, error)       { return api.Outcome{}, m.a.err }

func TestAbortedCallsAreFaultsAndTheirTeamIsNotUsedAgain(t *testing.T) {
	a := &aborting{err: &api.Aborted{Rank: 1, Cause: 0, Reason: "rank 0 died"}}
	side := Side{a, api.Spec{Backend: "fake", Implementation: "plain"}}
	r := &Runner{}
	for range 2 {
		rep, err := r.Run(context.Background(), side, (&fake{}).side(), allReduce(api.F32, 2, 3))
		require.NoError(t, err)
		require.Equal(t, api.FaultAborted, rep.Left.Ranks[1].Fault.Kind)
		require.Contains(t, rep.Left.Ranks[1].Fault.Detail, "rank 0 is to blame")
	}
	require.Equal(t, 2, a.opened)
	a.err = errors.New("the wire is cut")
	_, err := r.Run(context.Background(), side, (&fake{}).side(), allReduce(api.F32, 2, 3))
	require.ErrorContains(t, err, "the wire is cut")
	a.err = &api.Refused{Spec: "s", What: "w", Reason: "r"}
	_, err = r.Run(context.Background(), side, (&fake{}).side(), allReduce(api.F32, 2, 3))
	require.ErrorIs(t, err, api.ErrRefused)
}

func TestRunRefusesWhatCannotBeRun(t *testing.T) {
	ok := (&fake{}).side()
	ctx := context.Background()
	_, err := Run(ctx, ok, ok, allReduce(api.F32, 0, 3))
	require.ErrorIs(t, err, api.ErrInvalid)
	_, err = Run(ctx, ok, ok, api.Call{Collective: api.AllReduce, DType: api.F32, Op: api.Sum, Ranks: 8, Count: 1 << 40})
	require.EqualError(t, err, `max-memory "8GiB": the buffers of this call need 163840.1GiB (allow more, or give a smaller count; explain needs no memory)`)
	_, err = Run(ctx, ok, ok, api.Call{Collective: api.AllToAll, DType: api.F64, Ranks: 1024, Count: 1 << 40})
	require.ErrorContains(t, err, "need more than")
	_, err = (&Runner{Input: inputs.Input{Kind: inputs.Normal}}).Run(ctx, ok, ok, allReduce(api.I32, 2, 3))
	require.ErrorIs(t, err, api.ErrInvalid)
	refusing := (&fake{refuse: &api.Refused{Spec: "a", What: "b", Reason: "c"}}).side()
	_, err = Run(ctx, ok, refusing, allReduce(api.F32, 2, 3))
	require.EqualError(t, err, "a refuses b: c")
	_, err = Run(ctx, (&planned{&fake{}, func(api.Call) (*api.Plan, error) { return nil, &api.Refused{Reason: "no plan"} }}).side(), ok, allReduce(api.F32, 2, 3))
	require.ErrorIs(t, err, api.ErrRefused)
}

func TestMemoryNeed(t *testing.T) {
	r := &Runner{MaxMemory: 1}
	blind, ok := (&fake{blind: true}).side(), (&planned{&fake{}, func(api.Call) (*api.Plan, error) { return &api.Plan{}, nil }}).side()
	for _, c := range []struct {
		l, r Side
		call api.Call
		need string
	}{
		// source and its pristine copy, and a destination for each of 2 or 3 runs
		{ok, ok, allReduce(api.U8, 1, 1024), "4.4KiB"},
		{ok, blind, allReduce(api.U8, 1, 1024), "5.5KiB"},
		{ok, ok, api.Call{Collective: api.ReduceScatter, DType: api.U8, Op: api.Sum, Ranks: 2, Count: 1 << 20, InPlace: api.InPlaceOwn}, "12.1MiB"},
	} {
		_, err := r.Run(context.Background(), c.l, c.r, c.call)
		require.ErrorContains(t, err, "need "+c.need+" (")
	}
}

func TestSizeText(t *testing.T) {
	for n, want := range map[int64]string{0: "0B", 1023: "1023B", 1024: "1KiB", 1025: "1.1KiB", 1 << 30: "1GiB", 1<<30 + 1: "1.1GiB", 1<<63 - 1: "8589934592GiB"} {
		require.Equal(t, want, sizeText(n))
	}
}

// TestEveryFormAgrees runs the fake against the definition on every collective,
// in place and out, with different offsets and several lanes.
func TestEveryFormAgrees(t *testing.T) {
	r := &Runner{Workers: 2}
	blind := &fake{blind: true}
	for _, c := range api.Collectives() {
		for _, form := range []api.InPlace{api.OutOfPlace, api.InPlaceOwn, api.InPlaceStart} {
			for _, count := range []int64{0, 1, 100} {
				call := call(c, api.I16, api.NoOp, 3, count)
				call.InPlace, call.SrcOffset, call.DstOffset = form, api.Offsets{5, 0, 1}, api.Offsets{5, 0, 1}
				if c.Reduces() {
					call.Op = api.Max
				}
				if api.IsMany(c) {
					call.Count, call.Many = 0, []api.LaneShape{{Count: count}, {Count: 0}, {DType: api.U8, Count: 9}}
				}
				if call.Validate() != nil {
					continue
				}
				for _, side := range []Side{(&fake{}).side(), blind.side()} {
					rep, err := r.Run(context.Background(), side, Definition(), call)
					require.NoError(t, err)
					require.Equal(t, Agree, rep.Verdict, "%s: %v", call.String(), rep.Causes)
					require.Nil(t, rep.ULPHistogram)
					require.Equal(t, c.Symmetric(), rep.RankAgreement != nil)
					unwritten, unreduced := rep.Left.Ranks[0].Unwritten, rep.Left.Ranks[0].Unreduced
					known := side.Backend != blind || form == api.OutOfPlace
					require.Equal(t, known, unwritten != nil)
					require.Equal(t, !known, unreduced != nil)
				}
			}
		}
	}
	require.NoError(t, r.Close(context.Background()))
}

// TestOrderFreeIsHeldToTheDefinition: two sides that agree on a wrong result
// break it.
func TestOrderFreeIsHeldToTheDefinition(t *testing.T) {
	in := inputs.Input{Kind: inputs.OrderFree, Seed: 1}
	sides := []Side{(&fake{}).side(), (&fake{order: reversed, scheme: num.Scheme{Order: num.Balanced, Acc: num.AccF64}}).side()}
	rep := run(t, &Runner{Input: in}, sides[0], sides[1], allReduce(api.F16, 5, 999))
	require.Equal(t, Agree, rep.Verdict)
	require.Equal(t, api.OrderFree, rep.Contract)
	wrong := (&fake{value: func(_ *execution, _, _ int, i int64, in []uint64, v uint64) uint64 {
		if i == 7 {
			return num.Eval(api.F16, num.Scheme{Op: api.Sum}, in[1:])
		}
		return v
	}}).side()
	rep = run(t, &Runner{Input: in}, wrong, wrong, allReduce(api.F16, 5, 999))
	require.Equal(t, Diverge, rep.Verdict)
	require.Equal(t, map[api.Cause]int64{api.CauseStale: 5}, classes(rep))
	holes := (&fake{skip: func(_ *api.Call, _, _ int, i int64) bool { return i == 998 }}).side()
	rep = run(t, &Runner{Input: in}, holes, holes, allReduce(api.F16, 5, 999))
	require.Equal(t, map[api.Cause]int64{api.OddTail: 5}, classes(rep))
	rep = run(t, &Runner{}, holes, holes, allReduce(api.F16, 5, 999))
	require.Equal(t, Agree, rep.Verdict, "equal holes are equal results")
}

func TestRunnerReopensForAnotherSide(t *testing.T) {
	r := &Runner{}
	ctx := context.Background()
	a, b := (&fake{}).side(), (&fake{value: func(_ *execution, _, _ int, _ int64, _ []uint64, v uint64) uint64 { return v + 1 }}).side()
	for _, side := range []Side{a, b, a} {
		rep, err := r.Run(ctx, side, a, allReduce(api.I32, 2, 3))
		require.NoError(t, err)
		require.Equal(t, side.Backend == a.Backend, rep.Holds())
	}
	for ranks := 1; ranks < 9; ranks++ { // more teams than are kept
		rep, err := r.Run(ctx, a, a, allReduce(api.I32, ranks, 3))
		require.NoError(t, err)
		require.True(t, rep.Holds())
	}
	require.NoError(t, r.Close(ctx))
}

// half is a backend that holds one rank of two.
type half struct{ fake }

func (h *half) Open(ctx context.Context, s api.Spec, cfg api.TeamConfig) (api.Team, error) {
	cfg.Ranks = 1
	return h.fake.Open(ctx, s, cfg)
}

func TestEveryRankMustBeHere(t *testing.T) {
	h := Side{&half{}, api.Spec{Backend: "fake", Implementation: "half"}}
	_, err := Run(context.Background(), h, h, allReduce(api.F32, 2, 3))
	require.ErrorIs(t, err, api.ErrUnavailable)
	require.ErrorContains(t, err, "this process holds 1 of 2 ranks")
}

func TestHostileIntervals(t *testing.T) {
	for _, iv := range []api.Interval{{Lane: 1}, {Lane: -1}, {Start: -1}, {End: 13}, {Start: 5, End: 4}} {
		c := allReduce(api.F32, 1, 3)
		_, err := fromIntervals(&c, [][]api.Interval{{iv}})
		require.Error(t, err, "%v", iv)
	}
}
