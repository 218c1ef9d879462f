package machine

import (
	"slices"

	"example.com/tandem/api"
)

// written lists the destination bytes that stores reached, merged.
func (m *Machine) written(rank int) []api.Interval {
	out := []api.Interval{}
	mem := &m.mem[rank]
	for lane := range mem.user {
		lo := int64(mem.user[lane].Dst.Addr)
		hi := lo + mem.user[lane].Dst.Len()
		from := len(out)
		for _, sh := range []*shadow{&m.all, &mem.userShadow} {
			for i := sh.find(lo); i < sh.len() && sh.at(i).lo < hi; i++ {
				if c := sh.at(i); c.store.agent != nobody {
					out = extend(out, from, api.Interval{Lane: lane, Start: max(lo, c.lo) - lo, End: min(hi, c.hi) - lo})
				}
			}
		}
		out = merged(out, from)
	}
	return out
}

// extend appends an interval, to the last one where they meet.
func extend(out []api.Interval, from int, v api.Interval) []api.Interval {
	if n := len(out); n > from && out[n-1].End == v.Start {
		out[n-1].End = v.End
		return out
	}
	return append(out, v)
}

// merged sorts and joins the intervals of one lane.
func merged(out []api.Interval, from int) []api.Interval {
	part := out[from:]
	slices.SortFunc(part, func(a, b api.Interval) int {
		if a.Start < b.Start {
			return -1
		}
		return 1
	})
	n := 0
	for _, v := range part {
		if n > 0 && v.Start <= part[n-1].End {
			part[n-1].End = max(part[n-1].End, v.End)
			continue
		}
		part[n] = v
		n++
	}
	return out[:from+n]
}
