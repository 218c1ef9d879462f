package matrix

import (
	"slices"

	"example.com/tandem/api"
	"example.com/tandem/conformance/inputs"
)

// Axes are the values to combine. An empty axis is an axis of one value, the
// call's default.
type Axes struct {
	Collectives []api.Collective
	DTypes      []api.DType
	Ops         []api.Op
	Ranks       []int
	// Counts are elements; nil takes the Thresholds of each call, with both
	// neighbours, and Around.
	Counts []int64
	// SrcOffsets and DstOffsets are patterns: a value for each rank, and again
	// from the first on where there are more ranks than values.
	SrcOffsets []api.Offsets
	DstOffsets []api.Offsets
	InPlace    []api.InPlace
	Scopes     []api.Scope
	Teams      []api.TeamKind
	Modes      []string
	// Roots of rooted collectives; a negative one counts from the last rank.
	Roots []int
	// Inputs without a seed; the kind inputs.Auto is the default of each call,
	// Special draws values at which rules differ.
	Inputs []inputs.Input
	Seeds  []uint64
	// Graph says how calls are launched: false eagerly, true as a captured
	// call, where a side's team is an api.Capturer.
	Graph []bool

	// Thresholds lists the counts at which decisions about a call change.
	Thresholds func(api.Call) []int64
	// Around are counts that every call gets beside its thresholds; nil is 0, 1,
	// 2, 3 and 1000 for calls that have none.
	Around []int64
	// MaxBytes leaves out counts, not asked for by Counts, whose buffers take
	// more on all ranks together; 0 is no bound.
	MaxBytes int64
}

// Case is one call to make, what its sources hold, and how it is launched.
type Case struct {
	Call  api.Call
	Input inputs.Input
	Graph bool
}

// String is the case as flags of compare run.
func (c Case) String() string {
	text := c.Call.String() + " " + c.Input.String()
	if c.Graph {
		text += " --launch graph"
	}
	return text
}

// Expand lists the cases: every combination where full is set, else few in
// which every possible pair of values occurs. No case is listed twice.
func (a *Axes) Expand(full bool) []Case {
	cases, _ := a.expand(full)
	return cases
}

// expand also counts the cases left out for their size.
func (a *Axes) expand(full bool) (cases []Case, tooLarge int) {
	a = a.filled()
	choose := pairwise
	if full {
		choose = product
	}
	seen := map[string]bool{}
	for _, row := range choose(a.sizes(), a.possible) {
		row := a.collapse(row)
		for _, c := range a.cases(row) {
			key := c.String()
			switch {
			case seen[key]:
				continue
			case a.Counts == nil && a.MaxBytes > 0 && c.Call.MemoryBytes() > a.MaxBytes:
				tooLarge++
			default:
				cases = append(cases, c)
			}
			seen[key] = true
		}
	}
	return cases, tooLarge
}

// Size is how many rows the whole product has, before thresholds multiply them:
// what a caller may want to know before it asks for all of them.
func (a *Axes) Size() float64 {
	n := 1.0
	for _, s := range a.filled().sizes() {
		n *= float64(s)
	}
	return n
}

// The axes, in the order of a row.
const (
	axCollective = iota
	axDType
	axOp
	axRanks
	axSrc
	axDst
	axInPlace
	axScope
	axTeam
	axMode
	axRoot
	axInput
	axSeed
	axGraph
	axCount
	axes
)

func (a *Axes) sizes() []int {
	return []int{
		axCollective: len(a.Collectives), axDType: len(a.DTypes), axOp: len(a.Ops), axRanks: len(a.Ranks),
		axSrc: len(a.SrcOffsets), axDst: len(a.DstOffsets), axInPlace: len(a.InPlace), axScope: len(a.Scopes),
		axTeam: len(a.Teams), axMode: len(a.Modes), axRoot: len(a.Roots), axInput: len(a.Inputs), axSeed: len(a.Seeds),
		axGraph: len(a.Graph), axCount: max(len(a.Counts), 1),
	}
}

func (a *Axes) filled() *Axes {
	f := *a
	orDefault(&f.Collectives, api.AllReduce)
	orDefault(&f.DTypes, api.BF16)
	orDefault(&f.Ops, api.Sum)
	orDefault(&f.Ranks, 2)
	orDefault(&f.SrcOffsets, api.Offsets{0})
	orDefault(&f.DstOffsets, api.Offsets{0})
	orDefault(&f.InPlace, api.OutOfPlace)
	orDefault(&f.Scopes, api.OnStream)
	orDefault(&f.Teams, api.World)
	orDefault(&f.Modes, "")
	orDefault(&f.Roots, 0)
	orDefault(&f.Inputs, inputs.Input{})
	orDefault(&f.Seeds, 1)
	orDefault(&f.Graph, false)
	return &f
}

func orDefault[T any](axis *[]T, v T) {
	if len(*axis) == 0 {
		*axis = []T{v}
	}
}

// collapse takes the first value of the axes that mean nothing to a collective,
// so that the rest of the row is not listed once for each.
func (a *Axes) collapse(row []int) []int {
	row = slices.Clone(row)
	c := a.Collectives[row[axCollective]]
	if !c.Reduces() {
		row[axOp], row[axMode] = 0, 0
	}
	if !c.Rooted() {
		row[axRoot] = 0
	}
	return row
}

// possible judges a row as far as it is chosen: no op that a type has not, no
// in-place form that a collective has not, no offsets apart in place, no input
// that makes no sense for the type or the op.
func (a *Axes) possible(row []int) bool {
	return a.opPossible(row) && a.inPlacePossible(row) && a.inputPossible(row)
}

func (a *Axes) opPossible(row []int) bool {
	if row[axCollective] >= 0 && !a.Collectives[row[axCollective]].Reduces() {
		return true
	}
	return row[axDType] < 0 || row[axOp] < 0 || row[axCollective] < 0 || a.Ops[row[axOp]].ValidFor(a.DTypes[row[axDType]])
}

func (a *Axes) inPlacePossible(row []int) bool {
	if row[axInPlace] < 0 || a.InPlace[row[axInPlace]] == api.OutOfPlace {
		return true
	}
	if src, dst := row[axSrc], row[axDst]; src >= 0 && dst >= 0 && !slices.Equal(a.SrcOffsets[src], a.DstOffsets[dst]) {
		return false
	}
	if row[axCollective] < 0 {
		return true
	}
	_, ok := a.Collectives[row[axCollective]].InPlace(api.Geometry{Ranks: 2, Count: 8}, 0, a.InPlace[row[axInPlace]])
	return ok
}

func (a *Axes) inputPossible(row []int) bool {
	if row[axInput] < 0 || row[axDType] < 0 {
		return true
	}
	float := a.DTypes[row[axDType]].Float()
	switch a.Inputs[row[axInput]].Kind {
	case inputs.Normal, inputs.Finite, inputs.Uniform:
		return float
	case inputs.OrderFree:
		reduces := row[axCollective] < 0 || a.Collectives[row[axCollective]].Reduces()
		return !float || !reduces || row[axOp] < 0 || a.Ops[row[axOp]] != api.Avg
	}
	return true
}
