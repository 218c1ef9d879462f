package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/conformance"
	"example.com/tandem/conformance/inputs"
	"example.com/tandem/conformance/matrix"
	"example.com/tandem/hw/tandem"
)

// conform holds a backend's tandem to the simulator's over the matrix: equal
// bits and equal coverage, poison and guards on both sides.
type conform struct {
	backend  api.Backend
	variants []string // of parameters; each is tried on the matrix
	ranks    []int
	maxBytes int64         // of the buffers of a call
	budget   time.Duration // for the matrix of all variants
	repeats  int           // of run_to_run
	sample   int           // cases that are run repeats times, and asked for all promises
	steps    int           // of the interleaving
	// rounds of the matrix are run together, so that teams are opened once for
	// all; 0 is 1. Each has other pairs of values, and other data.
	rounds int
	// atLeast is how many calls of the matrix are made, whatever the budget.
	atLeast int
	// workers compare calls side by side, while one team at a time is at work;
	// 0 is 1.
	workers int
	// hinder delays a rank in the next call of a team, or ends that (nil);
	// where it is nil all ranks are on time.
	hinder func(team api.Team, late *tandem.Fault)

	agree, diverge int // calls of the matrix
	report         []string
}

func (c *conform) side(t testing.TB, params string) conformance.Side {
	spec, err := api.ParseSpec(c.backend.Name() + ":tandem" + params)
	require.NoError(t, err)
	return conformance.Side{Backend: c.backend, Spec: spec}
}

// run is the whole conformance run. Its last line counts what was run and what
// was not, with the reasons.
func (c *conform) run(t *testing.T) {
	ctx := t.Context()
	model, _ := sidesOf(t, "sim:tandem", "sim:tandem")
	t.Run("matrix", func(t *testing.T) { c.matrix(ctx, t, model) })
	t.Run("promises", func(t *testing.T) { c.promises(ctx, t, model) })
	t.Run("interleaving", func(t *testing.T) { c.interleaving(ctx, t, model) })
	t.Logf("%s: %s", c.backend.Name(), strings.Join(c.report, "; "))
}

func (c *conform) axes(round int, left, right conformance.Side) []matrix.Axes {
	all := matrix.For(left, right, matrix.Axes{
		Ranks: c.ranks, MaxBytes: c.maxBytes, Graph: []bool{false, true}, Seeds: []uint64{uint64(round) + 1}, Modes: []string{""},
		Inputs: []inputs.Input{{}, {Kind: inputs.Finite}, {Kind: inputs.Bits}, matrix.Special},
	})
	for i := range all {
		a := &all[i]
		a.DTypes = turned(a.DTypes, round)
		a.Ops = turned(a.Ops, 3*round)
		a.Ranks = turned(a.Ranks, round)
		a.SrcOffsets = turned(a.SrcOffsets, round)
		a.DstOffsets = turned(a.DstOffsets, 3*round)
		a.InPlace = turned(a.InPlace, round)
		a.Inputs = turned(a.Inputs, round)
	}
	return all
}

// turned begins a list elsewhere, so that other pairs of values meet.
func turned[T any](list []T, by int) []T {
	n := max(len(list), 1)
	return slices.Concat(list[by%n:], list[:by%n])
}

// matrix runs the matrix of every variant, each time with other pairs and data,
// until the time is up; once in any case.
func (c *conform) matrix(ctx context.Context, t *testing.T, model conformance.Side) {
	start := time.Now()
	total := &matrix.Result{}
	left, rounds := 0, 0
	shared := &turns{Backend: c.backend}
	for round := 0; round == 0 || time.Since(start) < c.budget || total.Calls < c.atLeast; round += max(c.rounds, 1) {
		for _, v := range c.variants {
			device := c.side(t, v)
			if c.workers > 1 {
				device.Backend = shared
			}
			like := model
			like.Spec = arithmeticOf(device.Spec, model.Spec)
			var all []matrix.Axes
			for i := range max(c.rounds, 1) {
				all = append(all, c.axes(round+i, device, like)...)
			}
			cases, large := matrix.ExpandAll(all, false)
			left += large
			res := matrix.Test(ctx, t, device, like, cases, patient(matrix.Options{Workers: c.workers}))
			total.Calls += res.Calls
			total.Agree += res.Agree
			total.Diverge += res.Diverge
			total.Refused += res.Refused
			total.Refusals = append(total.Refusals, res.Refusals...)
			if t.Failed() {
				return
			}
			rounds++
		}
	}
	c.agree, c.diverge = total.Agree, total.Diverge
	why := map[string]int{}
	for _, r := range total.Refusals {
		why[r.Reason] += r.Calls
	}
	c.report = append(c.report, fmt.Sprintf("matrix: %d calls, %d agree, %d diverge, %d refused %v, %d left out for their size, in %d sweeps, %v",
		total.Calls, total.Agree, total.Diverge, total.Refused, why, left, rounds, time.Since(start).Round(time.Second/10)))
}

// arithmeticOf is a spec with those parameters of another that change bits.
func arithmeticOf(from, to api.Spec) api.Spec {
	to.Params = maps.Clone(to.Params)
	for _, name := range []string{"mode", "avg", "nan"} {
		if v, ok := from.Params[name]; ok {
			if to.Params == nil {
				to.Params = map[string]string{}
			}
			to.Params[name] = v
		}
	}
	return to
}

// patient are deadlines that a device in good order keeps, and few failures made
// small, since each that hangs takes as long.
func patient(opt matrix.Options) matrix.Options {
	opt.Arrive, opt.Progress, opt.MaxShrunk = 5*time.Second, 2*time.Second, 5
	return opt
}

// promises repeats a sample many times, and asks for all that is promised.
func (c *conform) promises(ctx context.Context, t *testing.T, model conformance.Side) {
	device := c.side(t, "")
	cases, _ := matrix.ExpandAll(c.axes(7, device, model), false)
	var sample []matrix.Case
	for i := range c.sample {
		sample = append(sample, cases[i*len(cases)/c.sample])
	}
	for _, o := range []struct {
		name string
		opt  matrix.Options
	}{
		{fmt.Sprintf("%d repeats", c.repeats), matrix.Options{Checks: []api.Check{api.CheckValue, api.CheckRunToRun}, Repeats: c.repeats}},
		{"all promises", matrix.Options{Checks: api.Checks(), Repeats: 1}},
	} {
		res := matrix.Test(ctx, t, device, model, sample, patient(o.opt))
		c.report = append(c.report, fmt.Sprintf("%s: %d calls agree", o.name, res.Agree))
	}
}

// interleaving lets calls started by ranks that come in any order, and replays
// of recorded sequences, follow each other on one team, with new data every
// time.
func (c *conform) interleaving(ctx context.Context, t *testing.T, model conformance.Side) {
	rng := seededRand(1)
	eager, replayed, graphs, delays := 0, 0, 0, 0
	for _, ranks := range c.ranks {
		team, err := c.backend.Open(ctx, c.side(t, "").Spec, api.TeamConfig{Ranks: ranks})
		require.NoError(t, err)
		sim, err := model.Backend.Open(ctx, model.Spec, api.TeamConfig{Ranks: ranks})
		require.NoError(t, err)
		var recorded []*sequence
		capturer, _ := team.(api.Capturer)
		for k := range c.steps {
			if capturer != nil && k%(c.steps/3+1) == 0 {
				s := newSequence(rng, ranks, 1+3*len(recorded))
				s.captured, err = capturer.Capture(ctx, s.calls, s.mem)
				require.NoError(t, err)
				recorded, graphs = append(recorded, s), graphs+1
			}
			if len(recorded) > 0 && rng.IntN(2) == 0 {
				s := recorded[rng.IntN(len(recorded))]
				s.refill(rng)
				want := s.expect(ctx, t, sim)
				require.NoError(t, s.captured.Replay(ctx))
				s.check(t, want, "replay")
				replayed++
				continue
			}
			s := newSequence(rng, ranks, 1)
			want := s.expect(ctx, t, sim)
			if c.hinder != nil {
				late := anyDelay(rng, ranks)
				c.hinder(team, late)
				if late != nil {
					delays++
				}
			}
			startInAnyOrder(ctx, t, rng, team, s.calls[0], s.mem[0])
			s.check(t, want, "call")
			eager++
		}
		for _, s := range recorded {
			require.NoError(t, s.captured.Close())
		}
		require.NoError(t, team.Close(ctx))
		require.NoError(t, sim.Close(ctx))
	}
	c.report = append(c.report, fmt.Sprintf("interleaving: %d calls, in %d of them a rank was held up inside, and %d replays of %d recordings", eager, delays, replayed, graphs))
	if graphs == 0 {
		c.report = append(c.report, "no recordings: the team is no capturer")
	}
}

// anyDelay holds a rank up at a step, every other time; nil leaves all on time.
func anyDelay(rng *rand.Rand, ranks int) *tandem.Fault {
	if rng.IntN(2) == 0 {
		return nil
	}
	steps := tandem.Steps()
	return &tandem.Fault{Rank: rng.IntN(ranks), Step: steps[rng.IntN(len(steps))], Delay: time.Duration(1+rng.IntN(300)) * time.Microsecond}
}

func seededRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 2)) }

// sequence is calls with their images.
type sequence struct {
	calls    []api.Call
	mem      [][]api.Memory // by call and rank
	captured api.Captured
}

const guard = 64

func newSequence(rng *rand.Rand, ranks, n int) *sequence {
	var calls []api.Call
	for range n {
		calls = append(calls, anyCall(rng, ranks))
	}
	return sequenceOf(rng, calls...)
}

// sequenceOf makes images of calls out of place.
func sequenceOf(rng *rand.Rand, calls ...api.Call) *sequence {
	s := &sequence{calls: calls}
	for _, call := range calls {
		mem := make([]api.Memory, call.Ranks)
		for r := range mem {
			for l := range call.Lanes() {
				size := int64(call.Lane(l).DType.Size())
				var lane api.Lane
				lane.Src.Addr, lane.Dst.Addr = call.Addrs(l, r)
				lane.Src.Bytes, lane.Src.Guard = make([]byte, call.SrcElems(l)*size+2*guard), guard
				lane.Dst.Bytes, lane.Dst.Guard = make([]byte, call.DstElems(l)*size+2*guard), guard
				mem[r] = append(mem[r], lane)
			}
		}
		s.mem = append(s.mem, mem)
	}
	s.refill(rng)
	return s
}

// anyCall draws a call of any kind, out of place.
func anyCall(rng *rand.Rand, ranks int) api.Call {
	all, dtypes, ops := api.Collectives(), api.DTypes(), api.Ops()
	for {
		c := api.Call{Collective: all[rng.IntN(len(all))], DType: dtypes[rng.IntN(len(dtypes))], Ranks: ranks,
			Count: int64(rng.IntN(1 << rng.IntN(14))), SrcOffset: anyOffsets(rng, ranks), DstOffset: anyOffsets(rng, ranks)}
		if c.Collective.Reduces() {
			c.Op = ops[rng.IntN(len(ops))]
		}
		if c.Collective.Rooted() {
			c.Root = rng.IntN(ranks)
		}
		if api.IsMany(c.Collective) {
			c.Many, c.Count = []api.LaneShape{{Count: c.Count}, {}, {Count: 5}}, 0
		}
		if c.Validate() == nil {
			return c
		}
	}
}

func anyOffsets(rng *rand.Rand, ranks int) api.Offsets {
	out := make(api.Offsets, ranks)
	for i := range out {
		out[i] = int64(rng.IntN(9))
	}
	return out
}

// refill fills sources with any bits, destinations and guards with poison.
func (s *sequence) refill(rng *rand.Rand) {
	for _, mem := range s.mem {
		for _, lanes := range mem {
			for _, l := range lanes {
				for _, img := range []api.Image{l.Src, l.Dst} {
					for i := range img.Bytes {
						img.Bytes[i] = 0xff
					}
				}
				p := l.Src.Payload()
				for i := range p {
					p[i] = byte(rng.Uint32())
				}
			}
		}
	}
}

// expect executes the calls on copies and gives what every image must hold.
func (s *sequence) expect(ctx context.Context, t testing.TB, team api.Team) [][]api.Memory {
	t.Helper()
	var out [][]api.Memory
	for k, mem := range s.mem {
		cp := make([]api.Memory, len(mem))
		for r, lanes := range mem {
			for _, l := range lanes {
				l.Src.Bytes, l.Dst.Bytes = bytes.Clone(l.Src.Bytes), bytes.Clone(l.Dst.Bytes)
				cp[r] = append(cp[r], l)
			}
		}
		_, err := api.Run(ctx, team, s.calls[k], cp)
		require.NoError(t, err, "%s", s.calls[k])
		out = append(out, cp)
	}
	return out
}

// check compares images, guards and sources included.
func (s *sequence) check(t testing.TB, want [][]api.Memory, what string) {
	t.Helper()
	if other := s.differs(want); other != "" {
		require.Failf(t, "other bits", "%s: %s", what, other)
	}
}

// differs says where the images are not what is wanted; "" if they are.
func (s *sequence) differs(want [][]api.Memory) string {
	for k := range want {
		for r := range want[k] {
			for l := range want[k][r] {
				if !bytes.Equal(want[k][r][l].Dst.Bytes, s.mem[k][r][l].Dst.Bytes) || !bytes.Equal(want[k][r][l].Src.Bytes, s.mem[k][r][l].Src.Bytes) {
					return fmt.Sprintf("other bits in call %d of %d, rank %d, lane %d: %s", k, len(want), r, l, s.calls[k])
				}
			}
		}
	}
	return ""
}

// startInAnyOrder has every rank start the call from a goroutine of its own,
// some of them late.
func startInAnyOrder(ctx context.Context, t testing.TB, rng *rand.Rand, team api.Team, call api.Call, mem []api.Memory) {
	t.Helper()
	members := team.Members()
	errs := make([]error, len(members))
	var wg sync.WaitGroup
	for i, m := range members {
		late := time.Duration(0)
		if rng.IntN(3) == 0 {
			late = time.Duration(rng.IntN(1000)) * time.Microsecond
		}
		wg.Go(func() {
			time.Sleep(late)
			p, err := m.Start(call, mem[i])
			if err == nil {
				_, err = p.Wait(ctx)
			}
			errs[i] = err
		})
	}
	wg.Wait()
	for i, err := range errs {
		require.NoError(t, err, "rank %d: %s", i, call)
	}
}
