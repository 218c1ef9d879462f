package rlkernel

import (
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/tandem/api"
	"example.com/tandem/sim/machine"
)

func kernelNames(p *api.Plan) []string {
	var out []string
	for _, k := range p.Kernels {
		out = append(out, k.Name)
	}
	return out
}

// TestPaths holds the selection at its boundaries, where exactly the limit is
// still the small path.
func TestPaths(t *testing.T) {
	fused := []string{"fused"}
	multi := []string{"reserve", "memcpy_in", "publish", "wait", "compute", "retire"}
	staged := []string{"stage", "wait", "compute", "retire"}
	scatter := []string{"stage", "host_barrier", "finish", "host_barrier"}
	scatterMulti := []string{"reserve", "memcpy_in", "publish", "host_barrier", "wait", "compute", "retire", "host_barrier"}
	owned := []string{"stage", "wait", "tree", "memcpy_push", "wait_owner", "memcpy_own", "retire"}
	ownedLarge := append([]string{"reserve", "memcpy_in", "publish"}, owned[1:]...)
	for _, c := range []struct {
		versions []string
		call     api.Call
		kernels  []string
		launches int64
	}{
		{both, reduceCall(api.AllReduce, api.BF16, 8, 131072), fused, 1},
		{both, reduceCall(api.AllReduce, api.BF16, 8, 131073), multi, 6},
		{both, reduceCall(api.AllReduce, api.F32, 2, 65536), fused, 1},
		{both, reduceCall(api.AllReduce, api.F32, 2, 65537), multi, 6},
		{both, reduceCall(api.ReduceScatter, api.BF16, 8, 16384), scatter, 2},
		{both, reduceCall(api.ReduceScatter, api.BF16, 8, 16385), scatterMulti, 6},
		{[]string{Before}, gatherCall(2, 131072), fused, 1},
		{[]string{Before}, gatherCall(2, 131073), staged, 4},
		{[]string{Before}, gatherCall(8, 32768), fused, 1},
		{[]string{Before}, gatherCall(8, 32769), staged, 4},
		{[]string{After}, gatherCall(2, 32768), fused, 1},
		{[]string{After}, gatherCall(2, 32769), staged, 4},
		{[]string{After}, gatherCall(8, 8192), fused, 1},
		{[]string{After}, gatherCall(8, 8193), staged, 4},
		{both, gatherCall(2, 262144), staged, 4},
		{both, gatherCall(2, 262145), multi, 6},
		{both, gatherCall(1, 262145), multi, 6},
		{[]string{After + "?entry=extension"}, reduceCall(api.AllReduce, api.F32, 8, 1), owned, 1 + 1 + 1 + 7 + 2},
		{[]string{After + "?entry=extension"}, reduceCall(api.AllReduce, api.F32, 2, 65537), ownedLarge, 3 + 1 + 1 + 1 + 2},
		{[]string{Before + "?entry=extension"}, reduceCall(api.AllReduce, api.F32, 2, 1<<20), ownedLarge, 8},
		{[]string{Before + "?entry=extension"}, reduceCall(api.AllReduce, api.F32, 2, 1<<20+1), multi, 6},
		{[]string{After + "?entry=extension"}, gatherCall(8, 8193), staged, 4},
		{[]string{After + "?entry=extension"}, reduceCall(api.ReduceScatter, api.F32, 2, 5), []string{"stage", "finish"}, 2},
	} {
		for _, version := range c.versions {
			p := mustPlan(t, version, c.call)
			require.Equal(t, c.kernels, kernelNames(p), "%s %s", version, c.call)
			require.Equal(t, c.launches, p.Cost.Launches, "%s %s", version, c.call)
			var most int64
			for rank := range c.call.Ranks {
				n := int64(0)
				for i := range p.Kernels {
					n += launchesOf(&c.call, &p.Kernels[i], rank)
				}
				most = max(most, n)
			}
			require.Equal(t, most, p.Cost.Launches, "the kernels of the plan, counted")
		}
	}
	many := api.Call{Collective: api.AllGatherMany, DType: api.F32, Ranks: 4, Many: []api.LaneShape{{Count: 3}, {Count: 1 << 20}}}
	require.EqualValues(t, 4+2+8, mustPlan(t, After, many).Cost.Launches)
	many = api.Call{Collective: api.ReduceScatterMany, DType: api.F32, Op: api.Sum, Ranks: 4, Many: []api.LaneShape{{Count: 3}, {Count: 1 << 20}}}
	require.EqualValues(t, 2+6, mustPlan(t, After, many).Cost.Launches)
}

// TestGrids: min(4096, ceil(n/256)) blocks, sized per byte for the gather even
// where it moves vectors.
func TestGrids(t *testing.T) {
	for _, c := range []struct {
		version string
		call    api.Call
		trips   int64
	}{
		{After, reduceCall(api.AllReduce, api.BF16, 8, 131073), 1},
		{After, reduceCall(api.AllReduce, api.BF16, 8, 1<<20), 1},
		{After, reduceCall(api.AllReduce, api.BF16, 8, 1<<20+1), 2},
		{After, reduceCall(api.AllReduce, api.F16, 8, 131072), 512},
		{After, reduceCall(api.AllReduce, api.BF16, 8, 131072), 256},
		{After, reduceCall(api.AllReduce, api.BF16, 8, 513), 2 + 0},
		{After, reduceCall(api.ReduceScatter, api.BF16, 8, 16384), 64},
		{Before, gatherCall(8, 1<<20), 8},
		{After, gatherCall(8, 1<<20), 1},
		{After, gatherCall(8, 4<<20), 2},
		{After + "?copy=peerwise", gatherCall(8, 1<<17), 8},
	} {
		require.Equal(t, c.trips, mustPlan(t, c.version, c.call).Cost.Trips, "%s %s", c.version, c.call)
	}
	odd := mustPlan(t, After, reduceCall(api.AllReduce, api.BF16, 8, 513)).Cost
	require.EqualValues(t, 2, odd.Trips, "256 pairs, then the last element")
	require.EqualValues(t, 7+7+2, odd.RoundTrip)
	require.EqualValues(t, 7*1026, odd.Bytes)
}

// TestDivisions: one 64-bit division a byte before, one a vector after, none
// peer by peer.
func TestDivisions(t *testing.T) {
	require.EqualValues(t, 65536, mustPlan(t, Before, gatherCall(8, 8192)).Cost.Divisions)
	require.EqualValues(t, 4096, mustPlan(t, After, gatherCall(8, 8192)).Cost.Divisions)
	require.Zero(t, mustPlan(t, After+"?copy=peerwise", gatherCall(8, 8192)).Cost.Divisions)
	require.Zero(t, mustPlan(t, After, gatherCall(8, 8191)).Cost.Divisions)
}

// TestOnlyTheGatherChanged: both versions have the same plan for everything
// but all_gather; the spec's name apart.
func TestOnlyTheGatherChanged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		call := drawCall(t, 1<<40)
		if call.Collective == api.AllGather {
			call.Collective = api.AllReduce
			call.Op, call.DType = api.Sum, api.BF16
			if call.InPlace == api.InPlaceStart {
				call.InPlace = api.OutOfPlace
			}
		}
		const params = "?max_size_bytes=1000000000000000"
		a, errA := Plan(spec(t, Before+params), call)
		b, errB := Plan(spec(t, After+params), call)
		if errA != nil {
			require.Error(t, errB)
			return
		}
		a.Spec, b.Spec = "", ""
		require.Equal(t, a, b)
	})
}

// TestHugeCounts is B78 and B79: plans in 64 bits, with nothing negative and
// no limit at 2^31 or 2^32.
func TestHugeCounts(t *testing.T) {
	const params = "?max_size_bytes=1000000000000000000"
	for _, version := range both {
		for _, call := range []api.Call{
			reduceCall(api.AllReduce, api.F32, 8, 1<<31),
			reduceCall(api.AllReduce, api.BF16, 8, 1<<32+4),
			reduceCall(api.ReduceScatter, api.F32, 8, 1<<28),
			{Collective: api.AllGather, DType: api.F32, Ranks: 8, Count: 1 << 28},
			{Collective: api.AllGather, DType: api.U64, Ranks: 8, Count: 1 << 40},
			{Collective: api.AllGatherMany, DType: api.U64, Ranks: 8, Many: []api.LaneShape{{Count: 1<<40 - 1}, {Count: 1 << 40}, {DType: api.U8, Count: 5}}},
		} {
			p := mustPlan(t, version+params, call)
			for _, n := range []int64{p.Cost.Launches, p.Cost.RoundTrip, p.Cost.Bytes} {
				require.Positive(t, n)
			}
			require.GreaterOrEqual(t, p.Cost.Trips, int64(0))
			for lane := range call.Lanes() {
				for rank := range call.Ranks {
					last := call.DstElems(lane) - 1
					place, ok := p.Locate(lane, rank, last)
					require.True(t, ok)
					require.NotEmpty(t, place.Algorithm)
					_, ok = p.Locate(lane, rank, last+1)
					require.False(t, ok)
				}
			}
			prog := NewProgram(p, Conditions{})
			at, end := layout(&call)
			for i := range at {
				require.GreaterOrEqual(t, at[i], int64(0))
				require.Zero(t, at[i]%vector)
				if i > 0 {
					require.Greater(t, at[i], at[i-1])
				}
			}
			require.Equal(t, end, prog.Needs().Box)
		}
	}
	p := mustPlan(t, After+params, reduceCall(api.AllReduce, api.F32, 8, 1<<32+4))
	require.EqualValues(t, 4097, p.Cost.Trips)
	require.Equal(t, int64(7*4*(1<<32+4)), p.Cost.Bytes)
}

// TestRefusals: what the class rejects is refused by name, never planned.
func TestRefusals(t *testing.T) {
	bf16 := func(ranks int) api.Call { return reduceCall(api.AllReduce, api.BF16, ranks, 8) }
	edit := func(c api.Call, f func(*api.Call)) api.Call { f(&c); return c }
	many := func(c api.Collective, f func(*api.Call)) api.Call {
		call := api.Call{Collective: c, DType: api.F32, Ranks: 2, Many: []api.LaneShape{{Count: 4}, {Count: 5}}}
		if c.Reduces() {
			call.Op = api.Sum
		}
		if f != nil {
			f(&call)
		}
		return call
	}
	for _, c := range []struct {
		params string
		call   api.Call
		reason string
	}{
		{"", bf16(3), "1, 2, 4 or 8"},
		{"", bf16(5), "1, 2, 4 or 8"},
		{"", bf16(16), "1, 2, 4 or 8"},
		{"", edit(gatherCall(6, 4), func(*api.Call) {}), "1, 2, 4 or 8"},
		{"", reduceCall(api.AllReduce, api.F64, 2, 4), "f32, f16 and bf16"},
		{"", reduceCall(api.ReduceScatter, api.I32, 2, 4), "f32, f16 and bf16"},
		{"", many(api.ReduceScatterMany, func(c *api.Call) { c.Many[1].DType = api.U8 }), "f32, f16 and bf16"},
		{"", edit(bf16(2), func(c *api.Call) { c.Op = api.Max }), "only sums"},
		{"", edit(bf16(2), func(c *api.Call) { c.Op = api.Avg }), "only sums"},
		{"", edit(bf16(2), func(c *api.Call) { c.Scope = api.Block }), "device-side"},
		{"", edit(bf16(2), func(c *api.Call) { c.Mode = "f32" }), "one reduction"},
		{"", api.Call{Collective: api.Broadcast, DType: api.U8, Ranks: 2, Count: 1}, "no such operation"},
		{"", api.Call{Collective: api.AllToAll, DType: api.U8, Ranks: 2, Count: 1}, "no such operation"},
		{"", gatherCall(2, 64<<20+1), "max_size_bytes=67108864"},
		{"?max_size_bytes=15", bf16(2), "max_size_bytes=15"},
		{"?max_size_bytes=31", reduceCall(api.ReduceScatter, api.F32, 4, 2), "max_size_bytes=31"},
		{"?max_size_bytes=35", many(api.AllGatherMany, nil), "max_size_bytes=35"},
		{"?max_size_bytes=40", many(api.AllGatherMany, nil), "not known"},
		{"?max_size_bytes=39", many(api.ReduceScatterMany, nil), "max_size_bytes=39"},
		{"", many(api.AllGatherMany, func(c *api.Call) { c.DstOffset = api.Offsets{1} }), "takes no outs="},
		{"", many(api.ReduceScatterMany, func(c *api.Call) { c.InPlace = api.InPlaceOwn }), "takes no outs="},
		{"?outs=on", many(api.ReduceScatterMany, nil), "takes no outs="},
		{"?outs=on", many(api.AllGatherMany, nil), "takes no outs="},
		{"?entry=extension", many(api.ReduceScatterMany, nil), "loop in the class"},
		{"?entry=extension", gatherCall(2, 8), "not known"},
		{"?entry=extension", reduceCall(api.AllReduce, api.I8, 2, 4), "f32, f16 and bf16"},
	} {
		for _, version := range both {
			_, err := Plan(spec(t, version+c.params), c.call)
			var refused *api.Refused
			require.ErrorAs(t, err, &refused, "%s", c.call)
			require.Contains(t, refused.Error(), c.reason)
			require.NotEmpty(t, refused.Hint, "says what would work")
		}
	}
	// Exactly the capacity is taken.
	for _, c := range []struct {
		params string
		call   api.Call
	}{
		{"?max_size_bytes=16", bf16(2)}, {"", gatherCall(2, 64<<20)},
		{"?max_size_bytes=32", reduceCall(api.ReduceScatter, api.F32, 4, 2)},
		{"?max_size_bytes=48", many(api.AllGatherMany, nil)},
		{"?max_size_bytes=40", many(api.ReduceScatterMany, nil)},
	} {
		mustPlan(t, After+c.params, c.call)
	}
}

// TestBadSpecs: an unknown version, parameter or value is invalid, and the
// error lists what is known.
func TestBadSpecs(t *testing.T) {
	for _, c := range []struct{ text, hint string }{
		{"abc", Before}, {After + "?copies=ranks", "max_size_bytes"}, {Before + "?copy=peerwise", "known are"},
		{After + "?copy=bytes", "peerwise"}, {After + "?max_size_bytes=0", "1 to"}, {After + "?max_size_bytes=-5", "1 to"},
		{After + "?max_size_bytes=9223372036854775807", "1 to"}, {After + "?max_size_bytes=x", "1 to"},
		{After + "?entry=c", "extension"}, {After + "?outs=1", "on"}, {After + "?validate_signature=yes", "off"},
	} {
		_, err := Plan(spec(t, c.text), gatherCall(2, 4))
		var invalid *api.InvalidError
		require.ErrorAs(t, err, &invalid, c.text)
		require.Contains(t, err.Error(), c.hint)
	}
	mustPlan(t, After+"?max_size_bytes=3074457345618258570", gatherCall(2, 4))
	require.Nil(t, Params("abc"))
	_, err := Plan(spec(t, After), api.Call{Collective: api.AllGather, DType: api.U8, Ranks: 2, Count: math.MaxInt64})
	require.ErrorIs(t, err, api.ErrInvalid)
}

// drawCall draws a call of the class with at most this many bytes a rank.
func drawCall(t *rapid.T, most int64) api.Call {
	call := api.Call{
		Collective: rapid.SampledFrom(collectives()).Draw(t, "collective"),
		Ranks:      rapid.SampledFrom(worldSizes).Draw(t, "ranks"),
		DType:      rapid.SampledFrom(api.DTypes()).Draw(t, "dtype"),
	}
	if call.Collective.Reduces() {
		call.Op, call.DType = api.Sum, rapid.SampledFrom(reduced).Draw(t, "reduced")
	}
	size := int64(call.DType.Size())
	count := func() int64 {
		near := rapid.SampledFrom([]int64{0, 16, 4096, 64 << 10 / int64(call.Ranks), 256 << 10 / int64(call.Ranks), 256 << 10, 1 << 20, 1 << 22, most}).Draw(t, "near")
		return min(max(0, near/size+rapid.Int64Range(-9, 9).Draw(t, "beside")), most/size)
	}
	if api.IsMany(call.Collective) {
		for range rapid.IntRange(1, 4).Draw(t, "lanes") {
			call.Many = append(call.Many, api.LaneShape{Count: count()})
		}
		return call
	}
	call.Count = count()
	for range call.Ranks {
		call.SrcOffset = append(call.SrcOffset, rapid.Int64Range(0, 9).Draw(t, "src"))
		call.DstOffset = append(call.DstOffset, rapid.Int64Range(0, 9).Draw(t, "dst"))
	}
	if rapid.IntRange(0, 3).Draw(t, "place") == 0 {
		call.InPlace, call.DstOffset = api.InPlaceOwn, call.SrcOffset
		if call.Collective == api.ReduceScatter && rapid.Bool().Draw(t, "start") {
			call.InPlace = api.InPlaceStart
		}
	}
	return call
}

// TestAnyCallEndsInAPlanOrAnError: whatever is asked, the answer is a plan, a
// refusal or an invalid call, and a plan turns into a program.
func TestAnyCallEndsInAPlanOrAnError(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		small := rapid.Int64Range(-2, 9)
		call := api.Call{
			Collective: rapid.SampledFrom(append(api.Collectives(), nil)).Draw(t, "collective"),
			DType:      api.DType(rapid.IntRange(0, 16).Draw(t, "dtype")),
			Op:         api.Op(rapid.IntRange(0, 10).Draw(t, "op")),
			Ranks:      rapid.SampledFrom([]int{-1, 0, 1, 2, 3, 4, 8, 16, 1024, 4096}).Draw(t, "ranks"),
			Count:      rapid.OneOf(small, rapid.Int64()).Draw(t, "count"),
			SrcOffset:  rapid.SliceOfN(small, 0, 4).Draw(t, "src"),
			DstOffset:  rapid.SliceOfN(small, 0, 4).Draw(t, "dst"),
			InPlace:    api.InPlace(rapid.IntRange(0, 2).Draw(t, "place")),
			Scope:      api.Scope(rapid.IntRange(0, 3).Draw(t, "scope")),
			Root:       int(small.Draw(t, "root")),
		}
		for _, n := range rapid.SliceOfN(small, 0, 3).Draw(t, "lanes") {
			call.Many = append(call.Many, api.LaneShape{Count: n})
		}
		text := rapid.SampledFrom(append(both, "", "x", After+"?entry=extension", Before+"?max_size_bytes=100")).Draw(t, "spec")
		p, err := Plan(api.Spec{Implementation: Name, Version: text}, call)
		if s, bad := api.ParseSpec("sim:rlkernel@" + text); bad == nil {
			p, err = Plan(s, call)
		}
		if err != nil {
			if !errors.Is(err, api.ErrInvalid) && !errors.Is(err, api.ErrRefused) {
				t.Fatalf("%v", err)
			}
			return
		}
		prog := NewProgram(p, Conditions{})
		var s machine.Step
		for rank := range call.Ranks {
			for cta := range prog.CTAs() {
				for i := range prog.Len(rank, cta) {
					s = machine.Step{Peer: machine.Nobody}
					prog.Step(&s, rank, cta, i)
				}
			}
		}
	})
}
