package rlkernel

import (
	"slices"

	"example.com/tandem/api"
)

// Estimate is a time by the published measurements.
type Estimate struct {
	Microseconds float64
	// Evidence is reported where the figures were measured for this
	// collective, world and type, assumed where they are carried over.
	Evidence api.Evidence
}

// figure is a fit of the published times of one path: on B200, bf16, eager,
// slowest rank, median of 100 calls. A call takes fixed + trip * trips + mib *
// MiB microseconds, where MiB is the size of a rank's shard for all_gather, of
// its output otherwise. What staging costs is in fixed.
type figure struct {
	collective api.Collective
	path       string
	version    string // "" for both
	ranks      int
	fixed      float64
	trip       float64
	mib        float64
}

// measured is the greatest size, in bytes of a shard or of an output, that was
// published.
const measured = 4 << 20

// figures are fitted to the all-gather pull request's table and, for the
// reductions, to the results file beside it. One block pays for one exposed
// remote round trip a trip, whatever it does in it; fixed is the same for the
// one-block all_gather and all_reduce. A grid's bandwidth term for
// reduce_scatter is all_reduce's: only one size was measured.
var figures = []figure{
	{api.AllGather, algSingle, "", 2, 20.4, 1.034, 0},
	{api.AllGather, algSingle, "", 8, 42.0, 1.607, 0},
	{api.AllGather, algMulti, Before, 2, 41.8, 1.034, 9.0},
	{api.AllGather, algMulti, Before, 8, 62.9, 1.607, 57.8},
	{api.AllGather, algMulti, After, 2, 35.3, 1.034, 3.4},
	{api.AllGather, algMulti, After, 8, 55.7, 1.607, 21.0},
	{api.AllReduce, algSingle, "", 2, 20.4, 1.80, 0},
	{api.AllReduce, algSingle, "", 8, 42.0, 1.88, 0},
	{api.AllReduce, algMulti, "", 2, 36.2, 1.80, 4.06},
	{api.AllReduce, algMulti, "", 8, 59.1, 1.88, 20.0},
	{api.ReduceScatter, algSplit, "", 2, 110, 1.77, 0},
	{api.ReduceScatter, algSplit, "", 8, 160.6, 3.3, 0},
	{api.ReduceScatter, algMulti, "", 2, 120.5, 1.77, 4.06},
	{api.ReduceScatter, algMulti, "", 8, 171.4, 3.3, 20.0},
}

// figureFor finds the fit of a unit. For 4 ranks, which nobody published, it
// is half way between 2 and 8; other paths and worlds have none.
func (s *schedule) figureFor(u *unit) (figure, bool) {
	if s.extension {
		return figure{}, false
	}
	find := func(ranks int) (figure, bool) {
		i := slices.IndexFunc(figures, func(f figure) bool {
			return f.collective == u.base && f.path == u.path && f.ranks == ranks && (f.version == "" || f.version == s.name)
		})
		if i < 0 {
			return figure{}, false
		}
		return figures[i], true
	}
	if s.call.Ranks != 4 {
		return find(s.call.Ranks)
	}
	f, ok := find(2)
	g, _ := find(8)
	f.ranks, f.fixed, f.trip, f.mib = 4, (f.fixed+g.fixed)/2, (f.trip+g.trip)/2, (f.mib+g.mib)/2
	return f, ok
}

// estimate is the time of the call; false where no figures reach.
func (s *schedule) estimate(where places) (Estimate, bool) {
	e := Estimate{Evidence: api.Reported}
	if s.call.Ranks == 4 || s.call.Collective.Reduces() && s.call.DType != api.BF16 {
		e.Evidence = api.Assumed
	}
	for i := range s.units {
		u := &s.units[i]
		f, ok := s.figureFor(u)
		if !ok {
			return Estimate{}, false
		}
		shape := s.call.Lane(u.lanes[0])
		if shape.Count*int64(shape.DType.Size()) > measured {
			e.Evidence = api.Assumed
		}
		mib := float64(shape.Count*int64(shape.DType.Size())) / (1 << 20)
		e.Microseconds += f.fixed + f.trip*float64(s.unitCost(u, where).Trips) + f.mib*mib
	}
	return e, true
}
