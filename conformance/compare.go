package conformance

import (
	"bytes"
	"slices"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
	"example.com/tandem/conformance/internal/exact"
)

// The two sides of a comparison, as indices.
const (
	left  = 0
	right = 1
)

// comparison is two observations of one call, held against each other.
type comparison struct {
	call      *api.Call
	in        *sources
	obs       [2]*observation
	orderFree bool
	workers   int
	faithful  [][]bitset    // by rank and lane; nil where everything is exact
	outside   [2][][]bitset // by rank and lane: no neighbours of the exact sum
	agreeing  [2]bool       // whether all ranks of a side ended with the same bits
}

// buckets of the histogram of distances: 0, 1, 2, 3-4, 5-8, .. 2^15, more.
const buckets = 18

// laneResult is what comparing one destination gave.
type laneResult struct {
	// missing has, for each side, the elements that it alone did not write, and
	// those that it alone left unreduced.
	missing   [2][]int64
	values    []int64 // written on both sides, and breaking the contract
	inSwitch  int64   // differing within the contract
	unwritten int64   // on both sides
	undecided int64   // values of which nobody knows whether a switch may give them
	hist      [buckets]int64
}

// differing is the number of elements that break the contract.
func (r *laneResult) differing() int64 {
	return int64(len(r.missing[left]) + len(r.missing[right]) + len(r.values))
}

// compareLane compares one destination, 64 elements at a time where they are
// equal and nothing else is to be said of them.
func (c *comparison) compareLane(rank, lane int) *laneResult {
	res := &laneResult{}
	d := c.call.Lane(lane).DType
	size := int64(d.Size())
	l, r := c.obs[left].out[rank][lane], c.obs[right].out[rank][lane]
	var unwritten [2]bitset
	for s, o := range c.obs {
		if o.unwritten != nil {
			unwritten[s] = o.unwritten[rank][lane]
		}
	}
	one := c.newElement(rank, lane)
	n := c.call.DstElems(lane)
	for at := int64(0); at < n; at += 64 {
		end := min(n, at+64)
		w := at / 64
		doubt := unwritten[left].word(w) | unwritten[right].word(w)
		if one.faithful != nil {
			doubt |= one.faithful.word(w) & (one.outside[left].word(w) | one.outside[right].word(w))
		}
		doubt |= one.unstable[left].word(w) | one.unstable[right].word(w)
		if doubt == 0 && !c.orderFree && bytes.Equal(l[at*size:end*size], r[at*size:end*size]) {
			res.hist[0] += end - at
			continue
		}
		for i := at; i < end; i++ {
			ul, ur := unwritten[left].has(i), unwritten[right].has(i)
			switch {
			case ul && ur && !c.orderFree:
				res.unwritten++
			case ul:
				res.missing[left] = append(res.missing[left], i)
			case ur:
				res.missing[right] = append(res.missing[right], i)
			default:
				one.compare(res, i, num.Load(d, l[i*size:]), num.Load(d, r[i*size:]))
			}
		}
	}
	return res
}

// element compares single elements of one destination.
type element struct {
	*comparison
	rank, lane int
	d          api.DType
	faithful   bitset
	outside    [2]bitset
	unreduced  [2]bitset
	unstable   [2]bitset
	g          *gatherer
	sum        *exact.Sum
	orders     *anyOrders
}

func (c *comparison) newElement(rank, lane int) *element {
	e := &element{comparison: c, rank: rank, lane: lane, d: c.call.Lane(lane).DType, g: c.in.gatherer()}
	if c.faithful != nil {
		e.faithful = c.faithful[rank][lane]
	}
	for s, o := range c.obs {
		if c.outside[s] != nil {
			e.outside[s] = c.outside[s][rank][lane]
		}
		if o.unreduced != nil {
			e.unreduced[s] = o.unreduced[rank][lane]
		}
		if o.unstable != nil {
			e.unstable[s] = o.unstable[rank][lane]
		}
	}
	if floatSum(c.call, lane) {
		e.sum = exact.NewSum(e.d)
		e.orders = newAnyOrders(e.d, c.obs[:])
	}
	return e
}

// compare judges an element that both sides wrote, or may have.
func (e *element) compare(res *laneResult, i int64, l, r uint64) {
	if l == r {
		res.hist[0]++
	} else {
		res.hist[bucket(e.d, l, r)]++
	}
	var holds bool
	unknown := res.undecided
	switch {
	case e.orderFree:
		holds = l == r && l == e.definition(i)
	case e.faithful.has(i):
		holds = e.withinSet(res, i, left, l) && e.withinSet(res, i, right, r)
		if holds && l != r {
			res.inSwitch++
			if res.undecided == unknown && e.inBand(i) {
				res.undecided++
			}
		}
	default:
		// A side that gave other bits the second time cannot owe equal ones.
		holds = l == r && !e.unstable[left].has(i) && !e.unstable[right].has(i)
	}
	switch {
	case holds:
	case e.unreduced[left].has(i) && !e.unreduced[right].has(i):
		res.missing[left] = append(res.missing[left], i)
	case e.unreduced[right].has(i) && !e.unreduced[left].has(i):
		res.missing[right] = append(res.missing[right], i)
	default:
		res.values = append(res.values, i)
	}
}

// definition is the one result that order-free inputs have.
func (e *element) definition(i int64) uint64 {
	if e.sum != nil {
		if in := e.g.inputs(e.lane, e.rank, i); len(in) > 1 {
			return e.sum.Set(in).Lo
		}
	}
	return e.g.right(e.lane, e.rank, i)
}

// withinSet reports whether a value is in the faithful set, or may be for all
// anybody knows.
func (e *element) withinSet(res *laneResult, i int64, side int, got uint64) bool {
	if !e.outside[side].has(i) {
		return true
	}
	in := e.g.inputs(e.lane, e.rank, i)
	verdict := switchSet(e.d, in, e.sum.Set(in), got)
	if verdict == outside {
		verdict = e.orders.judge(in, got)
	}
	if verdict == undecided {
		res.undecided++
	}
	return verdict != outside
}

// inBand reports whether two neighbours of the exact sum differ where bits of
// terms may have been cut, so that they say nothing for each other or against.
func (e *element) inBand(i int64) bool {
	in := e.g.inputs(e.lane, e.rank, i)
	set := e.sum.Set(in)
	return set.Lo != set.Hi && switchSet(e.d, in, set, set.Lo) == undecided
}

// bucket is the place of a pair of different patterns in the histogram.
func bucket(d api.DType, a, b uint64) int {
	ulps, class := num.Ulps(d, a, b)
	if class == num.Zeros || class == num.NaNs {
		return 0 // equal in value
	}
	if class != num.Finite {
		return buckets - 1
	}
	for i := range buckets - 2 {
		if ulps <= 1<<i {
			return i + 1
		}
	}
	return buckets - 1
}

// agreement reports, for a side, whether all ranks ended with the same bits.
func agreement(call *api.Call, o *observation) bool {
	for rank := 1; rank < call.Ranks; rank++ {
		for l := range call.Lanes() {
			if !bytes.Equal(o.out[0][l], o.out[rank][l]) {
				return false
			}
			if o.unwritten != nil && !slices.Equal(o.unwritten[0][l], o.unwritten[rank][l]) {
				return false
			}
		}
	}
	return true
}
