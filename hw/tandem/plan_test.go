package tandem

import (
	"context"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
	"example.com/tandem/hw/host"
)

// TestOverlap: a call and the next one of its team never take more room than one
// call may, and only kernels that wait by themselves begin early.
func TestOverlap(t *testing.T) {
	seen := map[bool]int{}
	for _, text := range []string{"hw:tandem", "hw:tandem?path=direct", "hw:tandem?path=two_shot", "hw:tandem?buffers=staged", "hw:tandem?mode=f32", "hw:tandem?ctas=3"} {
		c, _ := mustRead(t, text)
		for _, ranks := range []int{1, 2, 3, 8, 9, 72} {
			for _, k := range []api.Collective{api.AllReduce, api.ReduceScatter, api.AllGather, api.Broadcast, api.AllToAll} {
				for count := int64(0); count < 1<<22; count = 3*count + 1 {
					for _, most := range []int{1, 2, 5, 66, 128} {
						call := api.Call{Collective: k, DType: api.BF16, Ranks: ranks, Count: count}
						if k.Reduces() {
							call.Op = api.Sum
						}
						p := c.plan(&call, most)
						seen[p.overlap]++
						want := (p.kernel == push2Kernel || p.kernel == pushKernel) && 2*p.blocks <= most
						require.Equal(t, want, p.overlap, "%s of %s on at most %d blocks: %+v", call, text, most, p)
					}
				}
			}
		}
	}
	require.Greater(t, seen[true], 100)
	require.Greater(t, seen[false], 100)
}

// TestOverlapIsTold: a kernel lets the next launch begin only where the plan says
// so, and with an injected fault too.
func TestOverlapIsTold(t *testing.T) {
	_, d := newEmulatorOn(2)
	m := host.NewMachine(d)
	c, spec := mustRead(t, "hw:tandem")
	team, err := Open(context.Background(), m, spec, api.TeamConfig{Ranks: 2})
	require.NoError(t, err)
	e := team.Engine().(*Engine)
	seen := map[bool]bool{}
	for _, count := range []int64{0, 1, 512, 100_000, 1 << 24} {
		for _, fault := range []*Fault{nil, {Rank: 1, Step: StepData}} {
			e.Inject(fault)
			call := api.Call{Collective: api.AllGather, DType: api.BF16, Ranks: 2, Count: count}
			p := c.plan(&call, e.most)
			for _, l := range e.bind(&call, []host.Buffers{{{}}, {{}}}, make([]gpu.Ptr, 2), p) {
				const flags = 5*8 + 5*4 // behind five words of 64 bits and five of 32
				told := binary.LittleEndian.Uint32(l.Args.Bytes()[flags:])
				require.Equal(t, p.overlap, l.Overlap, "%d elements", count)
				require.Equal(t, p.overlap, told&flagOverlap != 0, "%d elements", count)
				seen[p.overlap] = true
			}
		}
	}
	require.Len(t, seen, 2)
	require.NoError(t, team.Close(context.Background()))
	require.NoError(t, m.Close())
}
