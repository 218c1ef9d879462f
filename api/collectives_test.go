package api_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/tandem/api"
)

// outputs is a collective written out for named source elements, "r:i" being
// element i of rank r: for every rank, the inputs of every destination element.
type outputs [][][]string

// dumb has every collective as its textbook loops, to hold the definitions to.
var dumb = map[string]func(ranks, count, root int) outputs{
	"all_reduce": func(ranks, count, _ int) outputs {
		return each(ranks, func(int) (out [][]string) {
			for i := range count {
				out = append(out, column(ranks, i))
			}
			return out
		})
	},
	"reduce_scatter": func(ranks, count, _ int) outputs {
		return each(ranks, func(rank int) (out [][]string) {
			for i := range count {
				out = append(out, column(ranks, rank*count+i))
			}
			return out
		})
	},
	"all_gather": func(ranks, count, _ int) outputs {
		return each(ranks, func(int) (out [][]string) {
			for r := range ranks {
				for i := range count {
					out = append(out, []string{name(r, i)})
				}
			}
			return out
		})
	},
	"broadcast": func(ranks, count, root int) outputs {
		return each(ranks, func(int) (out [][]string) {
			for i := range count {
				out = append(out, []string{name(root, i)})
			}
			return out
		})
	},
	"all_to_all": func(ranks, count, _ int) outputs {
		return each(ranks, func(rank int) (out [][]string) {
			for from := range ranks {
				for i := range count {
					out = append(out, []string{name(from, rank*count+i)})
				}
			}
			return out
		})
	},
}

func name(rank, index int) string { return fmt.Sprintf("%d:%d", rank, index) }

func column(ranks, index int) (out []string) {
	for r := range ranks {
		out = append(out, name(r, index))
	}
	return out
}

func each(ranks int, f func(rank int) [][]string) (out outputs) {
	for r := range ranks {
		out = append(out, f(r))
	}
	return out
}

// callOf is a valid call of c, many forms with two lanes of that count.
func callOf(c api.Collective, ranks int, count int64, root int) api.Call {
	call := api.Call{Collective: c, DType: api.BF16, Ranks: ranks, Count: count}
	if c.Reduces() {
		call.Op = api.Sum
	}
	if c.Rooted() {
		call.Root = root
	}
	if api.IsMany(c) {
		call.Count = 0
		call.Many = []api.LaneShape{{Count: count}, {DType: api.F64, Count: count}}
	}
	return call
}

func TestDefinitionsAreTheTextbookLoops(t *testing.T) {
	for _, c := range api.Collectives() {
		for _, ranks := range []int{1, 2, 3, 4, 7} {
			for _, count := range []int64{0, 1, 2, 5} {
				root := (ranks - 1) / 2
				call := callOf(c, ranks, count, root)
				require.NoError(t, call.Validate())
				want := dumb[api.Base(c).Name()](ranks, int(count), root)
				for lane := range call.Lanes() {
					requireDefinition(t, &call, lane, want)
				}
			}
		}
	}
}

func requireDefinition(t *testing.T, call *api.Call, lane int, want outputs) {
	t.Helper()
	sources := map[string]bool{}
	for r := range call.Ranks {
		for i := range call.SrcElems(lane) {
			sources[name(r, int(i))] = true
		}
	}
	for rank, elems := range want {
		require.EqualValues(t, len(elems), call.DstElems(lane), "%s", call)
		for i, inputs := range elems {
			var got []string
			for _, in := range call.Inputs(nil, lane, rank, int64(i)) {
				got = append(got, name(in.Rank, int(in.Index)))
				require.True(t, sources[name(in.Rank, int(in.Index))], "%s: an input outside the sources", call)
			}
			require.Equal(t, inputs, got, "%s: rank %d element %d", call, rank, i)
		}
	}
}

func TestCollectivesSayWhatTheyAre(t *testing.T) {
	type facts struct {
		reduces, rooted, symmetric, many bool
		src, dst                         int64 // blocks at 4 ranks
		own, start                       bool  // in-place forms
	}
	want := map[string]facts{
		"all_reduce":          {true, false, true, false, 1, 1, true, false},
		"reduce_scatter":      {true, false, false, false, 4, 1, true, true},
		"all_gather":          {false, false, true, false, 1, 4, true, false},
		"broadcast":           {false, true, true, false, 1, 1, true, false},
		"all_to_all":          {false, false, false, false, 4, 4, false, false},
		"all_gather_many":     {false, false, true, true, 1, 4, true, false},
		"reduce_scatter_many": {true, false, false, true, 4, 1, true, true},
	}
	got := map[string]facts{}
	for _, c := range api.Collectives() {
		f := facts{reduces: c.Reduces(), rooted: c.Rooted(), symmetric: c.Symmetric(), many: api.IsMany(c)}
		f.src, f.dst = c.Blocks(4)
		_, f.own = c.InPlace(api.Geometry{Ranks: 4, Count: 3}, 1, api.InPlaceOwn)
		_, f.start = c.InPlace(api.Geometry{Ranks: 4, Count: 3}, 1, api.InPlaceStart)
		got[c.Name()] = f
		parsed, err := api.ParseCollective(c.Name())
		require.NoError(t, err)
		require.True(t, parsed == c, "collectives are comparable values")
	}
	require.Equal(t, want, got)
}

// TestInPlacePutsTheSmallerBufferIntoTheLarger checks addresses, and what an
// element already holds before the call, by laying all elements out in memory.
func TestInPlacePutsTheSmallerBufferIntoTheLarger(t *testing.T) {
	for _, c := range api.Collectives() {
		for _, form := range []api.InPlace{api.OutOfPlace, api.InPlaceOwn, api.InPlaceStart} {
			for _, ranks := range []int{1, 2, 3, 5} {
				call := callOf(c, ranks, 3, ranks-1)
				call.InPlace = form
				call.SrcOffset, call.DstOffset = api.Offsets{1}, api.Offsets{1}
				if _, ok := c.InPlace(call.Geometry(0), 0, form); form != api.OutOfPlace && !ok {
					require.ErrorIs(t, call.Validate(), api.ErrInvalid, "%s", call)
					continue
				}
				require.NoError(t, call.Validate(), "%s", call)
				for lane := range call.Lanes() {
					for rank := range ranks {
						requireLayout(t, &call, lane, rank)
					}
				}
			}
		}
	}
}

func requireLayout(t *testing.T, call *api.Call, lane, rank int) {
	t.Helper()
	size := uint64(call.Lane(lane).DType.Size())
	src, dst := call.Addrs(lane, rank)
	srcEnd, dstEnd := src+size*uint64(call.SrcElems(lane)), dst+size*uint64(call.DstElems(lane))
	if call.InPlace == api.OutOfPlace {
		require.True(t, srcEnd <= dst || dstEnd <= src, "%s: apart", call)
	} else {
		inside := (src <= dst && dstEnd <= srcEnd) || (dst <= src && srcEnd <= dstEnd)
		require.True(t, inside, "%s: one inside the other", call)
	}
	for i := range call.DstElems(lane) {
		in := call.Inputs(nil, lane, rank, i)
		own := len(in) == 1 && in[0].Rank == rank && src+size*uint64(in[0].Index) == dst+size*uint64(i)
		require.Equal(t, own, call.OwnPlace(lane, rank, i), "%s: lane %d rank %d element %d", call, lane, rank, i)
	}
}

func TestOwnPlaceByExample(t *testing.T) {
	count := func(call api.Call, rank int) (n int) {
		for i := range call.DstElems(0) {
			if call.OwnPlace(0, rank, i) {
				n++
			}
		}
		return n
	}
	bc := api.Call{Collective: api.Broadcast, DType: api.F32, Ranks: 3, Count: 5, Root: 1, InPlace: api.InPlaceOwn}
	require.Equal(t, []int{0, 5, 0}, []int{count(bc, 0), count(bc, 1), count(bc, 2)}, "the root holds it all")
	ag := api.Call{Collective: api.AllGather, DType: api.F32, Ranks: 3, Count: 5, InPlace: api.InPlaceOwn}
	require.Equal(t, 5, count(ag, 2), "the own block")
	require.True(t, ag.OwnPlace(0, 2, 10))
	require.False(t, ag.OwnPlace(0, 2, 9))
	ar := api.Call{Collective: api.AllReduce, DType: api.F32, Op: api.Sum, Ranks: 1, Count: 5, InPlace: api.InPlaceOwn}
	require.Equal(t, 5, count(ar, 0), "one rank alone")
	ar.Ranks = 2
	require.Equal(t, 0, count(ar, 0))
	rs := api.Call{Collective: api.ReduceScatter, DType: api.F32, Op: api.Sum, Ranks: 1, Count: 5, InPlace: api.InPlaceStart}
	require.Equal(t, 5, count(rs, 0))
	ag.InPlace = api.OutOfPlace
	require.Equal(t, 0, count(ag, 2))
}

// TestEveryRankIsServedOnce is the law that the copying collectives share:
// no destination element is left out, and none of a source is made up.
func TestEveryRankIsServedOnce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := rapid.SampledFrom(api.Collectives()).Draw(rt, "collective")
		ranks := rapid.IntRange(1, 40).Draw(rt, "ranks")
		call := callOf(c, ranks, rapid.Int64Range(1, api.MaxCount).Draw(rt, "count"), rapid.IntRange(0, ranks-1).Draw(rt, "root"))
		rank := rapid.IntRange(0, ranks-1).Draw(rt, "rank")
		index := rapid.Int64Range(0, call.DstElems(0)-1).Draw(rt, "index")
		in := call.Inputs(nil, 0, rank, index)
		if c.Reduces() {
			require.Len(rt, in, ranks)
		} else {
			require.Len(rt, in, 1)
		}
		last := -1
		for _, x := range in {
			require.Greater(rt, x.Rank, last, "in rank order, each once")
			require.Less(rt, x.Rank, ranks)
			require.GreaterOrEqual(rt, x.Index, int64(0))
			require.Less(rt, x.Index, call.SrcElems(0))
			last = x.Rank
		}
	})
}
