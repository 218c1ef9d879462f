package nvshmem

import (
	"example.com/tandem/api"
	"example.com/tandem/sim/machine"
)

// copiesPart is a CTA that puts a range into the destination of each rank, its own
// included, and then meets the others.
type copiesPart struct {
	g   *program
	cta *api.CTA
}

func (g *program) copies(cta *api.CTA) part { return copiesPart{g, cta} }

func (c copiesPart) len(int) int {
	if c.g.call.Collective == api.ReduceScatter { // of one rank
		return 1
	}
	return c.g.ranks + 1
}

func (c copiesPart) step(s *machine.Step, rank, i int) {
	g := c.g
	if i == g.ranks {
		g.barrierStep(s, c.cta.CTA)
		return
	}
	slice := &c.cta.Slices[rank]
	peer := (rank + i) % g.ranks
	switch g.call.Collective {
	case api.AllToAll:
		g.copyStep(s, g.dst(peer, slice.Start), g.src(rank, int64(peer)*g.call.Count), slice.Count)
	default: // a gather, or a reduce-scatter of one rank
		g.copyStep(s, g.dst(peer, slice.Start), g.src(rank, c.cta.Start), slice.Count)
	}
}

// flatPart is the broadcast of a root that puts its source to everybody and signals
// each.
type flatPart struct {
	g       *program
	cta     *api.CTA
	signals int64
}

func (g *program) newFlat(cta *api.CTA) part { return flatPart{g, cta, g.takeTemps(1)} }

// own is 1 if the root stores into its own destination.
func (f flatPart) own() int {
	if f.g.call.InPlace != api.OutOfPlace {
		return 0
	}
	return 1
}

func (f flatPart) len(rank int) int {
	if rank != f.g.call.Root {
		return 1
	}
	return f.own() + 2*(f.g.ranks-1)
}

func (f flatPart) step(s *machine.Step, rank, i int) {
	g, root := f.g, f.g.call.Root
	if rank != root {
		s.Kind, s.Word, s.Value, s.Order, s.Peer = machine.Wait, machine.At(rank, machine.Temp, f.signals), 1, machine.Acquire, root
		return
	}
	peer := root
	if i -= f.own(); i >= 0 {
		peer = (root + 1 + i/2) % g.ranks
	}
	if i >= 0 && i%2 == 1 {
		s.Kind, s.Word, s.Value, s.Order = machine.Store, machine.At(peer, machine.Temp, f.signals), 1, machine.Release
		return
	}
	g.copyStep(s, g.dst(peer, 0), g.src(root, 0), f.cta.Count)
}
