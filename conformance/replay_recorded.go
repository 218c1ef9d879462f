package conformance

import (
	"fmt"
	"slices"

	"example.com/tandem/api"
	"example.com/tandem/conformance/vectors"
)

// checkRecorded compares two rows of the same call, by whatever both of them
// hold.
func (w *replayer) checkRecorded(source RowSource, row *vectors.Row) (*ReplayFailure, error) {
	other, err := source.Row(w.side.Spec, row.Call, row.Input)
	if err != nil {
		return nil, err
	}
	if row.Fault != nil || other.Fault != nil {
		if row.Fault != nil && other.Fault != nil && row.Fault.Kind == other.Fault.Kind {
			return nil, nil
		}
		return faultFailure(row, other.Fault), nil
	}
	if row.Poison != other.Poison && !(row.FullyWritten() && other.FullyWritten()) {
		return nil, &api.Refused{Spec: w.side.String(), What: row.Call.String(), Reason: fmt.Sprintf("the recordings use different poisons, 0x%02x and 0x%02x, and have unwritten outputs", row.Poison, other.Poison)}
	}
	if row.HasOutput() && other.HasOutput() {
		return w.compareRecorded(row, other)
	}
	if w.header.NVLS && anyFloatSum(&row.Call) && !w.Exact {
		return nil, &api.Refused{Spec: w.side.String(), What: row.Call.String(), Reason: "its outputs have no exact contract, and one of the rows does not hold them in full"}
	}
	return hashFailure(row, other), nil
}

// compareRecorded compares rows that both hold their outputs.
func (w *replayer) compareRecorded(row, other *vectors.Row) (*ReplayFailure, error) {
	in, err := w.sources(row)
	if err != nil {
		return nil, err
	}
	c := &comparison{call: &row.Call, in: in, obs: [2]*observation{recorded(row), recorded(other)}, workers: 1}
	if w.header.NVLS && !w.Exact {
		c.obs[left].promise = api.Faithful
		c.faithful = faithfulElements(&row.Call, c.obs[left])
	}
	out := outsiders(in, 1, c.obs[left], c.obs[right])
	c.outside = [2][][]bitset{out[left], out[right]}
	rep := c.build(row.Input)
	if rep.Differing.Elements == 0 {
		return nil, nil
	}
	return failureOf(row, rep), nil
}

// hashFailure compares rows by their hashes; nil if they agree.
func hashFailure(row, other *vectors.Row) *ReplayFailure {
	f := &ReplayFailure{Line: row.Line, Call: CallReport{row.Call, row.Input}, Ranks: []int{}, Blocks: []int64{}, Cause: api.CauseUnknown}
	for rank := range row.Call.Ranks {
		if row.Hash[rank] == other.Hash[rank] {
			continue
		}
		f.Ranks = append(f.Ranks, rank)
		for _, b := range differingBlocks(row, other, rank) {
			if !slices.Contains(f.Blocks, b) {
				f.Blocks = append(f.Blocks, b)
			}
		}
	}
	if len(f.Ranks) == 0 {
		return nil
	}
	slices.Sort(f.Blocks)
	if len(f.Blocks) > 0 {
		if s, ok := blockSpan(&row.Call, f.Blocks[0]); ok {
			f.FirstIndex = &s.start
		}
	}
	return f
}

// differingBlocks compares block hashes, made from outputs where they are not
// recorded; nothing where one of the rows has neither.
func differingBlocks(a, b *vectors.Row, rank int) []int64 {
	x, y := blocksOf(a, rank), blocksOf(b, rank)
	var out []int64
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			out = append(out, int64(i))
		}
	}
	return out
}

func blocksOf(r *vectors.Row, rank int) []uint64 {
	if r.Blocks != nil && r.Blocks[rank] != nil {
		return r.Blocks[rank]
	}
	if r.Output != nil && r.Output[rank] != nil {
		return vectors.HashBlocks(r.Output[rank])
	}
	return nil
}
