package api

type allReduce struct{}

// AllReduce gives every rank the reduction of all sources, element by element.
// Source and destination hold Count elements; an empty call touches nothing;
// in place the two are the same buffer.
var AllReduce Collective = allReduce{}

func (allReduce) Name() string              { return "all_reduce" }
func (allReduce) Reduces() bool             { return true }
func (allReduce) Rooted() bool              { return false }
func (allReduce) Symmetric() bool           { return true }
func (allReduce) Blocks(int) (int64, int64) { return 1, 1 }

func (allReduce) Inputs(dst []Input, g Geometry, _ int, index int64) []Input {
	return rankInputs(dst, g.Ranks, index)
}

func (allReduce) InPlace(_ Geometry, _ int, form InPlace) (int64, bool) {
	return 0, form == InPlaceOwn
}
