package nvls

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/tandem/api/num"
)

// drawHalf is a random pattern whose exponent lies at most binades below a
// greatest one, now and then a zero, a subnormal, or one that is infinite or a NaN.
func drawHalf(rng *rand.Rand, d num.DType, binades int, wild bool) uint64 {
	b := rng.Uint64() & d.Mask()
	man := d.MantissaBits()
	low := b & (1<<man - 1)
	sign := b & (1 << (d.Bits() - 1))
	switch pick := rng.IntN(200); {
	case wild && pick == 0:
		return sign | (1<<d.ExponentBits()-1)<<man | low&1
	case pick < 3:
		return sign
	case pick < 6:
		return sign | low
	}
	top := 1<<d.ExponentBits() - 2
	return sign | uint64(max(top-1-rng.IntN(binades+1), 0))<<man | low
}

// TestHalfTiles: sums by way of f64 equal single elements in every direction and
// under every rule: spans of exponents on either side of what f64 holds and of the
// window's edge, cancellation, results out of range, specials, at any place.
func TestHalfTiles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.SampledFrom(halves).Draw(t, "dtype")
		m := halfWindow("", rapid.SampledFrom([]Final{RNE, RNA, RHU, RZ, RA, RTN, RTP, ODD, G1, DIR, Adversarial}).Draw(t, "final"))
		m.Seed = rapid.Uint64().Draw(t, "seed")
		m.Granule = rapid.SampledFrom([]int{1, 7, 16, 60}).Draw(t, "granule")
		m.ResultBits = rapid.SampledFrom([]int{0, 20, 38, 60}).Draw(t, "result bits")
		if rapid.Bool().Draw(t, "exact") {
			m.Kind = KindExact
		}
		m.FTZOut = rapid.Bool().Draw(t, "ftz out")
		m.KeepNeg0 = rapid.Bool().Draw(t, "keep -0")
		m.Overflow = rapid.SampledFrom([]Overflow{"", OverflowMax, OverflowNaN}).Draw(t, "overflow")
		ranks := rapid.SampledFrom([]int{1, 2, 3, 8, 9, 17, 72}).Draw(t, "ranks")
		n := rapid.SampledFrom([]int{1, 15, 16, 129, halfTile + 37}).Draw(t, "elements")
		binades := rapid.SampledFrom([]int{0, 3, 8, 12, 13, 14, 16, 17, 24, 30, 37, 44, 254}).Draw(t, "binades")
		at := rapid.Int64Range(0, 1<<40).Draw(t, "at")
		shift := rapid.SampledFrom([]uint64{0, 2, 9, 28}).Draw(t, "shift") // of all exponents, down
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "data"), 0))
		wild := rng.IntN(2) == 0
		srcs := make([][]byte, ranks)
		for r := range srcs {
			srcs[r] = make([]byte, 2*n)
			for i := range n {
				b := drawHalf(rng, d, binades, wild)
				if field := shift << d.MantissaBits(); b&(d.Mask()>>1) < formatOf(d).infinity && b&(d.Mask()>>1) >= field {
					b -= field
				}
				if r > 0 && rng.IntN(4) == 0 { // cancellation, up to a last bit
					b = num.Neg(d, num.Load(d, srcs[r-1][2*i:])) ^ b&1
				}
				num.Store(d, srcs[r][2*i:], b)
			}
		}
		want := make([]uint64, n)
		in := make([]uint64, ranks)
		for i := range want {
			for r := range in {
				in[r] = num.Load(d, srcs[r][2*i:])
			}
			want[i] = m.Word(d, num.Sum, in, at+int64(i))
		}
		r, err := NewReducer(m, d, num.Sum, ranks)
		require.NoError(t, err)
		r.Workers = rng.IntN(3)
		dst := make([]byte, 2*n)
		if rng.IntN(2) == 0 {
			dst = srcs[rng.IntN(ranks)]
		}
		r.Fold(dst, 2*at, srcs...)
		for i := range want {
			if got := num.Load(d, dst[2*i:]); got != want[i] {
				require.Equal(t, want[i], got, "%v, element %d of %+v", d, i, m)
			}
		}
	})
}

// TestHalfIsFast: the models that matter take the way by f64.
func TestHalfIsFast(t *testing.T) {
	for _, d := range halves {
		for _, last := range []Final{RNE, RZ, RA, DIR, G1, Adversarial} {
			r, err := NewReducer(halfWindow("", last), d, num.Sum, 8)
			require.NoError(t, err)
			require.True(t, r.half, "%v %s", d, last)
		}
	}
}

// BenchmarkHalf is terms a second, in every direction.
func BenchmarkHalf(b *testing.B) {
	const n = 1 << 16
	for _, d := range halves {
		for _, last := range []Final{DIR, RZ, RNE, RA, G1, Adversarial} {
			for _, ranks := range []int{2, 8} {
				b.Run(fmt.Sprintf("%v/%s/%d", d, last, ranks), func(b *testing.B) {
					r, err := NewReducer(halfWindow("", last), d, num.Sum, ranks)
					require.NoError(b, err)
					rng := rand.New(rand.NewPCG(1, 2))
					srcs := make([][]byte, ranks)
					for i := range srcs {
						srcs[i] = make([]byte, 2*n)
						for k := range n {
							num.Store(d, srcs[i][2*k:], num.Encode(d, rng.NormFloat64(), num.NearestEven))
						}
					}
					dst := make([]byte, 2*n)
					r.Workers = 1
					for b.Loop() {
						r.Fold(dst, 0, srcs...)
					}
					b.ReportMetric(float64(ranks*n)*float64(b.N)/b.Elapsed().Seconds()/1e9, "Gin/s")
				})
			}
		}
	}
}

// edge holds the sum of one element, in every lane of a unit of elements, to that
// of a single one.
func edge(t *testing.T, m Model, d num.DType, in ...uint64) {
	t.Helper()
	const n = 16
	srcs := make([][]byte, len(in))
	for r, b := range in {
		srcs[r] = make([]byte, 2*n)
		for i := range n {
			num.Store(d, srcs[r][2*i:], b)
		}
	}
	r, err := NewReducer(m, d, num.Sum, len(in))
	require.NoError(t, err)
	require.True(t, r.half)
	dst := make([]byte, 2*n)
	r.Fold(dst, 0, srcs...)
	for i := range n {
		require.Equal(t, m.Word(d, num.Sum, in, int64(i)), num.Load(d, dst[2*i:]), "%+v of %#x", m, in)
	}
}

// TestHalfEdges: terms as far apart as f64 or the window allows, and by a binade
// less or more, where the last bit of the least one decides.
func TestHalfEdges(t *testing.T) {
	for _, d := range halves {
		man := d.MantissaBits()
		top := uint64(1<<d.ExponentBits() - 8)
		one := func(field uint64) uint64 { return field << man }
		for apart := range uint64(min(int(top), 60)) {
			low := one(top-apart) | 1
			for _, others := range []int{1, 2, 3, 5, 7} { // of 1.25 or 1.5: numbers with few bits
				in := []uint64{low}
				for range others {
					in = append(in, one(top)|1<<(man-1-others/5))
				}
				for _, last := range []Final{RA, DIR, ODD, RZ} {
					edge(t, Model{Kind: KindExact, Final: last}, d, in...)
				}
			}
			// On the way to the least term the sum is as wide as it gets.
			big := one(top) | 1<<(man-1)
			less := num.Neg(d, big)
			edge(t, Model{Kind: KindExact, Final: RZ}, d, low, big, big, big, less, less, less)
			for _, granule := range []int{1, 5, 16} {
				for _, bits := range []int{20, 38} {
					for turn := range uint64(granule) {
						field := top - turn
						if field <= apart {
							continue
						}
						small := one(field-apart) | 1
						m := halfWindow("", RZ)
						m.Granule, m.ResultBits = granule, bits
						// What is left is one last place of the least terms.
						edge(t, m, d, one(field), num.Neg(d, one(field)), small, num.Neg(d, small^1))
						edge(t, m, d, one(field), num.Neg(d, one(field)), small, num.Neg(d, small))
					}
				}
			}
		}
	}
}
