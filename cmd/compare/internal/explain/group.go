package explain

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"example.com/tandem/api"
)

// Group is a run of neighbouring CTAs of one kernel that do alike.
type Group struct {
	First, Last int      // CTA numbers
	CTA         *api.CTA // the first of them
}

// Groups gathers the CTAs of a kernel: neighbours are alike if they differ
// only in where they start.
func Groups(k *api.Kernel) []Group {
	var out []Group
	for i := range k.CTAs {
		c := &k.CTAs[i]
		if n := len(out); n > 0 && out[n-1].Last+1 == c.CTA && alikeCTAs(out[n-1].CTA, c) {
			out[n-1].Last = c.CTA
			continue
		}
		out = append(out, Group{c.CTA, c.CTA, c})
	}
	return out
}

// Label names the CTAs: "15" or "0-14".
func (g Group) Label() string { return span(g.First, g.Last) }

// Len is the number of CTAs.
func (g Group) Len() int { return g.Last - g.First + 1 }

func alikeCTAs(a, b *api.CTA) bool {
	if a.Algorithm != b.Algorithm || a.Why != b.Why || a.Count != b.Count ||
		a.Rounds != b.Rounds || a.Words != b.Words || len(a.Slices) != len(b.Slices) {
		return false
	}
	for i := range a.Slices {
		x, y := &a.Slices[i], &b.Slices[i]
		if x.Rank != y.Rank || x.Start-a.Start != y.Start-b.Start || !alikeSlices(x, y) {
			return false
		}
	}
	return true
}

// alikeSlices reports whether two slices differ at most in rank and start.
func alikeSlices(a, b *api.Slice) bool {
	return a.Count == b.Count && a.Local == b.Local && a.Words == b.Words && a.Unwritten == b.Unwritten &&
		a.Algorithm == b.Algorithm && a.Why == b.Why &&
		slices.EqualFunc(a.Holes, b.Holes, func(x, y api.Hole) bool {
			return x.Count == y.Count && x.Cause == y.Cause && x.Start-a.Start == y.Start-b.Start
		})
}

// sliceSet is the slices of one CTA that are alike.
type sliceSet struct {
	ranks []int
	first *api.Slice
}

func sliceSets(c *api.CTA) []sliceSet {
	var out []sliceSet
next:
	for i := range c.Slices {
		s := &c.Slices[i]
		for j := range out {
			if alikeSlices(out[j].first, s) {
				out[j].ranks = append(out[j].ranks, s.Rank)
				continue next
			}
		}
		out = append(out, sliceSet{[]int{s.Rank}, s})
	}
	return out
}

// rankList names ranks: "rank 3", "ranks 0-3", "ranks 1,3,5,7",
// "ranks 1,3,5..63".
func rankList(ranks []int) string {
	if len(ranks) == 1 {
		return fmt.Sprintf("rank %d", ranks[0])
	}
	step := ranks[1] - ranks[0]
	for i := range ranks[1:] {
		if ranks[i+1]-ranks[i] != step {
			step = 0
		}
	}
	last := ranks[len(ranks)-1]
	switch {
	case step == 1:
		return "ranks " + span(ranks[0], last)
	case step > 1 && len(ranks) > 4:
		return fmt.Sprintf("ranks %d,%d,%d..%d", ranks[0], ranks[1], ranks[2], last)
	}
	parts := make([]string, len(ranks))
	for i, r := range ranks {
		parts[i] = strconv.Itoa(r)
	}
	return "ranks " + strings.Join(parts, ",")
}

func span(first, last int) string {
	if first == last {
		return strconv.Itoa(first)
	}
	return fmt.Sprintf("%d-%d", first, last)
}
