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
	CTAs []api.CTA // at least one
}

// Groups gathers the CTAs of a kernel: neighbours are alike if they differ
// only in where they start and in the words this makes them use.
func Groups(k *api.Kernel) []Group {
	var out []Group
	begin := 0
	for i := range k.CTAs {
		next := i + 1
		if next < len(k.CTAs) && k.CTAs[next].CTA == k.CTAs[i].CTA+1 && alikeCTAs(&k.CTAs[begin], &k.CTAs[next]) {
			continue
		}
		out = append(out, Group{k.CTAs[begin:next]})
		begin = next
	}
	return out
}

// Label names the CTAs: "15" or "0-14".
func (g Group) Label() string { return span(g.CTAs[0].CTA, g.CTAs[len(g.CTAs)-1].CTA) }

func alikeCTAs(a, b *api.CTA) bool {
	if a.Algorithm != b.Algorithm || a.Why != b.Why || a.Count != b.Count ||
		a.Rounds != b.Rounds || len(a.Slices) != len(b.Slices) {
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

// alikeSlices reports whether two slices differ at most in rank, start and
// words.
func alikeSlices(a, b *api.Slice) bool {
	return a.Count == b.Count && a.Local == b.Local && a.Unwritten == b.Unwritten &&
		a.Algorithm == b.Algorithm && a.Why == b.Why &&
		slices.EqualFunc(a.Holes, b.Holes, func(x, y api.Hole) bool {
			return x.Count == y.Count && x.Cause == y.Cause && x.Start-a.Start == y.Start-b.Start
		})
}

// sliceSet is the slices that are alike, in all CTAs of a group.
type sliceSet struct {
	ranks []int
	first *api.Slice
	words []api.WordCount // by CTA of the group, the same for all ranks
}

func (g Group) sliceSets() []sliceSet {
	var out []sliceSet
	for i := range g.CTAs[0].Slices {
		s := &g.CTAs[0].Slices[i]
		words := make([]api.WordCount, len(g.CTAs))
		for j := range g.CTAs {
			words[j] = g.CTAs[j].Slices[i].Words
		}
		at := slices.IndexFunc(out, func(set sliceSet) bool { return alikeSlices(set.first, s) && slices.Equal(set.words, words) })
		if at < 0 {
			at, out = len(out), append(out, sliceSet{first: s, words: words})
		}
		out[at].ranks = append(out[at].ranks, s.Rank)
	}
	return out
}

// wordRange is the fewest and the most words of the CTAs.
func (g Group) wordRange() (fewest, most int64) {
	fewest, most = g.CTAs[0].Words, g.CTAs[0].Words
	for _, c := range g.CTAs {
		fewest, most = min(fewest, c.Words), max(most, c.Words)
	}
	return fewest, most
}

// wordsText tells of the words of slices: exactly where all use the same.
func wordsText(words []api.WordCount) string {
	var total [3]int64 // of 16, 8 and 4 bytes
	fewest, most := words[0].Total(), words[0].Total()
	same := true
	for _, w := range words {
		total[0] += w.W16
		total[1] += w.W8
		total[2] += w.W4
		fewest, most = min(fewest, w.Total()), max(most, w.Total())
		same = same && w == words[0]
	}
	var widths []string
	for i, n := range total {
		width := 16 >> i
		switch {
		case n > 0 && same:
			widths = append(widths, fmt.Sprintf("%d of %d B", n/int64(len(words)), width))
		case n > 0:
			widths = append(widths, strconv.Itoa(width))
		}
	}
	switch {
	case len(widths) == 0:
		return ""
	case same:
		return "words " + strings.Join(widths, " + ")
	}
	return fmt.Sprintf("%s words of %s B", between(fewest, most), strings.Join(widths, " or "))
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

func between(lo, hi int64) string {
	if lo == hi {
		return strconv.FormatInt(lo, 10)
	}
	return fmt.Sprintf("%d to %d", lo, hi)
}
