package tandem

import (
	"hash/fnv"

	"example.com/tandem/api"
	"example.com/tandem/sim/machine"
)

// launch is one call on one rank, as its host launches it.
type launch struct {
	*decision
	known      *known
	rank       int
	hash       uint64 // of what the ranks must agree on
	generation uint64 // of the team when it was launched
	ticket     uint64 // of this launch, never 0
	laneBase   int32  // first lane of the call in the memory of the run
	temps      int64  // first temp of the launch
	inPlace    api.InPlace

	// What the caller does before the call and when it has returned; nil is
	// nothing.
	before, after func(*launch) []machine.Step
}

// signature is the hash that travels in the header line: of everything the ranks
// must agree on, and of nothing that may differ between them.
func (c *config) signature(call *api.Call) uint64 {
	agreed := *call
	agreed.SrcOffset, agreed.DstOffset, agreed.InPlace, agreed.Team = nil, nil, api.OutOfPlace, api.World
	agreed.Mode = ""
	if call.Collective.Reduces() {
		agreed.Mode = c.modeOf(call)
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(agreed.String() + " " + c.spec.String()))
	return h.Sum64()
}

func (l *launch) ranks() int { return l.call.Ranks }

// peer is the i-th rank after this one: everybody begins with another.
func (l *launch) peer(i int) int { return (l.rank + 1 + i) % l.ranks() }

func (l *launch) temp(off int64) machine.Ref {
	return machine.At(l.rank, machine.Temp, l.temps+off)
}

// word is a word of the own control page.
func (l *launch) word(off int64) machine.Ref { return ref(l.rank, off) }

// epoch is where the own epoch stands.
func (l *launch) epoch() machine.Ref { return l.word(wEpoch) }

// rows is the number of blocks of the destination.
func (l *launch) rows() int {
	if _, dst := l.base.Blocks(l.ranks()); dst > 1 {
		return l.ranks()
	}
	return 1
}

// giver is the rank that a copied row comes from.
func (l *launch) giver(row int) int {
	if l.base.Rooted() {
		return l.call.Root
	}
	return row
}

// blockOf is the block of every source that makes the output of a rank.
func (l *launch) blockOf(rank int) int {
	if src, _ := l.base.Blocks(l.ranks()); src > 1 {
		return rank
	}
	return 0
}

// own reports whether an output row is the rank's own source and already in
// place.
func (l *launch) own(row int) bool {
	if l.inPlace == api.OutOfPlace {
		return false
	}
	return l.ranks() == 1 || !l.base.Reduces() && l.giver(row) == l.rank
}

// holds reports whether results must wait in the stage, because the destination
// is a part of the source that peers still read.
func (l *launch) holds() bool {
	if l.path != pathDirect || l.staged || l.inPlace == api.OutOfPlace {
		return false
	}
	// A rank's own block of a reduce-scatter is read by nobody else.
	return l.base == api.AllReduce || l.base == api.ReduceScatter && l.inPlace == api.InPlaceStart && l.rank != 0
}

// user is where a piece of a block lies in a buffer of a rank.
func (l *launch) user(rank int, space machine.Space, block int, p piece) machine.Ref {
	off := (int64(block)*p.lane.block + p.from) * p.lane.size()
	return machine.User(rank, space, int(l.laneBase)+p.lane.index, off)
}

// stagePlace is where a piece of a CTA's chunk lies in a room of the stage.
func (l *launch) stagePlace(rank, b int, room int64, in span, p piece) machine.Ref {
	return machine.At(rank, machine.Box, l.stageAt(b, room)+p.at-in.lo*unit)
}

// box is where a piece from one rank lies among the lines of another.
func (l *launch) box(to, from, parity int, p piece) machine.Ref {
	return machine.Lines(to, from, boxPlace(l.ranks(), parity, from, p.at))
}
