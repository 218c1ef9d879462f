package tandem

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
)

// A team that has run like calls before returns what a new one does, wherever the
// buffers of each call are and however its ranks mix in-place forms.
func TestKnownCalls(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const ranks = 3
		team := openTeam(t, "", ranks)
		seed := rapid.Uint64().Draw(t, "seed")
		for range rapid.IntRange(2, 6).Draw(t, "calls") {
			c := api.Call{Collective: api.AllReduce, DType: num.F16, Op: num.Sum, Ranks: ranks, Count: 1000}
			switch rapid.IntRange(0, 5).Draw(t, "another") {
			case 0:
				c.Count = 300_001 // in two shots
			case 1:
				c.Mode = modeF32
			case 2:
				c.Collective = api.ReduceScatter
			case 3:
				c.Collective, c.Op, c.Root = api.Broadcast, api.NoOp, rapid.IntRange(0, 2).Draw(t, "root")
			}
			if rapid.Bool().Draw(t, "in place") && !c.Collective.Rooted() {
				c.InPlace = api.InPlaceOwn
			} else {
				c.DstOffset = api.Offsets{rapid.Int64Range(0, 8).Draw(t, "offset")}
			}
			mem := memories(&c, rng(seed))
			fresh := clone(&c, mem)
			out, err := api.Run(t.Context(), team, c, mem)
			require.NoError(t, err)
			want, err := api.Run(t.Context(), openTeam(t, "", ranks), c, fresh)
			require.NoError(t, err)
			require.Equal(t, want, out)
			for r := range mem {
				require.Equal(t, fresh[r][0].Dst.Bytes, mem[r][0].Dst.Bytes, "%s rank %d", c.String(), r)
			}
		}
	})
}

// What is known of one call is not taken for another.
func TestAlike(t *testing.T) {
	base := api.Call{Collective: api.AllReduce, DType: num.F16, Op: num.Sum, Ranks: 3, Count: 10}
	same := base
	same.InPlace, same.SrcOffset, same.DstOffset = api.InPlaceOwn, api.Offsets{1}, api.Offsets{1, 2, 3}
	require.True(t, alike(&base, &same))
	for _, change := range []func(*api.Call){
		func(c *api.Call) { c.Collective = api.ReduceScatter },
		func(c *api.Call) { c.DType = num.BF16 },
		func(c *api.Call) { c.Op = num.Max },
		func(c *api.Call) { c.Ranks = 4 },
		func(c *api.Call) { c.Count = 11 },
		func(c *api.Call) { c.Root = 1 },
		func(c *api.Call) { c.Scope = api.Block },
		func(c *api.Call) { c.Mode = modeF32 },
		func(c *api.Call) { c.Many = []api.LaneShape{{Count: 1}} },
	} {
		other := base
		change(&other)
		require.False(t, alike(&base, &other))
	}
	s, err := openSession(spec(t, ""), api.TeamConfig{Ranks: 3})
	require.NoError(t, err)
	first := s.of(&base)
	require.Same(t, first, s.of(&same))
	same.Count++
	require.NotSame(t, first, s.of(&same))
}
