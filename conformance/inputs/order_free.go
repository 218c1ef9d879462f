package inputs

import (
	"math"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
)

// shapeOrderFree makes values of which every order of the call's reduction
// gives the same bits, in every accumulator at least as wide as the type.
// Integer arithmetic and copies do so with any pattern.
func (g *Generator) shapeOrderFree(xs []uint64, l lane, rank int) {
	d := l.dtype
	if !d.Float() {
		return
	}
	switch g.call.Op {
	case api.Sum:
		g.shapeIntegers(xs, l, rank)
	case api.Prod:
		shapePowers(xs, d, rank)
	case api.Min, api.Max:
		shapeFinite(xs, d)
		for i, x := range xs {
			if x&(d.Mask()>>1) == 0 {
				xs[i] = x | 1 // the least number in place of a zero
			}
		}
	}
}

// orderFreeBound is m: integers from -m to m, one a rank, stay within the
// mantissa whatever part of them is added up.
func orderFreeBound(d api.DType, ranks int) uint64 {
	return max(1, 2<<d.MantissaBits()/uint64(ranks))
}

// orderFreeTable holds the patterns of -m..m.
func orderFreeTable(d api.DType, ranks int) []uint64 {
	m := int(orderFreeBound(d, ranks))
	t := make([]uint64, 2*m+1)
	for i := range t {
		t[i] = num.Encode(d, float64(i-m), num.NearestEven)
	}
	return t
}

// shapeIntegers writes integers from -m to m, and 0 on the ranks that a format
// with a short mantissa has no room for.
func (g *Generator) shapeIntegers(xs []uint64, l lane, rank int) {
	d := l.dtype
	m := orderFreeBound(d, g.call.Ranks)
	switch {
	case uint64(rank) >= 2<<d.MantissaBits():
		clear(xs)
	case l.table != nil:
		n := uint64(len(l.table))
		for i, x := range xs {
			xs[i] = l.table[x%n]
		}
	case d == api.F32:
		for i, x := range xs {
			xs[i] = uint64(math.Float32bits(float32(int64(x%(2*m+1)) - int64(m))))
		}
	default:
		for i, x := range xs {
			xs[i] = math.Float64bits(float64(int64(x%(2*m+1)) - int64(m)))
		}
	}
}

// shapePowers writes +-1 or a half, one or two on the first eight ranks, so that
// no product leaves any format, and 1 on the others. Bit 32 chooses between
// the two kinds and bit 33 is the sign.
func shapePowers(xs []uint64, d api.DType, rank int) {
	enc := func(x float64) uint64 { return num.Encode(d, x, num.NearestEven) }
	if rank >= 8 {
		one := enc(1)
		for i := range xs {
			xs[i] = one
		}
		return
	}
	signed := [2]uint64{enc(1), enc(-1)}
	powers := [3]uint64{enc(0.5), enc(1), enc(2)}
	for i, x := range xs {
		if x>>32&1 == 0 {
			xs[i] = signed[x>>33&1]
		} else {
			xs[i] = powers[x%3]
		}
	}
}
