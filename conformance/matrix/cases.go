package matrix

import (
	"slices"

	"example.com/tandem/api"
	"example.com/tandem/conformance/inputs"
)

// call is the call of a row, but for its count.
func (a *Axes) call(row []int) api.Call {
	c := api.Call{
		Collective: a.Collectives[row[axCollective]],
		DType:      a.DTypes[row[axDType]],
		Ranks:      a.Ranks[row[axRanks]],
		InPlace:    a.InPlace[row[axInPlace]],
		Scope:      a.Scopes[row[axScope]],
		Team:       a.Teams[row[axTeam]],
	}
	c.SrcOffset = spread(a.SrcOffsets[row[axSrc]], c.Ranks)
	c.DstOffset = spread(a.DstOffsets[row[axDst]], c.Ranks)
	if c.Collective.Reduces() {
		c.Op, c.Mode = a.Ops[row[axOp]], a.Modes[row[axMode]]
	}
	if c.Collective.Rooted() {
		if c.Root = a.Roots[row[axRoot]]; c.Root < 0 {
			c.Root += c.Ranks
		}
	}
	return c
}

// spread gives every rank its offset of a pattern.
func spread(pattern api.Offsets, ranks int) api.Offsets {
	if pattern.Uniform() || ranks == 1 {
		return pattern[:1:1]
	}
	out := make(api.Offsets, ranks)
	for r := range out {
		out[r] = pattern[r%len(pattern)]
	}
	return out
}

// cases makes the calls of a row: one, or one for each threshold of the call
// and its neighbours. What is still not sound (a count out of range, a root
// that there is not) is left out.
func (a *Axes) cases(row []int) []Case {
	c := a.call(row)
	counts := a.Counts
	if len(counts) > 0 {
		counts = counts[row[axCount]:][:1]
	} else {
		counts = a.around(c)
	}
	var out []Case
	for _, n := range counts {
		one := withCount(c, n)
		if one.Validate() != nil {
			continue
		}
		in := a.Inputs[row[axInput]]
		if in.Kind == inputs.Auto {
			in = inputs.Default(&one)
		}
		switch in.Kind {
		case inputs.Values:
			if in.Values == nil {
				in.Values = special(&one, a.Seeds[row[axSeed]])
			}
			if in.Values = in.Values[:min(len(in.Values), one.Ranks)]; len(in.Values) < one.Ranks {
				continue
			}
		case inputs.Ones, inputs.Files:
		default:
			in.Seed = a.Seeds[row[axSeed]]
		}
		out = append(out, Case{one, in, a.Graph[row[axGraph]]})
	}
	return out
}

// withCount is the call with a count, or with lanes of different counts.
func withCount(c api.Call, n int64) api.Call {
	if c.Count = n; api.IsMany(c.Collective) {
		c.Count, c.Many = 0, []api.LaneShape{{Count: n}, {Count: n / 2}, {}}
	}
	return c
}

// around lists the thresholds of a call with both neighbours.
func (a *Axes) around(c api.Call) []int64 {
	out := slices.Clone(a.Around)
	if a.Thresholds != nil {
		if api.IsMany(c.Collective) {
			c = withCount(c, 1)
		}
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
