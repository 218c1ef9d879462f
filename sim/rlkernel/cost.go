package rlkernel

import "example.com/tandem/api"

// cost of the call on its slowest rank. Launches are stream operations, copies
// included. Trips are those of the loop that reads the peers' payloads, staging
// left out. RoundTrip counts the remote round trips that follow one another
// when nobody is late: one for each peer polled, one for each trip of that loop
// that leaves the rank. Bytes are what the peers read of a rank's payload, or
// what a rank copies into theirs.
func (s *schedule) cost(where places) api.Cost {
	var total api.Cost
	for i := range s.units {
		u := &s.units[i]
		c := s.unitCost(u, where)
		total.Launches += launches(u.ops, 0) // rank 0 has the most
		total.Trips += c.Trips
		total.Divisions += c.Divisions
		total.RoundTrip += c.RoundTrip
		total.Bytes += c.Bytes
	}
	return total
}

// unitCost leaves Launches out.
func (s *schedule) unitCost(u *unit, where places) api.Cost {
	peers := int64(s.call.Ranks - 1)
	c := api.Cost{RoundTrip: 2 * peers} // reserve and wait
	for _, lane := range u.lanes {
		c.Bytes += peers * s.call.Lane(lane).Count * int64(s.call.Lane(lane).DType.Size())
	}
	switch {
	case u.path == algCopies:
		c.RoundTrip += peers * int64(len(u.lanes))
	case u.base == api.AllGather:
		s.gatherCost(&c, u, where)
	default:
		c.Trips = s.reduceTrips(u)
		if peers > 0 {
			c.RoundTrip += c.Trips
		}
		if u.path == algOwner {
			c.RoundTrip += peers + min(1, peers) // the pushes; then the others' wait for rank 0
		}
	}
	return c
}

func (s *schedule) gatherCost(c *api.Cost, u *unit, where places) {
	remote := int64(0)
	for rank := range s.call.Ranks {
		g := s.gather(s.call.Ranks, rank, where[rank][0], laneBytes(&s.call, 0))
		trips, far := g.trips(u.width())
		c.Trips, remote, c.Divisions = max(c.Trips, trips), max(remote, far), max(c.Divisions, g.divisions())
	}
	c.RoundTrip += remote
}

// reduceTrips are the iterations of the reduction loop of the busiest thread.
func (s *schedule) reduceTrips(u *unit) int64 {
	shape := s.call.Lane(u.lanes[0])
	if pairs(&s.call, u.path) {
		return ceil(shape.Count/2, u.width()) + shape.Count%2
	}
	return ceil(shape.Count, u.width())
}

// pairBytes is the width of two bf16.
const pairBytes = 4

// pairs reports whether a reduction takes two elements at once: the one-block
// all-reduce of bf16 does, every other loop takes single elements.
func pairs(call *api.Call, path string) bool {
	return call.Collective == api.AllReduce && call.DType == api.BF16 && path == algSingle
}

// width is the number of threads of the kernel that computes.
func (u *unit) width() int64 {
	blocks := int64(1)
	for _, o := range u.ops {
		if o.kind == opCompute || o.kind == opTree {
			blocks = o.blocks
		}
	}
	return blocks * threads
}
