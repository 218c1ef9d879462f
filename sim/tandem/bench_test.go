package tandem

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
)

// BenchmarkCall is a whole simulated call: one poison of the destinations, plan,
// schedule, data, and the check of the written intervals. The figure is input
// elements of all ranks, in thousands of millions a second.
func BenchmarkCall(b *testing.B) {
	for _, c := range []api.Call{
		{Collective: api.AllReduce, DType: num.BF16, Op: num.Sum, Ranks: 8, Count: 1 << 20},
		{Collective: api.AllReduce, DType: num.BF16, Op: num.Sum, Ranks: 8, Count: 1 << 20, Mode: "f32"},
		{Collective: api.AllReduce, DType: num.F16, Op: num.Sum, Ranks: 8, Count: 1 << 20},
		{Collective: api.AllReduce, DType: num.F32, Op: num.Sum, Ranks: 8, Count: 1 << 20},
		{Collective: api.AllReduce, DType: num.BF16, Op: num.Sum, Ranks: 2, Count: 1 << 20},
		{Collective: api.AllReduce, DType: num.BF16, Op: num.Sum, Ranks: 72, Count: 1 << 20},
		{Collective: api.ReduceScatter, DType: num.BF16, Op: num.Sum, Ranks: 8, Count: 1 << 17},
		{Collective: api.AllReduce, DType: num.BF16, Op: num.Sum, Ranks: 8, Count: 1 << 10},
		{Collective: api.AllReduce, DType: num.BF16, Op: num.Sum, Ranks: 2, Count: 1},
	} {
		b.Run(fmt.Sprintf("%s/%v/ranks=%d/n=%d/%s", c.Collective.Name(), c.DType, c.Ranks, c.Count, c.Mode), func(b *testing.B) {
			team := openTeam(b, "", c.Ranks)
			mem := make([]api.Memory, c.Ranks)
			for r := range mem {
				mem[r] = memoryOf(&c, r)
				for i, p := 0, mem[r][0].Src.Payload(); i < len(p); i++ {
					p[i] = byte(i*7+r) & 0x3F
				}
			}
			for b.Loop() {
				for r := range mem {
					poison(mem[r][0].Dst.Bytes)
				}
				out, err := api.Run(context.Background(), team, c, mem)
				require.NoError(b, err)
				for r := range out {
					if w := out[r].Written; len(w) != 1 || w[0].End != mem[r][0].Dst.Len() {
						b.Fatalf("rank %d wrote %v", r, w)
					}
				}
			}
			_, in := c.Collective.Blocks(c.Ranks)
			if in == 1 {
				in = c.SrcElems(0)
			}
			b.ReportMetric(float64(in)*float64(c.Ranks)*float64(b.N)/b.Elapsed().Seconds()/1e9, "Gin/s")
		})
	}
}

func poison(p []byte) {
	p[0] = 0xff // no sum and no flag
	for n := 1; n < len(p); n *= 2 {
		copy(p[n:], p[:n])
	}
}

// BenchmarkTeam is opening a team, one small call, and closing it.
func BenchmarkTeam(b *testing.B) {
	for _, ranks := range []int{2, 8, 72} {
		b.Run(fmt.Sprint(ranks), func(b *testing.B) {
			c := api.Call{Collective: api.AllReduce, DType: num.BF16, Op: num.Sum, Ranks: ranks, Count: 100}
			mem := make([]api.Memory, c.Ranks)
			for r := range mem {
				mem[r] = memoryOf(&c, r)
			}
			for b.Loop() {
				team := openTeam(b, "", ranks)
				_, err := api.Run(context.Background(), team, c, mem)
				require.NoError(b, err)
				require.NoError(b, team.Close(context.Background()))
			}
		})
	}
}
