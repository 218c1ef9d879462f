package api

type reduceScatter struct{}

// ReduceScatter gives rank r the reduction of block r of all sources. A source
// holds ranks*Count elements, a destination Count; an empty call touches
// nothing; in place the destination is the rank's own block of its source
// (InPlaceOwn, as NCCL and PyTorch have it) or the source's start
// (InPlaceStart).
var ReduceScatter Collective = reduceScatter{}

func (reduceScatter) Name() string    { return "reduce_scatter" }
func (reduceScatter) Reduces() bool   { return true }
func (reduceScatter) Rooted() bool    { return false }
func (reduceScatter) Symmetric() bool { return false }

func (reduceScatter) Blocks(ranks int) (int64, int64) { return int64(ranks), 1 }

func (reduceScatter) Inputs(dst []Input, g Geometry, rank int, index int64) []Input {
	return rankInputs(dst, g.Ranks, int64(rank)*g.Count+index)
}

func (reduceScatter) InPlace(g Geometry, rank int, form InPlace) (int64, bool) {
	switch form {
	case InPlaceOwn:
		return int64(rank) * g.Count, true
	case InPlaceStart:
		return 0, true
	}
	return 0, false
}
