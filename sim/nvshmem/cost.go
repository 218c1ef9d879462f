package nvshmem

import "example.com/tandem/api"

// Costs are exact counts for the slowest rank. Words and bytes are summed over
// the CTAs of a rank. Rounds are those of the slowest CTA, since CTAs run side
// by side and a round is latency. Bytes are what a rank sends: payload, doubled
// where each 4-byte word carries a flag; a multicast store counts once.

// costReduce prices the P2P algorithms of all-reduce.
func (pl *planner) costReduce(cta *api.CTA) {
	payload := cta.Count * pl.size
	ex := newExchange(pl.call.Ranks, pl.p)
	if cta.Algorithm == algSegment {
		cta.Rounds = segmentRounds(payload, pl.ranks, pl.p.SegmentBytes())
	}
	for r := range pl.bytes {
		switch cta.Algorithm {
		case algSegment:
			pl.bytes[r] += payload * (pl.ranks - 1)
		case algLL:
			pl.bytes[r] += 2 * payload * (pl.ranks - 1)
		case algRecExch:
			pl.bytes[r] += payload * ex.sends(r)
		}
	}
}

// segmentRounds is the number of puts of at most seg bytes, each with its
// barrier, that every rank makes: for a full segment one a peer, for the tail as
// many peers at once as fit.
func segmentRounds(bytes, ranks, seg int64) int64 {
	full, tail := bytes/seg, bytes%seg
	rounds := full * (ranks - 1)
	if tail > 0 {
		slots := seg / tail
		rounds += (ranks - 1 + slots - 1) / slots
	}
	return rounds
}

// sends is how many times rank sends its whole range in a recursive exchange.
func (e exchange) sends(rank int) int64 {
	if e.sendsTo(rank) >= 0 {
		return 1
	}
	return int64(e.phases*(e.radix-1) + e.received(rank))
}
