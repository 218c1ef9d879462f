package matrix

import (
	"errors"
	"slices"

	"example.com/tandem/api"
	"example.com/tandem/conformance"
	"example.com/tandem/conformance/inputs"
)

// For fills in the axes that are nil from what both sides declare and, where
// they can plan, take: a value that a side refuses in whatever call would only
// keep others from being tried. Reductions and copies get axes of their own. Axes
// that are given stay as they are; calls of theirs that a side refuses are
// counted when they run.
func For(left, right conformance.Side, a Axes) []Axes {
	p := &prober{sides: []conformance.Side{left, right}}
	for _, s := range p.sides {
		if m := s.Implementation(); m != nil {
			p.declared = append(p.declared, m)
		}
	}
	if a.Thresholds == nil {
		a.Thresholds = p.thresholds
	}
	if a.Around == nil {
		a.Around = []int64{0, 1, 2, 3, 7, 1000}
	}
	if a.Collectives == nil {
		a.Collectives = common(p, api.Collectives(), func(m *api.Implementation) []api.Collective { return m.Collectives })
	}
	var out []Axes
	for _, reduces := range []bool{true, false} {
		part := a
		part.Collectives = slices.DeleteFunc(slices.Clone(a.Collectives), func(c api.Collective) bool { return c.Reduces() != reduces })
		if len(part.Collectives) > 0 {
			p.fill(&part)
			out = append(out, part)
		}
	}
	return out
}

// ExpandAll lists the cases of several axes, each case once, and counts those
// left out for their size.
func ExpandAll(all []Axes, full bool) (cases []Case, tooLarge int) {
	seen := map[string]bool{}
	for i := range all {
		list, large := all[i].expand(full)
		tooLarge += large
		for _, c := range list {
			if key := c.String(); !seen[key] {
				seen[key] = true
				cases = append(cases, c)
			}
		}
	}
	return cases, tooLarge
}

// prober finds out what two sides take.
type prober struct {
	sides    []conformance.Side
	declared []*api.Implementation
	// base has calls of each collective that both sides take.
	base []api.Call
}

// thresholds are those of both sides.
func (p *prober) thresholds(c api.Call) []int64 {
	var out []int64
	for _, m := range p.declared {
		if m.Thresholds != nil {
			out = append(out, m.Thresholds(c)...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// common lists what both sides declare, of all.
func common[T comparable](p *prober, all []T, of func(*api.Implementation) []T) []T {
	return slices.DeleteFunc(slices.Clone(all), func(v T) bool {
		return slices.ContainsFunc(p.declared, func(m *api.Implementation) bool {
			return of(m) != nil && !slices.Contains(of(m), v)
		})
	})
}

// accepts reports whether no side refuses a call. A side that makes no plans is
// asked when the call runs.
func (p *prober) accepts(c api.Call) bool {
	if c.Validate() != nil {
		return false
	}
	for _, s := range p.sides {
		planner, ok := s.Backend.(api.Planner)
		if !ok {
			continue
		}
		plan, err := planner.Plan(s.Spec, c)
		if errors.Is(err, api.ErrRefused) || errors.Is(err, api.ErrInvalid) || err == nil && plan.Unknown != "" {
			return false
		}
	}
	return true
}

// probeCount is the count of the calls that sides are asked about.
const probeCount = 64

// fill completes axes of collectives that all reduce, or all copy.
func (p *prober) fill(a *Axes) {
	dtypes, ops, ranks := a.DTypes, a.Ops, a.Ranks
	if dtypes == nil {
		dtypes = common(p, api.DTypes(), func(m *api.Implementation) []api.DType { return m.DTypes })
	}
	if ops == nil {
		ops = []api.Op{api.NoOp}
		if a.Collectives[0].Reduces() {
			ops = api.Ops()
		}
	}
	if ranks == nil {
		ranks = []int{1, 2, 3, 4, 8}
	}
	var taken []api.Call
	p.base = nil
	for _, c := range a.Collectives {
		first := true
		for _, d := range dtypes {
			for _, o := range ops {
				for _, r := range ranks {
					call := withCount(api.Call{Collective: c, DType: d, Op: o, Ranks: r}, probeCount)
					if !p.accepts(call) {
						continue
					}
					taken = append(taken, call)
					if r > 1 && first {
						p.base, first = append(p.base, call), false
					}
				}
			}
		}
	}
	if len(taken) == 0 { // whatever is tried is refused, and will be counted
		a.DTypes, a.Ops, a.Ranks = dtypes, ops, ranks
		p.rest(a)
		return
	}
	if p.base == nil {
		p.base = taken[:1]
	}
	a.DTypes = used(a.DTypes, dtypes, taken, func(c *api.Call) api.DType { return c.DType })
	a.Ops = used(a.Ops, ops, taken, func(c *api.Call) api.Op { return c.Op })
	a.Ranks = used(a.Ranks, ranks, taken, func(c *api.Call) int { return c.Ranks })
	p.rest(a)
}

// used is what was given, else the values that calls taken have.
func used[T comparable](given, all []T, taken []api.Call, of func(*api.Call) T) []T {
	if given != nil {
		return given
	}
	return slices.DeleteFunc(slices.Clone(all), func(v T) bool {
		return !slices.ContainsFunc(taken, func(c api.Call) bool { return of(&c) == v })
	})
}

// rest completes the axes that say how a call is made.
func (p *prober) rest(a *Axes) {
	offsets := []api.Offsets{{0}, {1}, {8}, {0, 1, 3}}
	choose(p, &a.SrcOffsets, offsets, func(c *api.Call, o api.Offsets) { c.SrcOffset = spread(o, c.Ranks) })
	choose(p, &a.DstOffsets, offsets, func(c *api.Call, o api.Offsets) { c.DstOffset = spread(o, c.Ranks) })
	choose(p, &a.InPlace, []api.InPlace{api.OutOfPlace, api.InPlaceOwn, api.InPlaceStart}, func(c *api.Call, f api.InPlace) { c.InPlace = f })
	choose(p, &a.Scopes, []api.Scope{api.OnStream, api.Block, api.Warp, api.Thread}, func(c *api.Call, s api.Scope) { c.Scope = s })
	choose(p, &a.Teams, []api.TeamKind{api.World, api.SubTeam}, func(c *api.Call, t api.TeamKind) { c.Team = t })
	choose(p, &a.Modes, []string{"", "f32"}, func(c *api.Call, m string) { c.Mode = m })
	if a.Roots == nil {
		a.Roots = []int{0, -1}
	}
	if a.Inputs == nil {
		a.Inputs = []inputs.Input{{}, {Kind: inputs.Finite}, {Kind: inputs.Bits}, Special}
	}
}

// choose fills an axis with the values that some call takes.
func choose[T any](p *prober, axis *[]T, all []T, set func(*api.Call, T)) {
	if *axis != nil {
		return
	}
	for _, v := range all {
		if slices.ContainsFunc(p.base, func(c api.Call) bool {
			set(&c, v)
			return p.accepts(c)
		}) {
			*axis = append(*axis, v)
		}
	}
	if *axis == nil {
		*axis = all[:1]
	}
}
