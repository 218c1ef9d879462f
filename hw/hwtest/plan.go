package hwtest

import (
	"cmp"
	"fmt"
	"slices"

	"example.com/tandem/api"
)

// Covers says where a plan gives a destination element to nobody, or to more than
// one, or where the holes it has are not what it counts as unwritten.
func Covers(p *api.Plan) error {
	type part struct{ start, count int64 }
	for rank := range p.Call.Ranks {
		unwritten := int64(0)
		for lane := range p.Call.Lanes() {
			var parts []part
			for _, k := range p.Kernels {
				for _, c := range k.CTAs {
					if k.Lane == lane && len(c.Slices) == 0 && c.Count > 0 {
						parts = append(parts, part{c.Start, c.Count})
					}
					for _, s := range c.Slices {
						if k.Lane == lane && (!s.Local || s.Rank == rank) {
							parts = append(parts, part{s.Start, s.Count})
						}
					}
				}
			}
			slices.SortFunc(parts, func(a, b part) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.count, b.count)) })
			at := int64(0)
			for _, q := range parts {
				if q.start != at {
					return fmt.Errorf("lane %d of rank %d: a part begins at %d, the one before ends at %d", lane, rank, q.start, at)
				}
				at += q.count
			}
			if n := p.Call.DstElems(lane); at != n {
				return fmt.Errorf("lane %d of rank %d: parts end at %d of %d", lane, rank, at, n)
			}
			for _, h := range p.Holes(lane, rank) {
				unwritten += h.Count
			}
		}
		if unwritten != p.Unwritten[rank] {
			return fmt.Errorf("rank %d: holes of %d elements, %d unwritten", rank, unwritten, p.Unwritten[rank])
		}
	}
	return nil
}
