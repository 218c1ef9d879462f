package tandem

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
)

var allPaths = []string{"?path=push", "?path=direct", "?path=two_shot", "?path=direct&buffers=staged", "?path=two_shot&buffers=staged&ctas=3"}

// value runs an all-reduce in which rank r gives values[r] in every element, on
// every path, and requires one pattern everywhere, which it returns.
func value(t *testing.T, params string, d num.DType, op num.Op, mode string, values ...uint64) uint64 {
	t.Helper()
	var got uint64
	for i, path := range allPaths {
		if params != "" {
			path += "&" + params
		}
		c := api.Call{Collective: api.AllReduce, DType: d, Op: op, Ranks: len(values), Count: 33, Mode: mode}
		mem := memories(&c, rng(1))
		fillAll(&c, mem, values...)
		team := openTeam(t, path, c.Ranks)
		_, err := api.Run(context.Background(), team, c, mem)
		require.NoError(t, err)
		for r := range mem {
			p := mem[r][0].Dst.Payload()
			for at := 0; at < len(p); at += d.Size() {
				v := num.Load(d, p[at:])
				if i+r+at == 0 {
					got = v
				}
				require.Equal(t, got, v, "%s: rank %d byte %d", path, r, at)
			}
		}
	}
	return got
}

func f32(x float32) uint64 { return uint64(math.Float32bits(x)) }

func bf16(x float64) uint64 { return num.Encode(num.BF16, x, num.NearestEven) }

func f16(x float64) uint64 { return num.Encode(num.F16, x, num.NearestEven) }

// repeat is v on n ranks after the first ones.
func after(n int, v uint64, first ...uint64) []uint64 {
	for range n {
		first = append(first, v)
	}
	return first
}

// Order and rounding: cases B18, B20, the tree's own example, and the three
// answers of Done-when 2.
func TestOrderAndRounding(t *testing.T) {
	one := bf16(1)
	require.EqualValues(t, 0x4381, value(t, "", num.BF16, num.Sum, "", after(3, one, bf16(256))...), "B18")
	require.EqualValues(t, 0x4382, value(t, "", num.BF16, num.Sum, modeF32, after(3, one, bf16(256))...), "B18")
	require.EqualValues(t, 0x4383, value(t, "", num.BF16, num.Sum, "", after(7, one, bf16(256))...), "B20")
	require.EqualValues(t, 0x4384, value(t, "", num.BF16, num.Sum, modeF32, after(7, one, bf16(256))...), "B20")
	require.EqualValues(t, 0x4384, value(t, "mode=f32", num.BF16, num.Sum, "", after(7, one, bf16(256))...), "the team's mode")
	require.EqualValues(t, 0x4383, value(t, "mode=f32", num.BF16, num.Sum, modeNode, after(7, one, bf16(256))...), "the call's goes first")
	require.EqualValues(t, 0x6803, value(t, "", num.F16, num.Sum, "", after(7, f16(1), f16(2048))...), "B20")
	require.EqualValues(t, 0x6804, value(t, "", num.F16, num.Sum, modeF32, after(7, f16(1), f16(2048))...), "B20")
	require.EqualValues(t, f32(0), value(t, "", num.F32, num.Sum, "", f32(1e20), f32(1), f32(-1e20), f32(1)), "1e20, 1, -1e20, 1")
	require.EqualValues(t, f32(0), value(t, "", num.F32, num.Sum, modeF32, f32(1e20), f32(1), f32(-1e20), f32(1)), "f32 of f32 is node")
}

// The tree of world sizes that are no powers of two: 3 is (0+1)+2, 5 is
// ((0+1)+(2+3))+4, 6 is ((0+1)+(2+3))+(4+5).
func TestTreeOfAnyWorld(t *testing.T) {
	add := func(a, b uint64) uint64 {
		return num.Eval(num.BF16, num.Scheme{Op: num.Sum}, []uint64{a, b})
	}
	random := rng(3)
	for range 200 {
		x := make([]uint64, 6)
		for i := range x {
			x[i] = bf16(1 + 255*random.Float64())
		}
		three, four := add(add(x[0], x[1]), x[2]), add(add(x[0], x[1]), add(x[2], x[3]))
		scheme := num.Scheme{Op: num.Sum, Order: num.Balanced}
		require.Equal(t, three, num.Eval(num.BF16, scheme, x[:3]))
		require.Equal(t, add(four, x[4]), num.Eval(num.BF16, scheme, x[:5]))
		require.Equal(t, add(four, add(x[4], x[5])), num.Eval(num.BF16, scheme, x))
	}
	x := []uint64{bf16(256), bf16(1), bf16(1), bf16(1), bf16(1), bf16(1)}
	require.Equal(t, add(add(x[0], x[1]), x[2]), value(t, "", num.BF16, num.Sum, "", x[:3]...))
	four := add(add(x[0], x[1]), add(x[2], x[3]))
	require.Equal(t, add(four, x[4]), value(t, "", num.BF16, num.Sum, "", x[:5]...))
	require.Equal(t, add(four, add(x[4], x[5])), value(t, "", num.BF16, num.Sum, "", x...))
}

// Every world from 1 to 72 gives the reference's bits, on every path.
func TestEveryWorld(t *testing.T) {
	random := rng(4)
	for ranks := 1; ranks <= maxRanks; ranks++ {
		if testing.Short() && ranks > 9 && ranks%24 != 0 {
			continue
		}
		for i, path := range allPaths {
			if ranks > 16 && i != ranks%len(allPaths) {
				continue // a large world takes one path
			}
			mode := modes[(ranks+i)%2]
			runCall(t, path, api.Call{Collective: api.AllReduce, DType: num.BF16, Op: num.Sum, Ranks: ranks, Count: int64(20 + ranks), Mode: mode}, random)
		}
		runCall(t, "", api.Call{Collective: api.ReduceScatter, DType: num.F16, Op: num.Avg, Ranks: ranks, Count: 5}, random)
		runCall(t, "?path=direct", api.Call{Collective: api.AllToAll, DType: num.U8, Ranks: ranks, Count: 5}, random)
	}
}

// B22: at 4 ranks some sums rounded at every node are no neighbours of the exact
// one. Fewer are when rounded once.
func TestNotFaithful(t *testing.T) {
	count := func(mode string) int {
		c := api.Call{Collective: api.AllReduce, DType: num.BF16, Op: num.Sum, Ranks: 4, Count: int64(pick(1<<16, 1<<12)), Mode: mode}
		mem := memories(&c, rng(1))
		random := rng(2)
		for r := range mem {
			for at, p := 0, mem[r][0].Src.Payload(); at < len(p); at += 2 {
				num.Store(num.BF16, p[at:], bf16(random.Float64()*1.5-0.5))
			}
		}
		before := clone(&c, mem)
		_, err := api.Run(context.Background(), openTeam(t, "", 4), c, mem)
		require.NoError(t, err)
		bad := 0
		for at, p := 0, mem[0][0].Dst.Payload(); at < len(p); at += 2 {
			var in []uint64
			for r := range before {
				in = append(in, num.Load(num.BF16, before[r][0].Src.Payload()[at:]))
			}
			got := num.Load(num.BF16, p[at:])
			require.Equal(t, num.Eval(num.BF16, schemeOf(t, "", &c), in), got)
			if !num.Faithful(num.BF16, num.Sum, in, got) {
				bad++
			}
		}
		return bad
	}
	require.Greater(t, count(modeNode), pick(1000, 60))
	require.Less(t, count(modeF32), 10)
}

// B26, B28: the same first elements whatever the size, and whatever the number of
// CTAs.
func TestSizeAndGridInvariance(t *testing.T) {
	var want []byte
	for _, params := range []string{"", "?ctas=1", "?ctas=2", "?ctas=8", "?path=push&ctas=8", "?path=direct&ctas=2", "?path=two_shot"} {
		for _, n := range []int64{8, 4096, 1664 * 64, 1 << 20} {
			if testing.Short() && n > 4096 {
				break
			}
			c := api.Call{Collective: api.AllReduce, DType: num.BF16, Op: num.Sum, Ranks: 8, Count: n}
			mem := memories(&c, rng(1))
			for r := range mem {
				fill(rng(uint64(r)), num.BF16, mem[r][0].Src.Payload()[:16])
			}
			_, err := api.Run(context.Background(), openTeam(t, params, 8), c, mem)
			require.NoError(t, err)
			got := mem[3][0].Dst.Payload()[:16]
			if want == nil {
				want = got
			}
			require.Equal(t, want, got, "%s %d", params, n)
		}
	}
}

// Averages: B48, B49, B51, B53, and integers.
func TestAverages(t *testing.T) {
	const inf16, divide, premul = 0x7c00, "avg=divide", "avg=premul"
	require.Equal(t, bf16(1.5), value(t, premul, num.BF16, num.Avg, "", bf16(1), bf16(2)), "B48")
	require.EqualValues(t, 0x3f85, value(t, "", num.BF16, num.Avg, "", after(3, 0x3f85)...), "B49")
	require.EqualValues(t, 0x3f85, value(t, "", num.BF16, num.Avg, modeF32, after(3, 0x3f85)...), "B49")
	require.EqualValues(t, 0x3f86, value(t, premul, num.BF16, num.Avg, "", after(3, 0x3f85)...), "B49")
	require.Equal(t, f16(3), value(t, "", num.F16, num.Avg, "", f16(2), f16(4)), "B11")
	for _, c := range []struct {
		params, mode string
		big, small   uint64
	}{
		{divide, "", inf16, 0x0001},
		{divide, modeF32, f16(40000), 0x0001},
		{premul, "", 0x78e2, 0x0000},
		{premul, modeF32, 0x78e2, 0x0000},
	} {
		require.Equal(t, c.big, value(t, c.params, num.F16, num.Avg, c.mode, after(4, f16(40000))...), "B53 %v", c)
		require.Equal(t, c.small, value(t, c.params, num.F16, num.Avg, c.mode, after(4, 0x0001)...), "B53 %v", c)
	}
	require.EqualValues(t, 0x78e2, f16(40000))

	c := api.Call{Collective: api.ReduceScatter, DType: num.BF16, Op: num.Avg, Ranks: 4, Count: 9}
	mem := memories(&c, rng(1))
	fillAll(&c, mem, after(4, bf16(1))...)
	_, err := api.Run(context.Background(), openTeam(t, "", 4), c, mem)
	require.NoError(t, err)
	for at, p := 0, mem[2][0].Dst.Payload(); at < len(p); at += 2 {
		require.Equal(t, bf16(1), num.Load(num.BF16, p[at:]), "B51")
	}

	minus := func(x int8) uint64 { return uint64(uint8(x)) }
	require.Equal(t, minus(-2), value(t, "", num.I8, num.Avg, "", minus(-3), minus(-2), minus(-2)), "-7/3 is truncated toward zero")
	require.Equal(t, minus(-18), value(t, "", num.I8, num.Avg, "", 100, 100, 1), "201 wraps to -55, -55/3 is -18")
	require.EqualValues(t, 18, value(t, premul, num.U8, num.Avg, "", 200, 100, 12), "312 wraps to 56; integers always divide")
	require.Equal(t, uint64(0xffff_ffff_ffff_fffe)/3, value(t, "", num.U64, num.Avg, "", after(1, 0, math.MaxUint64, math.MaxUint64)...))
}

// NaN and zeros: B37, B41, B47.
func TestSpecialValues(t *testing.T) {
	for _, d := range []num.DType{num.BF16, num.F16, num.F32, num.F64} {
		v := func(x float64) uint64 { return num.Encode(d, x, num.NearestEven) }
		nan := num.CanonicalNaN(d) ^ 1 // another NaN than the canonical one
		require.True(t, num.IsNaN(d, nan))
		x := []uint64{v(1), nan, v(3), v(4)}
		for i := range x {
			rotated := append(append([]uint64{}, x[i:]...), x[:i]...)
			require.Equal(t, v(1), value(t, "", d, num.Min, "", rotated...), "B37 %v", d)
			require.Equal(t, v(4), value(t, "nan=drop", d, num.Max, "", rotated...), "B37 %v", d)
			require.Equal(t, num.CanonicalNaN(d), value(t, "nan=propagate", d, num.Min, "", rotated...), "B37 %v", d)
			require.Equal(t, num.CanonicalNaN(d), value(t, "nan=propagate", d, num.Max, "", rotated...), "B37 %v", d)
		}
		require.Equal(t, num.CanonicalNaN(d), value(t, "", d, num.Min, "", after(4, nan)...), "B37 %v: all NaN", d)
		zero, minus := v(0), num.Neg(d, v(0))
		require.Equal(t, minus, value(t, "", d, num.Sum, "", minus, minus), "B41: a sum starts from a rank, never from +0")
		require.Equal(t, minus, value(t, "", d, num.Sum, "", after(5, minus)...), "B41")
		require.Equal(t, zero, value(t, "", d, num.Sum, "", minus, zero), "B41")
		require.Equal(t, minus, value(t, "", d, num.Min, "", zero, minus), "-0 lies below +0")
		require.Equal(t, zero, value(t, "", d, num.Max, "", minus, zero))
	}
	require.EqualValues(t, 0x7fff, value(t, "", num.BF16, num.Sum, "", 0x7fc1, bf16(1)), "B47")
	require.EqualValues(t, 0x7fffffff, value(t, "", num.F32, num.Sum, "", 0x7f800001, f32(1)))
	require.EqualValues(t, 0x7fff, value(t, "", num.F16, num.Sum, "", 0x7c00, 0xfc00), "inf - inf")
	require.EqualValues(t, 0x0002, value(t, "", num.BF16, num.Sum, "", 1, 1), "B43: subnormals are kept")
	require.EqualValues(t, 0x8001, value(t, "", num.BF16, num.Sum, "", after(7, 0, 0x8001)...), "B40")
}

// B45: copies keep every pattern.
func TestCopiesKeepPatterns(t *testing.T) {
	for _, k := range []api.Collective{api.AllGather, api.Broadcast, api.AllToAll} {
		for _, d := range []num.DType{num.BF16, num.F16} {
			for _, path := range allPaths {
				c := api.Call{Collective: k, DType: d, Ranks: 2, Count: 1 << 16}
				if k == api.AllToAll {
					c.Count /= 2
				}
				mem := memories(&c, rng(1))
				for r := range mem {
					for i, p := 0, mem[r][0].Src.Payload(); 2*i < len(p); i++ {
						num.Store(d, p[2*i:], uint64(i^r)&0xffff)
					}
				}
				before := clone(&c, mem)
				_, err := api.Run(context.Background(), openTeam(t, path, 2), c, mem)
				require.NoError(t, err)
				checkResult(t, &c, num.Scheme{}, before, mem)
			}
		}
	}
}

// B06, B07, B08 and the offsets of B83: any element-aligned pointer, source and
// destination and every rank on its own.
func TestAlignment(t *testing.T) {
	random := rng(1)
	for _, path := range append(allPaths, "") {
		c := api.Call{Collective: api.AllReduce, DType: num.BF16, Op: num.Sum, Ranks: 2, DstOffset: api.Offsets{1}}
		for _, c.Count = range []int64{3, 4} { // B07
			mem := memories(&c, random)
			for r := range mem {
				for i, p := 0, mem[r][0].Src.Payload(); 2*i < len(p); i++ {
					num.Store(num.BF16, p[2*i:], bf16(float64(i+1)))
				}
			}
			_, err := api.Run(context.Background(), openTeam(t, path, 2), c, mem)
			require.NoError(t, err)
			for i, want := range []uint64{0x4000, 0x4080, 0x40c0, 0x4100}[:c.Count] {
				require.Equal(t, want, num.Load(num.BF16, mem[1][0].Dst.Payload()[2*i:]))
			}
		}
		runCall(t, path, api.Call{Collective: api.AllReduce, DType: num.F16, Op: num.Sum, Ranks: 2, Count: 8, SrcOffset: api.Offsets{1}, DstOffset: api.Offsets{1}}, random) // B08
		runCall(t, path, api.Call{Collective: api.AllReduce, DType: num.F32, Op: num.Sum, Ranks: 8, Count: 11}, random)                                                      // B10
		runCall(t, path, api.Call{Collective: api.AllGather, DType: num.BF16, Ranks: 3, Count: 100, DstOffset: api.Offsets{128}}, random)                                    // B83
		runCall(t, path, api.Call{Collective: api.AllGatherMany, DType: num.BF16, Ranks: 3, Many: []api.LaneShape{{Count: 70}, {Count: 1}, {Count: 0}, {Count: 33}}, DstOffset: api.Offsets{128, 0, 128}}, random)
		for _, d := range api.DTypes() {
			for off := range int64(16) {
				runCall(t, path, api.Call{Collective: api.ReduceScatter, DType: d, Op: num.Max, Ranks: 3, Count: 7, SrcOffset: api.Offsets{off, 0, 15 - off}, DstOffset: api.Offsets{3, off, 1}}, random)
			}
		}
	}
}

// In place: B55, B56, B63, B66, under many schedules.
func TestInPlace(t *testing.T) {
	for _, path := range append(allPaths, "") {
		for _, c := range []api.Call{
			{Collective: api.AllReduce, DType: num.BF16, Op: num.Sum, Ranks: 2, Count: 300, InPlace: api.InPlaceOwn},       // B55
			{Collective: api.ReduceScatter, DType: num.BF16, Op: num.Sum, Ranks: 4, Count: 3, InPlace: api.InPlaceOwn},     // B56
			{Collective: api.ReduceScatter, DType: num.BF16, Op: num.Sum, Ranks: 4, Count: 3, InPlace: api.InPlaceStart},   // B56
			{Collective: api.ReduceScatter, DType: num.BF16, Op: num.Sum, Ranks: 4, Count: 700, InPlace: api.InPlaceStart}, // several chunks
			{Collective: api.AllReduce, DType: num.F32, Op: num.Sum, Ranks: 4, Count: 16384, InPlace: api.InPlaceOwn},      // B63
			{Collective: api.AllGather, DType: num.I32, Ranks: 3, Count: 50, InPlace: api.InPlaceOwn},                      // B66
			{Collective: api.Broadcast, DType: num.I32, Ranks: 3, Root: 1, Count: 50, InPlace: api.InPlaceOwn},
			{Collective: api.AllReduce, DType: num.I64, Op: num.Xor, Ranks: 5, Count: 500, InPlace: api.InPlaceOwn},
		} {
			for _, stage := range []int{1024, defaultStage} {
				if testing.Short() && c.Count > 1000 {
					continue
				}
				if c.Count > 1000 {
					stage = max(stage, 16<<10) // four chunks
				}
				params := fmt.Sprintf("%s&stage=%d", path, stage)
				if path == "" {
					params = fmt.Sprintf("?stage=%d", stage)
				}
				runCall(t, params, c, rng(1))
				for seed := range uint64(6) {
					if seed > 0 && (c.Count > 1000 || testing.Short()) {
						break
					}
					s := session(t, params, c.Ranks)
					s.filler = writes
					newRun(c.Ranks, []job{{params, c}, {params, c}}, rng(seed)).do(t, s, seeded(seed))
				}
			}
		}
	}
}

// B85: empty calls write nothing and still synchronise.
func TestEmptyCalls(t *testing.T) {
	for _, path := range append(allPaths, "") {
		for _, c := range faultCalls(3) {
			if c.Count = 0; api.IsMany(c.Collective) {
				c.Many = []api.LaneShape{{}, {DType: num.F64}}
			}
			runCall(t, path, c, rng(1))

			s := session(t, path, 3)
			mem := memories(&c, rng(1))
			_, errs := s.Run(seeded(0), []*api.Call{&c, nil, &c}, []api.Memory{mem[0], nil, mem[2]}, "")
			for _, err := range errs {
				var aborted *api.Aborted
				require.ErrorAs(t, err, &aborted)
				require.Equal(t, 1, aborted.Cause, "nobody gets past an empty call alone")
			}
		}
	}
}
