package nvshmem

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/tandem/api"
)

func drawCall(rt *rapid.T, maxCount int64) api.Call {
	c := api.Call{
		Collective: rapid.SampledFrom(collectives).Draw(rt, "collective"),
		DType:      rapid.SampledFrom(dtypes).Draw(rt, "dtype"),
		Ranks:      rapid.IntRange(1, 17).Draw(rt, "ranks"),
		Scope:      rapid.SampledFrom([]api.Scope{api.OnStream, api.Block, api.Warp, api.Thread}).Draw(rt, "scope"),
		Team:       rapid.SampledFrom([]api.TeamKind{api.World, api.SubTeam}).Draw(rt, "team"),
		Count:      rapid.Int64Range(0, maxCount).Draw(rt, "count"),
		SrcOffset:  offset(rapid.Int64Range(0, 15).Draw(rt, "src")),
		DstOffset:  offset(rapid.Int64Range(0, 15).Draw(rt, "dst")),
	}
	if c.Collective.Reduces() {
		c.Op = rapid.SampledFrom([]api.Op{api.Sum, api.Sum, api.Prod, api.Min, api.Max, api.And, api.Or, api.Xor}).Draw(rt, "op")
	}
	if c.Collective.Rooted() {
		c.Root = rapid.IntRange(0, c.Ranks-1).Draw(rt, "root")
	}
	c.InPlace = rapid.SampledFrom([]api.InPlace{api.OutOfPlace, api.InPlaceOwn, api.InPlaceStart}).Draw(rt, "in-place")
	if c.InPlace != api.OutOfPlace {
		c.DstOffset = c.SrcOffset
	}
	if c.Validate() != nil {
		rt.Skip("no such call")
	}
	return c
}

func drawSpec(rt *rapid.T) string {
	return rapid.SampledFrom(versions).Draw(rt, "version") + rapid.SampledFrom([]string{
		"", "", "?nvls=off", "?max_ctas=64", "?max_ctas=3", "?reduce_algo=3", "?reduce_algo=4", "?reduce_recexch_kval=3",
		"?reduce_scratch_size=4096", "?fcollect_ll_threshold=100000", "?reduce_nvls_threshold=0",
	}).Draw(rt, "params")
}

// The holes of a plan are exactly its unwritten elements, element by element,
// and every element of every rank has a place in the plan.
func TestHolesAreTheUnwrittenElements(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		call := drawCall(rt, 20000)
		p, err := tryPlan(drawSpec(rt), call)
		if err != nil {
			require.ErrorIs(t, err, api.ErrRefused)
			return
		}
		checkPlan(t, p)
		stray := p.Algorithms["ll8"].Evidence != "" && p.Unknown != ""
		for rank := range call.Ranks {
			var unwritten int64
			for _, h := range p.Holes(0, rank) {
				for i := h.Start; i < h.Start+h.Count; i++ {
					if (h.Cause.Unwritten() || stray) && !call.OwnPlace(0, rank, i) {
						unwritten++
					}
				}
			}
			require.Equal(t, p.Unwritten[rank], unwritten)
		}
		if n := call.DstElems(0); n > 0 {
			rank, i := rapid.IntRange(0, call.Ranks-1).Draw(rt, "rank"), rapid.Int64Range(0, n-1).Draw(rt, "element")
			_, ok := p.Locate(0, rank, i)
			require.True(t, ok, "element %d of rank %d comes from nowhere", i, rank)
		}
	})
}

func TestAnyCallIsPlanned(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p, err := tryPlan(drawSpec(rt), drawCall(rt, api.MaxCount))
		if err != nil {
			require.ErrorIs(t, err, api.ErrRefused)
			return
		}
		checkPlan(t, p)
	})
}

// reached says, from the description alone and for one element, whether a store
// reaches element i of a 16-bit all-reduce sum at default parameters.
func reached(version string, c api.Call, i int64) bool {
	n, ranks, ctas := c.Count, int64(c.Ranks), int64(1)
	if c.Scope == api.OnStream && 2*n >= 262144 && ranks > 1 {
		ctas = 16
	}
	per := n / ctas
	after := strings.HasPrefix(version, "pr131")
	switch version {
	case "pr131", "pr131-tail":
		per -= per % 8
	case "pr131-team":
		per -= per % (8 * ranks)
	}
	cta := ctas - 1
	for b := range ctas - 1 {
		if i >= b*per && i < (b+1)*per {
			cta = b
		}
	}
	start, m := cta*per, per
	if cta == ctas-1 {
		m = n - start
	}
	dst, src := 2*(c.DstOffset.At(0)+start), 2*(c.SrcOffset.At(0)+start)
	nvls := ranks > 1 && m%2 == 0 && (!after || (dst%4 == 0 && src%4 == 0))
	at := i - start
	switch {
	case nvls && m <= 2048 && m > 1 && c.InPlace == api.OutOfPlace:
	case nvls && m > ranks && m%ranks == 0 && (!after || m/ranks%2 == 0):
		slice := m / ranks
		owner := at / slice
		dst, src, at, m = dst+2*owner*slice, src+2*owner*slice, at-owner*slice, slice
	default:
		return true
	}
	return dst%4 == 0 && src%4 == 0 && at < m-m%2
}

func TestCoverageAgainstOneElementAtATime(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		version := rapid.SampledFrom(versions).Draw(rt, "version")
		call := allReduce(rapid.IntRange(1, 9).Draw(rt, "ranks"), 0, 0)
		call.Count = rapid.OneOf(rapid.Int64Range(1, 5000), rapid.Int64Range(131000, 140000)).Draw(rt, "count")
		call.Scope = rapid.SampledFrom([]api.Scope{api.OnStream, api.Block}).Draw(rt, "scope")
		call.SrcOffset, call.DstOffset = offset(rapid.Int64Range(0, 3).Draw(rt, "src")), offset(rapid.Int64Range(0, 3).Draw(rt, "dst"))
		if rapid.Bool().Draw(rt, "in place") {
			call.InPlace, call.DstOffset = api.InPlaceOwn, call.SrcOffset
		}
		p := plan(t, version, call)
		want := make([]bool, call.Count)
		for i := range want {
			want[i] = reached(version, call, int64(i))
		}
		for rank := range call.Ranks {
			got := make([]bool, call.Count)
			for i := range got {
				got[i] = true
			}
			for _, h := range p.Holes(0, rank) {
				for i := h.Start; i < h.Start+h.Count; i++ {
					got[i] = false
				}
			}
			require.Equal(t, want, got, "%s %s rank %d", version, call, rank)
		}
	})
}

func FuzzPlan(f *testing.F) {
	f.Add(int64(1048573), 2, int64(0), int64(0), uint8(0), uint8(1), uint8(1), uint8(0), uint8(0), "2dca770")
	f.Add(int64(262145), 2, int64(0), int64(0), uint8(1), uint8(1), uint8(1), uint8(0), uint8(1), "pr131?rs_align=shifted")
	f.Fuzz(func(t *testing.T, count int64, ranks int, src, dst int64, collective, dtype, op, scope, form uint8, spec string) {
		all := api.Collectives()
		call := api.Call{
			Collective: all[int(collective)%len(all)], DType: api.DType(dtype), Op: api.Op(op), Ranks: ranks, Count: count,
			SrcOffset: offset(src), DstOffset: offset(dst), Scope: api.Scope(scope % 4), InPlace: api.InPlace(form % 3),
		}
		p, err := tryPlan(spec, call)
		if err == nil {
			checkPlan(t, p)
		}
	})
}
