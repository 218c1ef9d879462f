package tandem

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
	"example.com/tandem/sim"
)

// TestBadSpecs: every parameter refuses what it does not take and says what it
// does.
func TestBadSpecs(t *testing.T) {
	for params, hint := range map[string]string{
		"?mode=f16": "node|f32", "?avg=mean": "divide|premul", "?nan=keep": "drop|propagate", "?path=ring": "auto|push|direct|two_shot",
		"?ctas=0": "auto|1..64", "?ctas=65": "auto|1..64", "?ctas=x": "auto|1..64", "?gpus=0": "ranks|1..72", "?gpus=73": "ranks|1..72",
		"?placement=random": "block|cyclic", "?buffers=user": "registered|staged", "?stage=1": "1024..2^40", "?stage=99999999999999999999": "1024..2^40",
		"?deadline_scale=0": "1..1000", "?nvls=on": "known are [mode avg nan path ctas gpus placement buffers stage deadline_scale]", "@1": "write sim:tandem",
	} {
		_, err := sim.New(Family{}).Open(context.Background(), spec(t, params), api.TeamConfig{Ranks: 2})
		require.ErrorIs(t, err, api.ErrInvalid, params)
		require.ErrorContains(t, err, hint, params)
		_, err = sim.New(Family{}).Plan(spec(t, params), faultCalls(2)[0])
		require.ErrorIs(t, err, api.ErrInvalid, params)
	}
	for _, s := range settings() {
		p := s.Param
		var c config
		require.True(t, s.set(&c, p.Default), "%s: the default is a value", p.Name)
		require.NotEmpty(t, p.Values)
		require.NotEmpty(t, p.Help)
	}
}

func TestTeams(t *testing.T) {
	open := func(params string, cfg api.TeamConfig) error {
		_, err := sim.New(Family{}).Open(context.Background(), spec(t, params), cfg)
		return err
	}
	require.ErrorIs(t, open("", api.TeamConfig{Ranks: 73}), api.ErrRefused)
	require.ErrorIs(t, open("", api.TeamConfig{Ranks: 0}), api.ErrInvalid)
	require.ErrorContains(t, open("?gpus=3", api.TeamConfig{Ranks: 2}), "more than the 2 ranks")
	require.ErrorContains(t, open("", api.TeamConfig{Ranks: 2, Arrive: time.Millisecond}), "at least 10ms")
	require.ErrorContains(t, open("", api.TeamConfig{Ranks: 2, Progress: time.Nanosecond}), "at least 10ms")
	require.ErrorIs(t, open("", api.TeamConfig{Ranks: 2, Progress: -1}), api.ErrInvalid)
	require.NoError(t, open("", api.TeamConfig{Ranks: 72, Arrive: minDeadline, Progress: minDeadline}))
	require.NoError(t, open("", api.TeamConfig{Ranks: 2, Kind: api.SubTeam}))
	s := session(t, "?deadline_scale=7", 2)
	require.Equal(t, 7*shortDeadline, s.Patience())
	s, err := openSession(spec(t, ""), api.TeamConfig{Ranks: 2})
	require.NoError(t, err)
	require.Equal(t, time.Minute, s.Patience())
}

func TestPlacement(t *testing.T) {
	for params, want := range map[string][]int{
		"": nil, "?gpus=5": nil, "?gpus=2": {0, 0, 0, 1, 1}, "?gpus=2&placement=cyclic": {0, 1, 0, 1, 0}, "?gpus=1": {0, 0, 0, 0, 0},
	} {
		c, err := parseConfig(spec(t, params))
		require.NoError(t, err)
		require.Equal(t, want, c.placement(5), params)
	}
}

// TestRefusals: what is not a call of ours, and why.
func TestRefusals(t *testing.T) {
	base := api.Call{Collective: api.AllReduce, DType: num.BF16, Op: num.Sum, Ranks: 2, Count: 4}
	with := func(f func(*api.Call)) api.Call { c := base; f(&c); return c }
	for _, c := range []struct {
		params string
		call   api.Call
		is     error
		says   string
	}{
		{"", with(func(c *api.Call) { c.Scope = api.Warp }), api.ErrRefused, "scope on_stream"},
		{"", with(func(c *api.Call) { c.Ranks = 100 }), api.ErrRefused, "1 to 72 ranks"},
		{"", with(func(c *api.Call) { c.Mode = "f64" }), api.ErrInvalid, "known are [node f32]"},
		{"", with(func(c *api.Call) { c.Mode, c.DType = modeF32, num.F64 }), api.ErrRefused, "mode node"},
		{"", with(func(c *api.Call) { c.Mode, c.DType = modeF32, num.I32 }), api.ErrRefused, "mode node"},
		{"?mode=f32", with(func(c *api.Call) { c.DType = num.U8 }), api.ErrRefused, "mode node"},
		{"", with(func(c *api.Call) { c.Collective, c.Op, c.Mode = api.AllGather, num.None, modeF32 }), api.ErrInvalid, "only copies"},
		{"?gpus=3", base, api.ErrInvalid, "more than the 2 ranks"},
		{"", with(func(c *api.Call) { c.Op = num.And }), api.ErrInvalid, "not defined on bf16"},
		{"", with(func(c *api.Call) { c.Collective = other{api.AllReduce} }), api.ErrRefused, "known are [all_reduce"},
		{"", with(func(c *api.Call) { c.Count = -1 }), api.ErrInvalid, "out of range"},
	} {
		_, err := sim.New(Family{}).Plan(spec(t, c.params), c.call)
		require.ErrorIs(t, err, c.is, "%+v", c)
		require.ErrorContains(t, err, c.says)
	}
	for _, d := range []num.DType{num.F64, num.I64} {
		planOf(t, "?mode=f32", with(func(c *api.Call) { c.DType, c.Mode = d, modeNode }))
	}
	planOf(t, "?mode=f32", with(func(c *api.Call) { c.Collective, c.Op, c.DType = api.AllGather, num.None, num.I8 }))
}

// A stage so small that a call would take more chunks than a kernel has steps for
// is refused when the call is started, not when it is planned.
func TestTooManyChunks(t *testing.T) {
	c := api.Call{Collective: api.AllGather, DType: num.U8, Ranks: 2, Count: 8 << 20}
	params := "?path=direct&buffers=staged&stage=1024&ctas=64"
	planOf(t, params, c)
	s := session(t, params, 2)
	require.NoError(t, s.Check(0, &c, memoryOf(&c, 0)))
	c.Count *= 16
	planOf(t, params, c)
	err := s.Check(0, &c, nil)
	require.ErrorIs(t, err, api.ErrRefused)
	require.ErrorContains(t, err, "stage=2048 or more")
}

// other is a collective that nobody knows.
type other struct{ api.Collective }

func (other) Name() string { return "other" }

// TestOuts: the destinations of a many call are the caller's. Wrong ones are
// refused on the rank that brings them before anything leaves any rank.
func TestOuts(t *testing.T) {
	for _, k := range []api.Collective{api.AllGatherMany, api.ReduceScatterMany} {
		call := api.Call{Collective: k, DType: num.F16, Ranks: 3, Many: []api.LaneShape{{Count: 8}, {DType: num.F32, Count: 4}, {Count: 0}}}
		if k.Reduces() {
			call.Op = num.Sum
		}
		for name, c := range map[string]struct {
			change func(m api.Memory) api.Memory
			says   string
		}{
			"a lane short":          {func(m api.Memory) api.Memory { return m[:2] }, "the call has 3 lanes"},
			"a lane too many":       {func(m api.Memory) api.Memory { return append(m, m[0]) }, "the call has 3 lanes"},
			"wrong length":          {func(m api.Memory) api.Memory { m[0].Dst.Bytes = m[0].Dst.Bytes[2:]; return m }, "needs"},
			"wrong dtype":           {func(m api.Memory) api.Memory { m[0].Dst, m[1].Dst = m[1].Dst, m[2].Dst; return m }, "needs"},
			"misaligned":            {func(m api.Memory) api.Memory { m[0].Dst.Addr++; return m }, "no multiple of the element size"},
			"overlap":               {func(m api.Memory) api.Memory { m[1].Dst.Addr = m[0].Dst.Addr + 4; return m }, "the destination of lane 0 overlaps the destination of lane 1"},
			"the same twice":        {func(m api.Memory) api.Memory { m[1].Dst.Addr = m[0].Dst.Addr; return m }, "overlaps"},
			"over another's source": {func(m api.Memory) api.Memory { m[1].Dst.Addr = m[0].Src.Addr; return m }, "the source of lane 0 overlaps the destination of lane 1"},
			"over its own source":   {func(m api.Memory) api.Memory { m[0].Dst.Addr = m[0].Src.Addr + 2; return m }, "source and destination overlap"},
			"beyond all addresses":  {func(m api.Memory) api.Memory { m[0].Dst.Addr = math.MaxUint64 - 63; return m }, "fits at address"},
			"before all addresses":  {func(m api.Memory) api.Memory { m[2].Dst.Addr = 0; return m }, "fits at address"},
		} {
			for rank := range 3 {
				mem := memories(&call, rng(1))
				before := clone(&call, mem)
				mem[rank] = c.change(mem[rank])
				team := openTeam(t, "", 3)
				_, err := api.Run(context.Background(), team, call, mem)
				require.ErrorIs(t, err, api.ErrInvalid, "%s on rank %d", name, rank)
				require.ErrorContains(t, err, c.says, name)
				for r := range mem {
					if r != rank {
						require.Equal(t, before[r], mem[r], "%s: nothing is touched", name)
					}
				}
				require.NoError(t, team.Close(context.Background()))
			}
		}
		// Sources may be one buffer, and a refusal of the first rank leaves the
		// team as it was.
		call.Many = []api.LaneShape{{Count: 8}, {Count: 8}}
		mem := memories(&call, rng(1))
		team := openTeam(t, "", 3)
		_, err := team.Members()[0].Start(call, mem[0][:1])
		require.ErrorIs(t, err, api.ErrInvalid)
		for r := range mem {
			mem[r][1].Src = mem[r][0].Src
		}
		_, err = api.Run(context.Background(), team, call, mem)
		require.NoError(t, err)
		for r := range mem {
			require.Equal(t, mem[r][0].Dst.Payload(), mem[r][1].Dst.Payload())
		}
	}
}

// TestManyShakesHandsOnce: one handshake for all lanes.
func TestManyShakesHandsOnce(t *testing.T) {
	one := stepsOf(t, "?path=direct&ctas=1", &api.Call{Collective: api.AllGatherMany, DType: num.U8, Ranks: 2, Many: []api.LaneShape{{Count: 8}}})
	eight := api.Call{Collective: api.AllGatherMany, DType: num.U8, Ranks: 2}
	for range 8 {
		eight.Many = append(eight.Many, api.LaneShape{Count: 8})
	}
	// Seven more lanes: two copies each, and what the caller does before and after.
	require.Equal(t, one[0]+7*(2+1+2), stepsOf(t, "?path=direct&ctas=1", &eight)[0])
	require.EqualValues(t, 2, planOf(t, "?path=direct", eight).Cost.Rounds)
}

func TestImplementation(t *testing.T) {
	impl := Family{}.Implementations()
	require.Len(t, impl, 1)
	require.Equal(t, Name, impl[0].Name)
	require.Len(t, impl[0].Params, len(settings()))
	require.Equal(t, api.Checks(), impl[0].Promises)
	require.Equal(t, fmt.Sprint(api.DTypes()), fmt.Sprint(impl[0].DTypes))
}
