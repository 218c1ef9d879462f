package conformance

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
	"example.com/tandem/conformance/inputs"
	"example.com/tandem/conformance/vectors"
)

// build compares and makes the report.
func (c *comparison) build(input inputs.Input) *Report {
	rep := &Report{
		Schema: Schema, Call: CallReport{*c.call, input}, Environment: map[string]string{"go": runtime.Version(), "goarch": runtime.GOARCH},
		Ranges: []Range{}, Causes: []CauseReport{},
		Differing: Differing{PerRank: make([]int64, c.call.Ranks)},
	}
	for s, o := range c.obs {
		rep.plans[s] = o.plan
	}
	rep.Contract = c.contract()
	rep.Left, rep.Right = c.side(left), c.side(right)
	all := &tally{classes: map[api.Cause]map[string]int64{}}
	if c.obs[left].fault != nil || c.obs[right].fault != nil {
		c.buildFault(rep, all)
	} else {
		c.buildElements(rep, all)
	}
	c.tallyDamage(all)
	rep.Causes = all.causes()
	rep.nameCTAs()
	rep.RankAgreement = c.agreements()
	rep.values = c.values(input.Kind == inputs.Values)
	rep.Verdict = Agree
	if rep.Differing.Elements > 0 || len(rep.Causes) > 0 {
		rep.Verdict = Diverge
	}
	return rep
}

// nameCTAs adds to the explanations of unwritten elements the CTAs that lost
// them, where a plan knows.
func (r *Report) nameCTAs() {
	for i := range r.Causes {
		c := &r.Causes[i]
		for s, p := range r.plans {
			if p == nil || !c.Class.Unwritten() {
				continue
			}
			if text := lossyWords(p, c.Class); text != "" {
				c.parts = append(c.parts, "lost "+sideName(s)+" by "+text)
			}
		}
		c.Explanation = strings.Join(c.parts, "; ")
	}
}

func (c *comparison) contract() api.Contract {
	if c.orderFree {
		return api.OrderFree
	}
	for _, lanes := range c.faithful {
		for _, set := range lanes {
			if set.count() > 0 {
				return api.Faithful
			}
		}
	}
	return api.Exact
}

// buildFault reports a side that has no outputs: every element is broken.
func (c *comparison) buildFault(rep *Report, all *tally) {
	side := left
	if c.obs[left].fault == nil {
		side = right
	}
	f := finding{api.CauseFault, fmt.Sprintf("%s: %v; the outputs of all its ranks are unspecified", sideName(side), c.obs[side].fault)}
	all.add(f, 0) // also where a call has no elements
	for rank := range c.call.Ranks {
		for l := range c.call.Lanes() {
			n := c.call.DstElems(l)
			if n == 0 {
				continue
			}
			all.add(f, n)
			rep.Differing.Elements += n
			rep.Differing.PerRank[rank] += n
			rep.Ranges = append(rep.Ranges, Range{Rank: rank, Lane: l, Start: 0, Stride: 1, Count: n, Cause: api.CauseFault})
			if rep.First == nil {
				rep.First = c.first(rank, l, 0)
			}
		}
	}
}

// buildElements compares and blames every destination.
func (c *comparison) buildElements(rep *Report, all *tally) {
	lanes := c.call.Lanes()
	for s, o := range c.obs {
		c.agreeing[s] = agreement(c.call, o)
	}
	results := make([]*laneResult, c.call.Ranks*lanes)
	blames := make([]*laneBlame, len(results))
	_ = parallel(c.workers, len(results), func(i int) error {
		results[i] = c.compareLane(i/lanes, i%lanes)
		blames[i] = c.blame(i/lanes, i%lanes, results[i])
		return nil
	})
	var hist []int64
	limit := max(8, maxRanges/len(results))
	for i, res := range results {
		rank, lane := i/lanes, i%lanes
		if c.call.Lane(lane).DType.Float() {
			hist = addHistogram(hist, res.hist)
		}
		rep.Differing.Elements += res.differing()
		rep.Differing.PerRank[rank] += res.differing()
		rep.Differing.InSwitch += res.inSwitch
		rep.Differing.Unwritten += res.unwritten
		rep.Differing.Undecided += res.undecided
		ranges, left := blames[i].ranges(limit)
		rep.Ranges = append(rep.Ranges, ranges...)
		rep.RangesLeftOut += left
		for why, n := range blames[i].counts() {
			if n > 0 {
				all.add(blames[i].findings[why], n)
			}
		}
		if rep.First == nil && len(blames[i].elements) > 0 {
			rep.First = c.first(rank, lane, blames[i].elements[0].index)
		}
	}
	rep.ULPHistogram = hist
}

func addHistogram(sum []int64, h [buckets]int64) []int64 {
	if sum == nil {
		sum = make([]int64, buckets)
	}
	for i, n := range h {
		sum[i] += n
	}
	return sum
}

// tallyDamage adds what was altered outside the destinations.
func (c *comparison) tallyDamage(all *tally) {
	size := int64(c.call.Lane(0).DType.Size())
	for s, o := range c.obs {
		var guards, source int64
		for rank := range o.guardHits {
			guards += o.guardHits[rank]
			if c.call.InPlace == api.OutOfPlace {
				source += o.changed[rank]
			}
		}
		if guards > 0 {
			all.add(finding{api.CauseGuard, fmt.Sprintf("%s: bytes within %d of a buffer, outside it, were overwritten", sideName(s), Guard)}, (guards+size-1)/size)
		}
		if source > 0 {
			all.add(finding{api.CauseGuard, sideName(s) + ": the call altered its source, which must survive out of place"}, (source+size-1)/size)
		}
	}
}

// agreements says which sides' ranks agree.
func (c *comparison) agreements() *Agreement {
	if !c.call.Collective.Symmetric() {
		return nil
	}
	var both [2]*bool
	for s, o := range c.obs {
		if o.fault == nil {
			same := agreement(c.call, o)
			both[s] = &same
		}
	}
	return &Agreement{both[left], both[right]}
}

// first describes one element.
func (c *comparison) first(rank, lane int, i int64) *First {
	d := c.call.Lane(lane).DType
	f := &First{Rank: rank, Lane: lane, Index: i}
	var shown [2]*string
	var value [2]uint64
	for s, o := range c.obs {
		if o.fault != nil || o.unwritten != nil && o.unwritten[rank][lane].has(i) {
			continue
		}
		value[s] = num.Load(d, o.out[rank][lane][i*int64(d.Size()):])
		text := fmt.Sprintf("0x%0*x", d.Bits()/4, value[s])
		shown[s] = &text
	}
	f.Left, f.Right, f.left, f.right = shown[left], shown[right], value[left], value[right]
	if d.Float() && f.Left != nil && f.Right != nil {
		if n, class := num.Ulps(d, f.left, f.right); class == num.Finite {
			f.ULP = &n
		}
	}
	return f
}

// maxHex is how many elements out_hex shows.
const maxHex = 64

// side reports one side.
func (c *comparison) side(s int) SideReport {
	o := c.obs[s]
	rep := SideReport{Spec: o.side.String(), Evidence: o.evidence, Ranks: make([]RankReport, c.call.Ranks)}
	if rep.Evidence == nil {
		rep.Evidence = map[string]api.Evidence{}
	}
	for rank := range rep.Ranks {
		rep.Ranks[rank].Rank = rank
		if o.fault != nil && o.fault.Rank == rank {
			rep.Ranks[rank].Fault = o.fault
		}
	}
	if o.fault != nil {
		if o.fault.Rank < 0 || o.fault.Rank >= len(rep.Ranks) {
			rep.Ranks[0].Fault = o.fault
		}
		return rep
	}
	hashes := hashOutputs(o.out, c.workers)
	for rank := range rep.Ranks {
		r := &rep.Ranks[rank]
		r.GuardHits, r.SourceChanged = o.guardHits[rank], o.changed[rank]
		r.Unwritten = countAll(o.unwritten, rank)
		if o.unwritten == nil {
			r.Unreduced = countAll(o.unreduced, rank)
		}
		for l, set := range c.outside[s][rank] {
			r.NotFaithful += set.count()
			if set != nil && o.unwritten != nil {
				r.NotFaithful -= overlap(set, o.unwritten[rank][l])
			}
		}
		sum, head := fmt.Sprintf("%016x", hashes[rank]), hex.EncodeToString(c.head(o.out[rank]))
		r.FNV1a64, r.OutHex = &sum, &head
	}
	return rep
}

func countAll(sets [][]bitset, rank int) *int64 {
	if sets == nil {
		return nil
	}
	var n int64
	for _, set := range sets[rank] {
		n += set.count()
	}
	return &n
}

// overlap counts the elements of both sets.
func overlap(a, b bitset) int64 {
	both := make(bitset, len(a))
	for i := range a {
		both[i] = a[i] & b[i]
	}
	return both.count()
}

// head is the first elements of a rank's outputs, all lanes one after another.
func (c *comparison) head(lanes [][]byte) []byte {
	var out []byte
	room := maxHex
	for l, p := range lanes {
		size := c.call.Lane(l).DType.Size()
		n := min(room, len(p)/size)
		out = append(out, p[:n*size]...)
		room -= n
	}
	return out
}

// hashOutputs hashes every rank's outputs.
func hashOutputs(out [][][]byte, workers int) []uint64 {
	hashes := make([]uint64, len(out))
	groups := (len(out) + 3) / 4
	if workers > 1 && len(out) <= 4*workers {
		groups = min(workers, len(out)) // rather every core than four at a time
	}
	_ = parallel(workers, groups, func(i int) error {
		from, to := i*len(out)/groups, (i+1)*len(out)/groups
		bufs := make([][]byte, 0, to-from)
		for rank := from; rank < to; rank++ {
			if len(out[rank]) == 1 {
				bufs = append(bufs, out[rank][0])
			} else {
				bufs = append(bufs, slices.Concat(out[rank]...))
			}
		}
		copy(hashes[from:to], vectors.HashAll(bufs))
		return nil
	})
	return hashes
}

// tally counts elements by class and by words.
type tally struct {
	classes map[api.Cause]map[string]int64
}

func (t *tally) add(f finding, n int64) {
	if t.classes[f.class] == nil {
		t.classes[f.class] = map[string]int64{}
	}
	t.classes[f.class][f.words] += n
}

// maxWords bounds the findings that an explanation quotes.
const maxWords = 4

// causes lists the classes, the heaviest first.
func (t *tally) causes() []CauseReport {
	out := []CauseReport{}
	for class, words := range t.classes {
		rep := CauseReport{Class: class}
		type line struct {
			text string
			n    int64
		}
		var lines []line
		for text, n := range words {
			rep.Elements += n
			lines = append(lines, line{text, n})
		}
		slices.SortFunc(lines, func(a, b line) int { return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.text, b.text)) })
		for i, l := range lines {
			if i == maxWords {
				rep.parts = append(rep.parts, fmt.Sprintf("and %d more ways", len(lines)-i))
				break
			}
			rep.parts = append(rep.parts, l.text)
		}
		out = append(out, rep)
	}
	slices.SortFunc(out, func(a, b CauseReport) int {
		return cmp.Or(cmp.Compare(b.Elements, a.Elements), cmp.Compare(a.Class, b.Class))
	})
	return out
}
