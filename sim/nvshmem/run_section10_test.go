package nvshmem_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
)

// The predictions of the description's section 10, by number, as executed calls
// show them.

func scatter(d api.DType, op api.Op, ranks int, count int64) api.Call {
	return api.Call{Collective: api.ReduceScatter, DType: d, Op: op, Ranks: ranks, Count: count}
}

func gather(d api.DType, ranks int, count, off int64) api.Call {
	return shifted(api.Call{Collective: api.AllGather, DType: d, Ranks: ranks, Count: count}, off)
}

// differing counts the outputs of a rank that are not what the definition says.
func differing(call *api.Call, rank int, mem []api.Memory, src [][]uint64, s num.Scheme) int {
	n := 0
	var ins []api.Input
	for i, got := range elems(call.DType, mem[rank][0].Dst) {
		ins = call.Inputs(ins[:0], 0, rank, int64(i))
		bits := make([]uint64, len(ins))
		for k, in := range ins {
			bits[k] = src[in.Rank][in.Index]
		}
		if num.Eval(call.DType, s, bits) != got {
			n++
		}
	}
	return n
}

func sources(call *api.Call, mem []api.Memory) [][]uint64 {
	out := make([][]uint64, len(mem))
	for r := range mem {
		out[r] = elems(call.DType, mem[r][0].Src)
	}
	return out
}

func TestRun10_1(t *testing.T) {
	for _, c := range []struct {
		version string
		call    api.Call
		want    int64
	}{
		{"2dca770", allReduce(api.BF16, api.Sum, 8, 1048704), 524416},
		{"pr131", allReduce(api.BF16, api.Sum, 8, 1048704), 0},
		{"2dca770", block(allReduce(api.F16, api.Sum, 8, 2056)), 1032},
	} {
		mem := memory(&c.call, func(int, int64) uint64 { return 1 })
		out, err := run(t, c.version, c.call, mem)
		require.NoError(t, err)
		require.Equal(t, same(8, c.want), unwritten(&c.call, out), "%s %v", c.version, c.call)
	}
}

func TestRun10_2ReduceScatterReadsTheWrongElements(t *testing.T) {
	call := scatter(api.BF16, api.Max, 2, 262144)
	mem := normal(&call, 1)
	src := sources(&call, mem)
	_, err := run(t, "3.4.5", call, mem)
	require.NoError(t, err)
	require.Equal(t, 245605, differing(&call, 0, mem, src, num.Scheme{Op: num.Max}))
	require.Equal(t, 261985, differing(&call, 1, mem, src, num.Scheme{Op: num.Max}))

	call = scatter(api.BF16, api.Sum, 2, 262145)
	mem = normal(&call, 1)
	src = sources(&call, mem)
	_, err = run(t, "3.4.5", call, mem)
	require.NoError(t, err)
	wrong := 0
	for i, got := range elems(call.DType, mem[0][0].Dst) {
		if !num.Faithful(call.DType, num.Sum, []uint64{src[0][i], src[1][i]}, got) {
			wrong++
			require.GreaterOrEqual(t, i, 262145-16385, "only the last CTA is not on NVLS")
		}
	}
	require.Greater(t, wrong, 16000)
}

func TestRun10_3MisalignedByRank(t *testing.T) {
	for _, c := range []struct {
		version string
		call    api.Call
		want    []int64
	}{
		{"2dca770", scatter(api.BF16, api.Sum, 2, 262145), []int64{0, 245760}},
		{"pr131?rs_align=pointer", scatter(api.BF16, api.Sum, 2, 262145), []int64{0, 245760}},
		{"pr131?rs_align=shifted", scatter(api.BF16, api.Sum, 2, 262145), []int64{0, 0}},
		{"2dca770", scatter(api.BF16, api.Sum, 4, 131073), []int64{0, 122880, 0, 122880}},
	} {
		mem := normal(&c.call, 1)
		out, err := run(t, c.version, c.call, mem)
		require.NoError(t, err)
		require.Equal(t, c.want, unwritten(&c.call, out), "%s %v", c.version, c.call)
		if c.version != "pr131?rs_align=shifted" {
			continue
		}
		// Rank 1 folds its own block into scratch that rank 0 never wrote.
		poisoned := 0
		for _, v := range u16s(mem[1][0].Dst.Payload())[:245760] {
			if v == 0xCDCD {
				poisoned++
			}
		}
		require.Equal(t, 245760, poisoned)
	}
	_, err := run(t, "pr131", scatter(api.BF16, api.Sum, 2, 262145), nil)
	require.Error(t, err, "which address is tested is not known")
}

func TestRun10_5InPlaceSegment(t *testing.T) {
	for _, c := range []struct {
		ranks int
		want  func(sum, own uint32) uint32
	}{
		{2, func(sum, _ uint32) uint32 { return sum }},
		{3, func(sum, own uint32) uint32 { return sum + own }},
		{4, func(sum, _ uint32) uint32 { return 2 * sum }},
		{8, func(sum, _ uint32) uint32 { return 16 * sum }},
	} {
		call := inPlace(block(allReduce(api.U32, api.Sum, c.ranks, 2*8192)), api.InPlaceOwn)
		call.Team = api.SubTeam // no recursive exchange
		mem := memory(&call, func(r int, i int64) uint64 { return uint64(r*1000003 + int(i)) })
		src := sources(&call, mem)
		_, err := run(t, "3.4.5?nvls=off", call, mem)
		require.NoError(t, err)
		for r := range mem {
			for i, got := range elems(call.DType, mem[r][0].Dst) {
				var sum uint32
				for p := range src {
					sum += uint32(src[p][i])
				}
				require.Equal(t, c.want(sum, uint32(src[r][i])), uint32(got), "%d ranks, rank %d, element %d", c.ranks, r, i)
			}
		}
	}
}

func TestRun10_7SmallInPlace(t *testing.T) {
	for _, c := range []struct {
		ranks int
		count int64
		keep  int64
	}{{2, 6, 4}, {2, 1026, 514}, {4, 12, 8}} {
		call := inPlace(allReduce(api.BF16, api.Sum, c.ranks, c.count), api.InPlaceOwn)
		mem := normal(&call, 3)
		src := sources(&call, mem)
		out, err := run(t, "2dca770", call, mem)
		require.NoError(t, err)
		require.Equal(t, same(c.ranks, c.keep), unwritten(&call, out))
		for r := range mem {
			kept := int64(0)
			for i, got := range elems(call.DType, mem[r][0].Dst) {
				if got == src[r][i] {
					kept++
				}
			}
			require.GreaterOrEqual(t, kept, c.keep)
		}
	}
}

func TestRun10_8Fcollect(t *testing.T) {
	for _, c := range []struct {
		call api.Call
		want int64
	}{
		{gather(api.BF16, 2, 262145, 0), 245760},
		{gather(api.BF16, 2, 262173, 0), 32796},
		{gather(api.I16, 4, 131073, 0), 229376},
		{gather(api.BF16, 8, 65537, 0), 196608},
		{block(gather(api.BF16, 2, 1028, 1)), 2056},
	} {
		out, err := run(t, "3.4.5", c.call, normalOrBits(&c.call))
		require.NoError(t, err)
		require.Equal(t, same(c.call.Ranks, c.want), unwritten(&c.call, out), "%v", c.call)
	}
	for _, n := range []int64{64, 1024} {
		call := block(gather(api.BF16, 2, n, 1))
		_, err := run(t, "3.4.5", call, normal(&call, 1))
		var fault *api.Fault
		require.ErrorAs(t, err, &fault)
		require.Equal(t, api.FaultMisaligned, fault.Kind)
	}
}

func normalOrBits(call *api.Call) []api.Memory {
	gen := "normal"
	if !call.DType.Float() {
		gen = "bits"
	}
	return memory(call, func(r int, i int64) uint64 { return input(gen, call.DType, 1, r, i) })
}

func TestRun10_11IntegerWordsAreFloatSums(t *testing.T) {
	call := scatter(api.I32, api.Sum, 2, 64)
	small := memory(&call, func(r int, i int64) uint64 { return uint64(i) * 60000 })
	_, err := run(t, "3.4.5", call, small)
	require.NoError(t, err)
	require.Equal(t, uint64(2*63*60000), elems(api.I32, small[0][0].Dst)[63])

	for name, value := range map[string]uint64{"2^24 in sum": 1 << 23, "negative": 0xFFFFFFFF} {
		mem := memory(&call, func(r int, i int64) uint64 { return value * uint64(i/127) })
		before := append([]byte(nil), mem[1][0].Dst.Bytes...)
		_, err = run(t, "3.4.5", call, mem)
		var refused *api.Refused
		require.ErrorAs(t, err, &refused, name)
		require.Contains(t, refused.Reason, "f32")
		require.Equal(t, before, mem[1][0].Dst.Bytes, "nothing was touched")
	}
	// i64: the halves are added one by one, with no carry between them to get
	// right; below 2^24 in each there is none.
	wide := scatter(api.I64, api.Sum, 2, 8)
	mem := memory(&wide, func(r int, i int64) uint64 { return 5<<32 | uint64(i) })
	_, err = run(t, "3.4.5", wide, mem)
	require.NoError(t, err)
	require.Equal(t, uint64(10<<32|14), elems(api.I64, mem[0][0].Dst)[7])
}

func TestRun10_12EightByteWordsOfIntegers(t *testing.T) {
	call := scatter(api.U32, api.Sum, 2, 4) // 8- but not 16-byte aligned
	call = shifted(call, 2)
	mem := memory(&call, func(r int, i int64) uint64 { return []uint64{0xFFFFFFFF, 1}[r] * uint64((i+1)%2) })
	_, err := run(t, "3.4.5", call, mem)
	require.NoError(t, err)
	require.Equal(t, []uint64{0, 1, 0, 1}, elems(api.U32, mem[0][0].Dst), "the carry goes to the neighbour")

	call.Op = api.Max
	mem = memory(&call, func(r int, i int64) uint64 { return [][]uint64{{9, 1}, {2, 3}}[r][i%2] })
	_, err = run(t, "3.4.5", call, mem)
	require.NoError(t, err)
	require.Equal(t, []uint64{2, 3, 2, 3}, elems(api.U32, mem[1][0].Dst), "the odd element decides for both")

	call.DType, call.Op = api.I32, api.Min
	mem = memory(&call, func(r int, i int64) uint64 { return [][]uint64{{9, 0xFFFFFFFF}, {2, 3}}[r][i%2] })
	_, err = run(t, "3.4.5", call, mem)
	require.NoError(t, err)
	require.Equal(t, []uint64{9, 0xFFFFFFFF, 9, 0xFFFFFFFF}, elems(api.I32, mem[0][0].Dst), "signed pairs")
}

func TestRun10_15ScratchAssert(t *testing.T) {
	call := block(scatter(api.BF16, api.Sum, 4, 32769))
	mem := normal(&call, 1)
	_, err := run(t, "3.4.5?nvls=off", call, mem)
	var fault *api.Fault
	require.ErrorAs(t, err, &fault)
	require.Equal(t, api.FaultAssert, fault.Kind)
	for _, b := range mem[0][0].Dst.Bytes {
		require.EqualValues(t, 0xFF, b, "nothing was touched")
	}
}

func TestRun10_17InPlaceReduceScatter(t *testing.T) {
	for _, ranks := range []int{2, 3, 4, 8} {
		call := inPlace(block(scatter(api.U32, api.Sum, ranks, 33)), api.InPlaceOwn)
		mem := memory(&call, func(r int, i int64) uint64 { return uint64(r*77777 + int(i)) })
		src := sources(&call, mem)
		_, err := run(t, "3.4.5?nvls=off", call, mem)
		require.NoError(t, err)
		for me := range mem {
			for i, got := range elems(api.U32, mem[me][0].Dst) {
				var want uint32
				for p := range src {
					v := uint32(src[p][me*33+i])
					switch {
					case me < 2:
						want += v
					case p < me:
						want += 2 * v
					case p > me:
						want += v
					}
				}
				require.Equal(t, want, uint32(got), "%d ranks, rank %d, element %d", ranks, me, i)
			}
		}
	}
}

// What stepwise sums of 16 bits do to the neighbours of the exact sum, and to
// the agreement of ranks.
func TestSegmentIsNotFaithful(t *testing.T) {
	for _, c := range []struct {
		ranks    int
		want     []int
		disagree int
	}{
		{2, []int{0, 0}, 0},
		{4, []int{7295, 7307, 7326, 7325}, 41874},
	} {
		call := allReduce(api.BF16, api.Sum, c.ranks, 65536)
		mem := normal(&call, 1)
		src := sources(&call, mem)
		_, err := run(t, "3.4.5?nvls=off", call, mem)
		require.NoError(t, err)
		dst := make([][]uint64, c.ranks)
		for r := range dst {
			dst[r] = elems(call.DType, mem[r][0].Dst)
		}
		got, disagree := make([]int, c.ranks), 0
		in := make([]uint64, c.ranks)
		for i := range dst[0] {
			for r := range in {
				in[r] = src[r][i]
			}
			differ := false
			for r := range dst {
				if !num.Faithful(call.DType, num.Sum, in, dst[r][i]) {
					got[r]++
				}
				differ = differ || dst[r][i] != dst[0][i]
			}
			if differ {
				disagree++
			}
		}
		require.Equal(t, c.want, got)
		require.Equal(t, c.disagree, disagree)
	}
}
