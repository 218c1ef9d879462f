package conformance

import (
	"bytes"
	"fmt"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
	"example.com/tandem/conformance/vectors"
)

// search finds what gives a recorded hash of a range of elements, on the right
// side of a comparison whose left side is only that hash.
type search struct {
	*witness
	span     span
	recorded uint64
}

// maxSearched bounds the elements that are reduced in every way that is known.
const maxSearched = 1 << 15

// run names the cause of a failure.
func (s *search) run(f *ReplayFailure, row *vectors.Row) {
	o := s.obs[right]
	same := row.Unwritten != nil && row.Unwritten[s.rank] != nil && !coverageDiffers(row, o, s.rank)
	if o.unwritten != nil && !same {
		set := o.unwritten[s.rank][s.lane]
		for i := s.span.start; i < s.span.end; i++ {
			if set.has(i) {
				b := &laneBlame{rank: s.rank, lane: s.lane}
				s.blameMissing(b, right, []int64{i})
				f.FirstIndex, f.Cause, f.Why = &i, b.findings[0].class, b.findings[0].words
				return
			}
		}
	}
	if s.span.end-s.span.start > maxSearched || !s.call.Collective.Reduces() || !s.d.Float() {
		return
	}
	if s.arithmetic() {
		s.schemes(f)
	} else {
		s.minMax(f)
	}
}

// schemes looks for the recipe that gives the recorded hash, and the one that
// gives what the side did.
func (s *search) schemes(f *ReplayFailure) {
	ranks := len(s.inputs(s.span.start))
	if ranks < 2 {
		return
	}
	list := recipes(s.d, s.call.Op, ranks, s.rank)
	got := s.observed()
	var theirs, ours *recipe
	for k := range list {
		rec := &list[k]
		if rec.any || theirs != nil && ours != nil {
			continue
		}
		p := s.reduced(func(in []uint64) uint64 { return rec.evaluate(s.d, in, s.room(len(in))) })
		if theirs == nil && uint64(vectors.NewHash().Add(p)) == s.recorded {
			theirs = rec
		}
		if ours == nil && bytes.Equal(p, got) {
			ours = rec
		}
	}
	switch {
	case theirs == nil:
		f.Why = "no order, accumulator or rounding that is known gives the recorded block"
	case ours == nil:
		f.Why = fmt.Sprintf("the recording is that of a sum %s; the side's own is not known", theirs.words(s.d))
	default:
		p := s.pairFinding(theirs, ours)
		f.Cause, f.Why = p.class, p.words+" (left is the recording)"
	}
}

// minMax looks for the rule for NaN and zero that gives the recorded hash.
func (s *search) minMax(f *ReplayFailure) {
	nan := false
	for i := s.span.start; i < s.span.end; i++ {
		for _, b := range s.inputs(i) {
			nan = nan || num.IsNaN(s.d, b)
		}
	}
	names := [...]string{"a NaN is dropped and -0 is below +0", "a NaN is passed on and -0 is below +0", "the second operand is taken where the comparison is false"}
	for _, o := range orders(s.call.Ranks, s.rank) {
		for rule := num.DropNaN; rule <= num.Ternary; rule++ {
			rec := recipe{scheme: num.Scheme{Op: s.call.Op, Order: o.tree, MinMax: rule}, order: o}
			p := s.reduced(func(in []uint64) uint64 { return rec.evaluate(s.d, in, s.room(len(in))) })
			if uint64(vectors.NewHash().Add(p)) != s.recorded {
				continue
			}
			f.Cause = api.CauseZeroRule
			if nan {
				f.Cause = api.CauseNaNRule
			}
			f.Why = fmt.Sprintf("the recording is that of %s %s, where %s", s.call.Op, o.name, names[rule])
			return
		}
	}
}

// reduced is what a reduction makes of the range; what the side did not write
// stays what it is.
func (s *search) reduced(f func(in []uint64) uint64) []byte {
	size := int64(s.d.Size())
	p := bytes.Clone(s.observed())
	for i := s.span.start; i < s.span.end; i++ {
		if o := s.obs[right]; o.unwritten == nil || !o.unwritten[s.rank][s.lane].has(i) {
			num.Store(s.d, p[(i-s.span.start)*size:], f(s.inputs(i)))
		}
	}
	return p
}

// observed is what the side has in the range.
func (s *search) observed() []byte {
	size := int64(s.d.Size())
	return s.obs[right].out[s.rank][s.lane][s.span.start*size : s.span.end*size]
}
