package num

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"
)

var roundings = []Rounding{NearestEven, NearestAway, TowardZero, Up, Down, AwayFromZero, ToOdd}

func narrow() []DType { return []DType{BF16, F16, E4M3, E5M2} }

// TestDecodeEncode: every narrow pattern survives a trip through float64 under
// every rounding.
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

// TestDecodeF16Oracle compares with x448/float16 on every pattern.
func TestDecodeF16Oracle(t *testing.T) {
	for b := range 1 << 16 {
		got, want := Decode(F16, uint64(b)), float64(float16.Frombits(uint16(b)).Float32())
		if math.IsNaN(want) {
			require.True(t, math.IsNaN(got))
			continue
		}
		require.Equal(t, math.Float64bits(want), math.Float64bits(got), "%#x", b)
	}
}

// TestEvalTwoF16 adds and multiplies every 16-bit value with some others and
// compares with one float32 operation rounded once.
func TestEvalTwoF16(t *testing.T) {
	others := []uint64{0, 0x8000, 1, 0x3C00, 0xBC01, 0x7BFF, 0x7C00, 0x0400, 0x3555, 0x7E01}
	for a := range uint64(1 << 16) {
		for _, b := range others {
			x, y := float32(Decode(F16, a)), float32(Decode(F16, b))
			for _, c := range []struct {
				op   Op
				want float32
			}{{Sum, x + y}, {Prod, x * y}} {
				want := uint64(float16.Fromfloat32(c.want).Bits())
				if c.want != c.want {
					want = 0x7FFF
				}
				if got := Eval(F16, Scheme{Op: c.op}, []uint64{a, b}); got != want {
					t.Fatalf("%v %#x %#x: %#x, want %#x", c.op, a, b, got, want)
				}
			}
		}
	}
}

func TestText(t *testing.T) {
	for _, d := range narrow() {
		for b := uint64(0); b <= d.Mask(); b++ {
			got, err := Parse(d, Text(d, b))
			if err != nil || got != b {
				t.Fatalf("%v %#x: %q gives %#x, %v", d, b, Text(d, b), got, err)
			}
		}
	}
}
