package rlkernel

import (
	"fmt"

	"example.com/tandem/api"
)

// place is where one rank has its buffers of one lane: device addresses.
type place struct{ src, dst uint64 }

// places are the buffers of every rank, by rank and lane.
type places [][]place

// standardPlaces are those of a call that brings no memory of its own.
func standardPlaces(call *api.Call) places {
	out := make(places, call.Ranks)
	for r := range out {
		out[r] = make([]place, call.Lanes())
		for lane := range out[r] {
			out[r][lane].src, out[r][lane].dst = call.Addrs(lane, r)
		}
	}
	return out
}

// wideStage reports whether one block stages in vectors: source, payload and
// size must all be multiples of 16, else the whole message goes byte by byte.
// The payload always is one.
func wideStage(p place, bytes int64) bool { return (p.src|uint64(bytes))%vector == 0 }

// stageTrips are the iterations of the staging loop of one block.
func stageTrips(p place, bytes int64) int64 {
	if wideStage(p, bytes) {
		return ceil(bytes/vector, threads)
	}
	return ceil(bytes, threads)
}

// Loops of the gather, as a rank's addresses and the size choose them.
const (
	loopBytes       = "flat_bytes"   // a byte a thread and trip, over all ranks' bytes
	loopVectors     = "flat_vectors" // 16 bytes a thread and trip, over all ranks' vectors
	loopPeerVectors = "peer_vectors" // one rank after another: vectors, then the tail by bytes
	loopPeerBytes   = "peer_bytes"   // one rank's bytes
)

// copying is how one rank gathers: a loop for all ranks, or one for each.
type copying struct {
	ranks, rank int
	bytes       int64  // of a shard
	dst         uint64 // address of the output
	all         string // the loop for all ranks; "" if each has its own
}

// gather chooses the loops of one rank: the address of its output, the size of
// a shard and the payloads, which are multiples of 16, decide.
func (c *config) gather(ranks, rank int, p place, bytes int64) copying {
	g := copying{ranks: ranks, rank: rank, bytes: bytes, dst: p.dst}
	switch {
	case !c.vectors:
		g.all = loopBytes
	case (p.dst|uint64(bytes))%vector == 0 && !c.peerwise:
		g.all = loopVectors
	}
	return g
}

// loop is the one that copies the shard of peer.
func (g *copying) loop(peer int) string {
	switch {
	case g.all != "":
		return g.all
	case (g.dst+uint64(peer)*uint64(g.bytes))%vector == 0:
		return loopPeerVectors
	}
	return loopPeerBytes
}

// flat reports whether one loop serves all ranks.
func (g *copying) flat() bool { return g.all != "" }

// unit is the width in bytes of an access of a flat loop.
func (g *copying) unit() int64 {
	if g.all == loopVectors {
		return vector
	}
	return 1
}

// trips are the loop iterations of the busiest of a number of threads. remote
// is how many of them have some thread read another rank's memory.
func (g *copying) trips(width int64) (all, remote int64) {
	if g.flat() {
		shard := g.bytes / g.unit()
		total := shard * int64(g.ranks)
		all = ceil(total, width)
		return all, all - inside(shard*int64(g.rank), shard*int64(g.rank+1), total, width)
	}
	for peer := range g.ranks {
		n := ceil(g.bytes, width)
		if g.loop(peer) == loopPeerVectors {
			n = ceil(g.bytes/vector, width) + ceil(g.bytes%vector, width)
		}
		all += n
		if peer != g.rank {
			remote += n
		}
	}
	return all, remote
}

// inside counts the trips of a flat loop that lie wholly in [from, to).
func inside(from, to, total, width int64) int64 {
	last := to / width
	if to == total {
		last = ceil(to, width)
	}
	return max(0, last-ceil(from, width))
}

// divisions are the 64-bit divisions of all threads: one for every access of a
// flat loop, to find the peer.
func (g *copying) divisions() int64 {
	if !g.flat() {
		return 0
	}
	return g.bytes / g.unit() * int64(g.ranks)
}

// why says what chose the loop for a peer's shard.
func (g *copying) why(peer int) string {
	switch g.loop(peer) {
	case loopBytes:
		return "this version copies bytes, whatever the alignment"
	case loopVectors:
		return "output and size are multiples of 16"
	case loopPeerVectors:
		return fmt.Sprintf("output + %d x %d bytes is a multiple of 16: vectors, then %d bytes", peer, g.bytes, g.bytes%vector)
	}
	return fmt.Sprintf("output + %d x %d bytes is no multiple of 16: bytes", peer, g.bytes)
}
