package api

type allGather struct{}

// AllGather gives every rank all sources, in rank order. A source holds Count
// elements, a destination ranks*Count; an empty call touches nothing; in place
// the source is the rank's own block of its destination. Patterns are copied,
// never canonicalised.
var AllGather Collective = allGather{}

func (allGather) Name() string    { return "all_gather" }
func (allGather) Reduces() bool   { return false }
func (allGather) Rooted() bool    { return false }
func (allGather) Symmetric() bool { return true }

func (allGather) Blocks(ranks int) (int64, int64) { return 1, int64(ranks) }

func (allGather) Inputs(dst []Input, g Geometry, _ int, index int64) []Input {
	return append(dst, Input{int(index / g.Count), index % g.Count})
}

func (allGather) InPlace(g Geometry, rank int, form InPlace) (int64, bool) {
	return int64(rank) * g.Count, form == InPlaceOwn
}
