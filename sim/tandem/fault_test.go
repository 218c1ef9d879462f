package tandem

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
	"example.com/tandem/sim"
	"example.com/tandem/sim/machine"
)

// The deadlines of the fault tests, and how late a rank resumes.
const (
	shortDeadline = 20 * time.Millisecond
	lateBy        = 200 * time.Millisecond
)

func session(t require.TestingT, params string, ranks int) *Session {
	s, err := openSession(spec(t, params), api.TeamConfig{Ranks: ranks, Arrive: shortDeadline, Progress: shortDeadline})
	require.NoError(t, err)
	return s
}

// reuse is a caller who reads his destination and overwrites his source as soon
// as the call has returned, unless he was told to leak them. What a kernel does
// to them unordered is then a race.
func reuse(l *launch) []machine.Step {
	var steps []machine.Step
	for p := range l.ranks() {
		steps = append(steps, machine.Step{Kind: machine.Test, Word: l.temp(tLeaked(l.ranks(), l.grid, p)), Cmp: machine.ZeroValue, Else: -1, Peer: machine.Nobody})
	}
	for i := range l.call.Lanes() {
		size := int64(l.call.Lane(i).DType.Size())
		src, dst := l.call.SrcElems(i)*size, l.call.DstElems(i)*size
		lane := int(l.laneBase) + i
		steps = append(steps, machine.Step{Kind: machine.Copy, Dst: machine.At(l.rank, machine.Scratch, 0), Srcs: []machine.Ref{machine.User(l.rank, machine.Dst, lane, 0)}, Bytes: dst, Peer: machine.Nobody})
		if l.inPlace == api.OutOfPlace {
			steps = append(steps, machine.Step{Kind: machine.Copy, Dst: machine.User(l.rank, machine.Src, lane, 0), Srcs: []machine.Ref{machine.At(l.rank, machine.Scratch, 0)}, Bytes: src, Peer: machine.Nobody})
		}
	}
	return steps
}

// writes is a caller who writes his source just before he starts the call, the
// values that are there already.
func writes(l *launch) []machine.Step {
	var steps []machine.Step
	for i := range l.call.Lanes() {
		src := machine.User(l.rank, machine.Src, int(l.laneBase)+i, 0)
		steps = append(steps, machine.Step{Kind: machine.Copy, Dst: src, Srcs: []machine.Ref{src}, Bytes: l.call.SrcElems(i) * int64(l.call.Lane(i).DType.Size()), Peer: machine.Nobody})
	}
	return steps
}

// withScratch gives a program scratch for the caller.
type withScratch struct{ machine.Program }

func (p withScratch) Needs() machine.Needs {
	n := p.Program.Needs()
	n.Scratch = 4096
	return n
}

func addScratch(p machine.Program) machine.Program { return withScratch{p} }

// faultCall is a call of the fault tests: every collective, small, on a path.
func faultCalls(ranks int) []api.Call {
	var out []api.Call
	for _, k := range api.Collectives() {
		c := api.Call{Collective: k, DType: num.BF16, Ranks: ranks, Count: 37}
		if k.Reduces() {
			c.Op = num.Sum
		}
		if k.Rooted() {
			c.Root = ranks - 1
		}
		if api.IsMany(k) {
			c.Count, c.Many = 0, []api.LaneShape{{Count: 9}, {DType: num.F32, Count: 5}}
		}
		out = append(out, c)
	}
	return out
}

var faultParams = []string{
	"?path=push&ctas=1", "?path=push&ctas=2", "?path=direct&ctas=1", "?path=direct&ctas=2&stage=1024&buffers=staged",
	"?path=two_shot&ctas=2", "?path=two_shot&ctas=1&buffers=staged",
}

// outcome of one run with an injection.
type trial struct {
	params string
	call   api.Call
	inject machine.Injection
	opt    machine.Options
	change func(machine.Program) machine.Program // nil changes nothing
}

func (x trial) String() string {
	harm := [...]string{machine.Fail: "fails", machine.Stop: "stops", machine.Delay: "sleeps"}[x.inject.Harm]
	return fmt.Sprintf("%s %v: rank %d %s at step %d, seed %d", x.params, x.call, x.inject.Rank, harm, x.inject.Step, x.opt.Seed)
}

// run executes the trial and requires: no hang, no race, all ranks well and right
// or every rank with an error that blames the harmed one, nothing outside the
// destinations changed. It reports whether the call failed.
func (x trial) run(t require.TestingT) bool {
	s := session(t, x.params, x.call.Ranks)
	s.filler, s.caller, s.change = writes, reuse, addScratch
	if x.change != nil {
		s.change = func(p machine.Program) machine.Program { return addScratch(x.change(p)) }
	}
	mem := memories(&x.call, rng(3))
	before := clone(&x.call, mem)
	x.opt.Inject = []machine.Injection{x.inject}
	calls := make([]*api.Call, x.call.Ranks)
	for r := range calls {
		calls[r] = &x.call
	}
	_, errs := s.Run(x.opt, calls, mem, "")
	for r := range mem { // the caller has overwritten sources
		for i := range mem[r] {
			if x.call.InPlace == api.OutOfPlace {
				copy(mem[r][i].Src.Bytes, before[r][i].Src.Bytes)
			}
		}
	}
	failed := errs[0] != nil
	if !failed {
		checkResult(t, &x.call, schemeOf(t, x.params, &x.call), before, mem)
	} else {
		checkUntouched(t, &x.call, before, mem)
	}
	switch x.inject.Harm {
	case machine.Fail:
		require.Zero(t, s.last.Now, "%v: everybody is told at once", x)
	case machine.Stop: // both deadlines, and one for the rank that stopped to leave
		require.LessOrEqual(t, s.last.Now, 3*shortDeadline, "%v", x)
	case machine.Delay:
		require.LessOrEqual(t, s.last.Now, 3*shortDeadline+lateBy, "%v", x)
	}
	for r, err := range errs {
		require.Equal(t, failed, err != nil, "%v: rank %d: %v", x, r, errs)
		if !failed {
			continue
		}
		var aborted *api.Aborted
		require.True(t, errors.As(err, &aborted), "%v: rank %d: %v", x, r, err)
		require.Equal(t, x.inject.Rank, aborted.Cause, "%v: rank %d: %v, chain %v", x, r, err, aborted.Chain)
		require.Error(t, s.Poisoned(r))
	}
	return failed
}

// stepsOf is how many steps each rank takes when nothing happens.
func stepsOf(t require.TestingT, params string, c *api.Call) []int {
	s := session(t, params, c.Ranks)
	s.filler, s.caller, s.change = writes, reuse, addScratch
	var steps []int
	inner := s.change
	s.change = func(p machine.Program) machine.Program { return inner(p) }
	mem := memories(c, rng(3))
	launches := make(stream, c.Ranks)
	for r := range launches {
		launches[r] = []*launch{s.launch(r, c)}
	}
	res, err := s.execute(newScript(c.Ranks, []stream{launches}, nil), mem, machine.Options{})
	require.NoError(t, err)
	return append(steps, res.Steps...)
}

// TestFailEveryStep harms each rank at each of its steps.
func TestFailEveryStep(t *testing.T) {
	for _, params := range faultParams {
		for _, c := range faultCalls(2) {
			steps := stepsOf(t, params, &c)
			failed, total := 0, 0
			for rank, n := range steps {
				for step := range n {
					if testing.Short() && step%23 != 0 {
						continue
					}
					for _, harm := range []machine.Harm{machine.Fail, machine.Stop, machine.Delay} {
						x := trial{params: params, call: c, inject: machine.Injection{Rank: rank, Step: step, Harm: harm, For: lateBy}}
						if total++; x.run(t) {
							failed++
						}
					}
				}
			}
			t.Logf("%s %v: %d of %d failed", params, c, failed, total)
		}
	}
}

// pick is how many cases a test tries, and how many under -short.
func pick(full, short int) int {
	if testing.Short() {
		return short
	}
	return full
}

// TestFailSampledSteps harms random ranks at random steps under random
// schedules.
func TestFailSampledSteps(t *testing.T) {
	for _, ranks := range []int{2, 3, 4, 8} {
		random := rng(uint64(ranks))
		for _, params := range faultParams {
			for _, c := range faultCalls(ranks) {
				steps := stepsOf(t, params, &c)
				for i := range pick(30, 2) {
					rank := random.IntN(ranks)
					x := trial{params: params, call: c, inject: machine.Injection{
						Rank: rank, Step: random.IntN(steps[rank]), Harm: machine.Harm(1 + i%3), For: lateBy,
					}, opt: machine.Options{Seeded: true, Seed: random.Uint64()}}
					x.run(t)
				}
			}
		}
	}
}

// TestNewTeam: at the API, after a failed call every rank has its error, the team
// is dead for good, and a new one works.
func TestNewTeam(t *testing.T) {
	ctx := context.Background()
	backend := sim.New(Family{})
	for _, c := range faultCalls(3) {
		team, err := backend.Open(ctx, spec(t, ""), api.TeamConfig{Ranks: 3, Arrive: shortDeadline, Progress: shortDeadline})
		require.NoError(t, err)
		team.(*sim.Team).Schedule(machine.Options{Inject: []machine.Injection{{Rank: 1, Step: 17, Harm: machine.Stop}}})
		mem := memories(&c, rng(1))
		before := clone(&c, mem)
		var pending []api.Pending
		for _, m := range team.Members() {
			p, err := m.Start(c, mem[m.Rank()])
			require.NoError(t, err)
			pending = append(pending, p)
		}
		for r, p := range pending {
			_, err := p.Wait(ctx)
			var aborted *api.Aborted
			require.ErrorAs(t, err, &aborted, "rank %d", r)
			require.Equal(t, r, aborted.Rank)
			require.Equal(t, 1, aborted.Cause)
		}
		checkUntouched(t, &c, before, mem)
		for r, m := range team.Members() {
			_, err := m.Start(c, mem[r])
			require.ErrorContains(t, err, "the team was aborted in an earlier call")
		}
		require.ErrorContains(t, team.Close(ctx), "must be leaked")

		team, err = backend.Open(ctx, spec(t, ""), api.TeamConfig{Ranks: 3})
		require.NoError(t, err)
		mem = memories(&c, rng(2))
		before = clone(&c, mem)
		_, err = api.Run(ctx, team, c, mem)
		require.NoError(t, err)
		checkResult(t, &c, schemeOf(t, "", &c), before, mem)
		require.NoError(t, team.Close(ctx))
	}
}
