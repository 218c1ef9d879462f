package arith

import (
	"math"

	"example.com/tandem/api/num"
)

// picker is min or max of floats, done on their patterns as integers.
type picker struct {
	mag   int64 // the bits below the sign
	most  int64 // the greatest magnitude that is not a NaN
	zeros int64 // -1 where both zeros are equal, 0 where -0 is below +0
	flip  int64 // -1 for max, which is min in the reverse order
	nan   int64 // the canonical NaN
	rule  num.MinMaxRule
}

// minMaxSteps are the kernels of min and max of floats.
func (o Options) minMaxSteps(d num.DType, s num.Scheme) steps {
	if s := o.assemblyMinMax(d, s); s.join != nil {
		return s
	}
	p := newPicker(d, s)
	var join func(dst, a, b []byte)
	switch d.Size() {
	case 1:
		join = p.join8
	case 2:
		join = p.join16
	case 4:
		join = p.join32
	default:
		join = p.join64
	}
	steps := pairwise(join)
	steps.anyOrder = s.MinMax != num.Ternary
	return steps
}

func newPicker(d num.DType, s num.Scheme) *picker {
	p := &picker{
		mag:  int64(d.Mask() >> 1),
		most: int64(num.Encode(d, math.Inf(1), num.NearestEven)),
		nan:  int64(num.CanonicalNaN(d)),
		rule: s.MinMax,
	}
	if d == num.E4M3 {
		p.most-- // it has no infinity, only the NaN
	}
	if s.Op == num.Max {
		p.flip = -1
	}
	if s.MinMax == num.Ternary {
		p.zeros = -1
	}
	return p
}

// unordered is the result where x or y is a NaN.
func (p *picker) unordered(x, y int64) int64 {
	switch {
	case p.rule == num.Ternary:
		return y
	case p.rule == num.PropagateNaN || x&p.mag > p.most && y&p.mag > p.most:
		return p.nan
	case x&p.mag > p.most:
		return y
	}
	return x
}

// join16 is dst[i] = the lesser of a[i] and b[i], or the greater. It is unrolled
// from pick by hand, since the compiler does not inline as much, and for
// registers the fields are copied.
func (p *picker) join16(dst, a, b []byte) {
	mag, most, zeros, flip := p.mag, p.most, p.zeros, p.flip
	a, b = a[:len(dst)], b[:len(dst)]
	for i := 0; i < len(dst)-1; i += 2 {
		x, y := int64(int16(get16(a, i))), int64(int16(get16(b, i)))
		mx, my, sx, sy := x&mag, y&mag, x>>63, y>>63
		if mx > most || my > most {
			put16(dst, i, uint16(p.unordered(x, y)))
			continue
		}
		// -mag-1, or -mag where zeros are equal, is a negative number's place.
		v := y
		if (mx^sx-sx&zeros)^flip < (my^sy-sy&zeros)^flip {
			v = x
		}
		put16(dst, i, uint16(v))
	}
}

// pick is what join16 does, on one pair.
func (p *picker) pick(x, y int64) int64 {
	mx, my, sx, sy := x&p.mag, y&p.mag, x>>63, y>>63
	switch {
	case mx > p.most || my > p.most:
		return p.unordered(x, y)
	case (mx^sx-sx&p.zeros)^p.flip < (my^sy-sy&p.zeros)^p.flip:
		return x
	}
	return y
}

func (p *picker) join8(dst, a, b []byte) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = byte(p.pick(int64(int8(a[i])), int64(int8(b[i]))))
	}
}

func (p *picker) join32(dst, a, b []byte) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := 0; i < len(dst)-3; i += 4 {
		put32(dst, i, uint32(p.pick(int64(int32(get32(a, i))), int64(int32(get32(b, i))))))
	}
}

func (p *picker) join64(dst, a, b []byte) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := 0; i < len(dst)-7; i += 8 {
		put64(dst, i, uint64(p.pick(int64(get64(a, i)), int64(get64(b, i)))))
	}
}
