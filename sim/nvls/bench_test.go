package nvls

import (
	"math/rand/v2"
	"testing"

	"example.com/tandem/api/num"
)

// BenchmarkFold is bytes of source a second for 8 ranks.
func BenchmarkFold(b *testing.B) {
	const ranks, n = 8, 1 << 16
	for _, c := range []struct {
		preset string
		d      num.DType
	}{{"bw_half", num.BF16}, {"bw_half", num.F16}, {"bw_half_rz", num.BF16}, {"bw_wide", num.F32}, {"bw_wide", num.F64}, {"hop_acc32", num.BF16}, {"hop_native", num.BF16}} {
		b.Run(c.preset+"/"+c.d.String(), func(b *testing.B) {
			p, _ := PresetOf(c.preset)
			r, err := NewReducer(p.Model, c.d, num.Sum, ranks)
			if err != nil {
				b.Fatal(err)
			}
			rng := rand.New(rand.NewPCG(1, 2))
			srcs := make([][]byte, ranks)
			for i := range srcs {
				srcs[i] = make([]byte, n*c.d.Size())
				for k := range n {
					num.Store(c.d, srcs[i][k*c.d.Size():], num.Encode(c.d, rng.NormFloat64(), num.NearestEven))
				}
			}
			dst := make([]byte, n*c.d.Size())
			b.SetBytes(int64(ranks * len(dst)))
			for b.Loop() {
				r.Fold(dst, 0, srcs...)
			}
		})
	}
}
