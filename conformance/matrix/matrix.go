// Package matrix chooses calls: the whole product of lists of values, or few
// calls in which every pair of values meets.
//
// The rule users break: an axis that does not apply to a collective (an op of a
// copy) collapses, so there are fewer cases than the product of the lengths.
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
	// neighbours.
	Counts     []int64
	SrcOffsets []int64
	DstOffsets []int64
	InPlace    []api.InPlace
	Scopes     []api.Scope
	// Inputs without a seed; the kind inputs.Auto is the default of each call.
	Inputs []inputs.Input
	Seeds  []uint64
	// Thresholds lists the counts at which decisions about a call change.
	Thresholds func(api.Call) []int64
}

// Case is one call to make, and what its sources hold.
type Case struct {
	Call  api.Call
	Input inputs.Input
}

// Expand lists the cases: every combination where full is set, else few in
// which every possible pair of values occurs. No case is listed twice.
func (a *Axes) Expand(full bool) []Case {
	a = a.filled()
	sizes := []int{len(a.Collectives), len(a.DTypes), len(a.Ops), len(a.Ranks), len(a.SrcOffsets), len(a.DstOffsets),
		len(a.InPlace), len(a.Scopes), len(a.Inputs), len(a.Seeds), max(len(a.Counts), 1)}
	choose := pairwise
	if full {
		choose = product
	}
	var out []Case
	seen := map[string]bool{}
	for _, row := range choose(sizes, a.possible) {
		for _, c := range a.cases(row) {
			if key := c.Call.String() + " " + c.Input.String(); !seen[key] {
				seen[key] = true
				out = append(out, c)
			}
		}
	}
	return out
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
	axInput
	axSeed
	axCount
)

func (a *Axes) filled() *Axes {
	f := *a
	orDefault(&f.Collectives, api.AllReduce)
	orDefault(&f.DTypes, api.BF16)
	orDefault(&f.Ops, api.Sum)
	orDefault(&f.Ranks, 2)
	orDefault(&f.SrcOffsets, 0)
	orDefault(&f.DstOffsets, 0)
	orDefault(&f.InPlace, api.OutOfPlace)
	orDefault(&f.Scopes, api.OnStream)
	orDefault(&f.Inputs, inputs.Input{})
	orDefault(&f.Seeds, 1)
	return &f
}

func orDefault[T any](axis *[]T, v T) {
	if len(*axis) == 0 {
		*axis = []T{v}
	}
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
	if src, dst := row[axSrc], row[axDst]; src >= 0 && dst >= 0 && a.SrcOffsets[src] != a.DstOffsets[dst] {
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

// cases makes the calls of a row: one, or one for each threshold of the call
// and its neighbours. What is still not sound (a count out of range) is left
// out.
func (a *Axes) cases(row []int) []Case {
	c := api.Call{
		Collective: a.Collectives[row[axCollective]],
		DType:      a.DTypes[row[axDType]],
		Ranks:      a.Ranks[row[axRanks]],
		SrcOffset:  api.Offsets{a.SrcOffsets[row[axSrc]]},
		DstOffset:  api.Offsets{a.DstOffsets[row[axDst]]},
		InPlace:    a.InPlace[row[axInPlace]],
		Scope:      a.Scopes[row[axScope]],
	}
	if c.Collective.Reduces() {
		c.Op = a.Ops[row[axOp]]
	}
	counts := a.Counts
	if len(counts) > 0 {
		counts = counts[row[axCount]:][:1]
	} else {
		counts = a.around(c)
	}
	var out []Case
	for _, n := range counts {
		one := c
		if one.Count = n; api.IsMany(c.Collective) {
			one.Count, one.Many = 0, []api.LaneShape{{Count: n}, {Count: n / 2}, {}}
		}
		if one.Validate() != nil {
			continue
		}
		in := a.Inputs[row[axInput]]
		if in.Kind == inputs.Auto {
			in = inputs.Default(&one)
		}
		switch in.Kind {
		case inputs.Ones, inputs.Values, inputs.Files:
		default:
			in.Seed = a.Seeds[row[axSeed]]
		}
		out = append(out, Case{one, in})
	}
	return out
}

// around lists the thresholds of a call with both neighbours.
func (a *Axes) around(c api.Call) []int64 {
	var out []int64
	if a.Thresholds != nil {
		for _, t := range a.Thresholds(c) {
			out = append(out, t-1, t, t+1)
		}
	}
	if len(out) == 0 {
		out = []int64{0, 1, 2, 3, 1000}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
