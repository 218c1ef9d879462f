package num

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// bf16s encodes numbers, for readable cases.
func encodeAll(d DType, xs ...float64) []uint64 {
	in := make([]uint64, len(xs))
	for i, x := range xs {
		in[i] = Encode(d, x, NearestEven)
	}
	return in
}

// TestOrders: the three ways to add four numbers that differ.
func TestOrders(t *testing.T) {
	in := encodeAll(BF16, 256, 1, 1, 1)
	eval := func(s Scheme) float64 { s.Op = Sum; return Decode(BF16, Eval(BF16, s, in)) }
	require.Equal(t, 256.0, eval(Scheme{}), "each 1 is half an ulp and lost to even")
	require.Equal(t, 258.0, eval(Scheme{Order: Balanced}), "(256+1)+(1+1)")
	require.Equal(t, 260.0, eval(Scheme{Acc: AccF32}), "259 rounded once, a tie")
	require.Equal(t, 258.0, eval(Scheme{Acc: AccF32, Last: TowardZero}))
	require.Equal(t, 262.0, eval(Scheme{Step: AwayFromZero}))
	require.Equal(t, 260.0, eval(Scheme{Acc: AccExact}))
}

// TestSplit pins the shape of the balanced tree.
func TestSplit(t *testing.T) {
	for n, want := range map[int]int{2: 1, 3: 2, 4: 2, 5: 4, 6: 4, 7: 4, 8: 4, 9: 8, 72: 64} {
		require.Equal(t, want, split(Balanced, n), "%d", n)
		require.Equal(t, n-1, split(Linear, n))
	}
}

// TestHardware compares steps in f32 and f64 with this machine's, NaNs aside.
func TestHardware(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for range cases(100_000) {
		a, b := r.Uint64(), r.Uint64()
		if r.IntN(2) == 0 {
			b = b&^(0x7FF<<52) | a&(0x7FF<<52)
		}
		x, y := math.Float64frombits(a), math.Float64frombits(b)
		same(t, F64, math.Float64bits(x+y), Eval(F64, Scheme{Op: Sum}, []uint64{a, b}))
		same(t, F64, math.Float64bits(float64(x*y)), Eval(F64, Scheme{Op: Prod}, []uint64{a, b}))
		c := a >> 1 & 0x7FEFFFFFFFFFFFFF // finite, not negative
		same(t, F64, math.Float64bits(math.FMA(y, math.Float64frombits(c), x)), format{F64, NearestEven}.fma(a, b, c))
		a, b = a>>32, b>>32
		p, q := math.Float32frombits(uint32(a)), math.Float32frombits(uint32(b))
		same(t, F32, uint64(math.Float32bits(p+q)), Eval(F32, Scheme{Op: Sum}, []uint64{a, b}))
		same(t, F32, uint64(math.Float32bits(float32(p*q))), Eval(F32, Scheme{Op: Prod}, []uint64{a, b}))
	}
}

func same(t *testing.T, d DType, want, got uint64) {
	t.Helper()
	if IsNaN(d, want) && IsNaN(d, got) {
		return
	}
	require.Equal(t, want, got, "%v %#x", d, got)
}

// TestSpecialSums: zeros, infinities and NaNs.
func TestSpecialSums(t *testing.T) {
	inf, ninf, nz := math.Inf(1), math.Inf(-1), math.Copysign(0, -1)
	for _, d := range []DType{BF16, F16, F32, E5M2} {
		nan := CanonicalNaN(d)
		for _, acc := range []Acc{AccElement, AccF32, AccF64, AccExact} {
			s := Scheme{Op: Sum, Acc: acc}
			require.Equal(t, nan, Eval(d, s, encodeAll(d, inf, 1, ninf)), "%v %d", d, acc)
			require.Equal(t, nan, Eval(d, s, []uint64{nan ^ signBit(d), 0}))
			require.Equal(t, infinity(d), Eval(d, s, encodeAll(d, 1, inf)))
			require.Equal(t, signBit(d), Eval(d, s, encodeAll(d, nz, nz, nz)), "-0 only")
			require.Equal(t, uint64(0), Eval(d, s, encodeAll(d, nz, 0, nz)))
			require.Equal(t, uint64(0), Eval(d, s, encodeAll(d, 1, -1)))
			s = Scheme{Op: Sum, Acc: acc, Step: Down, Last: Down}
			require.Equal(t, signBit(d), Eval(d, s, encodeAll(d, 1, -1)), "%v %d: rounding down", d, acc)
			p := Scheme{Op: Prod, Acc: acc}
			require.Equal(t, nan, Eval(d, p, encodeAll(d, inf, 0)))
			require.Equal(t, signBit(d)|infinity(d), Eval(d, p, encodeAll(d, inf, -1)))
			require.Equal(t, signBit(d), Eval(d, p, encodeAll(d, nz, 1)))
		}
	}
	require.Equal(t, uint64(0x7F), Eval(E4M3, Scheme{Op: Sum}, encodeAll(E4M3, 448, 448)), "no infinity")
}

// TestNaNOfF64: a NaN passes through quieted, the first one first.
func TestNaNOfF64(t *testing.T) {
	const signalling, quiet, one = 0x7FF0000000000123, 0xFFF8000000000456, 0x3FF0000000000000
	sum, prod := Scheme{Op: Sum}, Scheme{Op: Prod, Acc: AccF64}
	for _, s := range []Scheme{sum, prod} {
		require.Equal(t, uint64(0x7FF8000000000123), Eval(F64, s, []uint64{one, signalling}))
		require.Equal(t, uint64(0x7FF8000000000123), Eval(F64, s, []uint64{signalling, quiet}))
		require.Equal(t, uint64(quiet), Eval(F64, s, []uint64{one, quiet, signalling}))
	}
	require.Equal(t, uint64(0xFFF8000000000000), Eval(F64, sum, encodeAll(F64, math.Inf(1), math.Inf(-1))))
	require.Equal(t, uint64(0xFFF8000000000000), Eval(F64, prod, encodeAll(F64, math.Inf(1), 0)))
	fused := Scheme{Op: Avg, Avg: AvgPremulFused}
	require.Equal(t, uint64(quiet), Eval(F64, fused, []uint64{quiet, signalling}), "the accumulator first")
	exact := Scheme{Op: Sum, Acc: AccExact}
	require.Equal(t, CanonicalNaN(F64), Eval(F64, exact, []uint64{one, quiet}))
}

// TestMinMaxRules is the table of the three rules, on f16 patterns.
func TestMinMaxRules(t *testing.T) {
	const one, two, pz, nz, nan, inf = 0x3C00, 0x4000, 0x0000, 0x8000, 0xFE01, 0x7C00
	for _, c := range []struct {
		a, b                     uint64
		drop, propagate, ternary [2]uint64 // min, max
	}{
		{one, two, [2]uint64{one, two}, [2]uint64{one, two}, [2]uint64{one, two}},
		{two, one, [2]uint64{one, two}, [2]uint64{one, two}, [2]uint64{one, two}},
		{pz, nz, [2]uint64{nz, pz}, [2]uint64{nz, pz}, [2]uint64{nz, nz}},
		{nz, pz, [2]uint64{nz, pz}, [2]uint64{nz, pz}, [2]uint64{pz, pz}},
		{nan, one, [2]uint64{one, one}, [2]uint64{0x7FFF, 0x7FFF}, [2]uint64{one, one}},
		{one, nan, [2]uint64{one, one}, [2]uint64{0x7FFF, 0x7FFF}, [2]uint64{nan, nan}},
		{nan, nan, [2]uint64{0x7FFF, 0x7FFF}, [2]uint64{0x7FFF, 0x7FFF}, [2]uint64{nan, nan}},
		{inf | 0x8000, nan, [2]uint64{inf | 0x8000, inf | 0x8000}, [2]uint64{0x7FFF, 0x7FFF}, [2]uint64{nan, nan}},
	} {
		for i, op := range []Op{Min, Max} {
			in := []uint64{c.a, c.b}
			require.Equal(t, c.drop[i], Eval(F16, Scheme{Op: op}, in), "%v %#x", op, in)
			require.Equal(t, c.propagate[i], Eval(F16, Scheme{Op: op, MinMax: PropagateNaN}, in), "%v %#x", op, in)
			require.Equal(t, c.ternary[i], Eval(F16, Scheme{Op: op, MinMax: Ternary}, in), "%v %#x", op, in)
		}
	}
}

// TestAvgRules: inputs for which the rules differ.
func TestAvgRules(t *testing.T) {
	in := encodeAll(F16, 1, 1.001, 2049)
	avg := func(s Scheme) uint64 { s.Op = Avg; return Eval(F16, s, in) }
	third := format{F16, NearestEven}.inverse(3)
	f := format{F16, NearestEven}
	sum := f.add(f.add(in[0], in[1]), in[2])
	require.Equal(t, f.div(sum, 3), avg(Scheme{}))
	require.Equal(t, f.add(f.add(f.mul(in[0], third), f.mul(in[1], third)), f.mul(in[2], third)), avg(Scheme{Avg: AvgPremul}))
	require.Equal(t, f.fma(f.fma(f.mul(in[0], third), in[1], third), in[2], third), avg(Scheme{Avg: AvgPremulFused}))
	x := float32(Decode(F16, sum)) * float32(1.0/3)
	require.Equal(t, Encode(F16, float64(x), NearestEven), avg(Scheme{Avg: AvgMultiply}))
	// In a balanced tree a product is fused only where it goes into a sum alone.
	in = append(in, in[0], in[1])
	c := f.inverse(5)
	pair := func(a, b uint64) uint64 { return f.fma(f.mul(a, c), b, c) }
	want := f.fma(f.add(pair(in[0], in[1]), pair(in[2], in[3])), in[4], c)
	require.Equal(t, want, avg(Scheme{Avg: AvgPremulFused, Order: Balanced}))

	// What fusing keeps: 1 + 1/2 of the least subnormal rounds up, 1/2 alone to 0.
	tiny := []uint64{0x0002, 0x0001}
	require.Equal(t, uint64(0x0001), Eval(BF16, Scheme{Op: Avg, Avg: AvgPremul}, tiny))
	require.Equal(t, uint64(0x0002), Eval(BF16, Scheme{Op: Avg, Avg: AvgPremulFused}, tiny))
}

// TestIntegers compares with Go's own arithmetic.
func TestIntegers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw := rapid.SliceOfN(rapid.Uint64(), 2, 300).Draw(t, "inputs")
		checkInts[int8](t, I8, raw)
		checkInts[int16](t, I16, raw)
		checkInts[int32](t, I32, raw)
		checkInts[int64](t, I64, raw)
		checkInts[uint8](t, U8, raw)
		checkInts[uint16](t, U16, raw)
		checkInts[uint32](t, U32, raw)
		checkInts[uint64](t, U64, raw)
	})
}

func checkInts[T int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64](t *rapid.T, d DType, raw []uint64) {
	in := make([]uint64, len(raw))
	sum, prod, least, most, and, or, xor := T(0), T(1), T(raw[0]), T(raw[0]), ^T(0), T(0), T(0)
	for i, b := range raw {
		in[i] = b & d.Mask()
		v := T(b)
		sum, prod, least, most = sum+v, prod*v, min(least, v), max(most, v)
		and, or, xor = and&v, or|v, xor^v
	}
	avg := sum
	if n := len(raw); d.Signed() {
		avg = T(int64(sum) / int64(n))
	} else {
		avg = T(uint64(sum) / uint64(n))
	}
	for op, want := range map[Op]T{Sum: sum, Prod: prod, Min: least, Max: most, Avg: avg, And: and, Or: or, Xor: xor} {
		require.Equal(t, uint64(want)&d.Mask(), Eval(d, Scheme{Op: op}, in), "%v %v", d, op)
	}
}

// TestOneInput: nothing is computed, every pattern stays.
func TestOneInput(t *testing.T) {
	for _, d := range floats() {
		for _, op := range []Op{Sum, Prod, Min, Max, Avg} {
			for _, b := range []uint64{1, d.Mask(), signBit(d), infinity(d)} {
				for _, acc := range []Acc{AccElement, AccF32, AccExact} {
					require.Equal(t, b, Eval(d, Scheme{Op: op, Acc: acc}, []uint64{b}))
				}
			}
		}
	}
	require.Panics(t, func() { Eval(F32, Scheme{Op: Sum}, nil) })
	require.Panics(t, func() { Eval(F32, Scheme{}, []uint64{1}) })
	require.Panics(t, func() { Eval(F32, Scheme{Op: And}, []uint64{1, 2}) })
}
