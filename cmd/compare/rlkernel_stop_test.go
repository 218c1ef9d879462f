package main

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/cmd/compare/internal/child"
	"example.com/tandem/hw"
	"example.com/tandem/hw/host"
	hwrl "example.com/tandem/hw/rlkernel"
)

// misaligned is the call that faults, on rank 1.
var misaligned = api.Call{Collective: api.AllReduce, DType: api.BF16, Op: api.Sum, Ranks: 2, Count: 258, DstOffset: api.Offsets{0, 1}}

// TestPTXRLKernelFault: the misaligned pair store is refused before anything is
// launched, and with allow_fault=1 it is a fault of the right rank; in a child
// process as well, which the parent outlives.
func TestPTXRLKernelFault(t *testing.T) {
	ctx := t.Context()
	run := func(team api.Team, call api.Call) error {
		mem := make([]api.Memory, call.Ranks)
		for r := range mem {
			mem[r] = rlMemory(&call, r, nil)
		}
		_, err := api.Run(ctx, team, call, mem)
		return err
	}
	good := misaligned
	good.DstOffset = nil
	config := api.TeamConfig{Ranks: 2, Arrive: 50 * time.Millisecond, Progress: 50 * time.Millisecond}
	open := func(params string, how func(api.Spec) (api.Team, error)) api.Team {
		spec, err := api.ParseSpec("ptx:rlkernel@8ccb03c?" + rlRoom + params)
		require.NoError(t, err)
		team, err := how(spec)
		require.NoError(t, err)
		return team
	}
	b := rlVirtual(t, 2, nil)
	here := func(spec api.Spec) (api.Team, error) { return b.Open(ctx, spec, config) }
	team := open("", here)
	err := run(team, misaligned)
	require.ErrorIs(t, err, api.ErrRefused)
	require.ErrorContains(t, err, "allow_fault=1")
	require.NoError(t, run(team, good), "the team is as good as before")
	require.NoError(t, team.Close(ctx))

	exe, err := os.Executable()
	require.NoError(t, err)
	there := func(spec api.Spec) (api.Team, error) {
		return child.Open(ctx, exe, []string{"compare", "child"}, spec, config)
	}
	for name, how := range map[string]func(api.Spec) (api.Team, error){"here": here, "in a child": there} {
		team := open("&allow_fault=1", how)
		require.NoError(t, run(team, good), name)
		var fault *api.Fault
		require.ErrorAs(t, run(team, misaligned), &fault, name)
		require.Equal(t, api.FaultMisaligned, fault.Kind, name)
		require.Equal(t, 1, fault.Rank, name)
		require.Error(t, run(team, good), "%s: nothing runs in a lost context", name)
		_ = team.Close(ctx)
	}
	_ = b.Close()
}

// TestPTXRLKernelDeadlines: where the library would wait for ever, all ranks end
// with an error.
func TestPTXRLKernelDeadlines(t *testing.T) {
	withoutRaceDetector(t)
	stopRanks(t, rlVirtual(t, 2, nil), 10*time.Millisecond, sampled(7, 20))
}

// stopRanks stops or delays a rank at steps of every path, one of so many. All
// ranks end with an error that names it, and a new team works.
func stopRanks(t *testing.T, b *hw.Backend, deadline time.Duration, every int) {
	sum := api.Call{Collective: api.AllReduce, DType: api.BF16, Op: api.Sum, Ranks: 4, Count: 40}
	scatter, gather, many := sum, sum, sum
	scatter.Collective = api.ReduceScatter
	gather.Collective, gather.Op = api.AllGather, api.NoOp
	many.Collective, many.Op, many.Count, many.Many = api.AllGatherMany, api.NoOp, 0, []api.LaneShape{{Count: 5}, {Count: 9}}
	blamed, ended := 0, 0
	for i, c := range []rlCase{
		{"8ccb03c", "", sum}, {"8ccb03c", "&path=multi", sum}, {"8ccb03c", "&entry=extension", sum}, {"8ccb03c", "", scatter}, {"8ccb03c", "&path=multi", scatter},
		{"43f150f", "", gather}, {"43f150f", "&path=multi", gather}, {"8ccb03c", "", many},
	} {
		for _, step := range hwrl.Steps() {
			// Followers of rank 0 wait for it, not for the payloads.
			extension := c.params == "&entry=extension"
			if step == hwrl.StepOwned && !extension || step == hwrl.StepWait && extension || (i+int(step))%every != 0 {
				continue
			}
			for _, delay := range []time.Duration{0, 4 * deadline} {
				if stopRank(t, b, c, hwrl.Fault{Rank: 2, Step: step, Delay: delay}, deadline) {
					blamed++
				} else {
					ended++
				}
			}
		}
	}
	t.Logf("%d calls named the right rank, %d ended well in spite of a delay", blamed, ended)
	require.Positive(t, blamed)
}

// stopRank tells whether the call failed, as it must where the rank was stopped
// for good.
func stopRank(t *testing.T, b *hw.Backend, c rlCase, f hwrl.Fault, deadline time.Duration) (failed bool) {
	t.Helper()
	what := fmt.Sprintf("%s, %v, delay %v", c, f.Step, f.Delay)
	spec, err := api.ParseSpec(b.Name() + ":rlkernel@" + c.version + "?" + rlRoom + c.params)
	require.NoError(t, err)
	team, err := b.Open(t.Context(), spec, api.TeamConfig{Ranks: 4, Arrive: deadline, Progress: deadline})
	require.NoError(t, err)
	team.(*host.Team).Engine().(*hwrl.Engine).Inject(&f)
	errs := eachRank(t, team, c.call)
	if failed = errs[0] != nil; failed {
		for r, err := range errs {
			var a *api.Aborted
			require.ErrorAs(t, err, &a, what)
			require.Equal(t, f.Rank, a.Cause, "rank %d: %s: %v", r, what, err)
			require.Equal(t, r, a.Rank, what)
		}
		require.ErrorIs(t, eachRank(t, team, c.call)[0], api.ErrAborted, "the team stays poisoned: %s", what)
	} else {
		require.Positive(t, f.Delay, "a rank that was stopped did not fail: %s", what)
	}
	require.NoError(t, team.Close(t.Context()), what)
	fresh, err := b.Open(t.Context(), spec, api.TeamConfig{Ranks: 4})
	require.NoError(t, err, what)
	for _, err := range eachRank(t, fresh, c.call) {
		require.NoError(t, err, what)
	}
	require.NoError(t, fresh.Close(t.Context()))
	return failed
}

func eachRank(t testing.TB, team api.Team, call api.Call) []error {
	t.Helper()
	var pending []api.Pending
	errs := make([]error, call.Ranks)
	for r, m := range team.Members() {
		p, err := m.Start(call, rlMemory(&call, r, nil))
		errs[r] = err
		pending = append(pending, p)
	}
	for r, p := range pending {
		if p != nil {
			_, errs[r] = p.Wait(t.Context())
		}
	}
	return errs
}
