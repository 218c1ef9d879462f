package conformance

import (
	"fmt"

	"example.com/tandem/api"
)

// blameMissing says why a side did not write elements: from the holes of its
// plan, else from the parity of their positions.
func (c *comparison) blameMissing(b *laneBlame, side int, missing []int64) {
	holes := c.holes(side, b.lane, b.rank)
	guess := c.parity(b.lane, b.rank)
	d := c.call.Lane(b.lane).DType
	type key struct {
		class   api.Cause
		planned bool
	}
	whys := map[key]int{}
	for at := 0; at < len(missing); {
		end := runEnd(missing, at)
		for _, i := range missing[at:end] {
			k := key{planned: true}
			if h := holeAt(holes, i); h != nil && h.Cause.Unwritten() {
				k.class = h.Cause
			} else {
				k = key{class: guess(missing[at], i)}
			}
			why, ok := whys[k]
			if !ok {
				why = b.why(finding{k.class, missingWords(side, k.class, k.planned, d)})
				whys[k] = why
			}
			b.elements = append(b.elements, blamed{i, why})
		}
		at = end
	}
}

// runEnd is where the run of consecutive elements that begins at a place of the
// list ends.
func runEnd(list []int64, at int) int {
	end := at + 1
	for end < len(list) && list[end] == list[end-1]+1 {
		end++
	}
	return end
}

// narrowest is the narrowest multicast word, in bytes.
const narrowest = 4

// parity guesses the class of an unwritten element from its position and the
// start of its run: what a store of at least four bytes cannot reach. Types of
// four bytes and more have no such class.
func (c *comparison) parity(lane, rank int) func(run, i int64) api.Cause {
	size := int64(c.call.Lane(lane).DType.Size())
	src, dst := c.call.Addrs(lane, rank)
	pointer := src%narrowest != 0 || dst%narrowest != 0
	if c.call.InPlace != api.OutOfPlace { // the caller's pointer is that of the larger buffer
		pointer = c.call.DstOffset.At(rank)*size%narrowest != 0
	}
	return func(run, i int64) api.Cause {
		switch {
		case size >= narrowest:
			return api.CauseUnknown
		case pointer:
			return api.OddPointer
		case run*size%narrowest != 0:
			return api.OddCTAStart
		case i-run < narrowest/size-1:
			return api.OddTail // less than a word was left before the next slice
		}
		return api.OddSliceStart
	}
}

// missingWords explains a class of unwritten elements.
func missingWords(side int, class api.Cause, planned bool, d api.DType) string {
	unit := fmt.Sprintf("%d-byte elements", d.Size())
	var why string
	switch class {
	case api.OddTail:
		why = fmt.Sprintf("the last %s of a slice are less than the narrowest multicast word of 4 bytes, and nothing else stores them", unit)
		if d.Size() == 2 {
			why = "the slice has an odd number of 2-byte elements: its last one is half of the narrowest multicast word of 4 bytes, and nothing else stores it"
		}
	case api.OddSliceStart:
		why = fmt.Sprintf("the slices before it make the slice start on an odd element: %s there lie beside a 4-byte boundary, where no multicast word of 16, 8 or 4 bytes may start, so the whole slice is lost", unit)
	case api.OddCTAStart:
		why = fmt.Sprintf("the split put the CTA on an odd element: %s there lie beside a 4-byte boundary, where no multicast word of 16, 8 or 4 bytes may start, so its slices are lost", unit)
	case api.OddPointer:
		why = fmt.Sprintf("the caller's buffer starts beside a 4-byte boundary (%s at an odd offset), where no multicast word of 16, 8 or 4 bytes may start", unit)
	default:
		return fmt.Sprintf("%s left elements unwritten, and neither a plan nor their positions say why", sideName(side))
	}
	if !planned {
		why += "; judged from the positions alone"
	}
	return sideName(side) + ": " + why
}
