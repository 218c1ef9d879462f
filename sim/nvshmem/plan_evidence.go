package nvshmem

import (
	"slices"

	"example.com/tandem/api"
)

// contract is what values of alg may be held to in this call.
func (pl *planner) contract(alg string) api.Contract {
	if pl.switched(alg) {
		return pl.arithmetic().Contract
	}
	return api.Exact
}

// switched reports whether alg reduces floats in the switch.
func (pl *planner) switched(alg string) bool {
	inSwitch := alg == algOneShot || alg == algTwoShot || alg == algNVLS
	return inSwitch && pl.call.Collective.Reduces() && pl.call.DType.Float()
}

// arithmetic is what a plan says of values of the switch.
func (pl *planner) arithmetic() api.Algorithm {
	a := pl.p.Arith.Algorithm(pl.call.DType, pl.call.Op)
	if pl.p.rounding != "" && pl.half() && pl.call.Op == api.Sum && !a.Fitted {
		a.Contract = api.Faithful
	}
	return a
}

// recordings are the calls of 3.4.5 whose results were recorded, by collective:
// world team, one CTA, default radix.
var recordings = []struct {
	collectives []api.Collective
	scopes      []api.Scope
	dtypes      []api.DType
	ranks       []int
}{
	{[]api.Collective{api.AllReduce, api.ReduceScatter}, []api.Scope{api.Block, api.OnStream},
		[]api.DType{api.BF16, api.F16, api.F32}, []int{2, 4, 5, 6, 7, 8, 16}},
	{[]api.Collective{api.AllReduce, api.ReduceScatter}, []api.Scope{api.Block},
		[]api.DType{api.F64, api.I32, api.U8}, []int{2, 4, 8}},
	{[]api.Collective{api.AllGather, api.Broadcast, api.AllToAll}, []api.Scope{api.Block},
		[]api.DType{api.BF16, api.F16, api.F32, api.F64, api.I32, api.U8}, []int{2, 4, 8}},
}

// evidence says how what alg does in this call is known.
func (pl *planner) evidence(alg string) api.Evidence {
	inSwitch := alg == algOneShot || alg == algTwoShot || alg == algNVLS
	switch {
	case alg == algNone:
		return api.FromSource
	case pl.p.Version == version345:
		return pl.evidence345(inSwitch)
	case pl.call.Collective == api.AllGather:
		// No 2026 version of fcollect was seen.
		return api.Assumed
	case pl.p.Version == version2dca770:
		if inSwitch && pl.call.Collective == api.AllReduce && pl.inPR() {
			return api.Reported
		}
		return api.FromSource
	case inSwitch && pl.call.Collective == api.ReduceScatter && pl.p.rsAlign != "", inSwitch && pl.p.Version != versionPR131,
		inSwitch && pl.call.Op != api.Sum && pl.half():
		return api.Assumed
	case inSwitch:
		return api.Reconstructed
	}
	return api.FromSource
}

// inPR reports whether the call is of the kind PR #131 has measured.
func (pl *planner) inPR() bool {
	c := pl.call
	return pl.half() && (c.Ranks == 2 || c.Ranks == 4) && (c.Scope == api.OnStream || c.Scope == api.Block) && !pl.inPlace
}

func (pl *planner) evidence345(inSwitch bool) api.Evidence {
	c := pl.call
	if inSwitch {
		// Coverage alone, of the library's own device code.
		if c.Scope == api.Block && c.DType == api.BF16 && slices.Contains([]int{2, 4, 8}, c.Ranks) {
			return api.Recorded
		}
		return api.FromSource
	}
	if c.Team != api.World || pl.split.blocks > 1 || pl.p.RecExchRadix != 2 || c.Op.Bitwise() {
		return api.FromSource
	}
	for _, r := range recordings {
		if slices.Contains(r.collectives, c.Collective) && slices.Contains(r.scopes, c.Scope) &&
			slices.Contains(r.dtypes, c.DType) && slices.Contains(r.ranks, c.Ranks) {
			return api.Recorded
		}
	}
	return api.FromSource
}
