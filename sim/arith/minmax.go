package arith

import (
	"math"

	"example.com/tandem/api/num"
)

// pattern is a float's pattern as a signed integer.
type pattern interface{ int8 | int16 | int32 | int64 }

// picker is min or max of floats, done on their patterns as integers.
type picker[T pattern] struct {
	most T // the greatest magnitude that is not a NaN
	nan  T // the canonical NaN
	flip T // -1 for max, which is min in the reverse order
	as   T // what a NaN counts as: the greatest T to drop it, the least to propagate it
}

// ordered maps patterns, sign and magnitude, to integers in the order of the
// values, -0 just below +0. It is its own inverse.
func ordered[T pattern](b T) T { return b ^ b>>(8*size[T]()-1)&greatest[T]() }

func greatest[T pattern]() T { return T(uint64(math.MaxUint64) >> (65 - 8*size[T]())) }

// pick is the operation under the rules DropNaN and PropagateNaN.
func (p *picker[T]) pick(a, b T) T {
	ka, kb := ordered(a)^p.flip, ordered(b)^p.flip
	if a&greatest[T]() > p.most {
		ka = p.as
	}
	if b&greatest[T]() > p.most {
		kb = p.as
	}
	k := min(ka, kb)
	if k == p.as {
		return p.nan
	}
	return ordered(k ^ p.flip)
}

// ternary is a < b ? a : b, or a > b ? a : b.
func (p *picker[T]) ternary(a, b T) T {
	ma, mb := a&greatest[T](), b&greatest[T]()
	va, vb := ma, mb
	if a < 0 {
		va = -ma
	}
	if b < 0 {
		vb = -mb
	}
	if va^p.flip < vb^p.flip && ma <= p.most && mb <= p.most {
		return a
	}
	return b
}

// minMaxSteps are the kernels of min and max of floats.
func (o Options) minMaxSteps(d num.DType, s num.Scheme) steps {
	if s := o.assemblyMinMax(d, s); s.join != nil {
		return s
	}
	var join func(dst, a, b []byte)
	switch d.Size() {
	case 1:
		join = pickRange(newPicker[int8](d, s), s.MinMax)
	case 2:
		join = pickRange(newPicker[int16](d, s), s.MinMax)
	case 4:
		join = pickRange(newPicker[int32](d, s), s.MinMax)
	case 8:
		join = pickRange(newPicker[int64](d, s), s.MinMax)
	}
	steps := pairwise(join)
	steps.anyOrder = s.MinMax != num.Ternary
	return steps
}

func newPicker[T pattern](d num.DType, s num.Scheme) *picker[T] {
	most := T(num.Encode(d, math.Inf(1), num.NearestEven))
	if d == num.E4M3 {
		most = T(num.Encode(d, math.Inf(1), num.NearestEven) - 1) // it has no infinity
	}
	p := &picker[T]{most: most, nan: T(num.CanonicalNaN(d)), as: greatest[T]()}
	if s.Op == num.Max {
		p.flip = -1
	}
	if s.MinMax == num.PropagateNaN {
		p.as = -greatest[T]() - 1
	}
	return p
}

func pickRange[T pattern](p *picker[T], rule num.MinMaxRule) func(dst, a, b []byte) {
	if rule == num.Ternary {
		return func(dst, a, b []byte) {
			for i := 0; i+size[T]() <= len(dst); i += size[T]() {
				store(dst[i:], p.ternary(load[T](a[i:]), load[T](b[i:])))
			}
		}
	}
	return func(dst, a, b []byte) {
		for i := 0; i+size[T]() <= len(dst); i += size[T]() {
			store(dst[i:], p.pick(load[T](a[i:]), load[T](b[i:])))
		}
	}
}
