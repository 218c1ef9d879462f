package conformance

import (
	"bytes"
	"fmt"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
)

// fromIntervals finds the elements that no store reached. In place an element
// that was right before the call is not unwritten.
func fromIntervals(call *api.Call, written [][]api.Interval) ([][]bitset, error) {
	out := make([][]bitset, call.Ranks)
	for rank := range out {
		for l := range call.Lanes() {
			set := newBitset(call.DstElems(l))
			set.setRange(0, call.DstElems(l))
			out[rank] = append(out[rank], set)
		}
		for _, iv := range written[rank] {
			if iv.Lane < 0 || iv.Lane >= call.Lanes() {
				return nil, fmt.Errorf("rank %d reports a store to lane %d of %d", rank, iv.Lane, call.Lanes())
			}
			_, d := laneBytes(call, iv.Lane)
			if iv.Start < 0 || iv.End > d || iv.Start > iv.End {
				return nil, fmt.Errorf("rank %d reports a store to bytes %d to %d of a destination of %d", rank, iv.Start, iv.End, d)
			}
			if iv.Start == iv.End {
				continue
			}
			size := int64(call.Lane(iv.Lane).DType.Size())
			out[rank][iv.Lane].clearRange(iv.Start/size, (iv.End+size-1)/size)
		}
		if call.InPlace != api.OutOfPlace {
			for l, set := range out[rank] {
				clearOwnPlace(set, call, l, rank)
			}
		}
	}
	return out, nil
}

// clearOwnPlace takes out the elements that need no store.
func clearOwnPlace(set bitset, call *api.Call, lane, rank int) {
	var refs []api.Input
	set.each(func(i int64) {
		// Most collectives have several inputs for each output: then nothing
		// needs to be asked about places.
		if refs = call.Inputs(refs[:0], lane, rank, i); len(refs) == 1 && refs[0].Rank == rank && call.OwnPlace(lane, rank, i) {
			set[i>>6] &^= 1 << (i & 63)
		}
	})
}

// twoRuns compares a destination after runs over the two poisons. unwritten has
// the elements that are the poison both times; in place only what was poisoned
// can be among them. moved has those that a store reached and that differ.
func twoRuns(first, second []byte, size int) (unwritten, moved bitset) {
	n := int64(len(first) / size)
	unwritten, moved = newBitset(n), newBitset(n)
	var p1, p2 [8]byte
	fillBytes(p1[:], poison1)
	fillBytes(p2[:], poison2)
	const block = 64
	for at := int64(0); at < n; at += block {
		end := min(n, at+block)
		if bytes.Equal(first[at*int64(size):end*int64(size)], second[at*int64(size):end*int64(size)]) {
			continue
		}
		for i := at; i < end; i++ {
			a, b := first[i*int64(size):(i+1)*int64(size)], second[i*int64(size):(i+1)*int64(size)]
			switch {
			case bytes.Equal(a, p1[:size]) && bytes.Equal(b, p2[:size]):
				unwritten.set(i)
			case !bytes.Equal(a, b):
				moved.set(i)
			}
		}
	}
	return unwritten, moved
}

// markUnreduced adds, in place, the elements that are still the rank's own input
// at that place although the right result differs. What it begins with are the
// elements that are still poison, where the destination is the larger buffer.
func markUnreduced(set bitset, in *sources, out []byte, lane, rank int) {
	call := in.call
	d := call.Lane(lane).DType
	size := int64(d.Size())
	own := in.data[rank][lane]
	off, _ := call.Collective.InPlace(call.Geometry(lane), rank, call.InPlace)
	src, dst := call.Collective.Blocks(call.Ranks)
	g := in.gatherer()
	for i := range call.DstElems(lane) {
		at := i + off
		if src < dst {
			at = i - off
		}
		if at < 0 || at >= call.SrcElems(lane) {
			continue
		}
		before := num.Load(d, own[at*size:])
		if num.Load(d, out[i*size:]) == before && g.wrong(lane, rank, i, before) {
			set.set(i)
		}
	}
}

// wrong reports whether a value cannot be the result of the definition: no
// faithful one for a sum, another one for everything else.
func (g *gatherer) wrong(lane, rank int, index int64, got uint64) bool {
	in := g.inputs(lane, rank, index)
	d := g.call.Lane(lane).DType
	if !g.call.Collective.Reduces() {
		return in[0] != got
	}
	return !num.Faithful(d, g.call.Op, in, got)
}
