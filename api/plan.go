package api

import (
	"cmp"
	"slices"

	"example.com/tandem/api/num"
)

// Plan is what an implementation decides for a call before it touches data.
// It is pure data, 64 bits throughout, and needs no buffers.
type Plan struct {
	Spec    string   `json:"spec"`
	Call    Call     `json:"call"`
	Kernels []Kernel `json:"kernels"`
	Cost    Cost     `json:"cost"`
	// Algorithms says of every algorithm in the plan how it is known and
	// what its values may be held to.
	Algorithms map[string]Algorithm `json:"algorithms"`
	// Unwritten counts, per rank, the destination elements that no store
	// will reach.
	Unwritten []int64 `json:"unwritten"`
	// Fault is what the call will end in; nil if it ends well.
	Fault *Fault `json:"fault"`
	// Unknown says why the values cannot be given although the plan can; such
	// a call is refused when run.
	Unknown string `json:"unknown,omitempty"`
	// Notes are facts about the plan worth reading, in order of weight.
	Notes []string `json:"notes,omitempty"`
}

// Algorithm describes an algorithm of a plan.
type Algorithm struct {
	Evidence Evidence `json:"evidence"`
	Contract Contract `json:"contract"`
	// AnyOrder, where the contract is faithful, are sums step by step in an order
	// that nobody knows: what one of them gives in some order holds it too.
	AnyOrder []AnyOrder `json:"any_order,omitempty"`
	// Fitted says that the arithmetic was measured on the machine it stands for:
	// its values are held to equal bits, whatever less the other side promises.
	Fitted bool `json:"fitted,omitempty"`
}

// AnyOrder is a floating sum of two operands at a time, in any order of the
// inputs, whose last rounding into the element type may go to either neighbour.
type AnyOrder struct {
	Acc  DType        `json:"acc"`
	Step num.Rounding `json:"step"`
	Tree bool         `json:"tree,omitempty"` // balanced, not linear
}

// Kernel is one launch.
type Kernel struct {
	Name string `json:"name,omitempty"`
	Lane int    `json:"lane,omitempty"`
	CTAs []CTA  `json:"ctas"`
}

// CTA is the part of a kernel that one thread block does, on every rank. Start
// and Count are elements of the call's Count.
type CTA struct {
	CTA       int     `json:"cta"`
	Start     int64   `json:"start"`
	Count     int64   `json:"count"`
	Algorithm string  `json:"algorithm"`
	Why       string  `json:"why"`
	Rounds    int64   `json:"rounds"` // of the slowest rank
	Words     int64   `json:"words"`  // multicast words of the slowest rank
	Slices    []Slice `json:"slices,omitempty"`
}

// Slice is what one rank computes or sends of a CTA's range.
type Slice struct {
	Rank  int   `json:"rank"`  // who does it
	Start int64 `json:"start"` // first destination element
	Count int64 `json:"count"`
	// Local says that the slice lies in the destination of Rank only; else it
	// lies in every rank's.
	Local     bool      `json:"local,omitempty"`
	Words     WordCount `json:"words"`
	Unwritten int64     `json:"unwritten"`
	Holes     []Hole    `json:"holes,omitempty"`
	// Algorithm and Why are set where they differ from the CTA's.
	Algorithm string `json:"algorithm,omitempty"`
	Why       string `json:"why,omitempty"`
}

// WordCount counts multicast accesses by width in bytes.
type WordCount struct {
	W16 int64 `json:"16"`
	W8  int64 `json:"8"`
	W4  int64 `json:"4"`
}

// Total is the number of accesses of any width.
func (w WordCount) Total() int64 { return w.W16 + w.W8 + w.W4 }

// Hole is a range of destination elements that no store reaches, or that holds
// a wrong value by the implementation's own doing, and why.
type Hole struct {
	Start int64 `json:"start"`
	Count int64 `json:"count"`
	Cause Cause `json:"cause"`
}

// Cost is what the call costs its slowest rank, as exact counts.
type Cost struct {
	Launches  int64 `json:"launches"`
	Rounds    int64 `json:"rounds"` // puts of at most one segment, each with its barrier
	Words     int64 `json:"words"`  // multicast accesses
	Trips     int64 `json:"trips"`  // loop iterations of the busiest thread
	Divisions int64 `json:"divisions"`
	RoundTrip int64 `json:"round_trips"` // remote round trips
	Bytes     int64 `json:"bytes"`       // sent to peers
}

// Cause is the class of a divergence.
type Cause string

// The causes. The first four are classes of unwritten outputs.
const (
	OddTail          Cause = "odd_tail"        // the last element of an odd slice
	OddSliceStart    Cause = "odd_slice_start" // the slices before it are odd
	OddCTAStart      Cause = "odd_cta_start"   // the split put the CTA on an odd element
	OddPointer       Cause = "odd_pointer"     // the caller's buffer
	CauseGuard       Cause = "guard"
	CauseFault       Cause = "fault"
	CauseOrder       Cause = "order"
	CauseAccumulator Cause = "accumulator"
	CauseRounding    Cause = "rounding"
	CauseAvgRule     Cause = "avg_rule"
	CauseNaNRule     Cause = "nan_rule"
	CauseZeroRule    Cause = "zero_rule"
	CauseRanks       Cause = "rank_disagreement"
	CauseStale       Cause = "stale"
	CauseForeign     Cause = "foreign_data"
	CauseOffset      Cause = "offset"
	CauseUnknown     Cause = "unknown"
)

// Unwritten reports whether the class is one of elements that no store reaches.
func (c Cause) Unwritten() bool {
	switch c {
	case OddTail, OddSliceStart, OddCTAStart, OddPointer:
		return true
	}
	return false
}

// Place is where in a plan a destination element comes from.
type Place struct {
	Kernel    *Kernel
	CTA       *CTA
	Slice     *Slice // nil where the CTA has no slices
	Algorithm string
	Why       string
}

// Locate finds what produces element index of lane lane in the destination of
// rank; false if nothing in the plan claims it.
func (p *Plan) Locate(lane, rank int, index int64) (Place, bool) {
	for k := range p.Kernels {
		kernel := &p.Kernels[k]
		if kernel.Lane != lane {
			continue
		}
		for i := range kernel.CTAs {
			if place, ok := kernel.CTAs[i].locate(rank, index); ok {
				place.Kernel = kernel
				return place, true
			}
		}
	}
	return Place{}, false
}

func (c *CTA) locate(rank int, index int64) (Place, bool) {
	place := Place{CTA: c, Algorithm: c.Algorithm, Why: c.Why}
	for i := range c.Slices {
		s := &c.Slices[i]
		if index < s.Start || index >= s.Start+s.Count || (s.Local && s.Rank != rank) {
			continue
		}
		place.Slice = s
		place.Algorithm = cmp.Or(s.Algorithm, c.Algorithm)
		place.Why = cmp.Or(s.Why, c.Why)
		return place, true
	}
	return place, len(c.Slices) == 0 && index >= c.Start && index < c.Start+c.Count
}

// Holes lists, sorted, the holes in the destination of one rank and lane.
func (p *Plan) Holes(lane, rank int) []Hole {
	var out []Hole
	for _, k := range p.Kernels {
		if k.Lane != lane {
			continue
		}
		for _, c := range k.CTAs {
			for _, s := range c.Slices {
				if !s.Local || s.Rank == rank {
					out = append(out, s.Holes...)
				}
			}
		}
	}
	slices.SortFunc(out, func(a, b Hole) int { return cmp.Compare(a.Start, b.Start) })
	return out
}

// Contract is the weakest contract of the algorithms in the plan.
func (p *Plan) Contract() Contract {
	weakest := Exact
	for _, a := range p.Algorithms {
		weakest = max(weakest, a.Contract)
	}
	return weakest
}

// Evidence is the evidence of every algorithm in the plan.
func (p *Plan) Evidence() map[string]Evidence {
	out := make(map[string]Evidence, len(p.Algorithms))
	for name, a := range p.Algorithms {
		out[name] = a.Evidence
	}
	return out
}
