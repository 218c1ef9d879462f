package conformance

import (
	"fmt"
	"slices"

	"example.com/tandem/api/num"
)

// maxShown is how many elements a rank may have whose values a report shows one
// by one. Of a call whose every input is named the first ones are shown, however
// many there are.
const maxShown = 8

// valueLine is a few elements with what both sides have in them, on the ranks on
// which they have the same.
type valueLine struct {
	lane        int
	index, last int64
	ranks       []int
	left, right string
}

// values shows what small calls ended with, by lane and element, ranks that hold
// the same in one line. named calls have one value a rank in all elements.
func (c *comparison) values(named bool) []valueLine {
	var total int64
	for l := range c.call.Lanes() {
		total += c.call.DstElems(l)
	}
	if total > maxShown && !named {
		return nil
	}
	var lines []valueLine
	room := int64(maxShown)
	for l := range c.call.Lanes() {
		n := min(room, c.call.DstElems(l))
		room -= n
		before := len(lines) // where the lines of the element before begin
		for i := range n {
			first := len(lines)
			for rank := range c.call.Ranks {
				lines = addValue(lines, first, valueLine{l, i, i, []int{rank}, c.shown(left, rank, l, i), c.shown(right, rank, l, i)})
			}
			if slices.EqualFunc(lines[before:first], lines[first:], valueLine.sameAs) {
				lines = lines[:first]
				for k := range lines[before:] {
					lines[before+k].last = i
				}
			} else {
				before = first
			}
		}
	}
	return lines
}

// addValue adds a rank to the line from first on that says the same, or a line.
func addValue(lines []valueLine, first int, v valueLine) []valueLine {
	k := slices.IndexFunc(lines[first:], func(o valueLine) bool { return o.left == v.left && o.right == v.right })
	if k < 0 {
		return append(lines, v)
	}
	same := &lines[first+k]
	same.ranks = append(same.ranks, v.ranks...)
	return lines
}

// shown is the bits of one element on a side, and their value.
func (c *comparison) shown(side, rank, lane int, i int64) string {
	o := c.obs[side]
	switch {
	case o.fault != nil:
		return "unspecified"
	case o.unwritten != nil && o.unwritten[rank][lane].has(i):
		return "nothing"
	}
	d := c.call.Lane(lane).DType
	v := num.Load(d, o.out[rank][lane][i*int64(d.Size()):])
	return fmt.Sprintf("0x%0*x (%s)", d.Bits()/4, v, num.Text(d, v))
}

// maxValueLines bounds the section.
const maxValueLines = 64

// writeValues shows the values of small calls.
func (r *Report) writeValues(t *textWriter) {
	if len(r.values) == 0 {
		return
	}
	t.line("")
	t.line("values")
	for k, v := range r.values {
		if k == maxValueLines {
			t.line("  and so on: the JSON form has every rank's")
			return
		}
		where := listWords("rank", v.ranks)
		switch {
		case v.last > v.index:
			where += fmt.Sprintf(", elements %d to %d", v.index, v.last)
		case r.Call.DstElems(v.lane) > 1:
			where += fmt.Sprintf(", element %d", v.index)
		}
		if r.Call.Lanes() > 1 {
			where += fmt.Sprintf(" of lane %d", v.lane)
		}
		t.line("  %s: left %s, right %s", where, v.left, v.right)
	}
	if n := r.outputs() / int64(r.Call.Ranks); n > maxShown {
		t.line("  the first %d elements of %d", maxShown, n)
	}
}

// sameAs reports whether a line says of another element what this one says.
func (v valueLine) sameAs(o valueLine) bool {
	return v.left == o.left && v.right == o.right && slices.Equal(v.ranks, o.ranks)
}
