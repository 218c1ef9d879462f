package api

// many is the form of a collective that performs several lanes, each with a
// count and possibly a dtype of its own, in one call.
type many struct{ Collective }

// AllGatherMany gathers every lane as AllGather does.
var AllGatherMany Collective = many{AllGather}

// ReduceScatterMany reduces and scatters every lane as ReduceScatter does.
var ReduceScatterMany Collective = many{ReduceScatter}

func (m many) Name() string     { return m.Collective.Name() + "_many" }
func (m many) Base() Collective { return m.Collective }
