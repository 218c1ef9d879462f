//go:build amd64 && !noasm

package arith

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api/num"
)

// TestSeededKernels: the kernels of processors with and without a multiplication
// of 64 bits equal the portable one.
func TestSeededKernels(t *testing.T) {
	if !hasAssembly {
		t.Skip("no AVX2 here")
	}
	type kernel func(dst, src []byte, most, key uint64)
	kernels := map[num.DType][]kernel{num.BF16: {sumsBF16Seeded}, num.F16: {sumsF16Seeded}}
	if hasLong {
		kernels[num.BF16] = append(kernels[num.BF16], sumsBF16SeededLong)
		kernels[num.F16] = append(kernels[num.F16], sumsF16SeededLong)
	}
	r := rand.New(rand.NewPCG(25, 26))
	const elements = 8 * unit
	for d, list := range kernels {
		infinity := uint16((1<<(15-d.MantissaBits()) - 1) << d.MantissaBits())
		for range 200 {
			h := Options{Portable: true}.HalfSums(d, elements)
			h.sums = h.room[0]
			for i := range elements {
				x := (r.Float64() - 0.5) * float64(uint64(1)<<r.IntN(20))
				putF64(h.sums, 8*i, x)
			}
			for i, key := range []uint64{0, r.Uint64(), ^uint64(0) - uint64(r.IntN(elements))} {
				most := infinity - uint16(i&1)
				want, got := make([]byte, 2*elements), make([]byte, 2*elements)
				h.Dither(want, key, most)
				for k, kernel := range list {
					clear(got)
					kernel(got, h.sums, uint64(most), key)
					require.Equal(t, want, got, "%v, kernel %d, key %#x", d, k, key)
				}
			}
		}
	}
}
