package inputs

import (
	"bytes"
	"fmt"
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
)

func call(d api.DType, op api.Op, ranks int, count int64) *api.Call {
	return &api.Call{Collective: api.AllReduce, DType: d, Op: op, Ranks: ranks, Count: count}
}

func fill(t require.TestingT, in Input, c *api.Call, rank int) []byte {
	g, err := in.Open(c)
	require.NoError(t, err)
	p := make([]byte, c.SrcElems(0)*int64(c.DType.Size()))
	require.NoError(t, g.Fill(p, 0, rank, 0))
	return p
}

// element is the definition of the format's text, one element at a time.
func element(in Input, d api.DType, rank int, i uint64) uint64 {
	x := mix(mix(in.Seed*256+uint64(rank)) + i)
	v := x & d.Mask()
	m := d.MantissaBits()
	exp := (uint64(1)<<d.ExponentBits() - 1) << m
	switch in.Kind {
	case Finite:
		if v&exp == exp {
			v &^= 1 << m
		}
	case Normal:
		e := (x >> 32) & 7
		if d == api.F64 {
			e = (mix(x) >> 32) & 7
		}
		v = v&^exp | (uint64(d.Bias())-4+e)<<m
	case Uniform:
		u := float64(x>>40) / (1 << 24)
		u *= in.Hi - in.Lo
		u += in.Lo
		v = num.Encode(d, u, num.NearestEven)
	}
	return v
}

func TestGeneratorFollowsItsDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.SampledFrom(api.DTypes()).Draw(t, "dtype")
		in := Input{Kind: Bits, Seed: rapid.Uint64().Draw(t, "seed")}
		if d.Float() {
			in.Kind = rapid.SampledFrom([]Kind{Bits, Finite, Normal, Uniform}).Draw(t, "kind")
		}
		if in.Kind == Uniform {
			in.Lo = rapid.Float64Range(-2, 1).Draw(t, "lo")
			in.Hi = in.Lo + rapid.Float64Range(0, 3).Draw(t, "width")
		}
		ranks := rapid.IntRange(1, 9).Draw(t, "ranks")
		c := call(d, api.Sum, ranks, int64(rapid.IntRange(0, 1100).Draw(t, "count")))
		rank := rapid.IntRange(0, ranks-1).Draw(t, "rank")
		p := fill(t, in, c, rank)
		for i := range uint64(c.Count) {
			require.Equal(t, element(in, d, rank, i), num.Load(d, p[i*uint64(d.Size()):]), "element %d", i)
		}
	})
}

func TestFillFromAnywhere(t *testing.T) {
	c := call(api.F32, api.Sum, 2, 5000)
	g, err := Input{Kind: Normal, Seed: 9}.Open(c)
	require.NoError(t, err)
	whole := fill(t, g.Input(), c, 1)
	for _, at := range []int64{0, 1, 511, 512, 513, 4999} {
		part := make([]byte, 4*min(700, 5000-at))
		require.NoError(t, g.Fill(part, 0, 1, at))
		require.Equal(t, whole[4*at:4*at+int64(len(part))], part)
	}
}

func TestLanesAreNumberedThrough(t *testing.T) {
	c := &api.Call{Collective: api.AllGatherMany, DType: api.BF16, Ranks: 2, Many: []api.LaneShape{{Count: 3}, {DType: api.I32, Count: 5}}}
	in := Input{}.Resolve(c)
	require.Equal(t, Input{Kind: Bits, Seed: 1}, in, "an integer lane makes bits the default")
	g, err := in.Open(c)
	require.NoError(t, err)
	p := make([]byte, 20)
	require.NoError(t, g.Fill(p, 1, 1, 0))
	require.Equal(t, element(in, api.I32, 1, 3), num.Load(api.I32, p), "the second lane begins with element 3")
}

// TestUniformEncode holds the fast conversion to num's, across every exponent.
func TestUniformEncode(t *testing.T) {
	for _, d := range api.DTypes() {
		if !d.Float() {
			continue
		}
		for e := -1080; e < 1024; e++ {
			for _, f := range []float64{1, 1.5, 1.4375, 1.00390625, 1.01171875, math.Nextafter(2, 0), -1.0625} {
				x := math.Ldexp(f, e)
				require.Equal(t, num.Encode(d, x, num.NearestEven), encode(d, x), "%v %v", d, x)
			}
		}
	}
}

// TestOrderFreeIsOrderFree reduces order-free inputs forwards, backwards and as a
// tree, in the type and exactly.
func TestOrderFreeIsOrderFree(t *testing.T) {
	for _, d := range api.DTypes() {
		for _, op := range api.Ops() {
			if !op.ValidFor(d) || op == api.Avg && d.Float() {
				continue
			}
			for _, ranks := range []int{1, 2, 3, 8, 40} {
				c := call(d, op, ranks, 200)
				src := make([][]byte, ranks)
				for r := range src {
					src[r] = fill(t, Input{Kind: OrderFree, Seed: 3}, c, r)
				}
				for i := range 200 {
					requireOrderFree(t, d, op, src, i)
				}
			}
		}
	}
}

func requireOrderFree(t *testing.T, d api.DType, op api.Op, src [][]byte, i int) {
	in := make([]uint64, len(src))
	back := make([]uint64, len(src))
	for r := range src {
		in[r] = num.Load(d, src[r][i*d.Size():])
		back[len(src)-1-r] = in[r]
	}
	want := num.Eval(d, num.Scheme{Op: op}, in)
	for _, s := range []num.Scheme{{Op: op}, {Op: op, Order: num.Balanced}, {Op: op, Acc: num.AccExact, Last: num.TowardZero}} {
		require.Equal(t, want, num.Eval(d, s, in), "%v %v of %x", d, s, in)
		require.Equal(t, want, num.Eval(d, s, back), "%v %v of %x", d, s, back)
	}
	if d.Float() {
		require.False(t, num.IsNaN(d, want) || num.IsInf(d, want), "%v %v %x", d, op, in)
	}
}

func TestOrderFreeSumsUseTheirRoom(t *testing.T) {
	for _, c := range []struct {
		d     api.DType
		ranks int
		m     int64
	}{{api.BF16, 2, 128}, {api.BF16, 72, 3}, {api.F16, 8, 256}, {api.F32, 2, 1 << 23}, {api.E5M2, 8, 1}, {api.E5M2, 9, 1}, {api.F64, 4, 1 << 51}} {
		require.Equal(t, uint64(c.m), orderFreeBound(c.d, c.ranks))
	}
	last := fill(t, Input{Kind: OrderFree, Seed: 1}, call(api.E5M2, api.Sum, 9, 64), 8)
	require.Equal(t, make([]byte, 64), last, "the ninth rank of e5m2 has no room")
}

func TestConstants(t *testing.T) {
	for _, d := range api.DTypes() {
		p := fill(t, Input{Kind: Ones}, call(d, api.Sum, 3, 5), 2)
		want := uint64(1)
		if d.Float() {
			want = num.Encode(d, 1, num.NearestEven)
		}
		for i := range 5 {
			require.Equal(t, want, num.Load(d, p[i*d.Size():]))
		}
	}
	in, err := ParseValues("0x4380,0x3f80, 5")
	require.NoError(t, err)
	require.Equal(t, bytes.Repeat([]byte{0x80, 0x3f}, 5), fill(t, in, call(api.BF16, api.Sum, 3, 5), 1))
}

func BenchmarkFill(b *testing.B) {
	for _, k := range []Kind{Normal, Bits, Uniform, OrderFree} {
		b.Run(fmt.Sprint(k), func(b *testing.B) {
			c := call(api.BF16, api.Sum, 1, 1<<20)
			g, err := Input{Kind: k, Seed: 1, Lo: -1, Hi: 1}.Open(c)
			require.NoError(b, err)
			p := make([]byte, 2<<20)
			for range b.N {
				_ = g.Fill(p, 0, 0, 0)
			}
			b.ReportMetric(float64(b.N)*(1<<20)/b.Elapsed().Seconds()/1e9, "Gel/s")
		})
	}
}

// TestMixIsSplitmix64 checks against the published first outputs of seed 1234567.
func TestMixIsSplitmix64(t *testing.T) {
	const gamma = 0x9E3779B97F4A7C15
	want := []string{"6457827717110365317", "3203168211198807973", "9817491932198370423"}
	for i, w := range want {
		state := 1234567 + uint64(i)*gamma
		require.Equal(t, w, new(big.Int).SetUint64(mix(state)).String())
	}
}
