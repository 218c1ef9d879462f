package nvls_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
	"example.com/tandem/sim"
	"example.com/tandem/sim/nvls"
)

// runCall executes a call over the same patterns in all elements of a rank.
func runCall(t *testing.T, params map[string]string, call api.Call, values []uint64) [][]uint64 {
	t.Helper()
	spec := api.Spec{Backend: "sim", Implementation: nvls.FamilyName, Params: params}
	team, err := sim.New(nvls.Family{}).Open(t.Context(), spec, api.TeamConfig{Ranks: call.Ranks})
	require.NoError(t, err)
	size := call.DType.Size()
	mem := make([]api.Memory, call.Ranks)
	for r := range mem {
		srcN, dstN := call.SrcElems(0), call.DstElems(0)
		src := make([]byte, max(srcN, dstN)*int64(size))
		for i := range srcN {
			num.Store(call.DType, src[i*int64(size):], values[r])
		}
		srcAt, dstAt := call.Addrs(0, r)
		dst := make([]byte, dstN*int64(size))
		if call.InPlace != api.OutOfPlace {
			dst = src[dstAt-srcAt:][:dstN*int64(size)]
		}
		mem[r] = api.Memory{{Src: api.Image{Bytes: src[:srcN*int64(size)], Addr: srcAt}, Dst: api.Image{Bytes: dst, Addr: dstAt}}}
	}
	outcomes, err := api.Run(t.Context(), team, call, mem)
	require.NoError(t, err)
	out := make([][]uint64, call.Ranks)
	for r := range mem {
		require.Equal(t, []api.Interval{{End: mem[r][0].Dst.Len()}}, outcomes[r].Written)
		for i := 0; i < len(mem[r][0].Dst.Bytes); i += size {
			out[r] = append(out[r], num.Load(call.DType, mem[r][0].Dst.Bytes[i:]))
		}
	}
	return out
}

// TestFamily: every element of every rank is the model's word at its index, in
// both collectives, in place too.
func TestFamily(t *testing.T) {
	config, err := nvls.Parse(map[string]string{"seed": "5"})
	require.NoError(t, err)
	values := []uint64{0x3F81, 0x3B83, 0x3A11, 0x3B05}
	for _, c := range []struct {
		collective api.Collective
		inPlace    api.InPlace
	}{{api.AllReduce, api.OutOfPlace}, {api.AllReduce, api.InPlaceOwn}, {api.ReduceScatter, api.OutOfPlace}, {api.ReduceScatter, api.InPlaceOwn}, {api.ReduceScatter, api.InPlaceStart}} {
		call := api.Call{Collective: c.collective, DType: api.BF16, Op: api.Sum, Ranks: 4, Count: 37, InPlace: c.inPlace, SrcOffset: api.Offsets{3}, DstOffset: api.Offsets{3}}
		out := runCall(t, map[string]string{"seed": "5"}, call, values)
		m, err := config.Model(api.BF16, api.Sum, true)
		require.NoError(t, err)
		first := 0
		for rank := range out {
			for i, got := range out[rank] {
				at := int64(i)
				if c.collective == api.ReduceScatter {
					at += int64(rank) * call.Count
				}
				require.Equal(t, m.Word(api.BF16, api.Sum, values, at), got, "%v rank %d element %d", c.collective, rank, i)
				first += int(got & 1)
			}
		}
		require.Greater(t, first, 0)
		require.Less(t, first, 4*37, "both neighbours occur")
	}
}

// TestFamilyRefuses: what a switch does not do is refused, with what would work.
func TestFamilyRefuses(t *testing.T) {
	for _, c := range []struct {
		params map[string]string
		call   api.Call
		says   string
	}{
		{nil, api.Call{Collective: api.AllGather, DType: api.F32, Ranks: 2}, "all_reduce and reduce_scatter"},
		{nil, api.Call{Collective: api.AllReduce, DType: api.F32, Op: api.Sum, Ranks: 1}, "no multicast base"},
		{nil, api.Call{Collective: api.AllReduce, DType: api.F32, Op: api.Sum, Ranks: 73}, "NVLink domain of 72"},
		{map[string]string{"nvlink_domain": "8"}, api.Call{Collective: api.AllReduce, DType: api.F32, Op: api.Sum, Ranks: 9}, "NVLink domain of 8"},
		{nil, api.Call{Collective: api.AllReduce, DType: api.F32, Op: api.Max, Ranks: 2}, "no multimem.ld_reduce does max of f32"},
		{nil, api.Call{Collective: api.AllReduce, DType: api.F32, Op: api.Prod, Ranks: 2}, "prod"},
		{nil, api.Call{Collective: api.AllReduce, DType: api.F16, Op: api.Avg, Ranks: 2}, "avg"},
		{nil, api.Call{Collective: api.AllReduce, DType: api.U8, Op: api.Sum, Ranks: 2}, "sum of u8"},
		{map[string]string{"preset": "hop_native", "order": "1-0"}, api.Call{Collective: api.AllReduce, DType: api.F16, Op: api.Sum, Ranks: 3}, "order 1-0 names 2 ranks"},
	} {
		_, err := nvls.Family{}.Plan(api.Spec{Implementation: nvls.FamilyName, Params: c.params}, c.call)
		require.ErrorIs(t, err, api.ErrRefused)
		require.ErrorContains(t, err, c.says)
	}
	for _, params := range []map[string]string{{"nvlink_domain": "73"}, {"max_ctas": "1"}} {
		_, err := nvls.Family{}.Open(api.Spec{Implementation: nvls.FamilyName, Params: params}, api.TeamConfig{Ranks: 2})
		require.ErrorIs(t, err, api.ErrInvalid)
	}
	_, err := nvls.Family{}.Open(api.Spec{Implementation: nvls.FamilyName, Version: "1"}, api.TeamConfig{Ranks: 2})
	require.ErrorIs(t, err, api.ErrInvalid)
}
