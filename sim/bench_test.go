package sim_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
	"example.com/tandem/sim"
	"example.com/tandem/sim/arith"
	"example.com/tandem/sim/nvshmem"
	"example.com/tandem/sim/tandem"
	"github.com/stretchr/testify/require"
)

// BenchmarkAllReduce is a whole simulated call: one poison of the destinations,
// plan, schedule, reduction and the check of the written intervals. The ratio is
// its speed over that of a copy of all sources to all destinations in the same run.
func BenchmarkAllReduce(b *testing.B) {
	for _, dtype := range []api.DType{api.BF16, api.F16, api.F32} {
		for _, s := range []struct{ name, spec string }{
			{"fixed_tree", "sim:tandem"},
			{"f32_one_rounding", "sim:tandem?mode=f32"},
			{"in_switch_one_rounding", "sim:nvshmem@3.4.5"},
			{"recexch", "sim:nvshmem@3.4.5?nvls=off&reduce_scratch_size=1073741824"},
		} {
			for _, c := range []struct {
				ranks int
				count int64
			}{{2, 1 << 20}, {8, 1 << 20}, {72, 72 * 14592}, {8, 1 << 10}} {
				if s.name == "recexch" && c.ranks == 72 {
					continue // recursive exchange would sum on 64 ranks only
				}
				b.Run(fmt.Sprintf("%v/%s/ranks=%d/n=%d", dtype, s.name, c.ranks, c.count), func(b *testing.B) {
					benchmarkCall(b, s.spec, api.Call{
						Collective: api.AllReduce, DType: dtype, Op: api.Sum, Ranks: c.ranks, Count: c.count,
					})
				})
			}
		}
	}
}

func benchmarkCall(b *testing.B, text string, call api.Call) {
	spec, err := api.ParseSpec(text)
	require.NoError(b, err)
	team, err := sim.New(nvshmem.Family{}, tandem.Family{}).Open(b.Context(), spec, api.TeamConfig{Ranks: call.Ranks})
	require.NoError(b, err)
	mem := make([]api.Memory, call.Ranks)
	for r := range mem {
		mem[r] = standardMemory(&call, r)
		fillNormal(call.DType, mem[r][0].Src.Payload(), uint64(r))
	}
	srcs, dsts := make([][]byte, call.Ranks), make([][]byte, call.Ranks)
	for r := range dsts {
		srcs[r], dsts[r] = mem[r][0].Src.Bytes, mem[r][0].Dst.Bytes
	}
	nothing := bytes.Repeat([]byte{0xFF}, len(dsts[0]))
	b.SetBytes(call.MemoryBytes() / 2)
	var calls, copies []time.Duration
	for b.Loop() {
		start := time.Now()
		arith.Spread(dsts, nothing) // poison
		out, err := api.Run(context.Background(), team, call, mem)
		if err != nil {
			b.Fatal(err)
		}
		for r := range out {
			if w := out[r].Written; len(w) != 1 || w[0].End != mem[r][0].Dst.Len() {
				b.Fatalf("rank %d wrote %v", r, w)
			}
		}
		calls = append(calls, time.Since(start))
	}
	for range max(3, min(b.N, 100)) {
		start := time.Now()
		copyRanges(dsts, srcs)
		copies = append(copies, time.Since(start))
	}
	gin(b, call.Count*int64(call.Ranks), b.Elapsed()/time.Duration(b.N))
	b.ReportMetric(float64(median(copies))/float64(median(calls)), "ratio")
}

// fillNormal makes values of both signs whose exponents spread over eight.
func fillNormal(d api.DType, p []byte, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0))
	m := d.MantissaBits()
	for i := 0; i < len(p); i += d.Size() {
		x := rng.Uint64()
		exponent := uint64(d.Bias()-4) + x>>32&7
		num.Store(d, p[i:], x&(1<<m-1)|exponent<<m|x>>63<<(d.Bits()-1))
	}
}

// poison fills an image with what nobody wrote.
func poison(m api.Image) {
	for i := range m.Bytes {
		m.Bytes[i] = 0xFF
	}
}

// standardMemory is the memory of a rank as conformance lays it out: guards of
// 64 bytes, in place the smaller image a part of the larger.
func standardMemory(c *api.Call, rank int) api.Memory {
	const guard = 64
	mem := make(api.Memory, c.Lanes())
	for i := range mem {
		size := int64(c.Lane(i).DType.Size())
		src, dst := c.Addrs(i, rank)
		image := func(elems int64, addr uint64) api.Image {
			return api.Image{Bytes: make([]byte, elems*size+2*guard), Addr: addr, Guard: guard}
		}
		part := func(of api.Image, elems int64, addr uint64) api.Image {
			off := int64(addr - of.Addr)
			return api.Image{Bytes: of.Bytes[off : off+elems*size+2*guard], Addr: addr, Guard: guard}
		}
		sn, dn := c.SrcElems(i), c.DstElems(i)
		switch {
		case c.InPlace == api.OutOfPlace:
			mem[i] = api.Lane{Src: image(sn, src), Dst: image(dn, dst)}
		case sn >= dn:
			l := image(sn, src)
			mem[i] = api.Lane{Src: l, Dst: part(l, dn, dst)}
		default:
			l := image(dn, dst)
			mem[i] = api.Lane{Src: part(l, sn, src), Dst: l}
		}
	}
	return mem
}
