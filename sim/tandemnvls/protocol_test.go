package tandemnvls_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
	"example.com/tandem/sim"
	"example.com/tandem/sim/machine"
	"example.com/tandem/sim/tandemnvls"
)

// TestTandemCallsAreTandems: a call that the switch cannot do has tandem's bits,
// on the same team as calls that it can.
func TestTandemCallsAreTandems(t *testing.T) {
	team, err := sim.New(tandemnvls.Family{}).Open(t.Context(), specOf(nil), api.TeamConfig{Ranks: 4})
	require.NoError(t, err)
	call := api.Call{Collective: api.AllReduce, DType: api.BF16, Op: api.Sum, Ranks: 4, Count: 1000}
	prod := call
	prod.Op = api.Prod
	value := func(rank int, i int64) uint64 { return uint64(0x3F80 + rank*int(i)%7) }
	for range 3 {
		checkCall(t, team, nil, call, 0, sampled)
		mem := memoryOf(&prod, value)
		_, err := api.Run(t.Context(), team, prod, mem)
		require.NoError(t, err)
		for i := range prod.Count {
			in := []uint64{value(0, i), value(1, i), value(2, i), value(3, i)}
			require.Equal(t, num.Eval(api.BF16, num.Scheme{Op: api.Prod, Order: num.Balanced}, in), num.Load(api.BF16, mem[2][0].Dst.Payload()[2*i:]))
		}
	}
	// Different calls are a mismatch, and the team ends.
	mem := memoryOf(&call, value)
	members := team.Members()
	var pending []api.Pending
	for r, m := range members {
		c := call
		if r == 2 {
			c.Op = api.Min
		}
		p, err := m.Start(c, mem[r])
		require.NoError(t, err)
		pending = append(pending, p)
	}
	_, err = pending[0].Wait(t.Context())
	require.ErrorIs(t, err, api.ErrMismatch)
	_, err = members[1].Start(call, mem[1])
	require.ErrorIs(t, err, api.ErrAborted)
}

// TestFaults: a rank that fails or stops anywhere ends the call on every rank
// by a deadline, with that rank named, and the team stays dead.
func TestFaults(t *testing.T) {
	call := api.Call{Collective: api.AllReduce, DType: api.BF16, Op: api.Sum, Ranks: 3, Count: 1001}
	value := func(rank int, i int64) uint64 { return 0x3F80 }
	for step := 0; ; step++ {
		team, err := sim.New(tandemnvls.Family{}).Open(t.Context(), specOf(map[string]string{"ctas": "2"}), api.TeamConfig{Ranks: 3})
		require.NoError(t, err)
		team.(*sim.Team).Schedule(machine.Options{Inject: []machine.Injection{{Rank: 1, Step: step, Harm: machine.Stop}}})
		mem := memoryOf(&call, value)
		_, err = api.Run(t.Context(), team, call, mem)
		if err == nil {
			require.Greater(t, step, 20, "the rank ended before it could be stopped")
			return
		}
		var aborted *api.Aborted
		require.ErrorAs(t, err, &aborted)
		require.Equal(t, 1, aborted.Cause, "step %d", step)
		_, err = team.Members()[0].Start(call, mem[0])
		require.ErrorIs(t, err, api.ErrAborted)
		require.Less(t, step, 1000)
	}
}

// TestEverySynchronisationMatters: without the wait, or without the proxy fences,
// of any synchronisation but the one at the end the machine finds a race.
func TestEverySynchronisationMatters(t *testing.T) {
	for _, c := range []api.Collective{api.AllReduce, api.ReduceScatter, api.AllGather} {
		call := api.Call{Collective: c, DType: api.BF16, Ranks: 2, Count: 1000}
		if c.Reduces() {
			call.Op = api.Sum
		}
		spec := specOf(map[string]string{"stage": "1024", "ctas": "1"})
		session, err := tandemnvls.Family{}.Open(spec, api.TeamConfig{Ranks: 2})
		require.NoError(t, err)
		plan, err := tandemnvls.Family{}.Plan(spec, call)
		require.NoError(t, err)
		program, err := session.Program(plan)
		require.NoError(t, err)
		// A schedule in which the peer is ahead can hide what is missing.
		broken := func(p machine.Program) (err error) {
			for seed := uint64(0); err == nil && seed < 60; seed++ {
				mem := memoryOf(&call, func(int, int64) uint64 { return 0x3F80 })
				_, err = machine.New(machine.Config{Ranks: 2}).Run(p, mem, machine.Options{Seeded: true, Seed: seed})
			}
			return err
		}
		require.NoError(t, broken(program))
		var waits []int
		for i := range program.Len(0, 0) {
			var s machine.Step
			if program.Step(&s, 0, 0, i); s.Kind == machine.Wait {
				waits = append(waits, i)
			}
		}
		require.Greater(t, len(waits), 4, "several chunks")
		last := len(waits) - 1
		if c == api.ReduceScatter {
			last-- // nothing follows the one at the end of the last chunk either
		}
		first := 0
		if c == api.AllGather {
			first++ // the entry: nothing of this call was written before it
		}
		for _, i := range waits[first:last] {
			var race *machine.Race
			require.ErrorAs(t, broken(machine.Without(machine.Without(program, 0, 0, i), 1, 0, i)), &race, "%s: no wait at %d", c.Name(), i)
			unfenced := program
			for rank := range 2 {
				unfenced = machine.Without(machine.Without(unfenced, rank, 0, i-2), rank, 0, i+1)
			}
			require.ErrorAs(t, broken(unfenced), &race, "%s: no fences around %d", c.Name(), i)
		}
	}
}
