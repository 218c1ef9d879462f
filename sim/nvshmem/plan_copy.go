package nvshmem

import (
	"fmt"

	"example.com/tandem/api"
)

func (pl *planner) planAllGather(cta *api.CTA) {
	c := pl.allGather(cta.Count)
	cta.Algorithm, cta.Why = c.alg, c.why
	cta.Slices = make([]api.Slice, pl.ranks)
	payload := cta.Count * pl.size
	for r := range cta.Slices {
		s := &cta.Slices[r]
		*s = api.Slice{Rank: r, Start: int64(r)*pl.count + cta.Start, Count: cta.Count}
		at := pl.starts(cta, pl.dst[r]+pl.bytesAt(s.Start), pl.src[r]+pl.bytesAt(cta.Start))
		switch c.alg {
		case algNVLS:
			pl.checkGatherOffset(cta, r)
			pl.bytes[r] += pl.walk(cta, s, at, widthsAll)
		case algLL8:
			pl.checkLL8(cta, r, at.src)
			pl.bytes[r] += 2 * (pl.ranks - 1) * payload
		default:
			pl.checkGatherOffset(cta, r)
			pl.bytes[r] += (pl.ranks - 1) * payload
		}
	}
}

// strayLL8 reports whether cta is on LL8 in a call of several CTAs. LL8 ignores
// the CTA's offset: it gathers into the first ranks*m elements.
func (pl *planner) strayLL8(cta *api.CTA) bool {
	return cta.Algorithm == algLL8 && cta.Count < pl.count
}

// coverLL8 replaces the coverage of an all-gather in which CTAs are on LL8
// although there are several: their ranges are reached only as far as the
// elements that LL8 writes instead, and so are the holes of other CTAs.
func (pl *planner) coverLL8() {
	ctas := pl.plan.Kernels[0].CTAs
	var covered int64
	for i := range ctas {
		if pl.strayLL8(&ctas[i]) {
			covered = max(covered, pl.ranks*ctas[i].Count)
		}
	}
	if covered == 0 {
		return
	}
	for i := range ctas {
		stray := pl.strayLL8(&ctas[i])
		for j := range ctas[i].Slices {
			s := &ctas[i].Slices[j]
			if stray {
				pl.lose(s, s.Start, s.Count, api.CauseOffset)
				s.Why = fmt.Sprintf("LL8 ignores the CTA's offset and writes this block from element %d on", int64(s.Rank)*ctas[i].Count)
			}
			cutPrefix(s, covered)
		}
	}
}

// cutPrefix takes the elements below end out of the holes of s.
func cutPrefix(s *api.Slice, end int64) {
	holes := s.Holes[:0]
	s.Unwritten = 0
	for _, h := range s.Holes {
		if cut := min(max(end-h.Start, 0), h.Count); cut < h.Count {
			h.Start, h.Count = h.Start+cut, h.Count-cut
			s.Unwritten += h.Count
			holes = append(holes, h)
		}
	}
	s.Holes = holes
}

func (pl *planner) planBroadcast(cta *api.CTA) {
	c := pl.broadcast()
	cta.Algorithm, cta.Why = c.alg, c.why
	cta.Slices = []api.Slice{{Rank: pl.call.Root, Start: 0, Count: cta.Count}}
	payload := cta.Count * pl.size
	for r := range pl.bytes {
		if c.alg == algTree {
			pl.bytes[r] += 2 * payload * pl.children(r)
		} else if r == pl.call.Root {
			pl.bytes[r] += payload * (pl.ranks - 1)
		}
	}
}

// children is the number of ranks that rank hands a broadcast on to in the LL
// tree, whose radix is the library's default 2.
func (pl *planner) children(rank int) int64 {
	place := (int64(rank) - int64(pl.call.Root) + pl.ranks) % pl.ranks
	return min(max(pl.ranks-1-2*place, 0), 2)
}

func (pl *planner) planAllToAll(cta *api.CTA) {
	cta.Algorithm, cta.Why = algCopy, "all-to-all has one algorithm"
	cta.Slices = make([]api.Slice, pl.ranks)
	for r := range cta.Slices {
		cta.Slices[r] = api.Slice{Rank: r, Start: int64(r) * pl.count, Count: pl.count}
		pl.bytes[r] += (pl.ranks - 1) * pl.count * pl.size
	}
	pl.checkAllToAll(cta)
}
