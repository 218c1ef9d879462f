package tandem

import (
	"fmt"

	"example.com/tandem/api"
)

// plan is the decision as a plan anybody can read.
func (c *config) plan(call *api.Call) (*api.Plan, error) {
	if err := c.admit(call); err != nil {
		return nil, err
	}
	d := c.decide(call)
	p := &api.Plan{
		Spec: c.spec.String(), Call: *call,
		Algorithms: map[string]api.Algorithm{d.path: {Evidence: api.FromSource, Contract: api.Exact}},
		Unwritten:  make([]int64, call.Ranks),
		Cost:       d.cost(),
		Notes:      d.notes(),
	}
	for i := range call.Lanes() {
		p.Kernels = append(p.Kernels, d.kernel(i))
	}
	return p, nil
}

func (d *decision) notes() []string {
	var notes []string
	if d.call.Collective.Reduces() {
		how := "rounded at every node in the element type"
		if d.mode == modeF32 {
			how = "accumulated in f32, rounded once"
		}
		notes = append(notes, fmt.Sprintf("mode %s: the balanced tree over the ranks, %s; the same bits on every path", d.mode, how))
	}
	if d.call.Ranks > 2 {
		notes = append(notes, "thresholds for more than 2 ranks are not measured")
	}
	if d.chunks > 1 {
		notes = append(notes, fmt.Sprintf("%d chunks, as the stage holds %d bytes of a CTA's share", d.chunks, d.room*unit))
	}
	return append(notes, d.gridWhy)
}

// kernel is the part of the one launch that works on a lane of the call.
func (d *decision) kernel(index int) api.Kernel {
	k := api.Kernel{Name: "tandem_" + d.path, Lane: index}
	shape := d.call.Lane(index)
	if shape.Count == 0 {
		k.CTAs = []api.CTA{{Algorithm: d.path, Why: d.why}}
		if d.units > 0 {
			k.CTAs[0].Why = "an empty lane"
		}
		return k
	}
	for b := range d.grid {
		if cta := d.cta(index, b); cta.Count > 0 {
			k.CTAs = append(k.CTAs, cta)
		}
	}
	return k
}

// cta is what block b does of a lane of the call.
func (d *decision) cta(index, b int) api.CTA {
	cta := api.CTA{CTA: b, Algorithm: d.path, Why: d.why, Rounds: d.barriers()}
	if d.path == pathTwoShot {
		for r := range d.call.Ranks {
			start, n := d.partOf(index, d.share(d.all(), r, b))
			if n == 0 {
				continue
			}
			if cta.Count += n; len(cta.Slices) == 0 {
				cta.Start = start
			}
			cta.Slices = append(cta.Slices, api.Slice{Rank: r, Start: start, Count: n})
		}
		return cta
	}
	cta.Start, cta.Count = d.partOf(index, d.all().cut(b, d.grid))
	if _, dst := d.base.Blocks(2); dst > 1 && cta.Count > 0 {
		for r := range d.call.Ranks {
			cta.Slices = append(cta.Slices, api.Slice{Rank: r, Start: int64(r)*d.call.Lane(index).Count + cta.Start, Count: cta.Count})
		}
	}
	return cta
}

// partOf is what a span has of one lane of the call, in elements of a block.
func (d *decision) partOf(index int, in span) (start, n int64) {
	for i := range d.pieces(in) {
		if p := d.piece(in, i); p.lane.index == index {
			if n == 0 {
				start = p.from
			}
			n += p.count
		}
	}
	return start, n
}

// share is the part of block b in what rank r reduces of a span, in two shots.
func (d *decision) share(in span, r, b int) span {
	return in.cut(r, d.call.Ranks).cut(b, d.grid)
}

// barriers is the number of times a CTA waits for all its peers.
func (d *decision) barriers() int64 {
	if d.call.Ranks == 1 {
		return 0
	}
	return 1 + d.chunks*int64(d.phases()) // headers first
}

// phases is the number of flag barriers of a chunk.
func (d *decision) phases() int {
	n := 0
	switch d.path {
	case pathDirect:
		n = 1
	case pathTwoShot:
		n = 2
	}
	if d.staged {
		n++
	}
	return n
}

// headerBytes is one header line.
const headerBytes = 16

func (d *decision) cost() api.Cost {
	ranks := int64(d.call.Ranks)
	cost := api.Cost{Launches: 1, Rounds: d.barriers(), Bytes: headerBytes * (ranks - 1)}
	_, dst := d.base.Blocks(d.call.Ranks)
	share := ceil(d.units, int64(d.grid)) // of the busiest CTA
	cost.Trips = ceil(share*dst, threads)
	switch d.path {
	case pathPush:
		cost.RoundTrip = 1
		cost.Bytes += 2 * d.bytes() * (ranks - 1)
	case pathDirect:
		cost.RoundTrip = 1 + d.chunks*int64(d.phases()+1) // the reads themselves
		cost.Bytes += d.bytes() * (ranks - 1)
	case pathTwoShot:
		cost.RoundTrip = 1 + d.chunks*int64(d.phases()+2)
		cost.Bytes += shotBytes(d.call.Ranks, d.bytes())
	}
	return cost
}

// thresholds lists the counts at which the decisions for a call change.
func thresholds(call api.Call) []int64 {
	if call.Ranks < 2 || call.Ranks > maxRanks || !call.DType.Valid() || call.Collective == nil {
		return nil
	}
	size := int64(call.DType.Size())
	counts := []int64{unit / size, blockUnits * unit / size, boxBytes(call.Ranks) / size}
	d := decision{call: call, base: api.Base(call.Collective)}
	if d.shots() {
		// Bytes are counted in whole units: this is the last count below.
		counts = append(counts, (ceil(leastTwoShot(call.Ranks), unit)-1)*unit/size)
	}
	if d.base == api.ReduceScatter {
		counts = append(counts, defaultStage/size)
	}
	return counts
}

// leastTwoShot is the fewest bytes that go in two shots.
func leastTwoShot(ranks int) int64 {
	lo, hi := boxBytes(ranks), int64(1)<<40
	for lo+1 < hi {
		if mid := (lo + hi) / 2; twoShot(ranks, mid) {
			hi = mid
		} else {
			lo = mid
		}
	}
	return hi
}
