package nvshmem

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
)

// 10.13: the first count at which each quantity does not fit. The count before
// is clean of that quantity.
func TestFirstCountsThatDoNotFit(t *testing.T) {
	wide := func(c api.Call, d api.DType) api.Call { c.DType = d; return c }
	sub := func(c api.Call) api.Call { c.Team = api.SubTeam; return c }
	for _, c := range []struct {
		spec     string
		call     api.Call
		first    int64
		step     int64 // to the count before that selects the same
		quantity string
		value    int64
	}{
		{"3.4.5?nvls=off", allReduce(2, 0, 0), 1 << 31, 1, "elements per CTA", 1 << 31},
		{"2dca770", allReduce(2, 0, 0), 1 << 35, 1, "elements per CTA", 1 << 31},
		{"pr131", allReduce(2, 0, 0), 1 << 35, 1, "elements per CTA", 1 << 31},
		{"2dca770", allReduce(2, 0, 0), 4581298464, 1, "elements per CTA * CTA", 286331154 * 15},
		{"3.4.5", allReduce(2, 0, 0), 4581298464, 1, "elements per CTA * CTA", 286331154 * 15},
		{"pr131", allReduce(2, 0, 0), 4581298560, 1, "elements per CTA * CTA", 286331160 * 15},
		{"pr131", wide(allReduce(2, 0, 0), api.F32), 4581298496, 1, "elements per CTA * CTA", 286331156 * 15},
		{"2dca770", block(allReduce(2, 0, 0)), 1 << 32, 2, "elements per PE", 1 << 31},
		{"2dca770", block(allReduce(4, 0, 0)), 2863311532, 4, "elements per PE * PE", 715827883 * 3},
		{"2dca770?reduce_algo=4", wide(block(allReduce(2, 0, 0)), api.F32), 1 << 31, 1, "elements of the helper", 1 << 31},
		{"2dca770?reduce_scratch_size=34359738368", sub(wide(block(allReduce(2, 0, 0)), api.U8)), 1 << 31, 1, "elements of the reduction loop", 1 << 31},
		{"3.4.5?nvls=off&reduce_scratch_size=1099511627776", block(allReduce(2, 0, 0)), 1 << 30, 1, "scratch offset", 1 << 31},
		{"3.4.5", block(scatter(2, api.BF16, api.Sum, 0)), 1 << 31, 2, "source_offset", 1 << 31},
		{"3.4.5", block(scatter(3, api.F32, api.Sum, 0)), 1 << 30, 1, "source_offset", 1 << 31},
		{"3.4.5", scatter(2, api.F32, api.Sum, 0), 1108378658, 1, "source_offset", 1 << 31},
		{"3.4.5", scatter(2, api.F32, api.Sum, 0), 1 << 35, 1, "elements per CTA", 1 << 31},
		{"3.4.5?nvls=off&reduce_scratch_size=17179869184", block(scatter(2, api.U8, api.Sum, 0)), 1 << 31, 1, "elements of the reduction loop", 1 << 31},
		{"3.4.5?nvls=off", block(gather(2, api.BF16, 0, 0)), 1 << 31, 1, "dest_offset", 1 << 31},
		{"3.4.5", block(gather(2, api.BF16, 0, 0)), 1 << 31, 1, "dest_offset", 1 << 31},
		{"3.4.5", gather(2, api.F32, 0, 0), 1108378658, 1, "dest_offset", 1 << 31},
		{"3.4.5?nvls=off", gather(1, api.F32, 0, 0), 1 << 31, 1, "elements per CTA", 1 << 31},
		{"3.4.5", api.Call{Collective: api.AllToAll, DType: api.U8, Ranks: 2}, 1 << 31, 1, "nelems * PE", 1 << 31},
		{"3.4.5", api.Call{Collective: api.AllToAll, DType: api.U8, Ranks: 5}, 1 << 29, 1, "nelems * PE", 1 << 31},
	} {
		call := c.call
		call.Count = c.first
		p := plan(t, c.spec, call)
		require.NotNil(t, p.Fault, "%s %s", c.spec, call)
		require.Equal(t, api.FaultOverflow, p.Fault.Kind)
		require.Contains(t, overflows(p), fmt.Sprintf("%s = %d does not fit", c.quantity, c.value), "%s %s", c.spec, call)

		call.Count = c.first - c.step
		require.NotContains(t, overflows(plan(t, c.spec, call)), c.quantity+" = ", "%s %s", c.spec, call)
	}
}

// overflows is all that the plan says about quantities that do not fit.
func overflows(p *api.Plan) string {
	text := joined(p.Notes)
	if p.Fault != nil {
		text += p.Fault.Detail
	}
	return text
}

func TestNothingElseOverflows(t *testing.T) {
	// The P2P copies of a broadcast and a device-side segment are 64-bit.
	require.Nil(t, plan(t, "3.4.5", api.Call{Collective: api.Broadcast, DType: api.U8, Ranks: 2, Count: 1 << 40}).Fault)
	call := block(allReduce(4, 1<<40, 0))
	call.Op = api.Prod
	p := plan(t, "3.4.5", call)
	require.Nil(t, p.Fault)
	require.Equal(t, int64(1<<41/32768*3), p.Cost.Rounds)
}
