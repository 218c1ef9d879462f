package api_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/tandem/api"
)

// sound is a call that is right in every respect.
func sound() api.Call {
	return api.Call{Collective: api.AllReduce, DType: api.BF16, Op: api.Sum, Ranks: 4, Count: 1000}
}

func TestValidate(t *testing.T) {
	lanes := func(l ...api.LaneShape) func(*api.Call) {
		return func(c *api.Call) { c.Collective, c.Op, c.Many = api.AllGatherMany, api.NoOp, l }
	}
	for _, c := range []struct {
		name   string
		change func(*api.Call)
		want   string // what the error must say; "" is a sound call
	}{
		{"as it is", func(*api.Call) {}, ""},
		{"no collective", func(c *api.Call) { c.Collective = nil }, `collective "": none given`},
		{"no ranks", func(c *api.Call) { c.Ranks = 0 }, `ranks "0": out of range (1 to 1024)`},
		{"negative ranks", func(c *api.Call) { c.Ranks = -1 }, `ranks "-1"`},
		{"most ranks", func(c *api.Call) { c.Ranks = 1024 }, ""},
		{"too many ranks", func(c *api.Call) { c.Ranks = 1025 }, `ranks "1025": out of range (1 to 1024)`},
		{"scope beyond", func(c *api.Call) { c.Scope = api.Thread + 1 }, `scope "4": unknown (known are [on_stream block warp thread])`},
		{"team beyond", func(c *api.Call) { c.Team = api.SubTeam + 1 }, `team "2": unknown (known are [world sub])`},
		{"empty call", func(c *api.Call) { c.Count = 0 }, ""},
		{"negative count", func(c *api.Call) { c.Count = -1 }, `count "-1": out of range (0 to 1099511627776)`},
		{"largest count", func(c *api.Call) { c.Count = api.MaxCount }, ""},
		{"count beyond", func(c *api.Call) { c.Count = api.MaxCount + 1 }, `count "1099511627777"`},
		{"count that wraps", func(c *api.Call) { c.Count = math.MaxInt64 }, `count "9223372036854775807"`},
		{"no dtype", func(c *api.Call) { c.DType = 0 }, `dtype "dtype(0)": unknown`},
		{"dtype beyond", func(c *api.Call) { c.DType = api.U64 + 1 }, `dtype "dtype(15)": unknown`},
		{"no op", func(c *api.Call) { c.Op = api.NoOp }, `op "": not defined on bf16`},
		{"op beyond", func(c *api.Call) { c.Op = api.Xor + 1 }, `op "op(9)"`},
		{"bits of a float", func(c *api.Call) { c.Op = api.And }, `op "and": not defined on bf16 (sum, prod, min, max and avg are defined on every dtype; and, or, xor on integers)`},
		{"bits of an integer", func(c *api.Call) { c.Op, c.DType = api.Xor, api.U8 }, ""},
		{"op of a copy", func(c *api.Call) { c.Collective = api.AllGather }, `op "sum": all_gather takes no op`},
		{"root of the rootless", func(c *api.Call) { c.Root = 1 }, `root "1": all_reduce has no root`},
		{"root", func(c *api.Call) { c.Collective, c.Op, c.Root = api.Broadcast, api.NoOp, 3 }, ""},
		{"root beyond", func(c *api.Call) { c.Collective, c.Op, c.Root = api.Broadcast, api.NoOp, 4 }, `root "4": no such rank (0 to 3)`},
		{"root below", func(c *api.Call) { c.Collective, c.Op, c.Root = api.Broadcast, api.NoOp, -1 }, `root "-1": no such rank (0 to 3)`},
		{"one offset", func(c *api.Call) { c.SrcOffset = api.Offsets{3} }, ""},
		{"an offset each", func(c *api.Call) { c.DstOffset = api.Offsets{0, 1, 2, 3} }, ""},
		{"too few offsets", func(c *api.Call) { c.DstOffset = api.Offsets{0, 1, 2} }, `dst-offset "[0 1 2]": wrong number of offsets (one, or one for each of 4 ranks)`},
		{"negative offset", func(c *api.Call) { c.SrcOffset = api.Offsets{-1} }, `src-offset "-1": beyond any buffer`},
		{"offset beyond", func(c *api.Call) { c.SrcOffset = api.Offsets{api.MaxCount + 1} }, `src-offset "1099511627777": beyond any buffer`},
		{"in place", func(c *api.Call) { c.InPlace = api.InPlaceOwn }, ""},
		{"in place, no such form", func(c *api.Call) { c.InPlace = api.InPlaceStart }, `in-place "start": all_reduce has no such in-place form`},
		{"in place at the start", func(c *api.Call) { c.Collective, c.InPlace = api.ReduceScatter, api.InPlaceStart }, ""},
		{"in place all to all", func(c *api.Call) { c.Collective, c.Op, c.InPlace = api.AllToAll, api.NoOp, api.InPlaceOwn }, `in-place "true": all_to_all has no such in-place form`},
		{"in place, offsets apart", func(c *api.Call) { c.InPlace, c.SrcOffset = api.InPlaceOwn, api.Offsets{1} }, `dst-offset "0": an in-place call has one buffer, so both offsets must be equal`},
		{"in place, offsets apart on one rank", func(c *api.Call) {
			c.InPlace, c.SrcOffset, c.DstOffset = api.InPlaceOwn, api.Offsets{1}, api.Offsets{1, 1, 1, 2}
		}, `dst-offset "2"`},
		{"lanes of one lane", func(c *api.Call) { c.Many = []api.LaneShape{{Count: 1}} }, `lanes "1": all_reduce has one lane (use all_gather_many or reduce_scatter_many)`},
		{"no lanes", lanes(), `lanes "0": all_gather_many needs lanes`},
		{"lanes", lanes(api.LaneShape{Count: 1024}, api.LaneShape{Count: 0}, api.LaneShape{DType: api.F32, Count: 7}), ""},
		{"most lanes", lanes(make([]api.LaneShape, api.MaxLanes)...), ""},
		{"too many lanes", lanes(make([]api.LaneShape, api.MaxLanes+1)...), `lanes "4097"`},
		{"lane count", lanes(api.LaneShape{Count: 1}, api.LaneShape{Count: -1}), `count "-1"`},
		{"lane dtype", lanes(api.LaneShape{DType: 99, Count: 1}), `dtype "dtype(99)": unknown`},
		{"op of a lane", func(c *api.Call) {
			c.Collective, c.Op, c.DType = api.ReduceScatterMany, api.Or, api.U8
			c.Many = []api.LaneShape{{Count: 1}, {DType: api.F32, Count: 1}}
		}, `op "or": not defined on f32`},
	} {
		t.Run(c.name, func(t *testing.T) {
			call := sound()
			c.change(&call)
			err := call.Validate()
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, api.ErrInvalid)
			var typed *api.InvalidError
			require.ErrorAs(t, err, &typed)
			require.Contains(t, err.Error(), c.want)
			require.NotContains(t, err.Error(), "\n")
		})
	}
}

func TestNamesRoundTrip(t *testing.T) {
	for _, d := range api.DTypes() {
		got, err := api.ParseDType(d.String())
		require.NoError(t, err)
		require.Equal(t, d, got)
	}
	for _, o := range api.Ops() {
		got, err := api.ParseOp(o.String())
		require.NoError(t, err)
		require.Equal(t, o, got)
	}
	for _, s := range []api.Scope{api.OnStream, api.Block, api.Warp, api.Thread} {
		got, err := api.ParseScope(s.String())
		require.NoError(t, err)
		require.Equal(t, s, got)
	}
	for _, k := range []api.TeamKind{api.World, api.SubTeam} {
		got, err := api.ParseTeamKind(k.String())
		require.NoError(t, err)
		require.Equal(t, k, got)
	}
}

func TestContractsRoundTrip(t *testing.T) {
	for _, c := range []api.Contract{api.Exact, api.OrderFree, api.Faithful} {
		text, err := c.MarshalText()
		require.NoError(t, err)
		var got api.Contract
		require.NoError(t, got.UnmarshalText(text))
		require.Equal(t, c, got)
	}
	var c api.Contract
	require.ErrorContains(t, c.UnmarshalText([]byte("equal")), `contract "equal": unknown (known are exact, order_free and faithful)`)
}

func TestUnknownNamesListTheKnownOnes(t *testing.T) {
	_, collective := api.ParseCollective("allreduce")
	_, dtype := api.ParseDType("float16")
	_, op := api.ParseOp("mean")
	_, scope := api.ParseScope("grid")
	_, team := api.ParseTeamKind("node")
	_, lane := api.ParseLane("12x")
	_, laneType := api.ParseLane("half:12")
	for _, c := range []struct {
		err  error
		says []string
	}{
		{collective, []string{`collective "allreduce": unknown`, "all_reduce", "reduce_scatter_many"}},
		{dtype, []string{`dtype "float16": unknown`, "bf16", "e4m3", "u64"}},
		{op, []string{`op "mean": unknown`, "sum", "avg", "xor"}},
		{scope, []string{`scope "grid": unknown`, "on_stream", "thread"}},
		{team, []string{`team "node": unknown`, "world", "sub"}},
		{lane, []string{`lanes "12x": not a lane`, "f32:7"}},
		{laneType, []string{`dtype "half": unknown`}},
	} {
		require.ErrorIs(t, c.err, api.ErrInvalid)
		for _, s := range c.says {
			require.Contains(t, c.err.Error(), s)
		}
	}
}

// memory is what rank brings to call, at the standard addresses.
func memory(call *api.Call, rank int) api.Memory {
	var mem api.Memory
	for lane := range call.Lanes() {
		size := int64(call.Lane(lane).DType.Size())
		src, dst := call.Addrs(lane, rank)
		mem = append(mem, api.Lane{
			Src: api.Image{Bytes: make([]byte, 128+size*call.SrcElems(lane)), Addr: src, Guard: 64},
			Dst: api.Image{Bytes: make([]byte, 128+size*call.DstElems(lane)), Addr: dst, Guard: 64},
		})
	}
	return mem
}

func TestCheckMemory(t *testing.T) {
	call := sound()
	inPlace := sound()
	inPlace.InPlace = api.InPlaceOwn
	gather := api.Call{Collective: api.AllGather, DType: api.F32, Ranks: 3, Count: 8, InPlace: api.InPlaceOwn}
	for _, c := range []struct {
		name   string
		call   api.Call
		change func(*api.Memory)
		want   string
	}{
		{"right", call, func(*api.Memory) {}, ""},
		{"right, in place", inPlace, func(*api.Memory) {}, ""},
		{"right, own block", gather, func(*api.Memory) {}, ""},
		{"a lane too many", call, func(m *api.Memory) { *m = append(*m, (*m)[0]) }, `lanes "2": the call has 1 lanes`},
		{"no lane", call, func(m *api.Memory) { *m = nil }, `lanes "0"`},
		{"short source", call, func(m *api.Memory) { (*m)[0].Src.Bytes = (*m)[0].Src.Bytes[2:] }, `source "1998 bytes": lane 0 of rank 2 needs 2000 bytes`},
		{"long destination", call, func(m *api.Memory) { (*m)[0].Dst.Bytes = append((*m)[0].Dst.Bytes, 0) }, `destination "2001 bytes"`},
		{"guards longer than the image", call, func(m *api.Memory) { (*m)[0].Dst.Guard = 1 << 40 }, `destination "guards of 1099511627776 bytes"`},
		{"negative guard", call, func(m *api.Memory) { (*m)[0].Dst.Guard = -1 }, `destination "guards of -1 bytes"`},
		{"between elements", call, func(m *api.Memory) { (*m)[0].Src.Addr++ }, "no multiple of the element size 2"},
		{"touching", call, func(m *api.Memory) { (*m)[0].Dst.Addr = (*m)[0].Src.Addr + 2000 }, ""},
		{"the same, out of place", call, func(m *api.Memory) { (*m)[0].Dst.Addr = (*m)[0].Src.Addr }, "overlap (keep them apart, or ask for an in-place call)"},
		{"partial overlap", call, func(m *api.Memory) { (*m)[0].Dst.Addr = (*m)[0].Src.Addr + 1998 }, "source and destination overlap"},
		{"partial overlap from below", call, func(m *api.Memory) { (*m)[0].Dst.Addr = (*m)[0].Src.Addr - 1998 }, "source and destination overlap"},
		{"apart, in place", inPlace, func(m *api.Memory) { (*m)[0].Dst.Addr += 2 }, "must begin 0 elements into the larger"},
		{"another rank's block", gather, func(m *api.Memory) { (*m)[0].Src.Addr -= 32 }, "must begin 16 elements into the larger"},
	} {
		t.Run(c.name, func(t *testing.T) {
			mem := memory(&c.call, 2)
			c.change(&mem)
			err := c.call.CheckMemory(2, mem)
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, api.ErrInvalid)
			require.Contains(t, err.Error(), c.want)
		})
	}
}

func TestMemoryBytes(t *testing.T) {
	call := sound()
	require.EqualValues(t, 4*2*2*1000, call.MemoryBytes())
	call.InPlace = api.InPlaceOwn
	require.EqualValues(t, 4*2*1000, call.MemoryBytes())
	gather := api.Call{Collective: api.AllGatherMany, DType: api.F32, Ranks: 3, Many: []api.LaneShape{{Count: 5}, {DType: api.U8, Count: 7}}}
	require.EqualValues(t, 3*(4*(5+15)+(7+21)), gather.MemoryBytes())
	huge := api.Call{Collective: api.AllToAll, DType: api.F64, Ranks: api.MaxRanks, Count: api.MaxCount}
	require.NoError(t, huge.Validate())
	require.EqualValues(t, int64(math.MaxInt64), huge.MemoryBytes(), "saturates: 2 * 2^10 * 2^40 * 2^3 * 2^10 bytes")
	reduce := api.Call{Collective: api.AllReduce, DType: api.BF16, Op: api.Sum, Ranks: 2, Count: api.MaxCount}
	require.EqualValues(t, int64(8)<<40, reduce.MemoryBytes())
}

// TestAnySoundCallIsSelfConsistent holds Validate to what the rest of the
// package needs: a call it lets through has sizes, addresses and a text.
func TestAnySoundCallIsSelfConsistent(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		call := drawCall(rt)
		if err := call.Validate(); err != nil {
			require.ErrorIs(rt, err, api.ErrInvalid)
			require.False(rt, strings.Contains(err.Error(), "\n"))
			return
		}
		require.Positive(rt, call.MemoryBytes()+1)
		for lane := range call.Lanes() {
			src, dst := call.Addrs(lane, call.Ranks-1)
			size := uint64(call.Lane(lane).DType.Size())
			require.Zero(rt, src%size)
			require.Zero(rt, dst%size)
		}
		require.NotEmpty(rt, call.String())
	})
}

// drawCall draws calls of which most are sound.
func drawCall(rt *rapid.T) api.Call {
	c := api.Call{
		Collective: rapid.SampledFrom(api.Collectives()).Draw(rt, "collective"),
		DType:      rapid.SampledFrom(api.DTypes()).Draw(rt, "dtype"),
		Op:         rapid.SampledFrom(append(api.Ops(), api.NoOp)).Draw(rt, "op"),
		Ranks:      rapid.OneOf(rapid.IntRange(1, 9), rapid.IntRange(0, 1025)).Draw(rt, "ranks"),
		Count:      rapid.OneOf(rapid.Int64Range(0, 100), rapid.Int64Range(-1, api.MaxCount+1)).Draw(rt, "count"),
		InPlace:    rapid.SampledFrom([]api.InPlace{api.OutOfPlace, api.OutOfPlace, api.InPlaceOwn, api.InPlaceStart}).Draw(rt, "in place"),
		Scope:      rapid.SampledFrom([]api.Scope{api.OnStream, api.Block, api.Warp, api.Thread}).Draw(rt, "scope"),
		Team:       rapid.SampledFrom([]api.TeamKind{api.World, api.SubTeam}).Draw(rt, "team"),
		Mode:       rapid.SampledFrom([]string{"", "", "f32"}).Draw(rt, "mode"),
	}
	offsets := rapid.SliceOfN(rapid.Int64Range(0, 15), 0, 1)
	if c.Ranks <= 9 {
		offsets = rapid.OneOf(offsets, rapid.SliceOfN(rapid.Int64Range(0, 15), max(c.Ranks, 0), max(c.Ranks, 0)))
	}
	c.SrcOffset = offsets.Draw(rt, "source offsets")
	c.DstOffset = offsets.Draw(rt, "destination offsets")
	if c.InPlace != api.OutOfPlace {
		c.DstOffset = c.SrcOffset
	}
	if c.Collective.Rooted() {
		c.Root = rapid.IntRange(0, max(c.Ranks-1, 0)).Draw(rt, "root")
	}
	if !c.Collective.Reduces() {
		c.Op = api.NoOp
	}
	if api.IsMany(c.Collective) {
		c.Count = 0
		for range rapid.IntRange(1, 4).Draw(rt, "lanes") {
			c.Many = append(c.Many, api.LaneShape{
				DType: rapid.SampledFrom(append(api.DTypes(), 0)).Draw(rt, "lane dtype"),
				Count: rapid.Int64Range(0, 100).Draw(rt, "lane count"),
			})
		}
	}
	return c
}
