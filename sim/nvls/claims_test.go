package nvls

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api/num"
)

func access(t *testing.T, params map[string]string, form string) *Access {
	t.Helper()
	c, err := Parse(params)
	require.NoError(t, err)
	f, err := ParseForm(form)
	require.NoError(t, err)
	a, err := c.Access(f)
	require.NoError(t, err)
	return a
}

func f32s(xs ...float64) []uint64 {
	out := make([]uint64, len(xs))
	for i, x := range xs {
		out[i] = uint64(math.Float32bits(float32(x)))
	}
	return out
}

func f64s(xs ...float64) []uint64 {
	out := make([]uint64, len(xs))
	for i, x := range xs {
		out[i] = math.Float64bits(x)
	}
	return out
}

// TestGB200Wide: what was published of f32 and f64 sums on GB200, 2 and 4 GPUs.
func TestGB200Wide(t *testing.T) {
	f32 := access(t, nil, "multimem.ld_reduce.relaxed.sys.global.add.v4.f32")
	f64 := access(t, nil, "multimem.ld_reduce.relaxed.sys.global.add.f64")
	p := math.Pow
	for _, c := range []struct {
		claim string
		a     *Access
		in    []uint64
		want  uint64
	}{
		{"1: 2^24 + 1 + 1 rounds once", f32, f32s(p(2, 24), 1, 1, 0), f32s(p(2, 24) + 2)[0]},
		{"1: +-2^24 leave the ones", f32, f32s(p(2, 24), 1, -p(2, 24), 1), f32s(2)[0]},
		{"1: 2^-149", f32, f32s(p(2, -149), 0, 0, 0), 1},
		{"1: -0", f32, []uint64{1 << 31, 1 << 31}, 0},
		{"1: +-2^53 leave the ones", f64, f64s(p(2, 53), 1, -p(2, 53), 1), f64s(2)[0]},
		{"1: 2^-1074", f64, []uint64{1, 0}, 1},
		{"1: a tie to even", f32, f32s(1, p(2, -24)), f32s(1)[0]},
		{"2: a term's last bit at 2^(anchor-95)", f32, f32s(1, p(2, -24), p(2, -95)), f32s(1)[0] + 1},
		{"2: and below it", f32, f32s(1, p(2, -24), p(2, -96)), f32s(1)[0]},
		{"2: a sum at 2^(anchor-86)", f32, f32s(1, -1, p(2, -86)), f32s(p(2, -86))[0]},
		{"2: and below it", f32, f32s(1, -1, p(2, -87)), 0},
		{"2: the anchor moves by 16", f32, f32s(2, -2, p(2, -70)), f32s(p(2, -70))[0]},
		{"2: and with it the cut", f32, f32s(2, -2, p(2, -71)), 0},
		{"2: in f64 too", f64, f64s(1, p(2, -53), p(2, -95)), f64s(1)[0] + 1},
		{"2: and below", f64, f64s(1, p(2, -53), p(2, -96)), f64s(1)[0]},
		{"2: f64 sums", f64, f64s(1, -1, p(2, -87)), 0},
		{"6: infinities", f32, f32s(math.Inf(1), -math.MaxFloat32), f32s(math.Inf(1))[0]},
		{"6: of both signs", f32, f32s(math.Inf(1), math.Inf(-1)), 0x7FFFFFFF},
		{"6: x - x with -0", f32, f32s(1, -1, math.Copysign(0, -1)), 0},
		{"7: subnormals are kept", f32, []uint64{1, 1}, 2},
		{"7: f64 subnormals", f64, []uint64{1, 1}, 2},
	} {
		require.Equal(t, c.want, c.a.Word(c.in, 0), "claim %s: %#x", c.claim, c.in)
	}
	// Claim 12: any order of 1e8, 1, -1e8, 1 is 2.
	for _, in := range [][]float64{{1e8, 1, -1e8, 1}, {1e8, 1, 1, -1e8}, {1e8, -1e8, 1, 1}, {1, 1e8, 1, -1e8}, {1, 1, 1e8, -1e8}, {1, -1e8, 1e8, 1}} {
		require.Equal(t, f32s(2)[0], f32.Word(f32s(in...), 0), "claim 12: %v", in)
	}
}

// TestGB200Half: what was published of 16-bit sums.
func TestGB200Half(t *testing.T) {
	const with, without = "multimem.ld_reduce.global.add.acc::f32.v4.bf16x2", "multimem.ld_reduce.global.add.v4.bf16x2"
	pair := func(lo, hi uint64) uint64 { return hi<<16 | lo }
	// Claim 3: a sum below 2^(anchor-38) reads +0.
	a := access(t, nil, with)
	require.Equal(t, pair(0x2C80, 0), a.Word([]uint64{pair(0x3F80, 0x3F80), pair(0xBF80, 0xBF80), pair(0x2C80, 0x2C00)}, 0))
	// Claim 4: within one last place of the nearest, and not always the nearest.
	ideal, _ := PresetOf("ideal_rne")
	half, _ := PresetOf("bw_half")
	in := []uint64{0x3F80, 0x3BC0} // 1 and three quarters of a last place
	differs := 0
	for i := range int64(4096) {
		got := half.Word(num.BF16, num.Sum, in, i)
		require.True(t, num.Faithful(num.BF16, num.Sum, in, got))
		if got != ideal.Word(num.BF16, num.Sum, in, i) {
			differs++
		}
	}
	require.InDelta(t, 1024, differs, 128, "down with the probability of the rest")
	// Claim 5: .acc::f32 changes nothing on this fabric, and does on the other.
	words := []uint64{pair(0x4380, 0x4380), pair(0x3F80, 0xC380), pair(0x3F80, 0x3BC0)}
	require.Equal(t, access(t, nil, with).Word(words, 7), access(t, nil, without).Word(words, 7))
	hopper := map[string]string{"fabric": NVSwitch3, "order": "rank"}
	require.NotEqual(t, access(t, hopper, with).Word(words, 7), access(t, hopper, without).Word(words, 7))
	// Claim 6 and 7 in 16 bits.
	require.Equal(t, uint64(0), a.Word([]uint64{pair(0x8000, 0x8000), pair(0x8000, 0x8000)}, 0))
	require.Equal(t, pair(2, 2), a.Word([]uint64{pair(1, 1), pair(1, 1)}, 0))
	require.Equal(t, pair(0x7FFF, 0x7FFF), a.Word([]uint64{pair(0x7F80, 0xFFC1), pair(0xFF80, 0)}, 0))
}

// TestGB200MinMax: claim 8, and the table of section 7.6 for a switch that
// ignores NaN.
func TestGB200MinMax(t *testing.T) {
	for _, c := range []struct {
		d        num.DType
		op       num.Op
		in       []uint64
		want     uint64
		wantProp uint64
	}{
		{num.F16, num.Min, []uint64{0x7E01, 0x3C00}, 0x3C00, 0x7FFF},
		{num.F16, num.Max, []uint64{0x3C00, 0x7E01}, 0x3C00, 0x7FFF},
		{num.F16, num.Max, []uint64{0x7E01, 0x7E02}, 0x7FFF, 0x7FFF},
		{num.F16, num.Min, []uint64{0xFE01, 0x3C00}, 0x3C00, 0x7FFF},
		{num.F16, num.Min, []uint64{0x0000, 0x8000}, 0x8000, 0x8000},
		{num.F16, num.Max, []uint64{0x8000, 0x0000}, 0x0000, 0x0000},
		{num.F16, num.Min, []uint64{0x0001, 0x8001}, 0x8001, 0x8001},
		{num.F16, num.Max, []uint64{0x8001, 0x8002}, 0x8001, 0x8001},
		{num.F16, num.Min, []uint64{0x7C00, 0xFC00}, 0xFC00, 0xFC00},
		{num.F16, num.Max, []uint64{0x7C00, 0x7BFF}, 0x7C00, 0x7C00},
		{num.BF16, num.Max, []uint64{0x7FC1, 0x3F80}, 0x3F80, 0x7FFF},
		{num.BF16, num.Max, []uint64{0xFF7F, 0x7F7F}, 0x7F7F, 0x7F7F},
	} {
		for params, want := range map[string]uint64{"ignore": c.want, "propagate": c.wantProp} {
			cfg, err := Parse(map[string]string{"fabric": Custom, "minmax_nan": params})
			require.NoError(t, err)
			m, err := cfg.Model(c.d, c.op, true)
			require.NoError(t, err)
			for _, in := range [][]uint64{c.in, {c.in[1], c.in[0]}} {
				require.Equal(t, want, m.Word(c.d, c.op, in, 0), "%v %v %#x", c.d, c.op, in)
				either := m
				either.MinMaxZero = ZeroEither
				set, err := either.Allowed(c.d, c.op, in)
				require.NoError(t, err)
				require.Contains(t, set, want)
				require.Contains(t, set, either.Word(c.d, c.op, in, 0))
			}
		}
	}
}

// TestEightRanks is section 7.9: the one published bit of an 8-GPU sum.
func TestEightRanks(t *testing.T) {
	in := []uint64{0x400A, 0x3FFE, 0xBCDF, 0x3F9F, 0xBD1D, 0x3E4E, 0xC007, 0x3F4E}
	want := map[Final]uint64{RZ: 0x4086, RTN: 0x4086, G1: 0x4086, Adversarial: 0x4086, RNE: 0x4087, RNA: 0x4087, RHU: 0x4087, ODD: 0x4087, RA: 0x4087, RTP: 0x4087}
	for last, value := range want {
		m := halfWindow("", last)
		require.Equal(t, value, m.Word(num.BF16, num.Sum, in, 0), "%s", last)
	}
	seeded := halfWindow("", DIR)
	down := 0
	for i := range int64(10000) {
		if seeded.Word(num.BF16, num.Sum, in, i) == 0x4086 {
			down++
		}
	}
	require.InDelta(t, 1602, down, 150, "0.16 of the time")
	control := []uint64{0x3E47, 0x4000, 0x3EF9, 0xBDEE, 0x3FA1, 0xBF86, 0xBFAE, 0x3EA7}
	require.Equal(t, uint64(0x3FDF), seeded.Word(num.BF16, num.Sum, control, 0))
}
