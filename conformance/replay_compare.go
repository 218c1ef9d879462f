package conformance

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"example.com/tandem/api"
	"example.com/tandem/conformance/vectors"
)

// compare holds what a side did against a row.
func (w *replayer) compare(row *vectors.Row, obs *observation, faithful [][]bitset) (*ReplayFailure, error) {
	ranks := w.differingRanks(row, obs)
	if len(ranks) == 0 {
		return nil, nil // the very bits, under any contract
	}
	if faithful == nil && !row.HasOutput() {
		return w.locate(row, obs, ranks)
	}
	in, err := w.sources(row)
	if err != nil {
		return nil, err
	}
	c := &comparison{call: &row.Call, in: in, obs: [2]*observation{recorded(row), obs}, workers: 1, faithful: faithful}
	if err := w.planFor(c.obs[right], &row.Call); err != nil {
		return nil, err
	}
	c.obs[left].adoptCoverage(row, obs)
	out := outsiders(in, 1, c.obs[left], c.obs[right])
	c.outside = [2][][]bitset{out[left], out[right]}
	rep := c.build(row.Input)
	damaged, f := damageOf(row, obs)
	switch {
	case rep.Differing.Elements > 0:
		return failureOf(row, rep), nil
	case len(damaged) > 0:
		return &ReplayFailure{Line: row.Line, Call: rep.Call, Ranks: damaged, Blocks: []int64{}, Cause: f.class, Why: f.words}, nil
	}
	return nil, nil
}

// adoptCoverage takes over what the side left unwritten where the recording
// cannot say which elements it left, but as many: in place they hold no poison,
// and what both left as it was is equal.
func (o *observation) adoptCoverage(row *vectors.Row, side *observation) {
	if o.unwritten != nil || side.unwritten == nil || row.Unwritten == nil {
		return
	}
	sets := make([][]bitset, row.Call.Ranks)
	for rank := range sets {
		if row.Unwritten[rank] == nil || coverageDiffers(row, side, rank) {
			return
		}
		for l, set := range side.unwritten[rank] {
			size := int64(row.Call.Lane(l).DType.Size())
			same := newBitset(row.Call.DstElems(l))
			set.each(func(i int64) {
				if bytes.Equal(o.out[rank][l][i*size:][:size], side.out[rank][l][i*size:][:size]) {
					same.set(i)
				}
			})
			sets[rank] = append(sets[rank], same)
		}
	}
	o.unwritten = sets
}

// differingRanks lists the ranks whose hash, coverage or guards are not those
// recorded.
func (w *replayer) differingRanks(row *vectors.Row, obs *observation) []int {
	var ranks []int
	hashes := hashOutputs(obs.out, 1)
	for rank := range row.Call.Ranks {
		if hashes[rank] != row.Hash[rank] || coverageDiffers(row, obs, rank) || guardsDiffer(row, obs, rank) {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

func coverageDiffers(row *vectors.Row, obs *observation, rank int) bool {
	if obs.unwritten == nil || row.Unwritten == nil || row.Unwritten[rank] == nil {
		return false
	}
	return *countAll(obs.unwritten, rank) != *row.Unwritten[rank]
}

func guardsDiffer(row *vectors.Row, obs *observation, rank int) bool {
	return row.GuardHits != nil && row.GuardHits[rank] != obs.guardHits[rank]
}

// damageOf says on which ranks something besides the outputs differs, and what;
// no ranks if nothing does.
func damageOf(row *vectors.Row, obs *observation) (ranks []int, f finding) {
	for rank := range row.Call.Ranks {
		switch {
		case guardsDiffer(row, obs, rank):
			f = finding{api.CauseGuard, fmt.Sprintf("rank %d: %d guard bytes were hit, the recording has %d", rank, obs.guardHits[rank], row.GuardHits[rank])}
		case coverageDiffers(row, obs, rank):
			f = finding{api.CauseUnknown, fmt.Sprintf("rank %d: %d outputs are unwritten, the recording has %d", rank, *countAll(obs.unwritten, rank), *row.Unwritten[rank])}
		default:
			continue
		}
		ranks = append(ranks, rank)
	}
	return ranks, f
}

// sources makes a row's inputs once more, for looking into a failure.
func (w *replayer) sources(row *vectors.Row) (*sources, error) {
	gen, err := row.Input.Open(&row.Call)
	if err != nil {
		return nil, err
	}
	return newSources(&row.Call, gen, &w.pristine, 1)
}

// planFor adds the plan, which only failures need.
func (w *replayer) planFor(obs *observation, call *api.Call) error {
	if obs.plan != nil {
		return nil
	}
	var err error
	obs.plan, err = w.side.plan(call)
	return err
}

// recorded is a row with outputs as an observation. Which elements are
// unwritten is known where as many are poison as are recorded to be unwritten.
func recorded(row *vectors.Row) *observation {
	call := &row.Call
	obs := &observation{
		side: Side{Spec: api.Spec{Backend: "file", Path: "recording"}}, evidence: map[string]api.Evidence{"recording": api.Recorded},
		guardHits: make([]int64, call.Ranks), changed: make([]int64, call.Ranks),
	}
	copy(obs.guardHits, row.GuardHits)
	for rank := range call.Ranks {
		var lanes [][]byte
		p := row.Output[rank]
		for l := range call.Lanes() {
			_, n := laneBytes(call, l)
			lanes, p = append(lanes, p[:n:n]), p[n:]
		}
		obs.out = append(obs.out, lanes)
	}
	var sets [][]bitset
	for rank := range call.Ranks {
		holes, ok := row.Holes(rank)
		if !ok {
			return obs
		}
		lanes := make([]bitset, len(holes))
		for l := range holes {
			lanes[l] = newBitset(call.DstElems(l))
			for _, h := range holes[l] {
				lanes[l].setRange(h.Start, h.End)
			}
		}
		sets = append(sets, lanes)
	}
	obs.unwritten = sets
	return obs
}

// failureOf shortens a report on outputs that differ to what a replay says of a
// row.
func failureOf(row *vectors.Row, rep *Report) *ReplayFailure {
	f := &ReplayFailure{
		Line: row.Line, Call: rep.Call, Ranks: []int{}, Blocks: []int64{}, FirstIndex: &rep.First.Index,
		Cause: rep.Causes[0].Class, Why: rep.Causes[0].Explanation,
		Where: whereWords(rep.plans[right], rep.First.Lane, rep.First.Rank, rep.First.Index),
	}
	for rank, n := range rep.Differing.PerRank {
		if n > 0 {
			f.Ranks = append(f.Ranks, rank)
		}
	}
	for _, g := range rep.Ranges {
		f.addBlocks(&row.Call, &g)
	}
	slices.Sort(f.Blocks)
	return f
}

// addBlocks adds the blocks of the output that a range touches.
func (f *ReplayFailure) addBlocks(call *api.Call, g *Range) {
	var before int64
	for l := range g.Lane {
		_, n := laneBytes(call, l)
		before += n
	}
	size := int64(call.Lane(g.Lane).DType.Size())
	for k := range g.Count {
		b := (before + (g.Start+k*g.Stride)*size) / vectors.BlockBytes
		if !slices.Contains(f.Blocks, b) {
			f.Blocks = append(f.Blocks, b)
		}
	}
}

// whereWords names the CTA and slice that an element comes from.
func whereWords(p *api.Plan, lane, rank int, index int64) string {
	if p == nil {
		return ""
	}
	place, ok := p.Locate(lane, rank, index)
	if !ok {
		return ""
	}
	text := fmt.Sprintf("CTA %d, %s", place.CTA.CTA, place.Algorithm)
	if place.Slice != nil {
		text += fmt.Sprintf(", slice of rank %d", place.Slice.Rank)
	}
	return text
}

// locate looks into a failed row that has hashes only: the blocks that differ,
// and what would give the recorded hash of the first one.
func (w *replayer) locate(row *vectors.Row, obs *observation, ranks []int) (*ReplayFailure, error) {
	f := &ReplayFailure{Line: row.Line, Call: CallReport{row.Call, row.Input}, Ranks: ranks, Blocks: []int64{}, Cause: api.CauseUnknown}
	if err := w.planFor(obs, &row.Call); err != nil {
		return nil, err
	}
	rank, block, recorded := w.firstBlock(row, obs, f)
	if rank < 0 {
		_, damage := damageOf(row, obs)
		f.Cause, f.Why = cmp.Or(damage.class, api.CauseUnknown), damage.words
		return f, nil
	}
	in, err := w.sources(row)
	if err != nil {
		return nil, err
	}
	c := &comparison{call: &row.Call, in: in, obs: [2]*observation{{side: w.side}, obs}, workers: 1}
	s := &search{witness: c.witness(rank, block.lane), span: block, recorded: recorded}
	s.run(f, row)
	if f.FirstIndex != nil {
		f.Where = whereWords(obs.plan, block.lane, rank, *f.FirstIndex)
	}
	return f, nil
}

// span is a range of elements of one lane.
type span struct {
	lane       int
	start, end int64
}

// firstBlock lists the blocks that differ and finds the first one, or in want
// of block hashes the whole output of the first rank. rank is -1 where no
// output differs.
func (w *replayer) firstBlock(row *vectors.Row, obs *observation, f *ReplayFailure) (rank int, at span, recorded uint64) {
	rank = -1
	for _, r := range f.Ranks {
		whole := bytes.Join(obs.out[r], nil)
		if uint64(vectors.NewHash().Add(whole)) == row.Hash[r] {
			continue
		}
		if row.Blocks == nil || row.Blocks[r] == nil {
			if rank < 0 && row.Call.Lanes() == 1 {
				rank, at, recorded = r, span{end: row.Call.DstElems(0)}, row.Hash[r]
			}
			continue
		}
		for b, h := range vectors.HashBlocks(whole) {
			if h == row.Blocks[r][b] {
				continue
			}
			if !slices.Contains(f.Blocks, int64(b)) {
				f.Blocks = append(f.Blocks, int64(b))
			}
			if s, ok := blockSpan(&row.Call, int64(b)); rank < 0 && ok {
				rank, at, recorded = r, s, row.Blocks[r][b]
				f.FirstIndex = &s.start
			}
		}
	}
	slices.Sort(f.Blocks)
	return rank, at, recorded
}

// blockSpan is the elements of a block, where they are all of one lane.
func blockSpan(call *api.Call, block int64) (span, bool) {
	if call.Lanes() > 1 {
		return span{}, false
	}
	size := int64(call.Lane(0).DType.Size())
	start := block * vectors.BlockBytes / size
	return span{start: start, end: min(call.DstElems(0), start+vectors.BlockBytes/size)}, true
}
