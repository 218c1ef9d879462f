package rlkernel

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/tandem/api"
	"example.com/tandem/sim/machine"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestRunsAsDefined: random calls, versions, entries, offsets of every rank,
// in-place forms and schedules give the definition's bytes, or the fault that
// the plan foresaw, and plan and run agree on what is written.
func TestRunsAsDefined(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		version := rapid.SampledFrom([]string{Before, After, After + "?copy=peerwise", Before + "?entry=extension", After + "?entry=extension"}).Draw(t, "version")
		call := drawCall(t, 300<<10/8)
		plan, err := Plan(spec(t, version), call)
		if err != nil {
			require.ErrorIs(t, err, api.ErrRefused)
			return
		}
		team := openTeam(t, version, call.Ranks)
		if rapid.Bool().Draw(t, "explore") {
			team.Schedule(seeded(rapid.Uint64().Draw(t, "seed")))
		}
		r := newRig(call, anyBits(rapid.Uint64().Draw(t, "data")))
		outs, errs := r.run(t, team)
		if plan.Fault != nil {
			require.Equal(t, error(plan.Fault), errs[plan.Fault.Rank])
			r.intact(t)
			return
		}
		require.NoError(t, errors.Join(errs...))
		r.right(t, rapid.Int64Range(1, 97).Draw(t, "stride"))
		r.whole(t, outs)
	})
}

// TestMachineFindsTheMisalignedStore: the steps fault where the planner says,
// though nobody tells them.
func TestMachineFindsTheMisalignedStore(t *testing.T) {
	for _, offsets := range []api.Offsets{{0, 1}, {1, 0}, {2, 3}, {2, 4}, nil} {
		call := reduceCall(api.AllReduce, api.BF16, 2, 6)
		call.DstOffset = offsets
		p := mustPlan(t, After, call)
		r := newRig(call, anyBits(1))
		_, err := newMachine(2).Run(NewProgram(p, Conditions{}), r.mem, machine.Options{})
		if p.Fault == nil {
			require.NoError(t, err)
			continue
		}
		var f *api.Fault
		require.ErrorAs(t, err, &f)
		require.Equal(t, p.Fault.Kind, f.Kind)
		require.Equal(t, p.Fault.Rank, f.Rank)
	}
}

func newMachine(ranks int) *machine.Machine {
	return machine.New(machine.Config{Ranks: ranks})
}

// twoTurns is a plan of two turns of the handshake over one payload, without
// the host barriers, which would hide what the handshake is for.
func twoTurns(t *testing.T, counts ...int64) *api.Plan {
	call := api.Call{Collective: api.ReduceScatterMany, DType: api.F32, Op: api.Sum, Ranks: 4}
	for _, n := range counts {
		call.Many = append(call.Many, api.LaneShape{Count: n})
	}
	p := mustPlan(t, After, call)
	kernels := p.Kernels[:0]
	for _, k := range p.Kernels {
		if k.Name != opBarrier.String() {
			kernels = append(kernels, k)
		}
	}
	p.Kernels = kernels
	return p
}

// TestEveryWaitIsNeeded leaves out one step of the stream after another. With
// any poll of a peer, any publish or any retire gone, some schedule races or
// hangs; nothing of the handshake is there in vain. And no host barrier is
// needed: without a step left out every schedule is right.
func TestEveryWaitIsNeeded(t *testing.T) {
	plan := twoTurns(t, 3, 5)
	prog := NewProgram(plan, Conditions{})
	run := func(p machine.Program, seed uint64) error {
		r := newRig(plan.Call, anyBits(seed))
		_, err := newMachine(4).Run(p, r.mem, seeded(seed))
		if err == nil {
			r.right(t, 1)
		}
		return err
	}
	for seed := range uint64(50) {
		require.NoError(t, run(prog, seed))
	}
	left, first := 0, true // turn
	for i := range prog.Len(2, ctaStream) {
		it := prog.list[2][ctaStream][i]
		turn := first
		first = first && it.do != doRetire
		switch {
		case it.do == doPoll && it.peer == 2, it.do == doPoll && it.from == wordDone && turn:
			continue // itself; or a payload that nobody has used yet
		case it.do != doPoll && it.do != doPublish && it.do != doRetire:
			continue
		case it.do == doRetire && !turn:
			continue // for the next call
		}
		left++
		var found error
		for seed := uint64(0); seed < 200 && found == nil; seed++ {
			found = run(machine.Without(prog, 2, ctaStream, i), seed)
		}
		require.Error(t, found, "step %d (%s) can be left out", i, it.op)
		var race *machine.Race
		if !errors.As(found, &race) {
			isHang(t, found)
		}
	}
	require.Equal(t, 3+3+3+2+1, left, "polls of stage in two turns, of done in the second, publishes, a retire")
}

// TestProgramExecutesThePlan: what is taken out of the plan is not done.
func TestProgramExecutesThePlan(t *testing.T) {
	call := gatherCall(4, 1000)
	p := mustPlan(t, After, call)
	slices := p.Kernels[0].CTAs[0].Slices
	p.Kernels[0].CTAs[0].Slices = append(slices[:5:5], slices[6:]...) // rank 1's copy of rank 1
	r := newRig(call, anyBits(2))
	result, err := newMachine(4).Run(NewProgram(p, Conditions{}), r.mem, machine.Options{})
	require.NoError(t, err)
	require.Equal(t, []api.Interval{{End: 1000}, {Start: 2000, End: 4000}}, result.Written[1])
	require.Equal(t, bytes.Repeat([]byte{poison}, 1000), r.mem[1][0].Dst.Payload()[1000:2000])
}

// TestTraces are whole executions as text: a fused call, and an interrupted
// one with the call after it.
func TestTraces(t *testing.T) {
	var b bytes.Buffer
	m := newMachine(2)
	show := func(title string, call api.Call, cond Conditions, harm ...machine.Injection) {
		r := newRig(call, anyBits(1))
		result, err := m.Run(NewProgram(mustPlan(t, After, call), cond), r.mem, machine.Options{Trace: true, Inject: harm})
		b.WriteString("# " + title + "\n" + result.Trace)
		if err != nil {
			b.WriteString(err.Error() + "\n")
		}
	}
	show("all_reduce of 5 bf16 in one block", reduceCall(api.AllReduce, api.BF16, 2, 5), Conditions{Compare: true})
	call := gatherCall(2, 65536)
	show("all_gather of 128 KiB: an exception on rank 1 after staging", call, Conditions{}, machine.Injection{Rank: 1, Step: 1, Harm: machine.Fail})
	show("the call after it, which rank 1 refuses", call, Conditions{Refuse: []bool{false, true}})
	const file = "testdata/traces.txt"
	if *update {
		require.NoError(t, os.WriteFile(file, b.Bytes(), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), b.String())
}
