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

	// tile replaces all of the above for schemes that are not made of steps.
	tile func(dst []byte, srcs [][]byte)
}

// run reduces one range, tile by tile.
func (p *plan) run(dst []byte, srcs [][]byte) {
	step := tileElements * p.d.Size()
	part := make([][]byte, len(srcs))
	var b *bench
	if p.tile == nil {
		b = &bench{plan: p, elements: min(len(dst)/p.d.Size(), tileElements)}
	}
	for lo := 0; lo < len(dst); lo += step {
		hi := min(lo+step, len(dst))
		for i, src := range srcs {
			part[i] = src[lo:hi]
		}
		if b == nil {
			p.tile(dst[lo:hi], part)
		} else {
			b.reduce(dst[lo:hi], part)
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
		p.tile = o.exactTile(d, s, n)
	case s.Step == num.NearestEven:
		p.planFloat(o)
	}
	if p.tile == nil && p.steps.join == nil {
		p.tile = func(dst []byte, srcs [][]byte) { evalTile(dst, d, s, srcs) }
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
