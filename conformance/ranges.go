package conformance

import (
	"cmp"
	"slices"

	"example.com/tandem/api"
)

// maxRanges bounds the ranges of a report; each destination gets its share.
const maxRanges = 2048

// ranges compresses where the elements of a destination lie, one class at a
// time, at most limit of them; left is how many were left out.
func (b *laneBlame) ranges(limit int) (out []Range, left int64) {
	byClass := map[api.Cause][]int64{}
	for _, e := range b.elements {
		class := b.findings[e.why].class
		byClass[class] = append(byClass[class], e.index)
	}
	for class, list := range byClass {
		for _, r := range compress(list) {
			r.Rank, r.Lane, r.Cause = b.rank, b.lane, class
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(x, y Range) int {
		return cmp.Or(cmp.Compare(x.Start, y.Start), cmp.Compare(x.Cause, y.Cause))
	})
	if len(out) > limit {
		out, left = out[:limit], int64(len(out)-limit)
	}
	return out, left
}

// compress writes an ascending list as ranges of a constant stride. Two elements
// make no stride: they would swallow the start of the run behind them.
func compress(list []int64) []Range {
	var out []Range
	for at := 0; at < len(list); {
		n := 1
		stride := int64(1)
		if at+1 < len(list) {
			stride = list[at+1] - list[at]
			for at+n < len(list) && list[at+n]-list[at+n-1] == stride {
				n++
			}
			if n < 3 && stride != 1 {
				n, stride = 1, 1
			}
		}
		out = append(out, Range{Start: list[at], Stride: stride, Count: int64(n)})
		at += n
	}
	return out
}
