//go:build gpu

package tandem

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
	"example.com/tandem/hw/host"
)

// BenchmarkGraph is the time of a call in a graph of several, replayed back to
// back; bytes are what a rank gives.
func BenchmarkGraph(b *testing.B) {
	m := machine(b)
	team, c := open(b, m, "hw:tandem", 2, 5*time.Second, 2*time.Second)
	for _, k := range []api.Collective{api.AllGather, api.AllReduce, api.ReduceScatter} {
		for _, bytes := range []int64{1 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20} {
			b.Run(fmt.Sprintf("%s/%d", k.Name(), bytes), func(b *testing.B) {
				count := bytes / 2
				if k == api.ReduceScatter {
					count /= 2
				}
				call := simple(k, 2, count)
				n := 20
				if bytes > 1<<20 {
					n = 4
				}
				list, mem := make([]api.Call, n), make([][]api.Memory, n)
				for i := range list {
					list[i] = call
					mem[i] = []api.Memory{newImages(&call, 0, seeded(1), 0), newImages(&call, 1, seeded(2), 0)}
				}
				g, err := team.Capture(context.Background(), list, mem)
				require.NoError(b, err)
				require.NoError(b, g.Replay(context.Background()))
				e := team.Engine().(*Engine)
				start := time.Now()
				for b.Loop() {
					require.NoError(b, g.(*host.Captured).Enqueue())
				}
				require.NoError(b, gpu.Wait(context.Background(), m.Driver.Clock(), time.Minute, team.Streams()...))
				b.ReportMetric(float64(time.Since(start).Microseconds())/float64(b.N*n), "us/call")
				require.Nil(b, e.Verdicts(&call))
				require.NoError(b, g.Close())
			})
		}
	}
	_ = c
}
