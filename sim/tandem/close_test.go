package tandem

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
	"example.com/tandem/sim/machine"
)

// frees is a host that frees what it closes, as soon as Close has returned: it
// overwrites the rank's team memory and the caller's buffers, unless they are
// leaked.
func frees(c *closer, call *api.Call, needs machine.Needs) []machine.Step {
	var steps []machine.Step
	for r := range c.ranks {
		steps = append(steps, machine.Step{Kind: machine.Test, Word: c.temp(cLeaked(r)), Cmp: machine.ZeroValue, Else: -1, Peer: machine.Nobody})
	}
	overwrite := func(dst machine.Ref, n int64) {
		steps = append(steps, machine.Step{Kind: machine.Copy, Dst: dst, Srcs: []machine.Ref{machine.At(c.rank, machine.Scratch, 0)}, Bytes: n, Peer: machine.Nobody})
	}
	for i := range call.Lanes() {
		size := int64(call.Lane(i).DType.Size())
		overwrite(machine.User(c.rank, machine.Src, i, 0), call.SrcElems(i)*size)
		overwrite(machine.User(c.rank, machine.Dst, i, 0), call.DstElems(i)*size)
	}
	overwrite(machine.At(c.rank, machine.Box, 0), needs.Box)
	return append(steps, machine.Step{Kind: machine.Stamp, Dst: machine.Lines(c.rank, c.rank, 0), Bytes: needs.Line, Value: 1, Peer: machine.Nobody})
}

// closing is one close in the middle of calls: the ranks that close start one,
// the others two.
type closing struct {
	params  string
	call    api.Call
	closers []int        // ranks that close; a rank may be there twice
	pause   int          // steps before they begin
	absent  map[int]bool // ranks that start nothing
	opt     machine.Options
}

// sleep makes a rank sleep.
func (x *closing) sleep(rank, step int) {
	x.opt.Inject = []machine.Injection{{Rank: rank, Step: step, Harm: machine.Delay, For: lateBy}}
}

// run closes and requires: no hang, nothing freed under anybody who still uses
// it, and no deadline passed but those of a sleeper.
func (x closing) run(t require.TestingT, change func(machine.Program) machine.Program) *Session {
	s := session(t, x.params, x.call.Ranks)
	calls := newRun(x.call.Ranks, []job{{x.params, x.call}, {x.params, x.call}}, rng(7))
	st := calls.launches(t, s)
	closers := make([][]closer, x.call.Ranks)
	for _, r := range x.closers {
		closers[r] = append(closers[r], closer{ranks: x.call.Ranks, rank: r, pause: x.pause})
		st[r] = st[r][:1]
	}
	for r := range x.absent {
		st[r] = nil
	}
	p := newScript(x.call.Ranks, []stream{st}, closers) // what it needs
	for _, r := range x.closers {
		closers[r][0].after = frees(&closers[r][0], &x.call, p.needs)
	}
	p = newScript(x.call.Ranks, []stream{st}, closers)
	s.change = func(p machine.Program) machine.Program { return addScratch(change(p)) }
	most := time.Duration(0)
	if len(x.opt.Inject) > 0 {
		most = 3*shortDeadline + lateBy
	}
	result, err := s.execute(p, calls.mem, x.opt)
	require.NoError(t, err)
	require.LessOrEqual(t, result.Now, most)
	for _, r := range x.closers {
		for i := range closers[r] {
			require.Equal(t, outcomeGood, s.machine.Word(closers[r][i].temp(cOutcome)), "rank %d", r)
		}
	}
	return s
}

// checkCloses closes on one rank, on all, and twice, under schedules in which
// calls run, are stuck, or have a peer that still reads and sleeps.
func checkCloses(t require.TestingT, change func(machine.Program) machine.Program) {
	random := rng(11)
	for _, params := range faultParams {
		for _, c := range faultCalls(3) {
			for _, closers := range [][]int{{1}, {0, 1, 2}, {2, 2}} {
				for kind := range 4 {
					x := closing{params: params, call: c, closers: closers, pause: random.IntN(150)}
					x.opt = machine.Options{Seeded: true, Seed: random.Uint64()}
					switch kind {
					case 0:
						x.absent = map[int]bool{random.IntN(3): true}
					case 1:
						x.absent = map[int]bool{0: closers[0] != 0, 1: closers[0] != 1, 2: closers[0] != 2}
						delete(x.absent, closers[0])
					case 2:
						x.sleep(random.IntN(3), random.IntN(100))
					}
					x.run(t, change)
				}
			}
		}
	}
}

func same(p machine.Program) machine.Program { return p }

func TestCloseWhileCallsRun(t *testing.T) { checkCloses(t, same) }

// TestCloseOfAStuckCallIsPrompt: no deadline has to pass.
func TestCloseOfAStuckCallIsPrompt(t *testing.T) {
	for _, params := range faultParams {
		x := closing{params: params, call: faultCalls(3)[0], closers: []int{0}, absent: map[int]bool{1: true}}
		s := x.run(t, same)
		require.Zero(t, s.last.Now)
	}
}

// TestCloseEndsStuckCalls is Close at the API: a call that a rank never starts.
func TestCloseEndsStuckCalls(t *testing.T) {
	c := faultCalls(3)[0]
	team := openTeam(t, "", 3)
	mem := memories(&c, rng(1))
	before := clone(&c, mem)
	ended := make(chan error, 2)
	for _, m := range team.Members()[:2] {
		p, err := m.Start(c, mem[m.Rank()])
		require.NoError(t, err)
		go func() {
			_, err := p.Wait(context.Background())
			ended <- err
		}()
	}
	begin := time.Now()
	require.NoError(t, team.Close(context.Background()))
	require.NoError(t, team.Close(context.Background()), "twice")
	for range 2 {
		err := <-ended
		var aborted *api.Aborted
		require.ErrorAs(t, err, &aborted)
		require.Equal(t, 2, aborted.Cause)
		require.ErrorContains(t, err, "rank 2 has not started the call when the team was closed")
	}
	require.Less(t, time.Since(begin), 5*time.Second)
	for r := range mem {
		require.Equal(t, before[r], mem[r], "nothing was written")
		_, err := team.Members()[r].Start(c, mem[r])
		require.ErrorIs(t, err, api.ErrAborted)
	}
}

// TestStaleLaunch: a kernel captured before Close ends with an error after it, and
// touches nothing.
func TestStaleLaunch(t *testing.T) {
	c := faultCalls(2)[0]
	s := session(t, "", 2)
	mem := memories(&c, rng(1))
	captured := make(stream, 2)
	for r := range captured {
		captured[r] = []*launch{s.launch(r, &c)}
	}
	_, err := s.execute(newScript(2, []stream{captured}, nil), mem, machine.Options{})
	require.NoError(t, err, "a first time it runs")
	require.NoError(t, s.Close(machine.Options{}))
	require.NoError(t, s.Close(machine.Options{}))
	require.EqualError(t, s.Poisoned(1), "aborted on rank 1: the team is closed")
	before := clone(&c, mem)
	_, err = s.execute(newScript(2, []stream{captured}, nil), mem, machine.Options{})
	require.NoError(t, err)
	for r, l := range captured {
		require.Equal(t, statusStale, s.machine.Word(l[0].temp(tStatus(l[0].grid, 0))))
		require.Equal(t, outcomeFailed, s.machine.Word(l[0].temp(tOutcome)))
		require.Equal(t, before[r], mem[r])
	}
}

// TestReplay: a captured launch runs again and again, epoch after epoch.
func TestReplay(t *testing.T) {
	c := api.Call{Collective: api.AllReduce, DType: num.F32, Op: num.Sum, Ranks: 2, Count: 50}
	s := session(t, "?ctas=2", 2)
	captured := make(stream, 2)
	for r := range captured {
		captured[r] = []*launch{s.launch(r, &c)}
	}
	random := rng(9)
	for range 5 {
		mem := memories(&c, random)
		before := clone(&c, mem)
		_, err := s.execute(newScript(2, []stream{captured}, nil), mem, machine.Options{})
		require.NoError(t, err)
		checkResult(t, &c, schemeOf(t, "", &c), before, mem)
	}
}

// TestCloseNamesWhatLeaks: a rank that stopped in the middle of a call keeps the
// others' memory from being freed.
func TestCloseNamesWhatLeaks(t *testing.T) {
	c := faultCalls(2)[0]
	s := session(t, "?path=direct&ctas=1", 2)
	mem := memories(&c, rng(1))
	steps := stepsOf(t, "?path=direct&ctas=1", &c)
	inject := []machine.Injection{{Rank: 1, Step: steps[1] / 2, Harm: machine.Stop}}
	_, errs := s.Run(machine.Options{Inject: inject}, []*api.Call{&c, &c}, mem, "")
	var aborted *api.Aborted
	require.ErrorAs(t, errs[0], &aborted)
	require.Equal(t, []string{
		"team memory of rank 0 (by ranks [1])", "source of lane 0 of rank 0 at 0x1000000000000000",
	}, aborted.Leaked)
	err := s.Close(machine.Options{})
	require.ErrorAs(t, err, &aborted)
	require.Equal(t, []string{"team memory of rank 0, which rank 1 may still touch"}, aborted.Leaked)
	require.True(t, errors.Is(err, api.ErrAborted))
}
