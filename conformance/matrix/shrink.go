package matrix

import (
	"context"
	"slices"

	"example.com/tandem/api"
	"example.com/tandem/conformance/inputs"
)

// maxTries bounds the executions that making one failure small may take.
const maxTries = 250

// explain makes the first case of a failure small and reports on it.
func (w *worker) explain(ctx context.Context, f *Failure, shrink bool) error {
	if shrink {
		small, err := w.shrink(ctx, f)
		if err != nil {
			return err
		}
		f.Small = small
	}
	found, rep, err := w.judge(ctx, f.Small)
	switch {
	case err != nil:
		return &CaseError{f.Small, err}
	case found == nil:
		// It failed before: what comes and goes is told as it was met.
		f.Detail = "it does not fail every time"
	default:
		f.Detail = found.detail
	}
	f.Report = rep
	return nil
}

// shrink changes one thing at a time for a simpler one, as long as the same
// check breaks for the same cause, until no single change does.
func (w *worker) shrink(ctx context.Context, f *Failure) (Case, error) {
	best, tries := f.First, 0
	fails := func(c Case) (bool, error) {
		tries++
		found, _, err := w.judge(ctx, c)
		if err != nil {
			if _, ok := refusal(err); ok && ctx.Err() == nil {
				return false, nil
			}
			return false, &CaseError{c, err}
		}
		return found != nil && found.check == f.Check && found.cause == f.Cause, nil
	}
	for changed := true; changed && tries < maxTries; {
		changed = false
		for _, step := range []func(Case) []Case{fewerElements, fewerRanks, simplerOffsets, simplerRest, simplerInput} {
			for again := true; again && tries < maxTries; {
				again = false
				for _, c := range step(best) {
					if tries >= maxTries || c.Call.Validate() != nil {
						continue
					}
					ok, err := fails(c)
					if err != nil {
						return best, err
					}
					if ok {
						best, again, changed = c, true, true
						break
					}
				}
			}
		}
	}
	return best, nil
}

// fewer lists smaller numbers, the most promising first: the smallest ones, then
// steps from half of the way down to one.
func fewer(n int64) []int64 {
	var out []int64
	for small := int64(0); small < min(n, 5); small++ {
		out = append(out, small)
	}
	for step := n / 2; step > 0; step /= 2 {
		if m := n - step; !slices.Contains(out, m) {
			out = append(out, m)
		}
	}
	return out
}

func fewerElements(c Case) []Case {
	var out []Case
	if !api.IsMany(c.Call.Collective) {
		for _, n := range fewer(c.Call.Count) {
			one := c
			one.Call.Count = n
			out = append(out, one)
		}
		return out
	}
	for l := range c.Call.Many {
		one := c
		one.Call.Many = slices.Delete(slices.Clone(c.Call.Many), l, l+1)
		out = append(out, one)
	}
	for l := range c.Call.Many {
		for _, n := range fewer(c.Call.Many[l].Count) {
			one := c
			one.Call.Many = slices.Clone(c.Call.Many)
			one.Call.Many[l].Count = n
			out = append(out, one)
		}
	}
	return out
}

func fewerRanks(c Case) []Case {
	var out []Case
	for _, n := range fewer(int64(c.Call.Ranks)) {
		if n == 0 {
			continue
		}
		one := c
		one.Call.Ranks = int(n)
		one.Call.Root = min(c.Call.Root, int(n)-1)
		for _, o := range []*api.Offsets{&one.Call.SrcOffset, &one.Call.DstOffset} {
			if len(*o) > 1 {
				*o = (*o)[:n:n]
			}
		}
		if len(c.Input.Values) > 0 {
			one.Input.Values = c.Input.Values[:n:n]
		}
		out = append(out, one)
	}
	return out
}

func simplerOffsets(c Case) []Case {
	var out []Case
	simple := func(o api.Offsets) []api.Offsets {
		var list []api.Offsets
		for _, v := range []int64{0, 1} {
			if !o.Uniform() || o.At(0) > v {
				list = append(list, api.Offsets{v})
			}
		}
		return list
	}
	for _, o := range simple(c.Call.SrcOffset) {
		one := c
		if one.Call.SrcOffset = o; c.Call.InPlace != api.OutOfPlace {
			one.Call.DstOffset = o
		}
		out = append(out, one)
	}
	if c.Call.InPlace == api.OutOfPlace {
		for _, o := range simple(c.Call.DstOffset) {
			one := c
			one.Call.DstOffset = o
			out = append(out, one)
		}
	}
	return out
}

// simplerRest is the first rank for a root, and the plain way of launching.
func simplerRest(c Case) []Case {
	var out []Case
	if c.Call.Root > 0 {
		one := c
		one.Call.Root = 0
		out = append(out, one)
	}
	if c.Graph {
		one := c
		one.Graph = false
		out = append(out, one)
	}
	return out
}

// simplicity is the order of inputs, the simplest first.
var simplicity = []inputs.Kind{inputs.Ones, inputs.OrderFree, inputs.Normal, inputs.Uniform, inputs.Finite, inputs.Bits, inputs.Values}

func simplerInput(c Case) []Case {
	var out []Case
	at := slices.Index(simplicity, c.Input.Kind)
	for _, k := range simplicity[:max(at, 0)] {
		if k == inputs.Uniform {
			continue // it needs a range that nobody asked for
		}
		in := inputs.Input{Kind: k}
		if k != inputs.Ones {
			in.Seed = 1
		}
		if _, err := in.Open(&c.Call); err == nil {
			out = append(out, Case{c.Call, in, c.Graph})
		}
	}
	if at > 0 && c.Input.Seed > 1 {
		in := c.Input
		in.Seed = 1
		out = append(out, Case{c.Call, in, c.Graph})
	}
	return out
}
