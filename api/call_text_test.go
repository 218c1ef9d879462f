package api_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
)

func TestCallAsFlags(t *testing.T) {
	for _, c := range []struct {
		call  api.Call
		flags string
	}{
		{sound(), "--collective all_reduce --dtype bf16 --op sum --ranks 4 --count 1000"},
		{api.Call{Collective: api.Broadcast, DType: api.U8, Ranks: 3, Count: 0, Root: 2, Scope: api.Block},
			"--collective broadcast --dtype u8 --ranks 3 --count 0 --root 2 --scope block"},
		{api.Call{Collective: api.ReduceScatter, DType: api.F32, Op: api.Min, Ranks: 2, Count: 7, InPlace: api.InPlaceStart, SrcOffset: api.Offsets{1}, DstOffset: api.Offsets{1}, Team: api.SubTeam},
			"--collective reduce_scatter --dtype f32 --op min --ranks 2 --count 7 --src-offset 1 --dst-offset 1 --in-place=start --team sub"},
		{api.Call{Collective: api.AllGather, DType: api.F16, Ranks: 2, Count: 7, InPlace: api.InPlaceOwn},
			"--collective all_gather --dtype f16 --ranks 2 --count 7 --in-place"},
		{api.Call{Collective: api.AllReduce, DType: api.F64, Op: api.Sum, Ranks: 3, Count: 7, SrcOffset: api.Offsets{0, 1, 2}, DstOffset: api.Offsets{4, 4, 4}, Mode: "f32"},
			"--collective all_reduce --dtype f64 --op sum --ranks 3 --count 7 --src-offset 0,1,2 --dst-offset 4 --mode f32"},
		{api.Call{Collective: api.AllGatherMany, DType: api.BF16, Ranks: 2, Many: []api.LaneShape{{Count: 1024}, {DType: api.BF16, Count: 7}, {DType: api.F32}}},
			"--collective all_gather_many --dtype bf16 --ranks 2 --lanes 1024,7,f32:0"},
	} {
		require.NoError(t, c.call.Validate())
		require.Equal(t, c.flags, c.call.String())
	}
}

func TestParseLane(t *testing.T) {
	for text, want := range map[string]api.LaneShape{
		"1024":  {Count: 1024},
		"0":     {},
		"f32:0": {DType: api.F32},
		"u8:9":  {DType: api.U8, Count: 9},
	} {
		got, err := api.ParseLane(text)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, text := range []string{"", ":", "f32", "f32:", "f32:x", "x:1", "9223372036854775808", "1,2", " 1"} {
		_, err := api.ParseLane(text)
		require.ErrorIs(t, err, api.ErrInvalid, "%q", text)
	}
}

func TestCallAsJSON(t *testing.T) {
	call := api.Call{Collective: api.ReduceScatterMany, DType: api.BF16, Op: api.Avg, Ranks: 2, InPlace: api.InPlaceStart,
		Many: []api.LaneShape{{Count: 3}, {DType: api.F32, Count: 4}}, SrcOffset: api.Offsets{1, 2}, DstOffset: api.Offsets{1, 2}, Scope: api.Warp, Team: api.SubTeam, Mode: "f32"}
	b, err := json.Marshal(call)
	require.NoError(t, err)
	require.Equal(t, `{"collective":"reduce_scatter_many","scope":"warp","dtype":"bf16","op":"avg","ranks":2,"count":0,"lanes":["3","f32:4"],"src_offset":[1,2],"dst_offset":[1,2],"in_place":"start","root":0,"team":"sub","mode":"f32"}`, string(b))
	b, err = json.Marshal(api.Call{Collective: api.AllGather, DType: api.U8, Ranks: 1, Count: 9, SrcOffset: api.Offsets{3}})
	require.NoError(t, err)
	require.Equal(t, `{"collective":"all_gather","scope":"on_stream","dtype":"u8","ranks":1,"count":9,"src_offset":3,"dst_offset":0,"in_place":false,"root":0,"team":"world"}`, string(b))
}

func TestOffsets(t *testing.T) {
	for text, want := range map[string]api.Offsets{"0": {0}, "[]": {}, "[1,2]": {1, 2}, "7": {7}} {
		var o api.Offsets
		require.NoError(t, json.Unmarshal([]byte(text), &o))
		require.Equal(t, want, o)
	}
	for _, text := range []string{`"1"`, "1.5", "{}", "[1,null,\"x\"]", "1e30", "true"} {
		var o api.Offsets
		require.Error(t, json.Unmarshal([]byte(text), &o), text)
	}
	require.EqualValues(t, 0, api.Offsets(nil).At(5))
	require.EqualValues(t, 3, api.Offsets{3}.At(5))
	require.EqualValues(t, 9, api.Offsets{3, 9}.At(1))
	require.True(t, api.Offsets(nil).Uniform())
	require.True(t, api.Offsets{4, 4}.Uniform())
	require.False(t, api.Offsets{4, 5}.Uniform())
}

func TestInPlaceAsJSON(t *testing.T) {
	for _, p := range []api.InPlace{api.OutOfPlace, api.InPlaceOwn, api.InPlaceStart} {
		b, err := json.Marshal(p)
		require.NoError(t, err)
		var got api.InPlace
		require.NoError(t, json.Unmarshal(b, &got))
		require.Equal(t, p, got)
	}
	for _, text := range []string{`"own"`, "1", "null", `"true"`} {
		var p api.InPlace
		require.Error(t, json.Unmarshal([]byte(text), &p), text)
	}
}
