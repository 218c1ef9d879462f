package matrix

import (
	"context"
	"fmt"
	"slices"

	"example.com/tandem/api"
	"example.com/tandem/conformance"
)

// checks are what is asked of the left and of the right side. CheckValue is
// about both, and stands in both lists or in none.
type checks [2][]api.Check

// free are the checks that the one execution a comparison needs shows anyhow.
var free = []api.Check{api.CheckLiveness, api.CheckCoverage, api.CheckRankAgreement}

// wanted are the checks asked for, or values and what each side promises of the
// free ones.
func wanted(left, right conformance.Side, asked []api.Check) checks {
	if asked != nil {
		return checks{asked, asked}
	}
	var out checks
	for s, side := range []conformance.Side{left, right} {
		out[s] = []api.Check{api.CheckValue}
		if m := side.Implementation(); m != nil {
			for _, c := range free {
				if slices.Contains(m.Promises, c) {
					out[s] = append(out[s], c)
				}
			}
		}
	}
	return out
}

func (c checks) has(side int, check api.Check) bool { return slices.Contains(c[side], check) }

func (c checks) any(check api.Check) bool { return c.has(0, check) || c.has(1, check) }

// finding is a check that does not hold.
type finding struct {
	check  api.Check
	cause  api.Cause
	detail string
}

var sideNames = [2]string{"left", "right"}

// judge executes a case and says what does not hold first; nil if all does.
func (w *worker) judge(ctx context.Context, c Case) (*finding, *conformance.Report, error) {
	rep, err := w.run(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	if f := w.first(rep); f != nil {
		return f, rep, nil
	}
	for _, check := range []struct {
		name api.Check
		test func(context.Context, Case, *conformance.Report) (*finding, error)
	}{
		{api.CheckRunToRun, w.runToRun},
		{api.CheckPlacementInvariance, w.placement},
		{api.CheckSizeInvariance, w.size},
	} {
		if !w.checks.any(check.name) {
			continue
		}
		if f, err := check.test(ctx, c, rep); f != nil || err != nil {
			return f, rep, err
		}
	}
	// An empty call agrees by touching nothing. One whose outputs neither side
	// wrote was not compared.
	if err := rep.Nothing(); err != nil && c.elements() > 0 {
		return nil, nil, err
	}
	return nil, rep, nil
}

// elements is the number of outputs of a rank.
func (c *Case) elements() int64 {
	var n int64
	for l := range c.Call.Lanes() {
		n += c.Call.DstElems(l)
	}
	return n
}

// first judges what one execution shows.
func (w *worker) first(rep *conformance.Report) *finding {
	sides := [2]*conformance.SideReport{&rep.Left, &rep.Right}
	for s, side := range sides {
		for _, r := range side.Ranks {
			if f := r.Fault; f != nil && w.checks.has(s, api.CheckLiveness) && (f.Kind == api.FaultHang || f.Kind == api.FaultAborted) {
				return &finding{api.CheckLiveness, api.CauseFault, fmt.Sprintf("%s: %v", sideNames[s], f)}
			}
		}
	}
	if w.checks.any(api.CheckValue) && !rep.Holds() {
		f := &finding{check: api.CheckValue, cause: api.CauseUnknown}
		if len(rep.Causes) > 0 {
			f.cause, f.detail = rep.Causes[0].Class, rep.Causes[0].Explanation
		}
		return f
	}
	for s, side := range sides {
		if !w.checks.has(s, api.CheckCoverage) {
			continue
		}
		for _, r := range side.Ranks {
			n := known(r.Unwritten)
			if !rep.Holds() {
				n += known(r.Unreduced) // right values are not missing, even if they look like inputs
			}
			if n > 0 {
				return &finding{check: api.CheckCoverage, detail: fmt.Sprintf("%s: rank %d left %d elements unwritten", sideNames[s], r.Rank, n)}
			}
		}
	}
	if a := rep.RankAgreement; a != nil {
		for s, same := range []*bool{a.Left, a.Right} {
			if same != nil && !*same && w.checks.has(s, api.CheckRankAgreement) {
				return &finding{check: api.CheckRankAgreement, detail: sideNames[s] + ": the ranks ended with different bits"}
			}
		}
	}
	return nil
}

func known(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

// again executes a case that is like another, for its sides that are held to a
// check. A refusal gives nil: there is nothing to hold against the first.
func (w *worker) again(ctx context.Context, c Case) (*conformance.Report, error) {
	if c.Call.Validate() != nil {
		return nil, nil
	}
	rep, err := w.run(ctx, c)
	if err != nil {
		if _, ok := refusal(err); ok {
			return nil, nil
		}
		return nil, err
	}
	return rep, nil
}

// runToRun executes the case again and wants the same bits.
func (w *worker) runToRun(ctx context.Context, c Case, rep *conformance.Report) (*finding, error) {
	for i := range w.repeats {
		next, err := w.again(ctx, c)
		if next == nil {
			return nil, err
		}
		if detail := w.hashes(api.CheckRunToRun, rep, next); detail != "" {
			return &finding{check: api.CheckRunToRun, detail: fmt.Sprintf("%s in repeat %d", detail, i+1)}, nil
		}
	}
	return nil, nil
}

// hashes says on which side and rank two executions ended with different bits.
func (w *worker) hashes(check api.Check, a, b *conformance.Report) string {
	pairs := [2][2]*conformance.SideReport{{&a.Left, &b.Left}, {&a.Right, &b.Right}}
	for s, p := range pairs {
		if !w.checks.has(s, check) {
			continue
		}
		for r := range p[0].Ranks {
			x, y := p[0].Ranks[r].FNV1a64, p[1].Ranks[r].FNV1a64
			if x != nil && y != nil && *x != *y {
				return fmt.Sprintf("%s: rank %d ended with other bits", sideNames[s], r)
			}
		}
	}
	return ""
}

// placements are the offsets that a placement-invariant call may have as well.
var placements = []api.Offsets{{0}, {1}, {3, 0, 1}}

// placement executes the case with its buffers elsewhere and wants the same
// bits.
func (w *worker) placement(ctx context.Context, c Case, rep *conformance.Report) (*finding, error) {
	for i, dst := range placements {
		src := placements[(i+1)%len(placements)]
		if c.Call.InPlace != api.OutOfPlace {
			src = dst
		}
		moved := c
		moved.Call.SrcOffset, moved.Call.DstOffset = spread(src, c.Call.Ranks), spread(dst, c.Call.Ranks)
		next, err := w.again(ctx, moved)
		if err != nil {
			return nil, err
		}
		if next == nil {
			continue
		}
		if detail := w.hashes(api.CheckPlacementInvariance, rep, next); detail != "" {
			return &finding{check: api.CheckPlacementInvariance, detail: fmt.Sprintf("%s with source at +%s and destination at +%s", detail, moved.Call.SrcOffset, moved.Call.DstOffset)}, nil
		}
	}
	return nil, nil
}

// size executes the case with other counts and wants the same bits in the
// elements that both have: those of rank 0, which have the same inputs, as far
// as reports show them (64 elements).
func (w *worker) size(ctx context.Context, c Case, rep *conformance.Report) (*finding, error) {
	n := c.Call.Count
	if api.IsMany(c.Call.Collective) || n == 0 {
		return nil, nil
	}
	for _, count := range []int64{n + 1, 2*n + 3, max(1, n/2), 8 * n} {
		other := c
		other.Call.Count = count
		next, err := w.again(ctx, other)
		if err != nil {
			return nil, err
		}
		if next == nil {
			continue
		}
		digits := 2 * int(min(n, count, 64)) * c.Call.DType.Size()
		pairs := [2][2]*conformance.SideReport{{&rep.Left, &next.Left}, {&rep.Right, &next.Right}}
		for s, p := range pairs {
			a, b := p[0].Ranks[0].OutHex, p[1].Ranks[0].OutHex
			if !w.checks.has(s, api.CheckSizeInvariance) || a == nil || b == nil {
				continue
			}
			if x, y := (*a)[:min(digits, len(*a))], (*b)[:min(digits, len(*b))]; x != y {
				return &finding{check: api.CheckSizeInvariance, detail: fmt.Sprintf("%s: the first elements of rank 0 are others with a count of %d", sideNames[s], count)}, nil
			}
		}
	}
	return nil, nil
}
