package rlkernel

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/sim"
	"example.com/tandem/sim/machine"
)

// attempt runs a call with fresh buffers and returns what every rank returned.
func attempt(t tb, team *sim.Team, call api.Call, harm ...machine.Injection) (*rig, []error) {
	r := newRig(call, anyBits(3))
	team.Schedule(machine.Options{Inject: harm})
	_, errs := r.run(t, team)
	team.Schedule(machine.Options{})
	return r, errs
}

// warm is a team that has compared the signatures of these calls already.
func warm(t tb, version string, calls ...api.Call) *sim.Team {
	team := openTeam(t, version, calls[0].Ranks)
	for _, call := range calls {
		_, errs := attempt(t, team, call)
		require.NoError(t, errors.Join(errs...))
	}
	return team
}

func isHang(t tb, err error, names ...string) {
	var f *api.Fault
	require.ErrorAs(t, err, &f)
	require.Equal(t, api.FaultHang, f.Kind, f.Detail)
	for _, n := range names {
		require.Contains(t, f.Detail, n)
	}
}

func isAborted(t tb, err error, rank int, text string) {
	var f *api.Fault
	require.ErrorAs(t, err, &f)
	require.Equal(t, api.FaultAborted, f.Kind, f.Detail)
	require.Equal(t, rank, f.Rank)
	require.Contains(t, f.Detail, text)
}

// TestInterruptedStage is B87: an exception on rank 1 after the staging of an
// all-gather of 128 KiB of output. Its peer completes the call; afterwards the
// rank refuses every fused call and its peer hangs in each, by name.
// reduce_scatter does not look at the flag and hangs on itself.
func TestInterruptedStage(t *testing.T) {
	call := gatherCall(2, 65536)
	many := api.Call{Collective: api.AllGatherMany, DType: api.U8, Ranks: 2, Many: []api.LaneShape{{Count: 10}}}
	fused := []api.Call{call, gatherCall(2, 8), reduceCall(api.AllReduce, api.BF16, 2, 64), reduceCall(api.AllReduce, api.F32, 2, 100000), many}
	for _, next := range fused {
		team := warm(t, After, call)
		r, errs := attempt(t, team, call, machine.Injection{Rank: 1, Step: 1, Harm: machine.Fail})
		require.NoError(t, errs[0], "the peer completes this call")
		isAborted(t, errs[1], 1, "an exception after 1 of 4 launches (after stage); the staged input stays pending")
		require.Equal(t, r.sources[0][0], r.mem[0][0].Dst.Payload()[:65536])
		require.Equal(t, r.sources[1][0], r.mem[0][0].Dst.Payload()[65536:], "what was staged is read")
		r.intact(t)
		for range 2 { // and again
			_, errs = attempt(t, team, next)
			isHang(t, errs[0], "rank 0", "for rank 1")
			var refused *api.Refused
			require.ErrorAs(t, errs[1], &refused)
			require.Contains(t, refused.Error(), "rank 1 has a staged input pending")
		}
	}

	team := warm(t, After, call)
	_, _ = attempt(t, team, call, machine.Injection{Rank: 1, Step: 1, Harm: machine.Fail})
	_, errs := attempt(t, team, reduceCall(api.ReduceScatter, api.F32, 2, 5))
	isHang(t, errs[0], "device synchronisation", "(stage: has it retired?)", "for rank 1; rank 1 again: a cycle")
	isHang(t, errs[1], "for rank 1")

	// Before, it is one launch: there is nothing between staging and the rest.
	for step, want := range map[int]string{0: "an exception after 0 of 1 launches (before any); nothing is pending", 1: "an exception after 1 of 1 launches (after fused); nothing is pending"} {
		team := warm(t, Before, call)
		_, errs := attempt(t, team, call, machine.Injection{Rank: 1, Step: step, Harm: machine.Fail})
		isAborted(t, errs[1], 1, want)
		if step == 0 {
			isHang(t, errs[0], "for rank 1") // its peer waits in this very call
			continue
		}
		require.NoError(t, errs[0])
		for _, next := range fused {
			_, errs = attempt(t, team, next)
			require.NoError(t, errors.Join(errs...))
		}
	}
}

// TestManyHidesItsFailure: all_gather_many never sets the flag, so after an
// exception behind its publish the host sees nothing wrong, and the next call
// hangs.
func TestManyHidesItsFailure(t *testing.T) {
	call := api.Call{Collective: api.AllGatherMany, DType: api.U8, Ranks: 2, Many: []api.LaneShape{{Count: 10}, {Count: 6}}}
	team := warm(t, After, call)
	_, errs := attempt(t, team, call, machine.Injection{Rank: 0, Step: 6, Harm: machine.Fail})
	require.NoError(t, errs[1])
	isAborted(t, errs[0], 0, "an exception after 6 of 10 launches (after wait); nothing is pending on the host")
	_, errs = attempt(t, team, call)
	isHang(t, errs[0], "for rank 0; rank 0 again: a cycle")
	isHang(t, errs[1])
}

// TestLostContext: the misaligned store kills one rank's context; the others
// hang in the next call, and rank 1 has no more calls.
func TestLostContext(t *testing.T) {
	call := reduceCall(api.AllReduce, api.BF16, 4, 10)
	call.DstOffset = api.Offsets{0, 1, 0, 2}
	for _, version := range both {
		team := openTeam(t, version, 4)
		_, errs := attempt(t, team, call)
		for _, err := range errs {
			require.ErrorIs(t, err, api.ErrFault)
		}
		call.DstOffset = nil
		_, errs = attempt(t, team, call)
		isHang(t, errs[0], "for rank 1", "rank 1")
		isHang(t, errs[2], "rank 1")
		isHang(t, errs[3], "rank 1")
		var f *api.Fault
		require.ErrorAs(t, errs[1], &f)
		require.Equal(t, api.FaultMisaligned, f.Kind)
		require.Contains(t, f.Detail, "lost in an earlier call")
		call.DstOffset = api.Offsets{0, 1, 0, 2}
	}
}

// TestLateCheck: the extension looks at reduce_scatter's type after staging.
func TestLateCheck(t *testing.T) {
	const version = After + "?entry=extension"
	bad := reduceCall(api.ReduceScatter, api.I32, 2, 5)
	p := mustPlan(t, version, bad)
	require.Equal(t, api.FaultAborted, p.Fault.Kind)
	for _, next := range []api.Call{
		reduceCall(api.ReduceScatter, api.F32, 2, 5), reduceCall(api.AllReduce, api.F32, 2, 5),
		{Collective: api.AllGatherMany, DType: api.U8, Ranks: 2, Many: []api.LaneShape{{Count: 10}}},
	} {
		team := openTeam(t, version, 2)
		_, errs := attempt(t, team, bad)
		isAborted(t, errs[0], 0, "after staging")
		isAborted(t, errs[1], 1, "after staging")
		_, errs = attempt(t, team, next)
		for _, err := range errs {
			if api.IsMany(next.Collective) {
				require.ErrorIs(t, err, api.ErrRefused, "the one entry point that checks the flag")
			} else {
				isHang(t, err, "for rank 0; rank 0 again: a cycle")
			}
		}
	}
}

// TestSignatures: ranks that start different calls are told so the first time,
// and never again.
func TestSignatures(t *testing.T) {
	a, b := reduceCall(api.AllReduce, api.F32, 2, 100), reduceCall(api.AllReduce, api.F32, 2, 101)
	start := func(team *sim.Team, calls ...api.Call) []error {
		r := newRig(calls[0], anyBits(1))
		r.mem[1] = newRig(calls[1], anyBits(1)).mem[1]
		_, errs := r.runAs(t, team, calls)
		return errs
	}
	for _, version := range both {
		team := openTeam(t, version, 2)
		for range 2 { // nothing was staged, so it can be tried again
			errs := start(team, a, b)
			for _, err := range errs {
				var m *api.Mismatch
				require.ErrorAs(t, err, &m)
				require.Contains(t, m.Error(), "--count 101")
				require.NotEqual(t, m.CallHash, m.OtherHash)
			}
		}
		require.NoError(t, errors.Join(start(team, a, a)...))

		// One rank compares, the other has seen its signature before.
		errs := start(team, a, b)
		isHang(t, errs[0], "rank 1 compares its signature in an all_gather_object that rank 0")
		isHang(t, start(team, a, a)[1], "rank 1")

		// Both have: nothing is compared.
		team = warm(t, version, a, b)
		require.ErrorIs(t, start(team, a, b)[0], api.ErrRefused)
		require.NoError(t, errors.Join(start(team, b, b)...))

		// Other dtype, other collective.
		c := reduceCall(api.AllReduce, api.F16, 2, 100)
		require.ErrorIs(t, start(openTeam(t, version, 2), a, c)[0], api.ErrMismatch)
		require.ErrorIs(t, start(openTeam(t, version, 2), a, gatherCall(2, 4))[1], api.ErrMismatch)

		// Without the comparison nobody knows.
		team = openTeam(t, version+"?validate_signature=off", 2)
		require.ErrorIs(t, start(team, a, b)[0], api.ErrRefused)
		require.NoError(t, errors.Join(start(team, a, a)...))
	}
}

// TestBuffersAreEachRanksAffair: offsets and in-place forms are no part of the
// signature.
func TestBuffersAreEachRanksAffair(t *testing.T) {
	a := reduceCall(api.AllReduce, api.F32, 2, 100)
	b := a
	b.InPlace = api.InPlaceOwn
	r, other := newRig(a, anyBits(5)), newRig(b, anyBits(5))
	r.mem[1] = other.mem[1]
	_, errs := r.runAs(t, openTeam(t, After, 2), []api.Call{a, b})
	require.NoError(t, errors.Join(errs...))
	require.Equal(t, r.mem[0][0].Dst.Payload(), r.mem[1][0].Dst.Payload())
}

// TestHostsMeet: an exception between the two launches of reduce_scatter, at
// the host barrier, leaves the peers' hosts waiting there.
func TestHostsMeet(t *testing.T) {
	call := reduceCall(api.ReduceScatter, api.BF16, 4, 9)
	met := 0
	for step := range 60 {
		team := warm(t, After, call)
		_, errs := attempt(t, team, call, machine.Injection{Rank: 2, Step: step, Harm: machine.Fail})
		if errs[2] == nil || !strings.Contains(errs[2].Error(), "after 1 of 2 launches") {
			continue
		}
		isAborted(t, errs[2], 2, "(after stage); the staged input stays pending")
		for _, r := range []int{0, 1, 3} {
			isHang(t, errs[r], "group barrier", "rank 2")
		}
		met++
	}
	require.Equal(t, 3, met, "at the synchronisation, at the barrier, at the second launch")
}

// stepCalls are one call for every path.
func stepCalls(version string) []api.Call {
	calls := []api.Call{
		reduceCall(api.AllReduce, api.BF16, 2, 5), reduceCall(api.ReduceScatter, api.F16, 2, 7),
		{Collective: api.AllGatherMany, DType: api.U8, Ranks: 2, Many: []api.LaneShape{{Count: 3}, {DType: api.F64, Count: 2}}},
	}
	if version == After { // the others have the same plans
		calls = append(calls, reduceCall(api.AllReduce, api.F32, 2, 65537), reduceCall(api.ReduceScatter, api.F32, 2, 32769), gatherCall(2, 262145))
	}
	if !strings.Contains(version, "extension") {
		calls = append(calls, gatherCall(2, 65536), gatherCall(2, 3),
			api.Call{Collective: api.ReduceScatterMany, DType: api.F32, Op: api.Sum, Ranks: 2, Many: []api.LaneShape{{Count: 3}, {DType: api.BF16, Count: 2}}})
	}
	return calls
}

// TestHarmAtEveryStep makes rank 1 fail or stop at every step of every path.
// Whatever happens is an error of a known kind that names the rank, ranks
// without an error have the right bytes, nothing outside a destination changes,
// the team does not hang for real afterwards, and a new team works.
func TestHarmAtEveryStep(t *testing.T) {
	runs, stride := 0, 1
	if testing.Short() {
		stride = 13
	}
	for _, version := range append(both, After+"?entry=extension") {
		for _, call := range stepCalls(version) {
			for _, harm := range []machine.Harm{machine.Fail, machine.Stop} {
				for _, rank := range []int{0, 1} {
					for step := 0; ; step += stride {
						runs++
						if !harmed(t, version, call, machine.Injection{Rank: rank, Step: step, Harm: harm}) {
							break
						}
						require.Less(t, step, 200)
					}
				}
			}
		}
	}
	require.Greater(t, runs, 500/stride)
}

// harmed reports whether the call was long enough for the injection to matter.
func harmed(t tb, version string, call api.Call, in machine.Injection) bool {
	what := fmt.Sprintf("%s %s, rank %d, step %d, harm %d", version, call, in.Rank, in.Step, in.Harm)
	team := warm(t, version, call)
	r, errs := attempt(t, team, call, in)
	r.intact(t)
	if errors.Join(errs...) == nil {
		r.right(t, 1+call.Count/100)
		_, errs = attempt(t, team, call)
		require.NoError(t, errors.Join(errs...), what)
		return false
	}
	require.ErrorIs(t, errs[in.Rank], api.ErrFault, what)
	peer := 1 - in.Rank
	if errs[peer] != nil {
		isHang(t, errs[peer], fmt.Sprintf("rank %d", in.Rank))
	} else {
		one := *r
		one.mem, one.sources = r.mem, r.sources
		checkRank(t, &one, peer)
	}
	// The call after it ends, well or with errors of a known kind.
	next, errs := attempt(t, team, call)
	next.intact(t)
	for _, err := range errs {
		if err != nil && !errors.Is(err, api.ErrFault) && !errors.Is(err, api.ErrRefused) {
			t.Fatalf("%s: afterwards %v", what, err)
		}
	}
	if errors.Join(errs...) == nil {
		next.right(t, 1+call.Count/100)
	}
	if in.Step%4 != 0 {
		return true
	}
	fresh, errs := attempt(t, openTeam(t, version, call.Ranks), call)
	require.NoError(t, errors.Join(errs...), what)
	fresh.right(t, 1+call.Count/100)
	return true
}

// checkRank holds one rank's outputs to the definition.
func checkRank(t tb, r *rig, rank int) {
	only := *r
	only.mem = make([]api.Memory, len(r.mem))
	only.mem[rank] = r.mem[rank]
	only.right(t, 1+r.call.Count/100)
}

// TestDelaysChangeNothing: late ranks, any schedule, the same bytes.
func TestDelaysChangeNothing(t *testing.T) {
	for _, version := range append(both, After+"?entry=extension") {
		for _, call := range stepCalls(version) {
			for seed := range uint64(20) {
				if testing.Short() && seed > 2 {
					break
				}
				r := newRig(call, anyBits(seed))
				team := openTeam(t, version, call.Ranks)
				opt := seeded(seed)
				for rank := range call.Ranks {
					opt.Inject = append(opt.Inject, machine.Injection{Rank: rank, Step: int(mix(seed+uint64(rank)) % 9), Harm: machine.Delay, For: 1000})
				}
				team.Schedule(opt)
				_, errs := r.run(t, team)
				require.NoError(t, errors.Join(errs...))
				r.right(t, 1+call.Count/500)
			}
		}
	}
}

// TestOneTeamManyCalls: paths, sizes and collectives alternate on one team, and
// the sequence numbers go with them; the same call gives the same bits again.
func TestOneTeamManyCalls(t *testing.T) {
	for _, version := range append(both, After+"?entry=extension") {
		team := openTeam(t, version, 2)
		calls := stepCalls(version)
		for i := range 120 {
			call := calls[int(mix(uint64(i))%uint64(len(calls)))]
			if call.Count > 1000 && i%8 != 0 {
				continue
			}
			r := newRig(call, anyBits(uint64(i)))
			_, errs := r.run(t, team)
			require.NoError(t, errors.Join(errs...), "%s, call %d", call, i)
			r.right(t, 1+call.Count/50)
		}
		call := reduceCall(api.AllReduce, api.BF16, 2, 100)
		var first []byte
		for range 50 {
			r := newRig(call, anyBits(7))
			_, errs := r.run(t, team)
			require.NoError(t, errors.Join(errs...))
			out := r.mem[1][0].Dst.Payload()
			if first == nil {
				first = out
			}
			require.Equal(t, first, out)
		}
	}
}
