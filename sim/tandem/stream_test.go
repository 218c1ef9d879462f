package tandem

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
	"example.com/tandem/sim/machine"
)

// job is one call of a stream and the parameters it is planned with.
type job struct {
	params string
	call   api.Call
}

// run is jobs one after another on one team, in one run of the machine, so that
// fast ranks run ahead of slow ones from call to call.
type run struct {
	jobs   []job
	mem    []api.Memory // of all jobs, by rank
	before []api.Memory
}

// newRun fills the sources of jobs.
func newRun(ranks int, jobs []job, random *rand.Rand) *run {
	x := &run{jobs: jobs, mem: make([]api.Memory, ranks), before: make([]api.Memory, ranks)}
	for _, j := range jobs {
		mem := memories(&j.call, random)
		old := clone(&j.call, mem)
		for r := range mem {
			shift := uint64(len(x.mem[r])) * api.LaneStride
			for i := range mem[r] {
				mem[r][i].Src.Addr += shift
				mem[r][i].Dst.Addr += shift
			}
			x.mem[r] = append(x.mem[r], mem[r]...)
			x.before[r] = append(x.before[r], old[r]...)
		}
	}
	return x
}

// launches are the jobs of a run on every rank.
func (x *run) launches(t require.TestingT, s *Session) stream {
	st := make(stream, s.ranks)
	base := int32(0)
	for _, j := range x.jobs {
		cfg, err := parseConfig(spec(t, j.params))
		require.NoError(t, err)
		own := s.config
		s.config, s.known = cfg, nil
		for r := range st {
			l := s.launch(r, &j.call)
			l.laneBase = base
			st[r] = append(st[r], l)
		}
		s.config, s.known = own, nil
		base += int32(j.call.Lanes())
	}
	return st
}

// do executes the run and requires every result.
func (x *run) do(t require.TestingT, s *Session, opt machine.Options) {
	st := x.launches(t, s)
	p := newScript(s.ranks, []stream{st}, nil)
	p.stamps()
	_, err := s.execute(p, x.mem, opt)
	require.NoError(t, err)
	for r := range st {
		for k, l := range st[r] {
			require.Equal(t, outcomeGood, s.machine.Word(l.temp(tOutcome)), "rank %d, call %d: %s", r, k, stateText(s.machine.Word(ref(r, wState))))
		}
	}
	lane := 0
	for _, j := range x.jobs {
		n := j.call.Lanes()
		before, after := make([]api.Memory, s.ranks), make([]api.Memory, s.ranks)
		for r := range after {
			before[r], after[r] = x.before[r][lane:lane+n], x.mem[r][lane:lane+n]
			if s.caller != nil && j.call.InPlace == api.OutOfPlace { // who has overwritten his sources
				for i := range after[r] {
					copy(after[r][i].Src.Bytes, before[r][i].Src.Bytes)
				}
			}
		}
		checkResult(t, &j.call, schemeOf(t, j.params, &j.call), before, after)
		lane += n
	}
}

// randomCall is a small valid call.
func randomCall(random *rand.Rand, ranks int, most int64) api.Call {
	for {
		all := api.Collectives()
		c := api.Call{Collective: all[random.IntN(len(all))], Ranks: ranks, Count: random.Int64N(most)}
		types := api.DTypes()
		c.DType = types[random.IntN(len(types))]
		if c.Collective.Reduces() {
			ops := api.Ops()
			c.Op = ops[random.IntN(len(ops))]
		}
		if c.Collective.Rooted() {
			c.Root = random.IntN(ranks)
		}
		c.InPlace = api.InPlace(random.IntN(3))
		if api.IsMany(c.Collective) {
			c.Count = 0
			for range 1 + random.IntN(3) {
				c.Many = append(c.Many, api.LaneShape{DType: types[random.IntN(len(types))], Count: random.Int64N(most)})
			}
		}
		for r := 0; r < ranks; r++ {
			c.SrcOffset = append(c.SrcOffset, random.Int64N(16))
			c.DstOffset = append(c.DstOffset, random.Int64N(16))
		}
		if c.InPlace != api.OutOfPlace {
			c.DstOffset = c.SrcOffset
		}
		if c.Validate() == nil {
			return c
		}
	}
}

func randomParams(random *rand.Rand) string {
	return fmt.Sprintf("?path=%s&ctas=%d&buffers=%s&stage=%d",
		[]string{"auto", "push", "direct", "two_shot"}[random.IntN(4)], 1+random.IntN(4),
		[]string{"registered", "staged"}[random.IntN(2)], 1024<<random.IntN(3))
}

func randomJobs(random *rand.Rand, ranks, n int, most int64) []job {
	jobs := make([]job, n)
	for i := range jobs {
		jobs[i] = job{randomParams(random), randomCall(random, ranks, most)}
	}
	return jobs
}

// naps make ranks sleep at random steps, for less than any deadline, so that the
// others run ahead of them as far as they can.
func naps(random *rand.Rand, ranks int) []machine.Injection {
	var out []machine.Injection
	for range random.IntN(4) {
		out = append(out, machine.Injection{Rank: random.IntN(ranks), Step: random.IntN(600), Harm: machine.Delay, For: time.Millisecond})
	}
	return out
}

// TestStreams runs calls one after another under random schedules.
func TestStreams(t *testing.T) {
	for _, ranks := range []int{1, 2, 3, 4, 8} {
		random := rng(uint64(ranks))
		for seed := range uint64(pick(40, 4)) {
			s := session(t, "", ranks)
			s.filler, s.caller, s.change = writes, reuse, addScratch
			newRun(ranks, randomJobs(random, ranks, 6, 40), random).do(t, s, machine.Options{Seeded: seed > 0, Seed: seed, Inject: naps(random, ranks)})
		}
	}
}

// pairJobs alternates two shapes of call, whose inputs change from call to call.
func pairJobs(a, b job, n int) []job {
	jobs := make([]job, n)
	for i := range jobs {
		if jobs[i] = a; i%2 == 1 {
			jobs[i] = b
		}
	}
	return jobs
}

// alternating are the shapes that TestAlternation pairs: every path, grid and
// size.
func alternating() []job {
	var out []job
	for _, p := range []string{"push", "direct", "two_shot"} {
		for _, ctas := range []int{1, 2, 3} {
			for _, count := range []int64{0, 1, 40, 300} {
				out = append(out, job{fmt.Sprintf("?path=%s&ctas=%d", p, ctas), api.Call{Collective: api.AllReduce, DType: num.I32, Op: num.Sum, Ranks: 2, Count: count}})
			}
		}
	}
	return out
}

// TestAlternation alternates every pair of paths, grids and sizes on one team,
// never reset, with changing inputs: 10,000 calls.
func TestAlternation(t *testing.T) {
	shapes := alternating()
	calls, want := 0, pick(10_000, 100)
	random := rng(5)
	s := session(t, "", 2)
	for calls < want {
		for _, a := range shapes {
			for _, b := range shapes {
				if calls < want {
					newRun(2, pairJobs(a, b, 8), random).do(t, s, machine.Options{Seeded: calls%3 == 0, Seed: uint64(calls)})
					calls += 8
				}
			}
		}
	}
}

func seeded(seed uint64) machine.Options { return machine.Options{Seeded: true, Seed: seed} }
