package rlkernel

import (
	"fmt"
	"sort"

	"example.com/tandem/api"
)

// Step is a place where a longer message is expected to take less time than a
// shorter one: the switch between two paths lies too high. Counts are elements
// of a call, and multiples of 16 bytes.
type Step struct {
	// Count and Above are the greatest count on the slower path and the least
	// on the faster one.
	Count, Above int64
	// WorseFrom is the least count that takes longer than Above does.
	WorseFrom int64
	// CheaperTo is the greatest count that takes less time than Count.
	CheaperTo int64
	// Slow and Fast are the times at Count and Above.
	Slow, Fast Estimate
	// Trips are those of the one block at Count.
	Trips int64
	// Size is the width of an element in bytes.
	Size int64
}

// String is the note of a plan.
func (s Step) String() string {
	return fmt.Sprintf("inverted step: %d bytes a rank take about %.1f us (%d trips of one block), %d bytes %.1f us (%s); everything from %d bytes is on the wrong path, and up to %d bytes take less",
		s.Count*s.Size, s.Slow.Microseconds, s.Trips, s.Above*s.Size, s.Fast.Microseconds, s.Slow.Evidence, s.WorseFrom*s.Size, s.CheaperTo*s.Size)
}

// Steps lists the inverted steps of an implementation for the collective,
// type, ranks and offsets of a call, whatever its count.
func Steps(spec api.Spec, call api.Call) ([]Step, error) {
	s, err := newSchedule(spec, call)
	if err != nil {
		return nil, err
	}
	return steps(s.config, s.call), nil
}

// Thresholds lists the counts up to which a call of this collective, type and
// world stays on a path, for the sake of sweeps.
func (c *config) thresholds(call api.Call) []int64 {
	var out []int64
	size, ranks := int64(call.DType.Size()), int64(call.Ranks)
	add := func(bytes, blocks int64) {
		if n := bytes / blocks / size; n > 0 {
			out = append(out, n)
		}
	}
	switch call.Collective {
	case api.AllReduce:
		add(singleBlock, 1)
		if c.extension {
			add(ownerLimit, 1)
		}
		out = append(out, maxBlocks*threads)
	case api.ReduceScatter:
		add(singleBlock, ranks)
		out = append(out, maxBlocks*threads)
	case api.AllGather:
		add(c.gatherBlock, ranks)
		add(singleBlock, 1) // staged by one block, or by a copy
		add(maxBlocks*threads, ranks)
	}
	return out
}

// steps looks at the one switch between a path of one block and a grid.
func steps(c config, call api.Call) []Step {
	size, ranks := int64(call.DType.Size()), int64(call.Ranks)
	limit := map[api.Collective]int64{
		api.AllGather:     c.gatherBlock / ranks,
		api.AllReduce:     singleBlock,
		api.ReduceScatter: singleBlock / ranks,
	}[call.Collective]
	if limit == 0 {
		return nil
	}
	unit := vector / size
	st := Step{Count: limit / size, Size: size}
	st.Above = st.Count + unit
	where := standardPlaces(&call) // the count moves no gather's destination
	at := func(count int64) (Estimate, int64, bool) {
		call.Count = count
		if laneBytes(&call, 0) > c.capacity {
			return Estimate{}, 0, false
		}
		s := decide(c, call)
		e, ok := s.estimate(where)
		return e, s.unitCost(&s.units[0], where).Trips, ok
	}
	var known, above bool
	st.Slow, st.Trips, known = at(st.Count)
	st.Fast, _, above = at(st.Above)
	if !known || !above || st.Fast.Microseconds >= st.Slow.Microseconds {
		return nil
	}
	// Beyond the switch times grow with the count, and below it as well.
	cheap := func(n int64) bool {
		e, _, ok := at(n)
		return ok && e.Microseconds < st.Slow.Microseconds
	}
	end := st.Above
	for cheap(end) {
		end *= 2
	}
	st.CheaperTo = unit * int64(sort.Search(int(end/unit), func(i int) bool { return !cheap(unit * max(int64(i+1), st.Above/unit)) }))
	st.WorseFrom = unit * (1 + int64(sort.Search(int(st.Count/unit)-1, func(i int) bool {
		e, _, _ := at(unit * int64(i+1))
		return e.Microseconds > st.Fast.Microseconds
	})))
	return []Step{st}
}
