package tandem

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
	"example.com/tandem/sim"
	"example.com/tandem/sim/rlkernel"
)

// gatherSizes are bytes a rank, around every width and threshold of ours and of
// RL-Kernel.
func gatherSizes(ranks int64) []int64 {
	const k = 1 << 10
	sizes := []int64{1, 15, 16, 17, 4095, 4096, 8191, 8192, 8193, 32767, 32768, 32769, 32*k + 3, 96 * k, 1<<20 + 5}
	for _, t := range []int64{64 * k, 256 * k} {
		sizes = append(sizes, t/ranks-1, t/ranks, t/ranks+1)
	}
	sizes = append(sizes, 64*k/ranks+16)
	box := boxBytes(int(ranks))
	sizes = append(sizes, box-1, box, box+1)
	slices.Sort(sizes)
	return slices.Compact(sizes)
}

// TestAllGatherSizes: every size at every offset of source and destination, in
// bytes, byte for byte, guards intact, in the caller's own buffer.
func TestAllGatherSizes(t *testing.T) {
	offsets := []int64{0, 1, 2, 3, 5, 7, 8}
	for _, ranks := range []int{2, 4, 8} {
		team := openTeam(t, "", ranks)
		src, dst := make([][]byte, ranks), make([][]byte, ranks)
		for r := range src {
			src[r] = make([]byte, 1<<20+5+2*guard)
			fill(rng(uint64(r)), num.U64, src[r])
			dst[r] = make([]byte, ranks*(1<<20+5)+2*guard)
		}
		for _, n := range gatherSizes(int64(ranks)) {
			if testing.Short() && n > 40<<10 {
				break
			}
			for i, so := range offsets {
				for j, do := range offsets {
					if n > 16<<10 && (i+j)%len(offsets) != int(n)%len(offsets) || testing.Short() && i != j {
						continue // the large ones take each offset once
					}
					c := api.Call{Collective: api.AllGather, DType: num.U8, Ranks: ranks, Count: n, SrcOffset: api.Offsets{so}, DstOffset: api.Offsets{do}}
					want := bytes.Repeat([]byte{0xff}, guard)
					mem := make([]api.Memory, ranks)
					for r := range mem {
						s, d := c.Addrs(0, r)
						mem[r] = api.Memory{{
							Src: api.Image{Bytes: src[r][:n+2*guard], Addr: s, Guard: guard},
							Dst: api.Image{Bytes: dst[r][:int64(ranks)*n+2*guard], Addr: d, Guard: guard},
						}}
						poison(mem[r][0].Dst.Bytes)
						want = append(want, mem[r][0].Src.Payload()...)
					}
					want = append(want, bytes.Repeat([]byte{0xff}, guard)...)
					_, err := api.Run(context.Background(), team, c, mem)
					require.NoError(t, err)
					for r := range mem {
						require.True(t, bytes.Equal(want, mem[r][0].Dst.Bytes), "%v: rank %d", c, r)
					}
				}
			}
		}
	}
}

// TestRLKernelAgrees: on every call that RL-Kernel finishes, our bits are its
// bits.
func TestRLKernelAgrees(t *testing.T) {
	backend := sim.New(Family{}, rlkernel.Family{})
	random := rng(1)
	ran := 0
	for range 600 {
		c := randomCall(random, []int{1, 2, 4, 8}[random.IntN(4)], 60)
		c.SrcOffset, c.DstOffset = nil, nil
		theirs, err := api.ParseSpec("sim:rlkernel@8ccb03c")
		require.NoError(t, err)
		plan, err := backend.Plan(theirs, c)
		if err != nil || plan.Fault != nil {
			continue
		}
		ran++
		mem := memories(&c, random)
		again := clone(&c, mem)
		for spec, mem := range map[string][]api.Memory{"sim:rlkernel@8ccb03c": mem, "sim:tandem": again} {
			s, err := api.ParseSpec(spec)
			require.NoError(t, err)
			team, err := backend.Open(context.Background(), s, api.TeamConfig{Ranks: c.Ranks})
			require.NoError(t, err)
			_, err = api.Run(context.Background(), team, c, mem)
			require.NoError(t, err, "%s %v", spec, c)
		}
		for r := range mem {
			require.Equal(t, mem[r], again[r], "%v: rank %d", c, r)
		}
	}
	require.Greater(t, ran, 60)

	s, err := api.ParseSpec("sim:rlkernel@8ccb03c")
	require.NoError(t, err)
	for _, ranks := range []int{3, 5, 16} {
		_, err := backend.Open(context.Background(), s, api.TeamConfig{Ranks: ranks})
		require.ErrorIs(t, err, api.ErrRefused)
	}
}
