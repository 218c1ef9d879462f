package sim_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"example.com/tandem/api"
	"example.com/tandem/sim"
	"example.com/tandem/sim/machine"
	"github.com/stretchr/testify/require"
)

// ran is a session that executes its calls itself and writes down what it was
// asked.
type ran struct {
	sim.Session
	patience time.Duration
	refuse   error
	started  [][]bool
	whys     []string
	closes   int
}

func (r *ran) Check(int, *api.Call, api.Memory) error { return r.refuse }
func (r *ran) Patience() time.Duration                { return r.patience }
func (r *ran) Close(machine.Options) error            { r.closes++; return errors.New("leaks") }

func (r *ran) Run(_ machine.Options, calls []*api.Call, _ []api.Memory, why string) ([]api.Outcome, []error) {
	came := make([]bool, len(calls))
	errs := make([]error, len(calls))
	for rank, c := range calls {
		if came[rank] = c != nil; why != "" {
			errs[rank] = errors.New(why)
		}
	}
	r.started, r.whys = append(r.started, came), append(r.whys, why)
	return make([]api.Outcome, len(calls)), errs
}

type ranFamily struct{ session *ran }

func (ranFamily) Name() string                                         { return "ran" }
func (ranFamily) Implementations() []api.Implementation                { return nil }
func (ranFamily) Plan(api.Spec, api.Call) (*api.Plan, error)           { return nil, errors.New("no plan") }
func (f ranFamily) Open(api.Spec, api.TeamConfig) (sim.Session, error) { return f.session, nil }

func TestRunner(t *testing.T) {
	ctx := context.Background()
	call := api.Call{Collective: api.AllGather, DType: api.U8, Ranks: 2, Count: 1}
	mem := func() api.Memory { return api.MemoryOf([]uint8{1}, make([]uint8, 2)) }
	open := func(s *ran) (api.Team, []api.Member) {
		team, err := sim.New(ranFamily{s}).Open(ctx, api.Spec{Implementation: "ran"}, api.TeamConfig{Ranks: 2})
		require.NoError(t, err)
		return team, team.Members()
	}
	both, first := []bool{true, true}, []bool{true, false}

	s := &ran{patience: time.Hour}
	team, m := open(s)
	_, err := api.Run(ctx, team, call, []api.Memory{mem(), mem()})
	require.NoError(t, err)
	p, err := m[0].Start(call, mem())
	require.NoError(t, err)
	gone, cancel := context.WithCancel(ctx)
	cancel()
	_, err = p.Wait(gone)
	require.EqualError(t, err, "a rank stopped waiting")
	_, err = m[0].Start(call, mem())
	require.NoError(t, err)
	require.EqualError(t, team.Close(ctx), "leaks")
	require.NoError(t, team.Close(ctx), "a second time there is nothing to do")
	require.Equal(t, [][]bool{both, first, first}, s.started)
	require.Equal(t, []string{"", "a rank stopped waiting", "the team was closed"}, s.whys)
	require.Equal(t, 1, s.closes)

	s = &ran{patience: time.Millisecond}
	_, m = open(s)
	p, err = m[1].Start(call, mem())
	require.NoError(t, err)
	_, err = p.Wait(ctx)
	require.EqualError(t, err, "its deadline passed")

	s = &ran{refuse: errors.New("not this one")}
	_, m = open(s)
	_, err = m[0].Start(call, mem())
	require.EqualError(t, err, "not this one")
	require.Empty(t, s.started)
}
