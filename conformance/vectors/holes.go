package vectors

import "example.com/tandem/api/num"

// Run is a range of elements of one lane: Start to End-1.
type Run struct{ Start, End int64 }

// Holes lists, by lane, the elements of a rank that no store reached: those that
// are poison, if as many are as the row says are unwritten. ok is false where it
// does not say, or where they cannot be told from results: in place, or where a
// result happens to be the poison.
func (r *Row) Holes(rank int) (lanes [][]Run, ok bool) {
	lanes = make([][]Run, r.Call.Lanes())
	if r.Unwritten == nil || r.Unwritten[rank] == nil || r.Output == nil || r.Output[rank] == nil {
		return nil, false
	}
	left := *r.Unwritten[rank]
	if left == 0 {
		return lanes, true
	}
	out := r.Output[rank]
	for l := range lanes {
		d := r.Call.Lane(l).DType
		size := int64(d.Size())
		poison := uint64(r.Poison) * 0x0101010101010101 & d.Mask()
		for i := range r.Call.DstElems(l) {
			if num.Load(d, out[i*size:]) != poison {
				continue
			}
			left--
			if k := len(lanes[l]); k > 0 && lanes[l][k-1].End == i {
				lanes[l][k-1].End++
			} else {
				lanes[l] = append(lanes[l], Run{i, i + 1})
			}
		}
		out = out[r.Call.DstElems(l)*size:]
	}
	return lanes, left == 0
}
