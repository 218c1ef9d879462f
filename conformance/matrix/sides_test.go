package matrix

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/conformance"
)

// picky plans, and refuses what its function says.
type picky struct {
	api.Backend
	refuses func(api.Call) bool
}

func (p picky) Plan(_ api.Spec, c api.Call) (*api.Plan, error) {
	if p.refuses(c) {
		return nil, &api.Refused{Spec: "picky", What: c.String(), Reason: "no"}
	}
	return &api.Plan{Call: c}, nil
}

func (p picky) Implementations() []api.Implementation {
	all := p.Backend.Implementations()
	all[0].Collectives = []api.Collective{api.AllReduce, api.AllGather, api.Broadcast}
	all[0].Thresholds = func(c api.Call) []int64 { return []int64{100 * int64(c.Ranks), 1 << 30} }
	return all
}

// TestForAsksTheSides: values that are refused whatever the rest is are left
// out of what was not asked for, and stay where they were.
func TestForAsksTheSides(t *testing.T) {
	def := conformance.Definition()
	l := conformance.Side{Spec: def.Spec, Backend: picky{def.Backend, func(c api.Call) bool {
		return c.Ranks == 3 || c.Mode != "" || c.Scope != api.OnStream || !c.SrcOffset.Uniform() ||
			c.Collective.Reduces() && (c.Op != api.Sum || !c.DType.Float())
	}}}
	all := For(l, def, Axes{MaxBytes: 1 << 20})
	require.Len(t, all, 2)
	reduce, copies := all[0], all[1]
	require.Equal(t, []api.Collective{api.AllReduce}, reduce.Collectives)
	require.Equal(t, []api.Collective{api.AllGather, api.Broadcast}, copies.Collectives)
	require.Equal(t, []api.Op{api.Sum}, reduce.Ops)
	require.Equal(t, []api.DType{api.BF16, api.F16, api.F32, api.F64, api.E4M3, api.E5M2}, reduce.DTypes)
	require.Equal(t, api.DTypes(), copies.DTypes)
	for _, a := range all {
		require.Equal(t, []int{1, 2, 4, 8}, a.Ranks)
		require.Equal(t, []api.Scope{api.OnStream}, a.Scopes)
		require.Equal(t, []string{""}, a.Modes)
		require.Equal(t, []api.Offsets{{0}, {1}, {8}}, a.SrcOffsets)
		require.Equal(t, []api.Offsets{{0}, {1}, {8}, {0, 1, 3}}, a.DstOffsets)
	}
	cases, large := ExpandAll(all, false)
	require.Positive(t, large, "2^30 elements")
	counts := map[int64]bool{}
	for _, c := range cases {
		require.LessOrEqual(t, c.Call.MemoryBytes(), int64(1<<20))
		counts[c.Call.Count] = true
	}
	for _, n := range []int64{0, 1, 2, 3, 7, 1000, 99, 100, 101, 199, 200, 201, 399, 400, 401, 799, 800, 801} {
		require.True(t, counts[n], n)
	}

	given := For(l, def, Axes{Ranks: []int{3}, Ops: []api.Op{api.Prod}, Collectives: []api.Collective{api.AllReduce}})
	require.Len(t, given, 1)
	require.Equal(t, []int{3}, given[0].Ranks)
	require.Equal(t, []api.Op{api.Prod}, given[0].Ops)
}

func TestSpread(t *testing.T) {
	require.Equal(t, api.Offsets{2}, spread(api.Offsets{2}, 5))
	require.Equal(t, api.Offsets{0, 1, 3, 0, 1}, spread(api.Offsets{0, 1, 3}, 5))
	require.Equal(t, api.Offsets{0, 1}, spread(api.Offsets{0, 1, 3}, 2))
	require.Equal(t, api.Offsets{0}, spread(api.Offsets{0, 1, 3}, 1))
}

func TestSize(t *testing.T) {
	a := Axes{Ranks: []int{1, 2, 4}, Seeds: make([]uint64, 1<<20), DTypes: api.DTypes()}
	require.Equal(t, 3.0*14*(1<<20), a.Size())
}
