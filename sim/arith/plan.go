package arith

import "example.com/tandem/api/num"

// plan is how one call is worked on; it is shared by the workers.
type plan struct {
	d num.DType
	s num.Scheme
	n int // sources

	// How the sources are combined, in accumulators of format acc.
	acc     num.DType
	steps   steps
	prepare func(dst, src []byte)      // an element before it is combined, nil if as it is
	fused   func(dst, acc, src []byte) // a step with its product, for AvgPremulFused
	finish  func(dst, acc []byte)      // accumulators to elements, nil if they are elements
	narrow  bool                       // finish is what steps.last does

	// tiles replaces all of the above for schemes that are not made of steps: it
	// makes the kernel of one worker, for tiles of at most that many elements.
	tiles func(elements int) func(dst []byte, srcs [][]byte)
}

// run reduces one range, tile by tile.
func (p *plan) run(dst []byte, srcs [][]byte) {
	p.runner(min(len(dst)/p.d.Size(), tileElements))(dst, srcs)
}

// runner reduces ranges, tile by tile of so many elements, with buffers that stay.
func (p *plan) runner(elements int) func(dst []byte, srcs [][]byte) {
	reduce := (&bench{plan: p, elements: elements}).kernel()
	step := elements * p.d.Size()
	part := make([][]byte, p.n)
	return func(dst []byte, srcs [][]byte) {
		for lo := 0; lo < len(dst); lo += step {
			hi := min(lo+step, len(dst))
			for i, src := range srcs {
				part[i] = src[lo:hi]
			}
			reduce(dst[lo:hi], part)
		}
	}
}

// plan chooses the kernels for a call on n sources, n > 1.
func (o Options) plan(d num.DType, s num.Scheme, n int) *plan {
	p := &plan{d: d, s: s, n: n, acc: d}
	switch {
	case !d.Float():
		p.steps = o.intSteps(d, s)
		if s.Op == num.Avg {
			p.finish = divideInts(d, n)
		}
	case s.Op == num.Min || s.Op == num.Max:
		p.steps = o.minMaxSteps(d, s)
	case s.Acc == num.AccExact:
		p.tiles = o.exactTiles(d, s, n)
	case s.Step == num.NearestEven:
		p.planFloat(o)
	}
	if p.tiles == nil && p.steps.join == nil {
		p.tiles = func(int) func(dst []byte, srcs [][]byte) {
			return func(dst []byte, srcs [][]byte) { evalTile(dst, d, s, srcs) }
		}
	}
	return p
}

// evalTile reduces a tile by the reference.
func evalTile(dst []byte, d num.DType, s num.Scheme, srcs [][]byte) {
	in := make([]uint64, len(srcs))
	for i := 0; i < len(dst); i += d.Size() {
		for r, src := range srcs {
			in[r] = num.Load(d, src[i:])
		}
		num.Store(d, dst[i:], num.Eval(d, s, in))
	}
}
