package tandem

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
	"example.com/tandem/sim/machine"
)

// epochJob is a pushed all_reduce of 4-byte elements.
func epochJob(count int64, ctas int) job {
	return job{fmt.Sprintf("?path=push&ctas=%d", ctas), api.Call{Collective: api.AllReduce, DType: num.U32, Op: num.Sum, Ranks: 2, Count: count}}
}

// checkEpochs crosses 2^30, 2^31 and 2^32, with lines last written just before
// and others last written long ago.
func checkEpochs(t require.TestingT, change func(machine.Program) machine.Program) {
	for seed := range uint64(60) {
		s := session(t, "", 2)
		s.change = change
		random := rng(seed)
		opt := machine.Options{Seeded: true, Seed: seed}
		do := func(jobs ...job) { newRun(2, jobs, random).do(t, s, opt) }
		// Lines that are written now, far into the boxes, and looked at again
		// only when the flags have gone round.
		const old = 20
		s.setEpoch(old)
		do(epochJob(3000, 1), epochJob(3000, 1))
		for k := uint64(1); k <= 4; k++ {
			s.setEpoch(k<<30 - 2)
			do(epochJob(40, 1), epochJob(5, 2), epochJob(70, 1), epochJob(0, 1), epochJob(40, 2), epochJob(7, 1), epochJob(40, 1))
			for r := range 2 {
				want := k<<30 + 5
				if k == 4 {
					want += skipEpoch // the epoch whose flag would be 0, and the next
				}
				require.Equal(t, want, s.machine.Word(ref(r, wEpoch)))
			}
		}
		// Once round: the flags of those lines would be those of these calls,
		// and a rank that sleeps while it sends would not be waited for.
		opt = machine.Options{Inject: []machine.Injection{{Rank: 1, Step: 10 + int(seed), Harm: machine.Delay, For: time.Millisecond}}}
		s.setEpoch(1<<32 + old)
		do(epochJob(3000, 1), epochJob(3000, 1))
	}
}

func TestEpochs(t *testing.T) { checkEpochs(t, same) }

// TestEpochsOfEveryPath crosses the places where flags are short, on every path.
func TestEpochsOfEveryPath(t *testing.T) {
	for _, start := range []uint64{1<<30 - 2, 1<<31 - 2, 1<<32 - 2, 1<<33 - 2, 1<<36 - 2} {
		for seed := range uint64(4) {
			s := session(t, "", 3)
			random := rng(seed)
			newRun(3, randomJobs(random, 3, 2, 60), random).do(t, s, machine.Options{})
			s.setEpoch(start)
			newRun(3, randomJobs(random, 3, 8, 60), random).do(t, s, machine.Options{Seeded: true, Seed: seed})
		}
	}
}

// checkGrids alternates grids and sizes on one team whose lines are never reset:
// a block that counts for itself takes lines of an earlier call for its own.
func checkGrids(t require.TestingT, change func(machine.Program) machine.Program) {
	s := session(t, "", 2)
	s.change = change
	random := rng(2)
	for seed := range uint64(10) {
		newRun(2, []job{epochJob(512, 1), epochJob(512, 2), epochJob(512, 1), epochJob(512, 2)}, random).do(t, s, machine.Options{Seeded: true, Seed: seed})
	}
}

// checkMismatch starts two calls that differ.
func checkMismatch(t require.TestingT, change func(machine.Program) machine.Program) {
	a, b := epochJob(64, 1).call, epochJob(64, 1).call
	b.Op = num.Max
	s := session(t, "", 2)
	s.change = change
	mem := memories(&a, rng(1))
	_, errs := s.Run(machine.Options{}, []*api.Call{&a, &b}, mem, "")
	for _, err := range errs {
		require.ErrorIs(t, err, api.ErrMismatch)
	}
}
