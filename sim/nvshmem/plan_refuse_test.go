package nvshmem

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
)

func TestRefusals(t *testing.T) {
	with := func(c api.Call, change func(*api.Call)) api.Call { change(&c); return c }
	sum := allReduce(2, 1024, 0)
	for _, c := range []struct {
		spec string
		call api.Call
		want string
	}{
		{"3.4.5", api.Call{Collective: api.AllGatherMany, DType: api.BF16, Ranks: 2, Many: []api.LaneShape{{Count: 3}}}, "lane by lane"},
		{"3.4.5", api.Call{Collective: api.ReduceScatterMany, DType: api.BF16, Op: api.Sum, Ranks: 2, Many: []api.LaneShape{{Count: 3}}}, "lane by lane"},
		{"3.4.5", with(sum, func(c *api.Call) { c.DType = api.E4M3 }), "no e4m3"},
		{"3.4.5", gather(2, api.E5M2, 16, 0), "copy of u8"},
		{"3.4.5", with(sum, func(c *api.Call) { c.Op = api.Avg }), "no avg"},
		{"3.4.5", with(sum, func(c *api.Call) { c.Mode = "f32" }), "no reduction modes"},
		{"3.4.5", with(sum, func(c *api.Call) { c.SrcOffset = api.Offsets{0, 2} }), "symmetric"},
		{"3.4.5", with(sum, func(c *api.Call) { c.DstOffset = api.Offsets{4, 0} }), "symmetric"},
		{"3.4.5?nvls=off&nccl=on", sum, "use sim:nccl@2.28"},
		{"3.4.5?nccl=on", allReduce(1, 1024, 0), "use sim:nccl@2.28"},
		{"3.4.5?nvls=off&nccl=on", scatter(2, api.BF16, api.Max, 1024), "use sim:nccl@2.28"},
		{"3.4.5?nvls=off&nccl=on", gather(2, api.BF16, 1024, 0), "use sim:nccl@2.28"},
		{"3.4.5?nccl=on", api.Call{Collective: api.Broadcast, DType: api.BF16, Ranks: 2, Count: 8}, "use sim:nccl@2.28"},
		{"3.4.5?nccl=on", api.Call{Collective: api.AllToAll, DType: api.BF16, Ranks: 2, Count: 8}, "use sim:nccl@2.28"},
	} {
		_, err := tryPlan(c.spec, c.call)
		require.ErrorIs(t, err, api.ErrRefused, "%s %s", c.spec, c.call)
		require.ErrorContains(t, err, c.want)
	}

	_, err := tryPlan("3.4.5", with(sum, func(c *api.Call) { c.Ranks = 0 }))
	require.ErrorIs(t, err, api.ErrInvalid)

	// The library keeps these to itself, NCCL or not.
	for _, c := range []struct {
		spec string
		call api.Call
	}{
		{"3.4.5?nccl=on", sum},
		{"3.4.5?nvls=off&nccl=on", block(sum)},
		{"3.4.5?nvls=off&nccl=on", with(sum, func(c *api.Call) { c.DType, c.Op = api.I32, api.Xor })},
		{"3.4.5?nvls=off&nccl=on", with(sum, func(c *api.Call) { c.DType = api.I16 })},
	} {
		plan(t, c.spec, c.call)
	}
	require.Contains(t, joined(plan(t, "3.4.5", sum).Notes), "nccl=off (default): it would make no difference")
	require.Contains(t, joined(plan(t, "3.4.5?nvls=off", sum).Notes), "nccl=off (default): a build with NCCL would hand this call to it")
}

func TestAsserts(t *testing.T) {
	for spec, call := range map[string]api.Call{
		"3.4.5?reduce_recexch_kval=1": allReduce(2, 8, 0),
		"pr131?reduce_recexch_kval=0": gather(2, api.F32, 8, 0),
		"3.4.5?reducescatter_algo=1":  scatter(2, api.F32, api.Sum, 8),
		"3.4.5?reducescatter_algo=4":  block(scatter(2, api.F32, api.Sum, 0)),
	} {
		p := plan(t, spec, call)
		require.NotNil(t, p.Fault, spec)
		require.Equal(t, api.FaultAssert, p.Fault.Kind)
	}
	for _, spec := range []string{"3.4.5?reducescatter_algo=0", "3.4.5?reducescatter_algo=2", "3.4.5?reducescatter_algo=3", "3.4.5"} {
		require.Nil(t, plan(t, spec, scatter(2, api.F32, api.Sum, 8)).Fault)
	}
	require.Nil(t, plan(t, "3.4.5?reducescatter_algo=4", allReduce(2, 8, 0)).Fault)
	require.Equal(t, map[string]int{"linear": 1}, mix(plan(t, "3.4.5?reducescatter_algo=2", scatter(2, api.F32, api.Sum, 8))))
	require.Equal(t, map[string]int{"nvls": 1}, mix(plan(t, "3.4.5?reducescatter_algo=3", scatter(2, api.F32, api.Sum, 8))))
}

func TestRaces(t *testing.T) {
	for _, c := range []struct {
		name, spec string
		call       api.Call
		race       string
	}{
		{"NVLS in place at the start", "3.4.5", inPlace(block(scatter(2, api.F32, api.Sum, 64)), api.InPlaceStart), "through multicast"},
		{"P2P in place at the start", "3.4.5?nvls=off", inPlace(block(scatter(2, api.F32, api.Sum, 64)), api.InPlaceStart), ""},
		{"NVLS in place on the own block", "3.4.5", inPlace(block(scatter(2, api.F32, api.Sum, 64)), api.InPlaceOwn), ""},
		{"P2P in place on the own block", "3.4.5?nvls=off", inPlace(block(scatter(4, api.F32, api.Sum, 64)), api.InPlaceOwn), ""},
		{"several CTAs, P2P in place", "3.4.5", inPlace(scatter(2, api.BF16, api.Max, 262144), api.InPlaceOwn), "into which the other CTAs store"},
		{"several CTAs, the last P2P, in place", "3.4.5", inPlace(scatter(2, api.BF16, api.Sum, 262145), api.InPlaceOwn), "1 of 16 CTAs send blocks"},
		{"several CTAs, P2P on rank 1, in place", "pr131?rs_align=pointer", inPlace(scatter(2, api.BF16, api.Sum, 262145), api.InPlaceOwn), "16 of 16 CTAs send blocks"},
		{"several CTAs on NVLS in place", "3.4.5", inPlace(scatter(2, api.F32, api.Sum, 262144), api.InPlaceOwn), ""},
		{"several CTAs, P2P out of place", "3.4.5", scatter(2, api.BF16, api.Max, 262144), ""},
		{"in place without elements", "3.4.5", inPlace(block(scatter(2, api.F32, api.Sum, 0)), api.InPlaceStart), ""},
		{"all-gather in place", "3.4.5", inPlace(gather(2, api.F32, 262144, 0), api.InPlaceOwn), ""},
		{"all-reduce in place is never one-shot", "3.4.5", inPlace(allReduce(2, 1024, 0), api.InPlaceOwn), ""},
	} {
		p := plan(t, c.spec, c.call)
		if c.race == "" {
			require.Empty(t, p.Unknown, c.name)
			continue
		}
		require.Contains(t, p.Unknown, "race", c.name)
		require.Contains(t, p.Unknown, c.race, c.name)
	}
	require.Equal(t, map[string]int{"two_shot": 1}, mix(plan(t, "3.4.5?reduce_algo=0", inPlace(allReduce(2, 1024, 0), api.InPlaceOwn))))
	require.Equal(t, map[string]int{"recexch": 1}, mix(plan(t, "3.4.5?reduce_algo=4", inPlace(allReduce(2, 1024, 0), api.InPlaceOwn))))
}

// In place, the destination of an odd rank may be misaligned alone.
func TestInPlaceScatterIsJudgedOnEveryRanksAddress(t *testing.T) {
	p := plan(t, "3.4.5", inPlace(scatter(2, api.BF16, api.Sum, 262145), api.InPlaceOwn))
	require.Equal(t, []int64{0, 245760}, p.Unwritten)
	require.Equal(t, int64(245760), causes(p, 1)[api.OddSliceStart])
}

func TestAddressesMustBeSymmetric(t *testing.T) {
	spec := api.Spec{Backend: "sim", Implementation: Name, Version: "3.4.5"}
	at := func(step uint64) func(int, int) (uint64, uint64) {
		return func(_, rank int) (uint64, uint64) { return 4096 + step*uint64(rank), 1 << 20 }
	}
	_, err := Plan(spec, allReduce(2, 64, 0), at(16))
	require.ErrorIs(t, err, api.ErrRefused)
	require.ErrorContains(t, err, "symmetric")
	_, err = Plan(spec, allReduce(2, 64, 0), func(_, _ int) (uint64, uint64) { return 1, 4096 })
	require.ErrorIs(t, err, api.ErrInvalid)

	// Alignment is that of the addresses, not of the call's offsets.
	p, err := Plan(spec, allReduce(2, 64, 0), func(_, _ int) (uint64, uint64) { return 4096 + 2, 8192 + 2 })
	require.NoError(t, err)
	require.Equal(t, every(2, 64), p.Unwritten)
}

func TestEmptyCalls(t *testing.T) {
	for _, version := range versions {
		for _, c := range collectives {
			for _, scope := range []api.Scope{api.OnStream, api.Block, api.Warp, api.Thread} {
				call := api.Call{Collective: c, DType: api.BF16, Ranks: 3, Scope: scope}
				if c.Reduces() {
					call.Op = api.Sum
				}
				p := plan(t, version, call)
				require.Equal(t, map[string]int{"none": 1}, mix(p))
				require.Equal(t, every(3, 0), p.Unwritten)
				require.Nil(t, p.Fault)
			}
		}
	}
}

func TestEvidenceAndContract(t *testing.T) {
	for _, c := range []struct {
		spec     string
		call     api.Call
		alg      string
		evidence api.Evidence
		contract api.Contract
	}{
		{"2dca770", allReduce(2, 1048576, 0), "two_shot", api.Reported, api.Faithful},
		{"2dca770", allReduce(8, 1048576, 0), "two_shot", api.FromSource, api.Faithful},
		{"pr131", allReduce(2, 1048576, 0), "two_shot", api.Reconstructed, api.Faithful},
		{"pr131", allReduce(2, 1024, 0), "one_shot", api.Reconstructed, api.Faithful},
		{"3.4.5", block(allReduce(2, 1048576, 0)), "two_shot", api.Recorded, api.Faithful},
		{"3.4.5", allReduce(2, 1048576, 0), "two_shot", api.FromSource, api.Faithful},
		{"3.4.5?nvls=off", allReduce(2, 1048576, 0), "segment", api.Recorded, api.Exact},
		{"3.4.5?nvls=off", allReduce(3, 1048576, 0), "segment", api.FromSource, api.Exact},
		{"3.4.5", allReduce(2, 1048574, 0), "segment", api.FromSource, api.Exact}, // the split into CTAs was not recorded
		{"3.4.5?nvls=off&reduce_recexch_kval=4", allReduce(4, 100, 0), "recexch", api.FromSource, api.Exact},
		{"3.4.5?nvls=off", allReduce(4, 100, 0), "recexch", api.Recorded, api.Exact},
		{"3.4.5", block(scatter(2, api.F16, api.Sum, 64)), "nvls", api.FromSource, api.Faithful},
		{"3.4.5", block(scatter(2, api.F32, api.Sum, 64)), "nvls", api.FromSource, api.Exact},
		{"3.4.5", block(gather(2, api.BF16, 1028, 0)), "nvls", api.Recorded, api.Exact},
		{"3.4.5?nvls=off", block(gather(2, api.BF16, 1028, 0)), "copy", api.Recorded, api.Exact},
		{"pr131", gather(2, api.BF16, 1028, 0), "nvls", api.Assumed, api.Exact},
		{"pr131?rs_align=pointer", scatter(2, api.BF16, api.Sum, 64), "nvls", api.Assumed, api.Faithful},
	} {
		p := plan(t, c.spec, c.call)
		require.Equal(t, api.Algorithm{Evidence: c.evidence, Contract: c.contract}, p.Algorithms[c.alg], "%s %s", c.spec, c.call)
	}
	rne := plan(t, "pr131?rounding=rne", allReduce(2, 1024, 0))
	require.Contains(t, joined(rne.Notes), "known not to round")
	require.NotContains(t, joined(plan(t, "pr131", allReduce(2, 1024, 0)).Notes), "known not to round")
}

func TestHugePlansTakeNoTime(t *testing.T) {
	for _, version := range versions {
		for _, c := range collectives {
			call := api.Call{Collective: c, DType: api.F64, Ranks: 1024, Count: api.MaxCount}
			if c.Reduces() {
				call.Op = api.Sum
			}
			p := plan(t, version, call)
			require.NotEqual(t, int64(math.MaxInt64), p.Cost.Bytes)
			require.GreaterOrEqual(t, p.Cost.Bytes, int64(0))
		}
	}
}

func BenchmarkPlan(b *testing.B) {
	spec, call := api.Spec{Backend: "sim", Implementation: Name, Version: "pr131"}, allReduce(2, api.MaxCount, 0)
	for b.Loop() {
		if _, err := Plan(spec, call, nil); err != nil {
			b.Fatal(err)
		}
	}
}
