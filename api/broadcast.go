package api

type broadcast struct{}

// Broadcast gives every rank the root's source. Source and destination hold
// Count elements; only the root's source is read; an empty call touches
// nothing; in place the two are the same buffer.
var Broadcast Collective = broadcast{}

func (broadcast) Name() string              { return "broadcast" }
func (broadcast) Reduces() bool             { return false }
func (broadcast) Rooted() bool              { return true }
func (broadcast) Symmetric() bool           { return true }
func (broadcast) Blocks(int) (int64, int64) { return 1, 1 }

func (broadcast) Inputs(dst []Input, g Geometry, _ int, index int64) []Input {
	return append(dst, Input{g.Root, index})
}

func (broadcast) InPlace(_ Geometry, _ int, form InPlace) (int64, bool) {
	return 0, form == InPlaceOwn
}
