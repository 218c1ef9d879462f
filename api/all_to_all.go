package api

type allToAll struct{}

// AllToAll gives rank r block r of every source, in rank order. Source and
// destination hold ranks*Count elements; an empty call touches nothing; there
// is no in-place form.
var AllToAll Collective = allToAll{}

func (allToAll) Name() string    { return "all_to_all" }
func (allToAll) Reduces() bool   { return false }
func (allToAll) Rooted() bool    { return false }
func (allToAll) Symmetric() bool { return false }

func (allToAll) Blocks(ranks int) (int64, int64) { return int64(ranks), int64(ranks) }

func (allToAll) Inputs(dst []Input, g Geometry, rank int, index int64) []Input {
	from := index / g.Count
	return append(dst, Input{int(from), int64(rank)*g.Count + index%g.Count})
}

func (allToAll) InPlace(Geometry, int, InPlace) (int64, bool) { return 0, false }
