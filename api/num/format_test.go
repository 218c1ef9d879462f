package num

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"
)

var roundings = []Rounding{NearestEven, NearestAway, TowardZero, Up, Down, AwayFromZero, ToOdd}

func floats() []DType { return []DType{BF16, F16, F32, F64, E4M3, E5M2} }

func narrow() []DType { return []DType{BF16, F16, E4M3, E5M2} }

// TestDecodeEncode: every narrow pattern survives a trip through float64 under
// every rounding, a NaN as the canonical one.
func TestDecodeEncode(t *testing.T) {
	for _, d := range narrow() {
		for b := uint64(0); b <= d.Mask(); b++ {
			want := b
			if IsNaN(d, b) {
				want = CanonicalNaN(d)
			}
			for _, r := range roundings {
				if got := Encode(d, Decode(d, b), r); got != want {
					t.Fatalf("%v %#x under %d: %#x", d, b, r, got)
				}
			}
		}
	}
}

// TestEncodeBetween checks every gap between neighbouring values of the narrow
// formats: just above the lower one, around the middle, and just below the upper
// one, where what is right follows from the two patterns alone.
func TestEncodeBetween(t *testing.T) {
	for _, d := range narrow() {
		for lo := uint64(0); lo < maxFinite(d); lo++ {
			a, b := Decode(d, lo), Decode(d, lo+1)
			mid := (a + b) / 2
			checkGap(t, d, lo, lo+1, math.Nextafter(a, b), -1)
			checkGap(t, d, lo, lo+1, math.Nextafter(mid, a), -1)
			checkGap(t, d, lo, lo+1, mid, 0)
			checkGap(t, d, lo, lo+1, math.Nextafter(mid, b), 1)
			checkGap(t, d, lo, lo+1, math.Nextafter(b, a), 1)
		}
	}
}

// TestEncodeBeyond checks what lies above the greatest finite value.
func TestEncodeBeyond(t *testing.T) {
	for _, d := range floats() {
		most := Decode(d, maxFinite(d))
		if d == F64 {
			continue // float64 has nothing beyond
		}
		gap := most - Decode(d, maxFinite(d)-1)
		end := most + gap // the next value if there were one
		checkGap(t, d, maxFinite(d), infinity(d), math.Nextafter(most, end), -1)
		checkGap(t, d, maxFinite(d), infinity(d), math.Nextafter(most+gap/2, 0), -1)
		checkGap(t, d, maxFinite(d), infinity(d), math.Nextafter(most+gap/2, end), 1)
		for _, x := range []float64{end, end * 2, math.MaxFloat64} {
			checkGap(t, d, maxFinite(d), infinity(d), x, 1)
		}
		// Half way the even one of the two wins: MAX is odd but in E4M3.
		want := infinity(d)
		if d == E4M3 {
			want = maxFinite(d)
		}
		require.Equal(t, want, Encode(d, most+gap/2, NearestEven), "%v", d)
		require.Equal(t, infinity(d), Encode(d, most+gap/2, NearestAway), "%v", d)
	}
}

// checkGap checks x between the magnitudes lo and hi, nearer to lo (side < 0), to
// hi, or half way, and -x.
func checkGap(t *testing.T, d DType, lo, hi uint64, x float64, side int) {
	near, awayTie := lo, lo
	if side > 0 {
		near, awayTie = hi, hi
	}
	if side == 0 {
		near, awayTie = lo+lo&1, hi
	}
	odd := lo | 1
	if hi == infinity(d) {
		odd = lo // MAX, also where it is even
	}
	for _, c := range []struct {
		r        Rounding
		pos, neg uint64
	}{
		{NearestEven, near, near}, {NearestAway, awayTie, awayTie}, {TowardZero, lo, lo},
		{Up, hi, lo}, {Down, lo, hi}, {AwayFromZero, hi, hi}, {ToOdd, odd, odd},
	} {
		if got := Encode(d, x, c.r); got != c.pos {
			t.Fatalf("%v %g by %d: %#x, want %#x", d, x, c.r, got, c.pos)
		}
		if got, want := Encode(d, -x, c.r), withSign(d, true, c.neg); got != want {
			t.Fatalf("%v %g by %d: %#x, want %#x", d, -x, c.r, got, want)
		}
	}
}

// TestFloat16Oracle compares f16 with x448/float16: every pattern to float32, and
// from float32 every value near a f16 and many random ones.
func TestFloat16Oracle(t *testing.T) {
	for b := range 1 << 16 {
		got, want := Decode(F16, uint64(b)), float64(float16.Frombits(uint16(b)).Float32())
		if math.IsNaN(want) {
			require.True(t, math.IsNaN(got))
			continue
		}
		if math.Float64bits(want) != math.Float64bits(got) {
			t.Fatalf("%#x: %g, want %g", b, got, want)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	n := 1 << 20
	if testing.Short() {
		n >>= 7
	}
	for i := range n {
		u := r.Uint32()
		if i%2 == 0 {
			u = math.Float32bits(float16.Frombits(uint16(u)).Float32()) + 1<<12 - uint32(i%3)
		}
		x := math.Float32frombits(u)
		if x != x {
			continue // payloads are kept there
		}
		if got, want := Encode(F16, float64(x), NearestEven), uint64(float16.Fromfloat32(x).Bits()); got != want {
			t.Fatalf("%g: %#x, want %#x", x, got, want)
		}
	}
}

// TestF32Oracle compares f32 with Go's own conversion.
func TestF32Oracle(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 1 << 16 {
		x := math.Float64frombits(r.Uint64()&^(0x3FF<<53) | (0x1C0+r.Uint64N(0x80))<<53)
		require.Equal(t, uint64(math.Float32bits(float32(x))), Encode(F32, x, NearestEven), "%g", x)
	}
}

func TestClasses(t *testing.T) {
	for _, d := range narrow() {
		nans, infs := 0, 0
		for b := uint64(0); b <= d.Mask(); b++ {
			x := Decode(d, b)
			require.Equal(t, math.IsNaN(x), IsNaN(d, b))
			require.Equal(t, math.IsInf(x, 0), IsInf(d, b))
			require.Equal(t, x == 0, IsZero(d, b))
			if IsNaN(d, b) {
				nans++
			} else {
				require.Equal(t, math.Signbit(x), SignBit(d, b))
				require.Equal(t, -x, Decode(d, Neg(d, b)))
			}
			if IsInf(d, b) {
				infs++
			}
		}
		wantNaNs, wantInfs := 2*(1<<d.MantissaBits()-1), 2
		if d == E4M3 {
			wantNaNs, wantInfs = 2, 0
		}
		require.Equal(t, wantNaNs, nans, "%v", d)
		require.Equal(t, wantInfs, infs, "%v", d)
	}
	require.Equal(t, 448.0, Decode(E4M3, maxFinite(E4M3)))
	require.Equal(t, 57344.0, Decode(E5M2, maxFinite(E5M2)))
	require.Equal(t, 65504.0, Decode(F16, maxFinite(F16)))
	require.Equal(t, uint64(0x80), Neg(I8, 0x80))
}

func TestCanonicalNaN(t *testing.T) {
	for d, want := range map[DType]uint64{
		BF16: 0x7FFF, F16: 0x7FFF, F32: 0x7FFFFFFF, F64: 0x7FF8000000000000, E4M3: 0x7F, E5M2: 0x7F,
	} {
		require.Equal(t, want, CanonicalNaN(d), "%v", d)
		require.Equal(t, want, Encode(d, math.NaN(), Down), "%v", d)
		require.True(t, IsNaN(d, want))
	}
	require.Equal(t, uint64(0x7F), Encode(E4M3, math.Inf(-1), NearestEven), "no infinity")
	require.Equal(t, uint64(0xFFC10000), Convert(F32, BF16, 0xFFC1, NearestEven), "a shift keeps the payload")
	require.Panics(t, func() { CanonicalNaN(I8) })
	require.Panics(t, func() { Decode(U16, 0) })
}

func TestLoadStore(t *testing.T) {
	for _, d := range DTypes() {
		p := []byte{9, 9, 9, 9, 9, 9, 9, 9, 9}
		b := uint64(0xF1E2D3C4B5A69788) & d.Mask()
		Store(d, p, b)
		require.Equal(t, b, Load(d, p))
		require.Equal(t, byte(0x88), p[0], "little-endian")
		require.Equal(t, byte(9), p[d.Size()], "no more than one element")
	}
}
