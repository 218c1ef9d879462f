package nvshmem

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
)

func TestAllReduceTakes(t *testing.T) {
	call := func(d api.DType, op api.Op, ranks int, n int64, scope api.Scope) api.Call {
		return api.Call{Collective: api.AllReduce, DType: d, Op: op, Ranks: ranks, Count: n, Scope: scope}
	}
	for _, c := range []struct {
		spec string
		call api.Call
		want string
	}{
		{"3.4.5", call(api.F32, api.Sum, 4, 2048, api.Block), "one_shot"},
		{"3.4.5", call(api.F32, api.Sum, 4, 2049, api.Block), "two_shot"}, // f32 needs no divisibility
		{"3.4.5", call(api.F32, api.Sum, 4, 1, api.Block), "one_shot"},
		{"3.4.5", call(api.BF16, api.Sum, 4, 1, api.Block), "recexch"},
		{"3.4.5", call(api.BF16, api.Sum, 4, 2, api.Block), "one_shot"},
		{"3.4.5?reduce_algo=3", call(api.BF16, api.Sum, 4, 4, api.Block), "recexch"}, // no more elements than ranks
		{"3.4.5?reduce_algo=3", call(api.BF16, api.Sum, 4, 8, api.Block), "two_shot"},
		{"3.4.5?reduce_algo=4", call(api.BF16, api.Sum, 4, 8192, api.Block), "one_shot"},
		{"3.4.5?reduce_algo=5", call(api.BF16, api.Sum, 4, 8, api.Block), "recexch"},
		{"3.4.5?reduce_algo=1", call(api.BF16, api.Sum, 4, 8, api.Block), "one_shot"},
		{"3.4.5?reduce_nvls_threshold=4", call(api.BF16, api.Sum, 4, 8, api.Block), "two_shot"},
		{"3.4.5", call(api.F64, api.Sum, 4, 3, api.Block), "recexch"},
		{"3.4.5", call(api.F32, api.Max, 4, 8192, api.Block), "segment"},
		{"3.4.5", call(api.I32, api.Sum, 4, 4, api.Block), "ll"},
		{"3.4.5", call(api.I32, api.Sum, 4, 4, api.OnStream), "ll"},
		{"3.4.5", call(api.I32, api.Sum, 4, 4, api.Warp), "recexch"},
		{"3.4.5", call(api.I32, api.Sum, 4, 4, api.Thread), "recexch"},
		{"3.4.5", call(api.I32, api.Sum, 4, 3, api.Block), "recexch"},
		{"3.4.5", call(api.I32, api.Sum, 4, 512, api.Block), "ll"},
		{"3.4.5", call(api.I32, api.Sum, 4, 514, api.Block), "recexch"},
		{"3.4.5?fcollect_ll_threshold=4096", call(api.I32, api.Sum, 4, 514, api.Block), "ll"},
		{"3.4.5?reduce_scratch_size=4096", call(api.I32, api.Sum, 4, 256, api.Block), "segment"},
		{"3.4.5?reduce_scratch_size=8192", call(api.I32, api.Sum, 4, 256, api.Block), "ll"},
		{"3.4.5", call(api.I16, api.Sum, 4, 4, api.Block), "recexch"}, // never for 16-bit types
		{"3.4.5", call(api.U64, api.Xor, 4, 4, api.Block), "ll"},
		{"pr131", call(api.F32, api.Sum, 4, 2049, api.Block), "two_shot"},
		{"pr131", call(api.BF16, api.Sum, 4, 2052, api.Block), "recexch"}, // odd slice
		{"pr131?reduce_algo=3", call(api.BF16, api.Sum, 4, 12, api.Block), "recexch"},
		{"pr131?reduce_algo=4", call(api.BF16, api.Sum, 4, 12, api.Block), "one_shot"},
	} {
		require.Equal(t, map[string]int{c.want: 1}, mix(plan(t, c.spec, c.call)), "%s %s", c.spec, c.call)
	}
	sub := call(api.I32, api.Sum, 4, 4, api.Block)
	sub.Team = api.SubTeam
	require.Equal(t, map[string]int{"segment": 1}, mix(plan(t, "3.4.5", sub)), "no LL in a sub team")
}

func TestReduceScatterTakes(t *testing.T) {
	for _, c := range []struct {
		dtype api.DType
		op    api.Op
		ranks int
		count int64
		want  string
	}{
		{api.BF16, api.Sum, 2, 2, "nvls"}, {api.BF16, api.Sum, 2, 1, "linear"}, {api.BF16, api.Sum, 2, 3, "linear"},
		{api.F16, api.Sum, 3, 4, "linear"}, {api.F16, api.Sum, 1, 4, "copy"}, {api.F16, api.Max, 2, 4, "linear"},
		{api.I16, api.Sum, 2, 4, "linear"}, {api.U8, api.Sum, 2, 4, "linear"}, {api.U8, api.And, 2, 4, "linear"},
		{api.F32, api.Sum, 3, 1, "nvls"}, {api.F32, api.Max, 2, 4, "linear"}, {api.F64, api.Min, 2, 4, "linear"},
		{api.F64, api.Sum, 3, 1, "nvls"}, {api.I32, api.Min, 3, 1, "nvls"}, {api.U64, api.Max, 2, 1, "nvls"},
		{api.I32, api.Prod, 2, 4, "linear"}, {api.U64, api.Or, 2, 4, "nvls"}, {api.I32, api.Xor, 5, 4, "nvls"},
	} {
		call := block(scatter(c.ranks, c.dtype, c.op, c.count))
		require.Equal(t, map[string]int{c.want: 1}, mix(plan(t, "3.4.5", call)), "%s", call)
	}
	// PR #131 looks at the addresses.
	odd := block(scatter(2, api.BF16, api.Sum, 64))
	odd.SrcOffset = offset(1)
	require.Equal(t, every(2, 64), plan(t, "3.4.5", odd).Unwritten)
	require.Equal(t, map[string]int{"linear": 1}, mix(plan(t, "pr131", odd)))
	odd.SrcOffset, odd.DstOffset = offset(0), offset(3)
	require.Equal(t, map[string]int{"linear": 1}, mix(plan(t, "pr131", odd)))
}

func TestAllGatherTakes(t *testing.T) {
	for _, c := range []struct {
		dtype api.DType
		ranks int
		count int64
		scope api.Scope
		want  string
	}{
		{api.F32, 3, 512, api.Block, "ll8"}, {api.F32, 3, 514, api.Block, "nvls"}, {api.F32, 3, 511, api.Block, "nvls"},
		{api.F32, 3, 512, api.Thread, "nvls"}, {api.F32, 3, 512, api.Warp, "ll8"}, {api.F32, 1, 512, api.Block, "ll8"}, {api.F32, 1, 511, api.Block, "copy"},
		{api.BF16, 2, 1024, api.Block, "ll8"}, {api.BF16, 3, 1024, api.Block, "nvls"}, {api.BF16, 2, 1022, api.Block, "nvls"}, {api.BF16, 2, 1028, api.Block, "nvls"},
		{api.I16, 2, 4, api.OnStream, "ll8"}, {api.U8, 2, 64, api.Block, "nvls"}, {api.U8, 2, 63, api.Block, "copy"}, {api.BF16, 2, 3, api.Block, "copy"},
	} {
		call := gather(c.ranks, c.dtype, c.count, 0)
		call.Scope = c.scope
		require.Equal(t, map[string]int{c.want: 1}, mix(plan(t, "3.4.5", call)), "%s", call)
	}
	require.Contains(t, joined(plan(t, "3.4.5", block(gather(2, api.BF16, 1030, 0))).Notes), "runs over the end")
	require.NotContains(t, joined(plan(t, "3.4.5", block(gather(2, api.BF16, 1032, 0))).Notes), "runs over the end")
}

func TestBroadcastTakes(t *testing.T) {
	for _, c := range []struct {
		dtype api.DType
		count int64
		want  string
	}{
		{api.F32, 4096, "tree"}, {api.F32, 4098, "put_signal"}, {api.F32, 4095, "put_signal"}, {api.F64, 2048, "tree"},
		{api.F64, 2050, "put_signal"}, {api.BF16, 2, "put_signal"}, {api.U8, 4, "put_signal"},
	} {
		p := plan(t, "3.4.5", api.Call{Collective: api.Broadcast, DType: c.dtype, Ranks: 40, Root: 7, Count: c.count})
		require.Equal(t, map[string]int{c.want: 1}, mix(p))
		require.Equal(t, 7, p.Kernels[0].CTAs[0].Slices[0].Rank)
	}
}

// The split: who is spread, over how many.
func TestSplits(t *testing.T) {
	for _, c := range []struct {
		spec string
		call api.Call
		want int
	}{
		{"3.4.5", allReduce(2, 131071, 0), 1}, {"3.4.5", allReduce(2, 131072, 0), 16}, {"3.4.5?max_ctas=5", allReduce(2, 131072, 0), 5},
		{"3.4.5?max_ctas=5", allReduce(2, 131071, 0), 1}, {"3.4.5?nvls=off&max_ctas=5", allReduce(2, 131072, 0), 1},
		{"3.4.5", allReduce(1, 131072, 0), 1}, {"3.4.5", block(allReduce(2, 131072, 0)), 1},
		{"3.4.5", scatter(4, api.BF16, api.Sum, 131071), 1}, {"3.4.5", scatter(4, api.BF16, api.Sum, 131072), 16},
		{"3.4.5?max_ctas=3", scatter(4, api.BF16, api.Sum, 131072), 3},
		{"3.4.5", gather(4, api.BF16, 131071, 0), 1}, {"3.4.5", gather(4, api.BF16, 131072, 0), 8}, {"3.4.5", gather(2, api.BF16, 262144, 0), 16},
		{"3.4.5", gather(33, api.BF16, 262144, 0), 1}, {"3.4.5?max_ctas=3", gather(33, api.BF16, 262144, 0), 3},
		{"3.4.5?max_ctas=9", api.Call{Collective: api.Broadcast, DType: api.F32, Ranks: 2, Count: 1 << 30}, 1},
		{"3.4.5?max_ctas=9", api.Call{Collective: api.AllToAll, DType: api.F32, Ranks: 2, Count: 1 << 20}, 1},
	} {
		require.Len(t, plan(t, c.spec, c.call).Kernels[0].CTAs, c.want, "%s %s", c.spec, c.call)
	}
	// Every type and op is spread, NVLS or not.
	call := allReduce(2, 262144, 0)
	call.DType, call.Op = api.U8, api.Prod
	require.Len(t, plan(t, "3.4.5", call).Kernels[0].CTAs, 16)
	// A team so large that CTAs are left without elements.
	few := plan(t, "3.4.5?max_ctas=1024", gather(1024, api.F32, 256, 0))
	require.Equal(t, map[string]int{"none": 1023, "ll8": 1}, mix(few))
	require.Empty(t, few.Unknown, "one busy CTA holds the whole call")
	require.Equal(t, every(1024, 0), few.Unwritten)
}
