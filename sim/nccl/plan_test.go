package nccl

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/tandem/api"
)

func allReduce(ranks int, count int64, d api.DType, op api.Op) api.Call {
	return api.Call{Collective: api.AllReduce, DType: d, Op: op, Ranks: ranks, Count: count}
}

// The two recorded rows that say where a channel ends: f16 avg of 8194 elements
// differs from one rule to the next only if the first channel's length is taken
// outside 4948 to 5206 elements. The scheduler gives two channels five cells of
// 2048 bytes first.
func TestChannelOfTheRecordedRows(t *testing.T) {
	plan, err := Plan(api.Spec{Implementation: Name}, allReduce(2, 8194, api.F16, api.Avg))
	require.NoError(t, err)
	var got [][3]int64
	for _, c := range plan.Kernels[0].CTAs {
		require.Equal(t, "ring_ll", c.Algorithm)
		for _, s := range c.Slices {
			got = append(got, [3]int64{int64(s.Rank), s.Start, s.Count})
		}
	}
	require.Equal(t, [][3]int64{{0, 0, 2560}, {1, 2560, 2560}, {0, 5120, 1544}, {1, 6664, 1530}}, got)
}

// Where the real library's chunks lie, by the elements whose bits depend on who
// adds last: every one must be owned by the rank that was seen to add last. No
// other protocol or number of channels passes.
func TestOwnersAsRecorded(t *testing.T) {
	rows := owners(t)
	misses := func(params map[string]string) (n int) {
		plans := map[int64]*api.Plan{}
		for _, row := range rows {
			if plans[row.count] == nil {
				plan, err := Plan(api.Spec{Implementation: Name, Params: params}, allReduce(2, row.count, api.F16, api.Avg))
				require.NoError(t, err)
				plans[row.count] = plan
			}
			for _, at := range []int64{row.first, row.last} {
				place, ok := plans[row.count].Locate(0, 0, at)
				require.True(t, ok)
				if place.Slice.Rank != row.owner {
					n++
				}
			}
		}
		return n
	}
	require.Zero(t, misses(nil))
	for _, other := range []map[string]string{{"proto": "LL"}, {"proto": "Simple"}, {"proto": "LL128"}, {"max_nchannels": "23"}, {"max_nchannels": "32"}} {
		require.NotZero(t, misses(other), "%v", other)
	}
}

type ownerRow struct {
	count       int64
	owner       int
	first, last int64
}

func owners(t *testing.T) []ownerRow {
	text, err := os.ReadFile("testdata/owners-2.28.9.tsv")
	require.NoError(t, err)
	var rows []ownerRow
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		var r ownerRow
		_, err := fmt.Sscanf(line, "%d\t%d\t%d\t%d", &r.count, &r.owner, &r.first, &r.last)
		require.NoError(t, err, line)
		rows = append(rows, r)
	}
	require.Greater(t, len(rows), 4000)
	return rows
}

func TestOneRankDropsTheTail(t *testing.T) { // B04
	for _, row := range []struct {
		count  int64
		blocks int
		lost   int64
	}{{8193, 2, 1}, {262152, 32, 8}, {8192, 1, 0}, {16384, 2, 0}, {1, 1, 0}, {9, 1, 0}} {
		plan, err := Plan(api.Spec{Implementation: Name}, allReduce(1, row.count, api.BF16, api.Avg))
		require.NoError(t, err)
		require.Len(t, plan.Kernels[0].CTAs, row.blocks)
		require.Equal(t, []int64{row.lost}, plan.Unwritten, "count %d", row.count)
	}
}

// Whatever the parameters, the chunks of all channels tile the call, and no
// rank's chunk is longer than another's by more than a grain and a remainder.
func TestChunksTileTheCall(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.SampledFrom([]api.DType{api.U8, api.BF16, api.F16, api.F32, api.F64}).Draw(t, "dtype")
		c := allReduce(rapid.IntRange(2, 16).Draw(t, "ranks"), rapid.Int64Range(1, 1<<22).Draw(t, "count"), d, api.Sum)
		p := params{proto: protoAuto, channels: rapid.Int64Range(1, maxChannels).Draw(t, "channels")}
		proto := protocolOf(rapid.SampledFrom([]string{protoLL, protoLL128, protoSimple}).Draw(t, "proto"))
		parts := channelParts(&c, p, proto)
		require.LessOrEqual(t, int64(len(parts)), p.channels)
		var at int64
		for _, pt := range parts {
			require.Equal(t, at, pt.start)
			for ch := range chunks(pt, int64(c.Ranks), int64(d.Size()), proto) {
				require.Equal(t, at, ch.start)
				require.Positive(t, ch.count)
				at += ch.count
			}
		}
		require.Equal(t, c.Count, at)
	})
}

// The program owns exactly the chunks that the plan lists.
func TestProgramOwnsThePlansChunks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := allReduce(rapid.IntRange(2, 9).Draw(t, "ranks"), rapid.Int64Range(1, 1<<18).Draw(t, "count"), api.BF16, api.Sum)
		spec := api.Spec{Implementation: Name, Params: map[string]string{"proto": rapid.SampledFrom([]string{"LL", "LL128", "Simple"}).Draw(t, "proto")}}
		plan, err := Plan(spec, c)
		require.NoError(t, err)
		p := newProgram(plan).(*program)
		for i := range p.ctas {
			cta := &p.ctas[i]
			want := map[[3]int64]bool{}
			for _, s := range cta.Slices {
				want[[3]int64{int64(s.Rank), s.Start, s.Count}] = true
			}
			for r := range c.Ranks {
				for loop := range p.loops(cta) {
					if start, n := p.owned(cta, r, int64(loop)); n > 0 {
						key := [3]int64{int64(r), start, n}
						require.True(t, want[key], "%v is not in the plan", key)
						delete(want, key)
					}
				}
			}
			require.Empty(t, want)
		}
	})
}

func TestRefusals(t *testing.T) {
	ok := allReduce(2, 8, api.BF16, api.Sum)
	for name, change := range map[string]func(*api.Call){
		"scope":   func(c *api.Call) { c.Scope = api.Block },
		"16 bits": func(c *api.Call) { c.DType = api.I16 },
		"fp8 sum": func(c *api.Call) { c.DType = api.E4M3 },
		"xor":     func(c *api.Call) { c.DType, c.Op = api.I32, api.Xor },
		"mode":    func(c *api.Call) { c.Mode = "node" },
		"many": func(c *api.Call) {
			c.Collective, c.Op, c.Many = api.AllGatherMany, api.NoOp, []api.LaneShape{{Count: 1}}
		},
		"start": func(c *api.Call) { c.Collective, c.InPlace = api.ReduceScatter, api.InPlaceStart },
	} {
		c := ok
		change(&c)
		_, err := Plan(api.Spec{Implementation: Name}, c)
		require.ErrorIs(t, err, api.ErrRefused, name)
	}
	for _, bad := range []map[string]string{{"proto": "ll9"}, {"algo": "Tree"}, {"max_nchannels": "0"}, {"what": "1"}} {
		_, err := Plan(api.Spec{Implementation: Name, Params: bad}, ok)
		require.ErrorIs(t, err, api.ErrInvalid, "%v", bad)
	}
	_, err := Plan(api.Spec{Implementation: Name, Version: "1"}, ok)
	require.ErrorIs(t, err, api.ErrInvalid)
}

// A plan of 2^40 elements costs no memory to speak of.
func TestHugeCountsPlan(t *testing.T) {
	plan, err := Plan(api.Spec{Implementation: Name, Params: map[string]string{"proto": "LL"}}, allReduce(8, api.MaxCount, api.F64, api.Sum))
	require.NoError(t, err)
	last := plan.Kernels[0].CTAs[len(plan.Kernels[0].CTAs)-1]
	require.Equal(t, api.MaxCount, last.Start+last.Count)
	require.Empty(t, last.Slices)
}
