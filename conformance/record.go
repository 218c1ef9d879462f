package conformance

import (
	"context"
	"slices"

	"example.com/tandem/api"
	"example.com/tandem/conformance/inputs"
	"example.com/tandem/conformance/vectors"
)

// What a recorded row holds in full.
const (
	// shortOutput: outputs of up to so many bytes a rank.
	shortOutput = 256
	// fullCount: those of calls with elements that have no exact contract, up to
	// so many elements a rank, if the line takes them.
	fullCount = 1 << 20
)

// Record executes a call on a side and makes a row of what it left. A fault is
// recorded as one; a refusal is an error.
func (r *Runner) Record(ctx context.Context, side Side, call api.Call) (*vectors.Row, error) {
	if err := side.check("recorded"); err != nil {
		return nil, err
	}
	c, gen, err := r.prepare(&call, side)
	if err != nil {
		return nil, err
	}
	if gen.Input().Kind == inputs.Files {
		return nil, &api.InvalidError{Field: "input", Value: r.Input.String(), Reason: "a recording cannot name files of one machine", Hint: "use a generated input"}
	}
	defer r.trim()
	runs, err := r.side(ctx, left, side)
	if err != nil {
		return nil, err
	}
	obs, err := runs.observe(ctx, c.call, c.in)
	if err != nil {
		return nil, err
	}
	row := &vectors.Row{Call: call, Input: gen.Input(), Poison: poison1, Fault: obs.fault}
	if obs.fault != nil {
		return row, nil
	}
	row.Hash = hashOutputs(obs.out, c.workers)
	row.GuardHits = slices.Clone(obs.guardHits)
	for rank := range call.Ranks {
		row.Unwritten = append(row.Unwritten, countAll(obs.unwritten, rank))
	}
	fill(row, obs)
	return row, nil
}

// fill adds outputs where the row may hold them, else hashes of blocks.
func fill(row *vectors.Row, obs *observation) {
	n := row.OutputBytes()
	full := n <= shortOutput
	if !full && weak(row, obs) && row.Call.DstElems(0) <= fullCount {
		full = 2*n*int64(row.Call.Ranks) < vectors.MaxLine*15/16
	}
	for _, lanes := range obs.out {
		whole := slices.Concat(lanes...)
		if full {
			row.Output = append(row.Output, whole)
		} else {
			row.Blocks = append(row.Blocks, vectors.HashBlocks(whole))
		}
	}
}

// weak reports whether an element of the call has no exact contract.
func weak(row *vectors.Row, obs *observation) bool {
	for _, lanes := range faithfulElements(&row.Call, obs) {
		for _, set := range lanes {
			if set.count() > 0 {
				return true
			}
		}
	}
	return false
}
