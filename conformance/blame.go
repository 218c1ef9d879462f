package conformance

import (
	"cmp"
	"slices"

	"example.com/tandem/api"
)

// finding is a cause with what is to be said about it. Findings of one class
// with the same words are one.
type finding struct {
	class api.Cause
	words string
}

// blamed is an element that breaks its contract, and why: an index into the
// findings of its lane.
type blamed struct {
	index int64
	why   int
}

// laneBlame is every element of one destination that breaks its contract.
type laneBlame struct {
	rank, lane int
	elements   []blamed // in order
	findings   []finding
}

// why is the index of a finding, which is added if it is new.
func (b *laneBlame) why(f finding) int {
	why := slices.Index(b.findings, f)
	if why < 0 {
		why = len(b.findings)
		b.findings = append(b.findings, f)
	}
	return why
}

// add blames elements on a finding.
func (b *laneBlame) add(f finding, elements ...int64) {
	why := b.why(f)
	for _, i := range elements {
		b.elements = append(b.elements, blamed{i, why})
	}
}

// counts are the elements blamed on each finding.
func (b *laneBlame) counts() []int64 {
	n := make([]int64, len(b.findings))
	for _, e := range b.elements {
		n[e.why]++
	}
	return n
}

// blame finds causes for everything in a lane's result.
func (c *comparison) blame(rank, lane int, res *laneResult) *laneBlame {
	b := &laneBlame{rank: rank, lane: lane}
	for side, missing := range res.missing {
		c.blameMissing(b, side, missing)
	}
	c.blameValues(b, res.values)
	slices.SortFunc(b.elements, func(x, y blamed) int { return cmp.Compare(x.index, y.index) })
	return b
}

// holes are the holes that a side's plan has in a destination.
func (c *comparison) holes(side, lane, rank int) []api.Hole {
	if p := c.obs[side].plan; p != nil {
		return p.Holes(lane, rank)
	}
	return nil
}

// holeAt is the hole that an element lies in; nil if there is none.
func holeAt(holes []api.Hole, i int64) *api.Hole {
	at, _ := slices.BinarySearchFunc(holes, i, func(h api.Hole, i int64) int {
		if h.Start+h.Count <= i {
			return -1
		}
		return 1
	})
	if at < len(holes) && holes[at].Start <= i {
		return &holes[at]
	}
	return nil
}

// sideName is how explanations name a side.
func sideName(side int) string { return [...]string{"left", "right"}[side] }
