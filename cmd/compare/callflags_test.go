package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/tandem/api"
	"example.com/tandem/conformance/inputs"
)

// parsedRun parses flags of run as the command does.
func parsedRun(t require.TestingT, args ...string) *runCmd {
	a := &app{stdout: new(bytes.Buffer), stderr: new(bytes.Buffer)}
	cmd, err := a.parse(append([]string{"run"}, args...))
	require.NoError(t, err)
	return cmd.(*runCmd)
}

func TestCallDefaults(t *testing.T) {
	cmd := parsedRun(t)
	call, err := cmd.call()
	require.NoError(t, err)
	require.Equal(t, api.Call{
		Collective: api.AllReduce, DType: api.BF16, Op: api.Sum, Ranks: 2, Count: 1048573,
		SrcOffset: api.Offsets{0}, DstOffset: api.Offsets{0},
	}, call)
	in, err := cmd.input(&call)
	require.NoError(t, err)
	require.Equal(t, inputs.Input{Kind: inputs.Normal, Seed: 1}, in)
	limit, err := cmd.bytes()
	require.NoError(t, err)
	require.EqualValues(t, 8<<30, limit)
	require.Equal(t, "sim:nvshmem@2dca770", cmd.Left)
	require.Equal(t, "sim:nvshmem@pr131", cmd.Right)

	cmd = parsedRun(t, "--dtype", "i32")
	call, err = cmd.call()
	require.NoError(t, err)
	in, err = cmd.input(&call)
	require.NoError(t, err)
	require.Equal(t, inputs.Input{Kind: inputs.Bits, Seed: 1}, in, "integers have no normal input")

	call, err = parsedRun(t, "--collective", "all_gather").call()
	require.NoError(t, err)
	require.Equal(t, api.NoOp, call.Op, "copies take no op, the default is none")
}

func TestInPlaceForms(t *testing.T) {
	for args, want := range map[string]api.InPlace{
		"":                 api.OutOfPlace,
		"--in-place":       api.InPlaceOwn,
		"--in-place=true":  api.InPlaceOwn,
		"--in-place=start": api.InPlaceStart,
		"--in-place=false": api.OutOfPlace,
	} {
		call, err := parsedRun(t, append(strings.Fields(args), "--collective", "reduce_scatter")...).call()
		require.NoError(t, err)
		require.Equal(t, want, call.InPlace, args)
	}
}

func TestByteSizes(t *testing.T) {
	for text, want := range map[string]int64{"8GiB": 8 << 30, "1KiB": 1 << 10, "3 MiB": 3 << 20, "2TiB": 2 << 40, "17": 17, "8388607TiB": 8388607 << 40} {
		p := parser{}
		require.Equal(t, want, p.byteSize("max-memory", text))
		require.NoError(t, p.err)
	}
	for _, text := range []string{"", "GiB", "-1", "0", "1.5GiB", "8GB", "8388608TiB", "9223372036854775808"} {
		p := parser{}
		p.byteSize("max-memory", text)
		require.ErrorIs(t, p.err, api.ErrInvalid, text)
	}
}

// TestCallStringRoundTrips: what a report prints as flags gives the same call
// and input.
func TestCallStringRoundTrips(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		want, in := drawCall(rt)
		if want.Validate() != nil {
			rt.Skip("not a sound call")
		}
		text := want.String()
		cmd := parsedRun(rt, append(strings.Fields(text), strings.Fields(in.String())...)...)
		got, err := cmd.call()
		require.NoError(rt, err, text)
		require.Equal(rt, text, got.String())
		for r := range want.Ranks {
			require.Equal(rt, want.SrcOffset.At(r), got.SrcOffset.At(r))
			require.Equal(rt, want.DstOffset.At(r), got.DstOffset.At(r))
		}
		got.SrcOffset, got.DstOffset = want.SrcOffset, want.DstOffset
		for i := range want.Many {
			want.Many[i] = want.Lane(i)
			got.Many[i] = got.Lane(i)
		}
		require.Equal(rt, want, got)
		gotIn, err := cmd.input(&got)
		require.NoError(rt, err)
		require.Equal(rt, in, gotIn)
	})
}

func drawCall(rt *rapid.T) (api.Call, inputs.Input) {
	c := api.Call{
		Collective: rapid.SampledFrom(api.Collectives()).Draw(rt, "collective"),
		DType:      rapid.SampledFrom(api.DTypes()).Draw(rt, "dtype"),
		Op:         rapid.SampledFrom([]api.Op{api.Sum, api.Prod, api.Min, api.Max, api.Avg}).Draw(rt, "op"),
		Ranks:      rapid.IntRange(1, 9).Draw(rt, "ranks"),
		Count:      rapid.Int64Range(0, api.MaxCount).Draw(rt, "count"),
		InPlace:    rapid.SampledFrom([]api.InPlace{api.OutOfPlace, api.InPlaceOwn, api.InPlaceStart}).Draw(rt, "in place"),
		Scope:      rapid.SampledFrom([]api.Scope{api.OnStream, api.Block, api.Warp, api.Thread}).Draw(rt, "scope"),
		Team:       rapid.SampledFrom([]api.TeamKind{api.World, api.SubTeam}).Draw(rt, "team"),
		Mode:       rapid.SampledFrom([]string{"", "f32"}).Draw(rt, "mode"),
	}
	offset := rapid.SliceOfN(rapid.Int64Range(0, 15), c.Ranks, c.Ranks)
	c.SrcOffset, c.DstOffset = offset.Draw(rt, "source offsets"), offset.Draw(rt, "destination offsets")
	if c.InPlace != api.OutOfPlace {
		c.DstOffset = c.SrcOffset
	}
	if c.Collective.Rooted() {
		c.Root = rapid.IntRange(0, c.Ranks-1).Draw(rt, "root")
	}
	if !c.Collective.Reduces() {
		c.Op = api.NoOp
	}
	if api.IsMany(c.Collective) {
		c.Count = 0
		for range rapid.IntRange(1, 3).Draw(rt, "lanes") {
			c.Many = append(c.Many, api.LaneShape{DType: rapid.SampledFrom(append(api.DTypes(), 0)).Draw(rt, "lane dtype"), Count: rapid.Int64Range(0, 99).Draw(rt, "lane count")})
		}
	}
	seed := rapid.Uint64().Draw(rt, "seed")
	in := rapid.SampledFrom([]inputs.Input{
		{Kind: inputs.Bits, Seed: seed}, {Kind: inputs.OrderFree, Seed: seed}, {Kind: inputs.Normal, Seed: seed},
		{Kind: inputs.Uniform, Lo: -0.5, Hi: 1.25, Seed: seed}, {Kind: inputs.Ones},
		{Kind: inputs.Values, Values: make([]uint64, c.Ranks)},
	}).Draw(rt, "input")
	return c, in
}
