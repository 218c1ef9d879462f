package nvshmem

// exchange is the shape of recursive exchange on a team: radix^phases ranks
// take part in the hypercube of step 2, the rest hand their input to one of
// them in step 1 and get the result back in step 3.
type exchange struct {
	ranks, radix int
	phases       int
	power        int // radix^phases, at most ranks
	rest         int // ranks that do not take part in step 2
	folded       int // T: the ranks from 0 on that step 1 groups by radix
}

func newExchange(ranks int, p Params) exchange {
	e := exchange{ranks: ranks, radix: p.Radix(ranks), power: 1}
	for e.power*e.radix <= ranks {
		e.power *= e.radix
		e.phases++
	}
	e.rest = ranks - e.power
	e.folded = e.rest * e.radix / (e.radix - 1)
	return e
}

// scratch is the scratch the algorithm wants for n elements, in elements.
func (e exchange) scratch(n int64) int64 {
	k, phases := int64(e.radix), int64(e.phases)
	return (k-1)*n + k*phases*n + phases*n
}

// lastOffset is the element of the scratch at which rank 0 reads the last block
// of the last phase: radix-1 blocks of step 1, radix of every phase before, and
// its own place, which is left empty.
func (e exchange) lastOffset(n int64) int64 {
	if e.phases == 0 {
		return 0
	}
	k := int64(e.radix)
	return (k-1)*n + k*int64(e.phases-1)*n + (k-1)*n
}

// limit is the largest count whose scratch fits.
func (e exchange) limit(p Params) int64 { return p.SegmentBytes() / e.scratch(1) }

// sendsTo is the rank that folds the input of rank in step 1; -1 if rank takes
// part in step 2. Groups of radix ranks fold into their last; a last, smaller
// group folds into the rank after it.
func (e exchange) sendsTo(rank int) int {
	if rank >= e.folded {
		return -1
	}
	last := min(rank/e.radix*e.radix+e.radix-1, e.folded)
	if last == rank {
		return -1
	}
	return last
}

// received is the number of ranks that fold into rank in step 1: rank-1 down to
// rank-received.
func (e exchange) received(rank int) int {
	switch {
	case rank < e.folded && rank%e.radix == e.radix-1:
		return e.radix - 1
	case rank == e.folded:
		return e.folded % e.radix
	}
	return 0
}
