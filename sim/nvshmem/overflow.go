package nvshmem

import (
	"fmt"
	"slices"

	"example.com/tandem/api"
)

// Quantities that the library holds in 32 bits although counts are 64. Plans
// are computed in 64; what does not fit is a fault that names it.

const maxUint32 = 1<<32 - 1

// fault notes a fault, once per key; the first one noted is the plan's.
func (pl *planner) fault(kind api.FaultKind, key string, rank, cta int, detail string) {
	if slices.Contains(pl.faultKeys, key) {
		return
	}
	pl.faultKeys = append(pl.faultKeys, key)
	pl.faults = append(pl.faults, api.Fault{Kind: kind, Rank: rank, CTA: cta, Detail: detail})
}

// fitsInt faults where value does not fit a signed int.
func (pl *planner) fitsInt(rank, cta int, quantity string, value int64) {
	pl.fits(rank, cta, quantity, value, maxInt32, "an int")
}

func (pl *planner) fits(rank, cta int, quantity string, value, limit int64, holder string) {
	if value > limit {
		pl.fault(api.FaultOverflow, quantity, rank, cta, fmt.Sprintf("%s = %d does not fit %s", quantity, value, holder))
	}
}

// checkSplit looks at the arithmetic of the on-stream kernels.
func (pl *planner) checkSplit() {
	switch pl.call.Collective {
	case api.AllReduce, api.ReduceScatter, api.AllGather:
	default:
		return
	}
	if pl.call.Scope != api.OnStream {
		return
	}
	last := int(pl.split.blocks - 1)
	pl.fitsInt(0, 0, "elements per CTA", pl.split.per)
	pl.fits(0, last, "elements per CTA * CTA", pl.split.per*int64(last), maxUint32, "an unsigned int")
	pl.fitsInt(0, last, "elements of the last CTA", pl.split.spans[last].count)
}

// checkReduce looks at the arithmetic inside the all-reduce algorithms.
func (pl *planner) checkReduce(cta *api.CTA) {
	n := cta.Count
	switch cta.Algorithm {
	case algTwoShot:
		per := n / pl.ranks
		pl.fitsInt(0, cta.CTA, "elements per PE", per)
		for r := range pl.ranks {
			if per*r > maxInt32 {
				pl.fitsInt(int(r), cta.CTA, "elements per PE * PE", per*r)
				break
			}
		}
		pl.fitsInt(int(pl.ranks-1), cta.CTA, "elements of the last PE", slicesOf(n, pl.ranks, pl.ranks-1).count)
	case algOneShot:
		pl.fitsInt(0, cta.CTA, "elements of the helper", n)
	case algRecExch:
		pl.fitsInt(0, cta.CTA, "scratch offset", newExchange(pl.call.Ranks, pl.p).lastOffset(n))
		pl.fitsInt(0, cta.CTA, "elements of the reduction loop", n)
	case algSegment:
		pl.fitsInt(0, cta.CTA, "elements of the reduction loop", min(n, pl.p.SegmentBytes()/pl.size))
	case algLL:
		pl.fitsInt(0, cta.CTA, "elements of the reduction loop", n)
	}
}

func (pl *planner) checkScatterOffset(cta *api.CTA, rank int) {
	pl.fitsInt(rank, cta.CTA, "source_offset", cta.Start+int64(rank)*pl.count)
}

func (pl *planner) checkGatherOffset(cta *api.CTA, rank int) {
	pl.fitsInt(rank, cta.CTA, "dest_offset", cta.Start+int64(rank)*pl.count)
}

func (pl *planner) checkLinear(cta *api.CTA, rank int) {
	if need := cta.Count * pl.size * pl.ranks; need > pl.p.Half() {
		pl.fault(api.FaultAssert, "scratch", rank, cta.CTA, fmt.Sprintf("reduce-scatter needs %d bytes of scratch and has %d: increase reduce_scratch_size to %d or more", need, pl.p.Half(), roundUp(2*need, scratchUnit)))
		return
	}
	pl.fitsInt(rank, cta.CTA, "elements of the reduction loop", cta.Count)
}

func (pl *planner) checkAllToAll(cta *api.CTA) {
	for r := range pl.ranks {
		if pl.count*r > maxInt32 {
			pl.fitsInt(int(r), cta.CTA, "nelems * PE", pl.count*r)
			return
		}
	}
}

// checkLL8 faults where the 32-bit accesses of LL8 meet a buffer that is only
// 2-byte aligned. LL8 takes the call's destination, not the CTA's.
func (pl *planner) checkLL8(cta *api.CTA, rank int, src uint64) {
	for _, b := range []struct {
		name string
		addr uint64
	}{{"source", src}, {"destination", pl.dst[rank]}} {
		if b.addr%4 != 0 {
			pl.fault(api.FaultMisaligned, "ll8", rank, cta.CTA, fmt.Sprintf("fcollect LL8 accesses 32-bit words, and its %s lies %d bytes past a multiple of 4", b.name, b.addr%4))
		}
	}
}

func roundUp(n, unit int64) int64 { return (n + unit - 1) / unit * unit }

// checkParams looks at the parameters on which the library asserts.
func (pl *planner) checkParams() {
	if pl.p.RecExchRadix < 2 {
		pl.fault(api.FaultAssert, "kval", 0, 0, fmt.Sprintf("reduce_recexch_kval=%d: the library asserts that it is at least 2 when the team is created", pl.p.RecExchRadix))
	}
	// An empty on-stream call does not come as far as the selection.
	reached := pl.count > 0 || pl.call.Scope != api.OnStream
	if pl.call.Collective == api.ReduceScatter && reached && pl.scatterAlgoAsserts() {
		pl.fault(api.FaultAssert, "algo", 0, 0, fmt.Sprintf("reducescatter_algo=%d is not supported: 0 automatic, 2 P2P, 3 NVLS", pl.p.ReduceScatterAlgo))
	}
}
