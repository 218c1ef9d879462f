package rlkernel

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
)

func f32(x float32) uint64 { return uint64(math.Float32bits(x)) }

// TestOrderAndRounding: cases B18, B20, B41, B43, B47 and the order oracle, on
// every path of both reductions and in both versions.
func TestOrderAndRounding(t *testing.T) {
	for _, c := range []struct {
		name   string
		d      api.DType
		values []uint64
		want   uint64
	}{
		{"B18", api.BF16, []uint64{0x4380, 0x3f80, 0x3f80, 0x3f80}, 0x4381},
		{"B20 bf16", api.BF16, []uint64{0x4380, 0x3f80, 0x3f80, 0x3f80, 0x3f80, 0x3f80, 0x3f80, 0x3f80}, 0x4383},
		{"B20 f16", api.F16, []uint64{0x6800, 0x3c00, 0x3c00, 0x3c00, 0x3c00, 0x3c00, 0x3c00, 0x3c00}, 0x6803},
		{"balanced, not left to right", api.F32, []uint64{f32(1e20), f32(1), f32(-1e20), f32(1)}, 0},
		{"B41 both -0", api.BF16, []uint64{0x8000, 0x8000}, 0x8000},
		{"B41 -0 and +0", api.BF16, []uint64{0x8000, 0x0000}, 0x0000},
		{"one rank keeps -0", api.F32, []uint64{0x80000000}, 0x80000000},
		{"B40 negative subnormal", api.BF16, []uint64{0x8001, 0x0000}, 0x8001},
		{"B43 subnormals", api.BF16, []uint64{0x0001, 0x0001}, 0x0002},
		{"B47 NaN is canonical", api.BF16, []uint64{0x7fc1, 0x3f80}, 0x7fff},
		{"NaN in f32", api.F32, []uint64{0x7fc00001, f32(1)}, 0x7fffffff},
		{"NaN in f16", api.F16, []uint64{0xfe01, 0x3c00}, 0x7fff},
		{"inf - inf", api.F16, []uint64{0x7c00, 0xfc00}, 0x7fff},
		{"overflow", api.F16, []uint64{0x7bff, 0x7bff}, 0x7c00},
	} {
		limit := int64(singleBlock / c.d.Size())
		for _, version := range append(both, Before+"?entry=extension", After+"?entry=extension") {
			for _, count := range []int64{1, 2, 7, limit + 2} {
				if count > limit && (version != After || testing.Short()) {
					continue // the same plan
				}
				for _, collective := range []api.Collective{api.AllReduce, api.ReduceScatter} {
					call := reduceCall(collective, c.d, len(c.values), count)
					r := newRig(call, constants(c.d, c.values...))
					_, errs := r.run(t, openTeam(t, version, call.Ranks))
					for rank, err := range errs {
						require.NoError(t, err)
						want := make([]byte, r.mem[rank][0].Dst.Len())
						constants(c.d, c.want)(0, 0, want)
						require.True(t, bytes.Equal(want, r.mem[rank][0].Dst.Payload()), "%s: %s %s: rank %d: %#x", c.name, version, call, rank, num.Load(c.d, r.mem[rank][0].Dst.Payload()))
					}
				}
			}
		}
	}
}

// TestSizeInvariance is B26 and B28: the first elements have the same bits at
// every size and on every path.
func TestSizeInvariance(t *testing.T) {
	for _, version := range append(both, After+"?entry=extension") {
		for _, d := range reduced {
			var first []byte
			for _, n := range []int64{8, 4096, 140000, 1 << 20} {
				if n == 1<<20 && (version != After || d != api.BF16 || testing.Short()) {
					continue // the same path as 140000
				}
				call := reduceCall(api.AllReduce, d, 8, n)
				r := newRig(call, anyBits(26))
				_, errs := r.run(t, openTeam(t, version, 8))
				require.NoError(t, errs[0])
				head := r.mem[3][0].Dst.Payload()[:8*d.Size()]
				if first == nil {
					first = append(first, head...)
				}
				require.Equal(t, first, head, "%s %s n=%d", version, d, n)
			}
		}
	}
}

// TestCopiesKeepPatterns is B45: all 65536 patterns of 16 bits survive.
func TestCopiesKeepPatterns(t *testing.T) {
	for _, version := range both { // B10 and B83 by the way
		good(t, version, reduceCall(api.AllReduce, api.F32, 8, 11), anyBits(10), 1)
		window := gatherCall(4, 77)
		window.DstOffset = api.Offsets{256}
		good(t, version, window, anyBits(83), 1)
	}
	all := func(rank, _ int, p []byte) {
		for i := range len(p) / 2 {
			binary.LittleEndian.PutUint16(p[2*i:], uint16(i+rank*977))
		}
	}
	for _, version := range both {
		for _, d := range []api.DType{api.BF16, api.F16} {
			good(t, version, api.Call{Collective: api.AllGather, DType: d, Ranks: 2, Count: 65536}, all, 1)
			good(t, version, api.Call{Collective: api.AllGatherMany, DType: d, Ranks: 2, Many: []api.LaneShape{{Count: 65536}, {Count: 3}}}, all, 1)
		}
		for _, d := range api.DTypes() {
			good(t, version, api.Call{Collective: api.AllGather, DType: d, Ranks: 4, Count: 1000}, anyBits(45), 1)
		}
	}
}

// TestMisalignedPairs is B07: bf16 stored in pairs at an address that is no
// multiple of 4 is a fault, never a wrong value; where the class takes single
// elements the same buffers give the right sum.
func TestMisalignedPairs(t *testing.T) {
	ramp := func(_, _ int, p []byte) {
		for i := range len(p) / 2 {
			num.Store(api.BF16, p[2*i:], [...]uint64{0x3f80, 0x4000, 0x4040, 0x4080}[i%4])
		}
	}
	at := func(d api.DType, n int64, src, dst api.Offsets) api.Call {
		c := reduceCall(api.AllReduce, d, 2, n)
		c.SrcOffset, c.DstOffset = src, dst
		return c
	}
	for _, version := range both {
		for _, n := range []int64{2, 3, 4, 131072} {
			for _, dst := range []api.Offsets{{1}, {0, 1}, {3}} {
				call := at(api.BF16, n, nil, dst)
				bad := 0
				if len(dst) == 2 {
					bad = 1
				}
				p := mustPlan(t, version, call)
				require.NotNil(t, p.Fault)
				require.Equal(t, api.FaultMisaligned, p.Fault.Kind)
				require.Equal(t, bad, p.Fault.Rank)
				r := newRig(call, ramp)
				_, errs := r.run(t, openTeam(t, version, 2))
				for _, err := range errs {
					var f *api.Fault
					require.ErrorAs(t, err, &f)
					require.Equal(t, api.FaultMisaligned, f.Kind)
				}
				r.intact(t)
			}
		}
		r := good(t, version, at(api.BF16, 4, api.Offsets{1}, nil), ramp, 1) // the source may lie anywhere
		require.Equal(t, []byte{0x00, 0x40, 0x80, 0x40, 0xc0, 0x40, 0x00, 0x41}, r.mem[0][0].Dst.Payload())
		good(t, version, at(api.BF16, 3, nil, api.Offsets{2}), ramp, 1)
		good(t, version, at(api.BF16, 1, nil, api.Offsets{1}), ramp, 1) // no pair
		good(t, version, at(api.BF16, 0, nil, api.Offsets{1}), ramp, 1)
		good(t, version, at(api.BF16, 131073, nil, api.Offsets{1}), ramp, 1) // beyond one block: single elements
		good(t, version, at(api.F16, 8, api.Offsets{1}, api.Offsets{1}), anyBits(8), 1)
		good(t, version, at(api.F32, 258, api.Offsets{1}, api.Offsets{1}), anyBits(9), 1)
		rs := reduceCall(api.ReduceScatter, api.BF16, 2, 258)
		rs.DstOffset = api.Offsets{1}
		good(t, version, rs, anyBits(10), 1)
	}
	// The owner path copies, so it does not care.
	good(t, After+"?entry=extension", at(api.BF16, 4, nil, api.Offsets{1}), ramp, 1)
}

// TestInPlace: B55, B56, B63 and B66 under many schedules, and every in-place
// form there is.
func TestInPlace(t *testing.T) {
	calls := []api.Call{
		reduceCall(api.AllReduce, api.BF16, 2, 1000),                         // B55
		reduceCall(api.ReduceScatter, api.BF16, 4, 3),                        // B56: shards of 6 bytes
		reduceCall(api.AllReduce, api.F32, 4, 16384),                         // B63
		reduceCall(api.AllReduce, api.BF16, 8, 140000),                       // beyond one block
		reduceCall(api.ReduceScatter, api.F16, 8, 20000),                     // beyond one block
		{Collective: api.AllGather, DType: api.F32, Ranks: 4, Count: 5},      // B66
		{Collective: api.AllGather, DType: api.U8, Ranks: 8, Count: 30001},   // split
		{Collective: api.AllGather, DType: api.I16, Ranks: 2, Count: 200000}, // staged by copy
	}
	for _, version := range append(both, After+"?copy=peerwise") {
		for _, call := range calls {
			for _, form := range []api.InPlace{api.InPlaceOwn, api.InPlaceStart} {
				call.InPlace = form
				if call.Validate() != nil {
					continue
				}
				for seed := range uint64(8) {
					if (call.Count > 100000 || testing.Short()) && seed > 1 {
						break
					}
					r := newRig(call, anyBits(seed))
					team := openTeam(t, version, call.Ranks)
					if seed > 0 {
						team.Schedule(seeded(seed))
					}
					outs, errs := r.run(t, team)
					for _, err := range errs {
						require.NoError(t, err, "%s %s", version, call)
					}
					r.right(t, max(1, call.Count/500))
					r.whole(t, outs)
				}
			}
		}
	}
}

// TestEmpty is B85: an empty call returns, still meets the other ranks, and
// writes nothing.
func TestEmpty(t *testing.T) {
	for _, version := range both {
		for _, call := range []api.Call{
			reduceCall(api.AllReduce, api.BF16, 8, 0), reduceCall(api.ReduceScatter, api.F32, 4, 0),
			{Collective: api.AllGather, DType: api.I64, Ranks: 8},
			{Collective: api.AllGatherMany, DType: api.U8, Ranks: 2, Many: []api.LaneShape{{Count: 5}, {Count: 0}, {DType: api.F64, Count: 7}}},
			{Collective: api.AllGatherMany, DType: api.U8, Ranks: 2, Many: []api.LaneShape{{Count: 0}, {Count: 0}}},
			{Collective: api.ReduceScatterMany, DType: api.F32, Op: api.Sum, Ranks: 4, Many: []api.LaneShape{{Count: 0}, {DType: api.BF16, Count: 9}}},
		} {
			good(t, version, call, anyBits(85), 1)
			p := mustPlan(t, version, call)
			require.Positive(t, p.Cost.Launches)
			require.Positive(t, p.Cost.RoundTrip, "still a synchronisation")
		}
	}
}
