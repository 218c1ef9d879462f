package tandem

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
	"example.com/tandem/sim/machine"
)

// checkTwoCalls runs two calls of one team at once, on two streams: they are
// found out, nobody hangs, and neither returns a wrong result. It reports how
// often they met.
func checkTwoCalls(t require.TestingT, change func(machine.Program) machine.Program) (met int) {
	for seed := range uint64(60) {
		params := faultParams[seed%uint64(len(faultParams))]
		c := faultCalls(2)[seed%7]
		s := session(t, params, 2)
		s.change = change
		x := newRun(2, []job{{params, c}, {params, c}}, rng(seed))
		both := x.launches(t, s)
		a, b := make(stream, 2), make(stream, 2)
		for r := range both {
			a[r], b[r] = both[r][:1], both[r][1:]
		}
		_, err := s.execute(newScript(2, []stream{a, b}, nil), x.mem, machine.Options{Seeded: true, Seed: seed})
		require.NoError(t, err)
		bad := false
		for r := range 2 {
			for _, st := range []stream{a, b} {
				if s.machine.Word(st[r][0].temp(tOutcome)) != outcomeGood {
					bad = true
				}
			}
			why, _ := readState(s.machine.Word(ref(r, wState)))
			require.Contains(t, []cause{causeNone, causeTwoCalls, causeHeader, causeLines, causeReady, causeShare, causeDone, causeAborted}, why)
		}
		if bad {
			met++
		}
	}
	return met
}

func TestTwoCallsAtOnce(t *testing.T) {
	require.Greater(t, checkTwoCalls(t, same), 30)
}

// TestTwoCallsAreNamed: what every rank is told.
func TestTwoCallsAreNamed(t *testing.T) {
	c := faultCalls(2)[0]
	for seed := range uint64(20) {
		s := session(t, "?path=direct", 2)
		x := newRun(2, []job{{"?path=direct", c}, {"?path=direct", c}}, rng(seed))
		both := x.launches(t, s)
		a, b := make(stream, 2), make(stream, 2)
		for r := range both {
			a[r], b[r] = both[r][:1], both[r][1:]
		}
		_, err := s.execute(newScript(2, []stream{a, b}, nil), x.mem, machine.Options{Seeded: true, Seed: seed})
		require.NoError(t, err)
		v := verdict{Session: s, launches: a, mem: x.mem}
		named := 0
		for r, err := range v.errors() {
			var aborted *api.Aborted
			require.ErrorAs(t, err, &aborted, "rank %d", r)
			if aborted.Reason == fmt.Sprintf("rank %d ran two calls of the team at once", aborted.Cause) {
				named++
			}
		}
		if named == 2 {
			return
		}
	}
	t.Fatal("no schedule named them")
}

// TestMismatch: calls that differ in anything that must agree end in an error
// that prints both, on every rank, and nothing is written.
func TestMismatch(t *testing.T) {
	base := api.Call{Collective: api.AllReduce, DType: num.BF16, Op: num.Sum, Ranks: 3, Count: 64}
	with := func(f func(*api.Call)) api.Call { c := base; f(&c); return c }
	for _, params := range []string{"", "?path=direct", "?path=two_shot&ctas=2", "?path=direct&buffers=staged"} {
		for name, other := range map[string]api.Call{
			"collective": with(func(c *api.Call) { c.Collective = api.ReduceScatter }),
			"copy":       with(func(c *api.Call) { c.Collective, c.Op = api.AllGather, num.None }),
			"dtype":      with(func(c *api.Call) { c.DType = num.F16 }),
			"op":         with(func(c *api.Call) { c.Op = num.Max }),
			"count":      with(func(c *api.Call) { c.Count = 1 << 16 }),
			"empty":      with(func(c *api.Call) { c.Count = 0 }),
			"mode":       with(func(c *api.Call) { c.Mode = modeF32 }),
			"lanes": with(func(c *api.Call) {
				c.Collective, c.Count, c.Many = api.ReduceScatterMany, 0, []api.LaneShape{{Count: 3}, {Count: 4}}
			}),
		} {
			for odd := range 3 {
				for _, opt := range []machine.Options{{}, {Seeded: true, Seed: uint64(odd)}} {
					s := session(t, params, 3)
					calls, mem, before := make([]*api.Call, 3), make([]api.Memory, 3), make([]api.Memory, 3)
					for r := range calls {
						if calls[r] = &base; r == odd {
							calls[r] = &other
						}
						mem[r] = memories(calls[r], rng(1))[r]
						before[r] = cloneRank(calls[r], r, mem[r])
					}
					_, errs := s.Run(opt, calls, mem, "")
					for r, err := range errs {
						var m *api.Mismatch
						require.ErrorAs(t, err, &m, "%s %s rank %d", params, name, r)
						require.Equal(t, r, m.Rank)
						require.Equal(t, calls[r].String(), m.Call)
						require.Equal(t, calls[m.Other].String(), m.OtherCall)
						require.NotEqual(t, m.CallHash, m.OtherHash)
						require.Equal(t, r != odd, m.Other == odd)
						require.Equal(t, before[r][0].Dst.Bytes, mem[r][0].Dst.Bytes, "%s: nothing is written", name)
						require.ErrorIs(t, s.Poisoned(r), api.ErrAborted)
					}
				}
			}
		}
	}
}

// TestWhatMayDiffer: offsets and in-place forms are a rank's own affair.
func TestWhatMayDiffer(t *testing.T) {
	for _, params := range faultParams {
		calls := make([]*api.Call, 3)
		mem, before := make([]api.Memory, 3), make([]api.Memory, 3)
		for r := range calls {
			c := api.Call{Collective: api.AllReduce, DType: num.BF16, Op: num.Sum, Ranks: 3, Count: 70, SrcOffset: api.Offsets{int64(r)}, DstOffset: api.Offsets{int64(r)}}
			if r == 1 {
				c.InPlace = api.InPlaceOwn
			}
			calls[r] = &c
			mem[r] = memories(&c, rng(uint64(r)))[r]
			before[r] = cloneRank(&c, r, mem[r])
		}
		s := session(t, params, 3)
		_, errs := s.Run(machine.Options{}, calls, mem, "")
		require.Equal(t, []error{nil, nil, nil}, errs)
		for r := range calls {
			require.Equal(t, expect(calls[r], s.scheme(calls[r]), before, r, 0), mem[r][0].Dst.Payload())
		}
	}
}

// TestMissingRank: a rank that never comes is named, in virtual time at once and
// at the API after the arrive deadline.
func TestMissingRank(t *testing.T) {
	c := faultCalls(3)[0]
	for absent := range 3 {
		s := session(t, "", 3)
		mem := memories(&c, rng(1))
		before := clone(&c, mem)
		calls := []*api.Call{&c, &c, &c}
		calls[absent], mem[absent] = nil, nil
		_, errs := s.Run(machine.Options{}, calls, mem, "")
		require.GreaterOrEqual(t, s.last.Now, shortDeadline)
		require.Less(t, s.last.Now, 2*shortDeadline)
		for r, err := range errs {
			var aborted *api.Aborted
			require.ErrorAs(t, err, &aborted)
			require.Equal(t, absent, aborted.Cause)
			require.ErrorContains(t, err, fmt.Sprintf("rank %d has not started the call", absent))
			if r != absent {
				require.Equal(t, before[r], mem[r])
				require.Empty(t, aborted.Leaked, "who has not come in cannot touch anything")
			}
		}
	}

	team := openTeam(t, "", 3)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	mem := memories(&c, rng(1))
	p, err := team.Members()[1].Start(c, mem[1])
	require.NoError(t, err)
	_, err = p.Wait(ctx)
	require.ErrorContains(t, err, "rank 2 has not started the call when a rank stopped waiting")
	_, err = team.Members()[0].Start(c, mem[0])
	require.ErrorContains(t, err, "the team was aborted in an earlier call")
}

// shifted is a program for the ranks from a first one on.
type shifted struct {
	machine.Program
	by int
}

func (p shifted) Step(s *machine.Step, rank, cta, i int) {
	p.Program.Step(s, rank, cta, i)
	refs := []*machine.Ref{&s.Dst, &s.Word, &s.Base, &s.Aborts[0], &s.Aborts[1]}
	for j := range s.Srcs {
		refs = append(refs, &s.Srcs[j])
	}
	for j := range s.More {
		refs = append(refs, &s.More[j])
	}
	for _, r := range refs {
		if r.Space != machine.Nothing {
			r.Rank += int32(p.by)
		}
	}
	if s.Peer >= 0 {
		s.Peer += p.by
	}
}

// teams are two disjoint teams of two ranks on one machine of four.
type teams struct{ a, b machine.Program }

func (p teams) of(rank int) (machine.Program, int) {
	if rank < 2 {
		return p.a, rank
	}
	return p.b, rank - 2
}

func (p teams) CTAs() int { return max(p.a.CTAs(), p.b.CTAs()) }

func (p teams) Needs() machine.Needs {
	n, m := p.a.Needs(), p.b.Needs()
	return machine.Needs{
		Scratch: 4096, Box: max(n.Box, m.Box), Line: max(n.Line, m.Line), Words: max(n.Words, m.Words), Temps: max(n.Temps, m.Temps),
	}
}

func (p teams) Len(rank, cta int) int {
	q, r := p.of(rank)
	if cta >= q.CTAs() {
		return 0
	}
	return q.Len(r, cta)
}

func (p teams) Step(s *machine.Step, rank, cta, i int) {
	q, r := p.of(rank)
	q.Step(s, r, cta, i)
}

// TestDisjointTeams: of two teams that run at the same time one is harmed at each
// of its steps; the other is right and returns no error.
func TestDisjointTeams(t *testing.T) {
	failures := 0
	for _, params := range faultParams {
		c := faultCalls(2)[len(params)%7]
		steps := stepsOf(t, params, &c)
		for rank, n := range steps {
			for step := range n {
				a, b := session(t, params, 2), session(t, params, 2)
				b.machine = machine.New(machine.Config{Ranks: 4, Arrive: shortDeadline, Progress: shortDeadline})
				a.machine = b.machine
				for r := range 4 {
					b.machine.SetWord(ref(r, wEpoch), firstEpoch)
				}
				mem := append(memories(&c, rng(1)), memories(&c, rng(2))...)
				before := clone(&c, mem[2:])
				launches := [2]stream{make(stream, 2), make(stream, 2)}
				for r := range 4 {
					s := []*Session{a, b}[r/2]
					launches[r/2][r%2] = []*launch{s.launch(r%2, &c)}
				}
				p := teams{newScript(2, launches[:1], nil), shifted{newScript(2, launches[1:], nil), 2}}
				harm := []machine.Harm{machine.Fail, machine.Stop, machine.Delay}[step%3]
				_, err := b.machine.Run(p, mem, machine.Options{Seeded: step%2 == 0, Seed: uint64(step), Inject: []machine.Injection{{Rank: rank, Step: step, Harm: harm, For: lateBy}}})
				require.NoError(t, err)
				for r := range 2 {
					if a.machine.Word(launches[0][r][0].temp(tOutcome)) != outcomeGood {
						failures++
					}
					l := launches[1][r][0]
					require.Equal(t, outcomeGood, b.machine.Word(machine.At(2+r, machine.Temp, l.temps+tOutcome)))
				}
				checkResult(t, &c, schemeOf(t, params, &c), before, mem[2:])
			}
		}
	}
	require.Greater(t, failures, 100)
}

// checkFaults is a small part of the fault tests; a failed kernel is known to all
// at once.
func checkFaults(t require.TestingT, change func(machine.Program) machine.Program) {
	for _, params := range faultParams {
		for _, c := range faultCalls(3)[:3] {
			steps := stepsOf(t, params, &c)
			for step := range steps[1] {
				for i, harm := range []machine.Harm{machine.Fail, machine.Stop, machine.Delay} {
					x := trial{params: params, call: c, change: change, inject: machine.Injection{Rank: 1, Step: step, Harm: harm, For: lateBy}}
					x.opt = machine.Options{Seeded: i == step%3, Seed: uint64(step)}
					x.run(t)
				}
			}
		}
	}
}

// checkStreams is a small part of the stream tests, with callers who reuse their
// buffers.
func checkStreams(t require.TestingT, change func(machine.Program) machine.Program) {
	for _, ranks := range []int{2, 3} {
		random := rng(uint64(ranks))
		for seed := range uint64(25) {
			s := session(t, "", ranks)
			s.filler, s.caller = writes, reuse
			s.change = func(p machine.Program) machine.Program { return addScratch(change(p)) }
			newRun(ranks, randomJobs(random, ranks, 6, 40), random).do(t, s, machine.Options{Seeded: true, Seed: seed, Inject: naps(random, ranks)})
		}
	}
}
