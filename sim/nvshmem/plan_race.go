package nvshmem

import (
	"cmp"
	"fmt"
	"slices"

	"example.com/tandem/api"
)

// race names the race in the call, whose outcome no model can give; "" if there
// is none.
func (pl *planner) race() string {
	ctas := pl.plan.Kernels[0].CTAs
	switch pl.call.Collective {
	case api.AllReduce:
		if n := countCTAs(ctas, algLL); n > 1 {
			return fmt.Sprintf("race: %d CTAs are on the LL algorithm at once, and all use the one workspace of TEAM_NODE", n)
		}
	case api.AllGather:
		return pl.gatherRace(ctas)
	case api.ReduceScatter:
		if pl.inPlace {
			return pl.scatterRace(ctas)
		}
	}
	return ""
}

func (pl *planner) gatherRace(ctas []api.CTA) string {
	stray, covered := 0, int64(0)
	for i := range ctas {
		if pl.strayLL8(&ctas[i]) {
			stray++
			covered = max(covered, pl.ranks*ctas[i].Count)
		}
	}
	if stray == 0 {
		return ""
	}
	return fmt.Sprintf("race: LL8 ignores the offset of its CTA, so the first %d of %d elements are raced by %d CTAs", covered, pl.ranks*pl.count, stray)
}

// scatterRace looks at in-place reduce-scatter, where a rank stores into the
// buffer that others still read.
func (pl *planner) scatterRace(ctas []api.CTA) string {
	if pl.call.InPlace == api.InPlaceStart && slices.ContainsFunc(ctas, racesAtStart) {
		return "race: in place at the start, every rank stores into its block 0 while rank 0 reduces block 0 of all ranks through multicast, with nothing between the two"
	}
	busy := len(ctas) - countCTAs(ctas, algNone)
	if n := countCTAs(ctas, algLinear); busy > 1 && n > 0 {
		return fmt.Sprintf("race: %d of %d CTAs send blocks of the source from its start on, into which the other CTAs store in place", n, busy)
	}
	return ""
}

// racesAtStart reports whether rank 0 load-reduces words of the CTA into which
// another rank stores before it comes to the barrier. A slice too misaligned for
// any word stores nothing, and one on linear stores behind the barrier.
func racesAtStart(c api.CTA) bool {
	stores := func(s api.Slice) bool {
		return cmp.Or(s.Algorithm, c.Algorithm) == algNVLS && s.Words.Total() > 0
	}
	return len(c.Slices) > 0 && stores(c.Slices[0]) && slices.ContainsFunc(c.Slices[1:], stores)
}

// countCTAs counts the CTAs of which some rank is on alg.
func countCTAs(ctas []api.CTA, alg string) int {
	n := 0
	for i := range ctas {
		on := ctas[i].Algorithm == alg
		for j := 0; !on && j < len(ctas[i].Slices); j++ {
			on = ctas[i].Slices[j].Algorithm == alg
		}
		if on {
			n++
		}
	}
	return n
}
