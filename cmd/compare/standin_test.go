package main

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/conformance/matrix"
)

// standIn is the simulator behind the interface of a device: it makes no plans,
// does not know what stores reached, and replays recordings.
type standIn struct {
	sim api.Backend
	// fault is done to what a call left, in a recording or not.
	fault func(call *api.Call, mem []api.Memory, replay int)
	// stale replays the data that the recording was made over.
	stale bool
}

func (*standIn) Name() string { return "hw" }

func (b *standIn) Implementations() []api.Implementation {
	return slices.DeleteFunc(b.sim.Implementations(), func(m api.Implementation) bool { return m.Name != "tandem" })
}

func (b *standIn) Open(ctx context.Context, spec api.Spec, cfg api.TeamConfig) (api.Team, error) {
	spec.Backend = "sim"
	team, err := b.sim.Open(ctx, spec, cfg)
	if err != nil {
		return nil, err
	}
	return &standInTeam{Team: team, b: b}, nil
}

type standInTeam struct {
	api.Team
	b *standIn
}

func (t *standInTeam) Members() []api.Member {
	var out []api.Member
	for _, m := range t.Team.Members() {
		out = append(out, &standInMember{m, t})
	}
	return out
}

func (t *standInTeam) damage(call *api.Call, mem []api.Memory, replay int) {
	if t.b.fault != nil {
		t.b.fault(call, mem, replay)
	}
}

type standInMember struct {
	api.Member
	team *standInTeam
}

func (m *standInMember) Start(call api.Call, mem api.Memory) (api.Pending, error) {
	p, err := m.Member.Start(call, mem)
	if err != nil {
		return nil, err
	}
	return &standInPending{p, func() { m.team.damage(&call, []api.Memory{mem}, -1) }}, nil
}

type standInPending struct {
	api.Pending
	damage func()
}

func (p *standInPending) Wait(ctx context.Context) (api.Outcome, error) {
	_, err := p.Pending.Wait(ctx)
	if err == nil {
		p.damage()
	}
	return api.Outcome{}, err
}

func (t *standInTeam) Capture(_ context.Context, calls []api.Call, mem [][]api.Memory) (api.Captured, error) {
	c := &standInCaptured{team: t, calls: calls, mem: mem}
	for _, m := range mem {
		for _, lanes := range m {
			for _, l := range lanes {
				c.first = append(c.first, slices.Clone(l.Src.Payload()))
			}
		}
	}
	return c, nil
}

type standInCaptured struct {
	team    *standInTeam
	calls   []api.Call
	mem     [][]api.Memory
	first   [][]byte
	replays int
}

func (c *standInCaptured) Replay(ctx context.Context) error {
	if c.team.b.stale {
		i := 0
		for _, m := range c.mem {
			for _, lanes := range m {
				for _, l := range lanes {
					copy(l.Src.Payload(), c.first[i])
					i++
				}
			}
		}
	}
	for k := range c.calls {
		if _, err := api.Run(ctx, c.team.Team, c.calls[k], c.mem[k]); err != nil {
			return err
		}
		c.team.damage(&c.calls[k], c.mem[k], c.replays)
	}
	c.replays++
	return nil
}

func (c *standInCaptured) Close() error { return nil }

// TestTheDeviceRun is the conformance run of devices on a stand-in.
func TestTheDeviceRun(t *testing.T) {
	withoutRaceDetector(t)
	c := &conform{backend: &standIn{sim: backends()[0]}, variants: []string{"", "?ctas=2&mode=f32&nan=propagate"}, ranks: []int{1, 2, 3},
		maxBytes: 1 << 14, budget: time.Millisecond, repeats: 3, sample: 10, steps: 20, rounds: 2, workers: 2, atLeast: 600}
	c.run(t)
	require.Len(t, c.report, 4, "%v", c.report)
	require.Contains(t, strings.Join(c.report, "\n"), " 0 diverge")
}

// collector is a test that may fail.
type collector struct{ errors []string }

func (c *collector) Helper()                   {}
func (c *collector) Logf(string, ...any)       {}
func (c *collector) Errorf(f string, _ ...any) { c.errors = append(c.errors, f) }

// TestTheDeviceRunCatches: what is wrong with a device is seen, most of it by
// its own check.
func TestTheDeviceRunCatches(t *testing.T) {
	withoutRaceDetector(t)
	dst := func(mem []api.Memory) []byte { return mem[0][0].Dst.Bytes }
	wrote := func(mem []api.Memory) bool { return mem[0][0].Dst.Guard > 0 && mem[0][0].Dst.Len() > 0 }
	flip := 0
	for name, b := range map[string]*standIn{
		"a wrong bit": {fault: func(_ *api.Call, mem []api.Memory, _ int) {
			if wrote(mem) {
				dst(mem)[guard] ^= 1
			}
		}},
		"a guard": {fault: func(_ *api.Call, mem []api.Memory, _ int) {
			if wrote(mem) {
				dst(mem)[guard-1] = 0
			}
		}},
		"a dropped tail": {fault: func(c *api.Call, mem []api.Memory, _ int) {
			if wrote(mem) && c.InPlace == api.OutOfPlace {
				p := mem[0][0].Dst.Payload()
				n := c.Lane(0).DType.Size()
				copy(p[len(p)-n:], slices.Repeat([]byte{dst(mem)[0]}, n)) // the poison
			}
		}},
		"the source": {fault: func(c *api.Call, mem []api.Memory, _ int) {
			if c.InPlace == api.OutOfPlace && mem[0][0].Src.Len() > 0 {
				mem[0][0].Src.Payload()[0] ^= 1
			}
		}},
		"only replays": {fault: func(_ *api.Call, mem []api.Memory, replay int) {
			if replay > 0 && wrote(mem) {
				dst(mem)[guard] ^= 1
			}
		}},
		"stale replays": {stale: true},
		"now and then": {fault: func(_ *api.Call, mem []api.Memory, _ int) {
			if flip++; flip%50 == 0 && wrote(mem) {
				dst(mem)[guard] ^= 1
			}
		}},
	} {
		b.sim = backends()[0]
		c := &conform{backend: b, ranks: []int{2, 3}, maxBytes: 1 << 12}
		model, _ := sidesOf(t, "sim:tandem", "sim:tandem")
		cases, _ := matrix.ExpandAll(c.axes(0, c.side(t, ""), model), false)
		tb := &collector{}
		res := matrix.Test(t.Context(), tb, c.side(t, ""), model, cases, matrix.Options{MaxShrunk: 3})
		require.NotEmpty(t, tb.errors, name)
		require.Positive(t, res.Diverge, name)
	}
}
