package arith

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api/num"
)

// halfSources are n terms of a length, as near to each other as sums in f64 want
// them in three of four elements and any bits in the others.
func halfSources(r *rand.Rand, d num.DType, n, elements int) [][]byte {
	srcs := make([][]byte, n)
	for k := range srcs {
		srcs[k] = make([]byte, 2*elements)
	}
	man := d.MantissaBits()
	for i := range elements {
		base := uint16(r.IntN(1<<(15-man) - 16))
		for k := range srcs {
			b := (base+uint16(r.IntN(16)))<<man | uint16(r.IntN(1<<man)) | uint16(r.IntN(2))<<15
			if r.IntN(16) == 0 {
				b &= 0x8000 // a zero
			}
			if r.IntN(4*n) == 0 {
				b = uint16(r.Uint32())
			}
			put16(srcs[k], 2*i, b)
		}
	}
	return srcs
}

// TestHalfSumsEqualPortable: every length, every last rounding, any alignment,
// with guard words.
func TestHalfSumsEqualPortable(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	lengths := 301
	if testing.Short() {
		lengths = 70
	}
	for _, d := range []num.DType{num.BF16, num.F16} {
		infinity := uint16((1<<(15-d.MantissaBits()) - 1) << d.MantissaBits())
		for n := range lengths {
			srcs := halfSources(r, d, 1+r.IntN(9), n)
			fast, slow := Options{}.HalfSums(d, n), Options{Portable: true}.HalfSums(d, n)
			fast.Add(srcs...)
			slow.Add(srcs...)
			require.Equal(t, slow.Apart(nil, slow.Exact(len(srcs)), 1<<(15-d.MantissaBits())-2), fast.Apart(nil, fast.Exact(len(srcs)), 1<<(15-d.MantissaBits())-2))
			for i := range n {
				least, greatest := fast.Spread(i)
				wantLeast, wantGreatest := slow.Spread(i)
				require.Equal(t, []uint64{wantLeast, wantGreatest}, []uint64{least, greatest})
			}
			key, want := r.Uint64(), make([]byte, 2*n)
			for _, most := range []uint16{infinity, infinity - 1} {
				for _, how := range []func(h *HalfSums, dst []byte){
					func(h *HalfSums, dst []byte) { h.Round(dst, num.NearestEven, most) },
					func(h *HalfSums, dst []byte) { h.Round(dst, num.TowardZero, most) },
					func(h *HalfSums, dst []byte) { h.Round(dst, num.AwayFromZero, most) },
					func(h *HalfSums, dst []byte) { h.Dither(dst, key, most) },
				} {
					var g guarded
					got := g.place(2*n, r.IntN(64))
					how(fast, got)
					how(slow, want)
					require.True(t, g.intact())
					for i := range n {
						if _, greatest := slow.Spread(i); uint16(greatest) < infinity {
							require.Equal(t, get16(want, 2*i), get16(got, 2*i), "%v, %d sources, element %d of %d", d, len(srcs), i, n)
						}
					}
				}
			}
		}
	}
}

// TestHalfSumsAreExact holds sums rounded once to the scalar reference, where
// Apart does not name the element.
func TestHalfSumsAreExact(t *testing.T) {
	r := rand.New(rand.NewPCG(23, 24))
	const elements = 2000
	for _, d := range []num.DType{num.BF16, num.F16} {
		infinity := uint16((1<<(15-d.MantissaBits()) - 1) << d.MantissaBits())
		for _, ranks := range []int{1, 2, 3, 8, 72} {
			srcs := halfSources(r, d, ranks, elements)
			h := Options{}.HalfSums(d, elements)
			h.Add(srcs...)
			apart := map[int]bool{}
			for _, i := range h.Apart(nil, h.Exact(ranks), 1<<(15-d.MantissaBits())-2) {
				apart[i] = true
			}
			checked, dst := 0, make([]byte, 2*elements)
			for _, last := range []num.Rounding{num.NearestEven, num.TowardZero, num.AwayFromZero} {
				h.Round(dst, last, infinity)
				for i := range elements {
					if apart[i] || h.Sum(i) == 0 {
						continue
					}
					in := make([]uint64, ranks)
					for k := range in {
						in[k] = uint64(get16(srcs[k], 2*i))
					}
					want := num.Eval(d, num.Scheme{Op: num.Sum, Acc: num.AccExact, Last: last}, in)
					if uint16(want)&0x7FFF >= infinity-1 {
						continue // at the limit the caller's rule decides
					}
					require.Equal(t, uint16(want), get16(dst, 2*i), "%v %v %x", d, last, in)
					checked++
				}
			}
			require.Greater(t, checked, 100)
		}
	}
}

// TestHalfSumsInGroups: sums of groups in f32 are those in f64, up to the distance
// and the size at which they no longer would be, and are taken up to there.
func TestHalfSumsInGroups(t *testing.T) {
	const elements = 2 * unit
	for _, d := range []num.DType{num.BF16, num.F16} {
		man := d.MantissaBits()
		most, top := 20-man, 1<<d.ExponentBits()-2 // 8 terms carry 3 bits into the 24 of f32
		if d == num.BF16 {
			top -= 3
		}
		for _, ranks := range []int{1, 2, 7, 8, 9, 16, 17, 72} {
			for high := max(top-4, 0); high <= 1<<d.ExponentBits()-2; high++ {
				for apart := 0; apart <= most+2; apart++ {
					srcs := make([][]byte, ranks)
					for k := range srcs {
						srcs[k] = make([]byte, 2*elements)
						for i := range elements {
							b := uint16(high+1)<<man - 1 // as much as there is
							if (k+i)%8 == 7 {
								b = uint16(max(high-apart, 0))<<man | 1
							}
							put16(srcs[k], 2*i, b|uint16(i%2)<<15)
						}
					}
					fast, slow := Options{}.HalfSums(d, elements), Options{Portable: true}.HalfSums(d, elements)
					fast.Add(srcs...)
					slow.Add(srcs...)
					for i := range elements {
						require.Equal(t, slow.Sum(i), fast.Sum(i), "%v, %d sources, exponents %d and %d", d, ranks, high, high-apart)
					}
					require.False(t, slow.shorter())
					if ranks >= 8 && assembly() != "none" {
						require.Equal(t, apart <= most && high <= top, fast.shorter(), "exponents %d and %d", high, high-apart)
					}
				}
			}
		}
	}
}

// TestMixScatters: consecutive keys give bits that are set half of the time.
func TestMixScatters(t *testing.T) {
	var ones [64]int
	for i := range uint64(4096) {
		for b := range ones {
			ones[b] += int(Mix(i) >> b & 1)
		}
	}
	for b, n := range ones {
		require.InDelta(t, 2048, n, 200, "bit %d", b)
	}
}
