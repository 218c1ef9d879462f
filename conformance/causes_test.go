package conformance

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
	"example.com/tandem/conformance/inputs"
)

func run(t *testing.T, r *Runner, l, right Side, call api.Call) *Report {
	t.Helper()
	rep, err := r.Run(context.Background(), l, right, call)
	require.NoError(t, err)
	require.NoError(t, r.Close(context.Background()))
	return rep
}

// classes are the report's causes with their elements.
func classes(rep *Report) map[api.Cause]int64 {
	out := map[api.Cause]int64{}
	for _, c := range rep.Causes {
		out[c.Class] = c.Elements
	}
	return out
}

func call(c api.Collective, d api.DType, op api.Op, ranks int, count int64) api.Call {
	return api.Call{Collective: c, DType: d, Op: op, Ranks: ranks, Count: count}
}

func values(v ...uint64) inputs.Input { return inputs.Input{Kind: inputs.Values, Values: v} }

// ownFirst is the order of NVSHMEM's segmented all-reduce.
func ownFirst(rank, n int) []int {
	p := make([]int, n)
	for i := range p {
		p[i] = (rank - i + n) % n
	}
	return p
}

// turned starts from the rank itself and goes up.
func turned(rank, n int) []int {
	p := make([]int, n)
	for i := range p {
		p[i] = (rank + i) % n
	}
	return p
}

func reversed(_, n int) []int {
	p := make([]int, n)
	for i := range p {
		p[i] = n - 1 - i
	}
	return p
}

// TestCauses breaks a backend in one way at a time. A class that is misnamed, or
// a second one beside it, fails.
func TestCauses(t *testing.T) {
	faithful := func(f *fake) Side {
		f.impl = api.Implementation{Name: "plain", Contract: api.Faithful}
		return f.side()
	}
	plain := func() Side { return (&fake{}).side() }
	tree := num.Scheme{Order: num.Balanced}
	exactly := func(r num.Rounding) num.Scheme { return num.Scheme{Acc: num.AccExact, Last: r} }
	shift := func(by int64) *fake {
		return &fake{value: func(x *execution, rank, lane int, i int64, _ []uint64, v uint64) uint64 {
			if i+by < 0 || i+by >= x.call.DstElems(lane) || i < 100 {
				return v
			}
			return x.in.gatherer().right(lane, rank, i+by)
		}}
	}
	flip := func(bit uint64, on func(rank int) bool) *fake {
		return &fake{value: func(_ *execution, rank, _ int, i int64, _ []uint64, v uint64) uint64 {
			if i == 4000 && on(rank) {
				return v ^ bit
			}
			return v
		}}
	}
	for _, c := range []struct {
		name        string
		left, right Side
		input       inputs.Input
		call        api.Call
		class       api.Cause
		elements    int64 // 0: any number
		words       string
	}{
		{name: "odd tail", left: (&fake{skip: func(c *api.Call, _, _ int, i int64) bool { return i == c.Count-1 }}).side(), right: plain(),
			call: allReduce(api.BF16, 2, 1025), class: api.OddTail, elements: 2, words: "half of the narrowest multicast word"},
		{name: "odd slice start", left: (&fake{skip: func(_ *api.Call, _, _ int, i int64) bool { return i >= 3 && i < 6 }}).side(), right: plain(),
			call: allReduce(api.F16, 2, 6), class: api.OddCTAStart, elements: 6, words: "from the positions alone"},
		{name: "odd pointer", left: (&fake{skip: func(*api.Call, int, int, int64) bool { return true }}).side(), right: plain(),
			call: api.Call{Collective: api.AllReduce, DType: api.BF16, Op: api.Sum, Ranks: 2, Count: 64, SrcOffset: api.Offsets{1}, DstOffset: api.Offsets{1}}, class: api.OddPointer, elements: 128},
		{name: "unwritten words", left: plain(), right: (&fake{skip: func(_ *api.Call, r, _ int, i int64) bool { return r == 1 && i == 7 }}).side(),
			call: allReduce(api.F32, 2, 64), class: api.CauseUnknown, elements: 1, words: "right left elements unwritten"},
		{name: "guard", left: (&fake{after: func(x *execution) { b := x.mem[1][0].Dst.Bytes; b[len(b)-Guard] = 3 }}).side(), right: plain(),
			call: allReduce(api.F32, 2, 64), class: api.CauseGuard, elements: 1, words: "bytes within 64 of a buffer"},
		{name: "source changed", left: plain(), right: (&fake{after: func(x *execution) { x.mem[0][0].Src.Payload()[5] ^= 1 }}).side(),
			call: allReduce(api.F32, 2, 64), class: api.CauseGuard, elements: 1, words: "right: the call altered its source"},
		{name: "fault", left: plain(), right: (&fake{fault: &api.Fault{Kind: api.FaultAssert, Rank: 1, CTA: 3, Detail: "too large"}}).side(),
			call: allReduce(api.F32, 2, 64), class: api.CauseFault, elements: 128, words: "assert on rank 1, CTA 3: too large"},
		{name: "wrong order", left: (&fake{order: reversed}).side(), right: plain(),
			call: allReduce(api.BF16, 4, 4096), class: api.CauseOrder, words: "left: from the last rank down"},
		{name: "tree", left: (&fake{scheme: tree}).side(), right: plain(),
			call: allReduce(api.F32, 8, 2048), class: api.CauseOrder, words: "as a balanced tree"},
		{name: "round robin (B18)", left: (&fake{order: turned}).side(), right: plain(), input: values(0x4380, 0x3f80, 0x3f80, 0x3f80),
			call: allReduce(api.BF16, 4, 8), class: api.CauseOrder, elements: 16, words: "so that ranks differ"},
		{name: "prod order", left: (&fake{order: reversed}).side(), right: plain(),
			call: call(api.AllReduce, api.F16, api.Prod, 5, 2048), class: api.CauseOrder},
		{name: "f32 accumulator", left: plain(), right: (&fake{scheme: num.Scheme{Acc: num.AccF32}}).side(),
			call: allReduce(api.BF16, 8, 2048), class: api.CauseAccumulator, words: "right: exact, or too wide to tell"},
		{name: "f64 accumulator", left: plain(), right: (&fake{scheme: num.Scheme{Acc: num.AccF64}}).side(),
			call: allReduce(api.F32, 4, 2048), class: api.CauseAccumulator},
		{name: "stepwise against a switch", left: (&fake{order: ownFirst}).side(), right: faithful(&fake{scheme: exactly(num.TowardZero)}),
			call: allReduce(api.BF16, 4, 4096), class: api.CauseAccumulator, words: "each rank's own input first"},
		{name: "conversion by truncation (B34)", left: (&fake{scheme: num.Scheme{Acc: num.AccF32, Last: num.TowardZero}}).side(), right: (&fake{scheme: num.Scheme{Acc: num.AccF32}}).side(),
			call: allReduce(api.BF16, 4, 4096), class: api.CauseRounding},
		{name: "two ranks toward zero", left: plain(), right: (&fake{scheme: exactly(num.TowardZero)}).side(),
			call: allReduce(api.BF16, 2, 4096), class: api.CauseRounding},
		{name: "premultiplied average (B49)", left: (&fake{scheme: num.Scheme{Avg: num.AvgPremul}}).side(), right: plain(), input: values(0x3f85, 0x3f85, 0x3f85),
			call: call(api.AllReduce, api.BF16, api.Avg, 3, 4), class: api.CauseAvgRule, elements: 12},
		{name: "fused average", left: (&fake{scheme: num.Scheme{Avg: num.AvgPremulFused}}).side(), right: (&fake{scheme: num.Scheme{Avg: num.AvgPremul}}).side(),
			call: call(api.ReduceScatter, api.F16, api.Avg, 3, 2048), class: api.CauseAvgRule},
		{name: "NaN in min (B37)", left: (&fake{scheme: num.Scheme{MinMax: num.Ternary}}).side(), right: plain(), input: values(0x3f800000, 0x7fc00000, 0x40400000, 0x40800000),
			call: call(api.AllReduce, api.F32, api.Min, 4, 3), class: api.CauseNaNRule, elements: 12},
		{name: "NaN payload (B47)", left: (&fake{value: func(_ *execution, _, _ int, _ int64, in []uint64, _ uint64) uint64 { return in[0] }}).side(), right: plain(), input: values(0x7fc1, 0x3f80),
			call: allReduce(api.BF16, 2, 4), class: api.CauseNaNRule, elements: 8},
		{name: "copies that canonicalise (B45)", left: (&fake{value: func(_ *execution, _, _ int, _ int64, _ []uint64, v uint64) uint64 {
			if num.IsNaN(api.BF16, v) {
				return 0x7fff
			}
			return v
		}}).side(), right: plain(), input: inputs.Input{Kind: inputs.Bits, Seed: 1},
			call: call(api.AllGather, api.BF16, api.NoOp, 2, 4096), class: api.CauseNaNRule},
		{name: "zeros lose their sign (B41)", left: (&fake{value: func(_ *execution, _, _ int, _ int64, _ []uint64, v uint64) uint64 { return v &^ 0x8000 }}).side(), right: plain(), input: values(0x8000, 0x8000),
			call: allReduce(api.BF16, 2, 4), class: api.CauseZeroRule, elements: 8},
		{name: "signed zeros in max", left: (&fake{scheme: num.Scheme{MinMax: num.Ternary}}).side(), right: plain(), input: values(0, 0x8000),
			call: call(api.AllReduce, api.BF16, api.Max, 2, 4), class: api.CauseZeroRule, elements: 8},
		{name: "an owner keeps what its peers do not get (B31)", left: (&fake{value: func(_ *execution, rank, _ int, i int64, _ []uint64, v uint64) uint64 {
			if rank == 1 {
				return v ^ 0x0154
			}
			return v
		}}).side(), right: plain(), call: allReduce(api.BF16, 2, 512), class: api.CauseRanks, elements: 512},
		{name: "poison copied", left: (&fake{value: func(_ *execution, _, _ int, i int64, _ []uint64, v uint64) uint64 {
			if i >= 100 {
				return 0xffffffff
			}
			return v
		}}).side(), right: plain(), input: inputs.Input{Kind: inputs.Finite, Seed: 1},
			call: call(api.AllGather, api.F32, api.NoOp, 2, 100), class: api.CauseStale, elements: 200, words: "a store put the poison there"},
		{name: "poison reduced", left: (&fake{value: func(x *execution, _, _ int, i int64, in []uint64, v uint64) uint64 {
			in[1] = 0xffffffff
			return num.Eval(api.I32, num.Scheme{Op: api.Sum}, in)
		}}).side(), right: plain(),
			call: allReduce(api.I32, 3, 64), class: api.CauseStale, elements: 192, words: "poison was reduced in place of rank 1's contribution"},
		{name: "a contribution is missing (B59)", left: (&fake{value: func(_ *execution, _, _ int, i int64, in []uint64, v uint64) uint64 {
			if i < 64 {
				return v
			}
			return num.Eval(api.F32, num.Scheme{Op: api.Sum}, in[:3])
		}}).side(), right: plain(),
			call: allReduce(api.F32, 4, 128), class: api.CauseStale, elements: 256, words: "rank 3's contribution is missing"},
		{name: "a result that depends on memory", left: (&fake{blind: true, value: func(x *execution, rank, _ int, i int64, _ []uint64, v uint64) uint64 {
			return v + uint64(x.run)
		}}).side(), right: plain(),
			call: allReduce(api.U32, 2, 64), class: api.CauseStale, elements: 128, words: "two runs over different poisons differ"},
		{name: "already reduced data is sent again (10.5)", left: (&fake{order: ownFirst, value: func(_ *execution, _, _ int, _ int64, _ []uint64, v uint64) uint64 {
			return num.Encode(api.BF16, 2*num.Decode(api.BF16, v), num.NearestEven)
		}}).side(), right: (&fake{order: ownFirst}).side(),
			call: allReduce(api.BF16, 4, 256), class: api.CauseForeign, elements: 1024, words: "counted 2 times"},
		{name: "own contribution twice", left: (&fake{value: func(_ *execution, rank, _ int, _ int64, in []uint64, v uint64) uint64 { return v + in[1] }}).side(), right: plain(),
			call: allReduce(api.I64, 3, 64), class: api.CauseForeign, elements: 192, words: "rank 1's contribution is counted twice"},
		{name: "unreduced", left: (&fake{value: func(_ *execution, rank, _ int, _ int64, in []uint64, v uint64) uint64 { return in[2] }}).side(), right: plain(),
			call: allReduce(api.F32, 3, 64), class: api.CauseForeign, elements: 192, words: "rank 2's input stands"},
		{name: "the wrong block (B66)", left: (&fake{value: func(x *execution, rank, lane int, i int64, _ []uint64, v uint64) uint64 {
			return x.in.gatherer().right(lane, rank, (i+100)%200)
		}}).side(), right: plain(), call: call(api.AllGather, api.F32, api.NoOp, 2, 100), class: api.CauseForeign, elements: 400},
		{name: "another rank's result", left: (&fake{value: func(x *execution, rank, lane int, i int64, _ []uint64, v uint64) uint64 {
			return x.in.gatherer().right(lane, 1-rank, i)
		}}).side(), right: plain(), call: call(api.ReduceScatter, api.I32, api.Sum, 2, 100), class: api.CauseForeign, elements: 200},
		{name: "offset forward", left: shift(7).side(), right: plain(), call: allReduce(api.I32, 2, 300), class: api.CauseOffset, elements: 2 * 193, words: "those of 7 elements further on"},
		{name: "offset back", left: plain(), right: shift(-3).side(), call: call(api.Broadcast, api.F16, api.NoOp, 2, 300), class: api.CauseOffset, words: "those of 3 elements before"},
		{name: "one flipped bit in 8000", left: flip(1<<1, func(rank int) bool { return rank == 1 }).side(), right: plain(),
			call: allReduce(api.BF16, 4, 8000), class: api.CauseRanks, elements: 1},
		{name: "one flipped last bit in 8000", left: flip(1, func(rank int) bool { return rank == 1 }).side(), right: plain(),
			call: allReduce(api.F64, 2, 8000), class: api.CauseRanks, elements: 1},
		{name: "one doubled value in 8000", left: flip(1<<52, func(rank int) bool { return rank == 1 }).side(), right: plain(),
			call: allReduce(api.F64, 2, 8000), class: api.CauseRanks, elements: 1},
		{name: "one flipped bit on every rank", left: flip(1, func(int) bool { return true }).side(), right: plain(),
			call: allReduce(api.F32, 4, 8000), class: api.CauseUnknown, elements: 4},
		{name: "one flipped bit of a scattered sum", left: plain(), right: flip(1, func(rank int) bool { return rank == 2 }).side(),
			call: call(api.ReduceScatter, api.BF16, api.Sum, 4, 8000), class: api.CauseUnknown, elements: 1},
		{name: "NaN dropped on both sides, zeros of two signs", left: (&fake{value: func(_ *execution, _, _ int, _ int64, _ []uint64, _ uint64) uint64 { return 0x8000 }}).side(), right: plain(), input: values(0x7fc0, 0, 0x8000),
			call: call(api.AllReduce, api.BF16, api.Max, 3, 4), class: api.CauseZeroRule, elements: 12},
		{name: "NaN lets a zero win", left: (&fake{scheme: num.Scheme{MinMax: num.Ternary}, order: reversed}).side(), right: (&fake{scheme: num.Scheme{MinMax: num.Ternary}}).side(), input: values(0x8000, 0x7fc0, 0x3f80, 0x7fc0, 0),
			call: call(api.AllReduce, api.BF16, api.Max, 5, 4), class: api.CauseNaNRule, elements: 20},
		{name: "a sum shifted by one", left: shift(1).side(), right: plain(), call: allReduce(api.F32, 4, 4000), class: api.CauseOffset, words: "those of 1 element further on"},
		{name: "a sum shifted by one and summed otherwise", left: shift(-1).side(), right: (&fake{scheme: tree, order: ownFirst}).side(), call: call(api.ReduceScatter, api.F32, api.Sum, 2, 4000), class: api.CauseOffset, words: "those of 1 element before"},
		{name: "in place the accumulator is folded into itself (10.17)", left: (&fake{value: func(_ *execution, rank, _ int, _ int64, in []uint64, v uint64) uint64 {
			if rank < 2 {
				return v
			}
			in[rank] = num.Eval(api.F64, num.Scheme{Op: api.Sum}, in[:rank])
			return num.Eval(api.F64, num.Scheme{Op: api.Sum}, append([]uint64{in[rank]}, in[rank:]...))
		}}).side(), right: plain(), call: call(api.ReduceScatter, api.F64, api.Sum, 4, 512), class: api.CauseForeign, elements: 1024, words: "left: the contribution of rank 2 is missing, that of ranks 0, 1 is counted twice"},
		{name: "two contributions are missing", left: plain(), right: (&fake{value: func(_ *execution, _, _ int, _ int64, in []uint64, _ uint64) uint64 {
			return num.Eval(api.I32, num.Scheme{Op: api.Sum}, []uint64{in[0], in[2], in[4]})
		}}).side(), call: allReduce(api.I32, 5, 512), class: api.CauseStale, elements: 2560, words: "right: the contribution of ranks 1, 3 is missing"},
		{name: "premultiplied stepwise against the sum times 1/n", left: (&fake{scheme: num.Scheme{Avg: num.AvgPremul}}).side(), right: (&fake{scheme: num.Scheme{Acc: num.AccF32, Avg: num.AvgMultiply}}).side(),
			call: call(api.AllReduce, api.BF16, api.Avg, 3, 2048), class: api.CauseAvgRule, words: "multiplying every input by 1/n first"},
		{name: "noise", left: (&fake{value: func(_ *execution, rank, _ int, i int64, _ []uint64, v uint64) uint64 {
			return v ^ uint64(i*i+12345)&0xffff
		}}).side(), right: plain(),
			call: call(api.ReduceScatter, api.I32, api.Sum, 2, 64), class: api.CauseUnknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			rep := run(t, &Runner{Input: c.input}, c.left, c.right, c.call)
			require.Equal(t, Diverge, rep.Verdict)
			require.Len(t, rep.Causes, 1, "%v", rep.Causes)
			require.Equal(t, c.class, rep.Causes[0].Class, "%v", rep.Causes)
			require.Contains(t, rep.Causes[0].Explanation, c.words)
			if c.elements != 0 {
				require.Equal(t, c.elements, rep.Causes[0].Elements)
			} else if c.class != api.CauseGuard {
				require.Equal(t, rep.Differing.Elements, rep.Causes[0].Elements)
			}
			var inRanges int64
			for _, g := range rep.Ranges {
				require.Equal(t, c.class, g.Cause)
				inRanges += g.Count
			}
			if rep.RangesLeftOut == 0 {
				require.Equal(t, rep.Differing.Elements, inRanges)
			}
		})
	}
}
