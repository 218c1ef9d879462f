package nvls

import (
	"encoding/binary"
	"math"

	"example.com/tandem/api/num"
	"example.com/tandem/sim/arith"
)

// Sums of 16-bit terms that lie no further apart than f64 is wide are exact in
// f64, in any order, and a window does not cut them where they are large enough:
// they are rounded from there, and the few elements that are not like that, or
// have terms that are infinite or NaNs, are summed by themselves.

// halfTile is the elements of a tile, whose sums stay in a first-level cache.
const halfTile = 1024

// planHalf says whether the model's sums can be done so.
func (r *Reducer) planHalf() {
	m := &r.model
	r.half = r.scheme == nil && r.d.Size() == 2 && !m.FTZIn && r.ranks >= 1 && r.ranks <= 1<<10 &&
		(m.Kind == KindExact && m.ResultBits == 0 || m.Kind == KindWindow && m.TermBits == 0)
}

// halfFolder is what one goroutine needs.
type halfFolder struct {
	*Reducer
	exact  *summer
	sums   *arith.HalfSums
	most   int // binades that terms may lie apart for the sum to be exact
	safe   int // and for no window to matter
	within bool
	in     []uint64
	part   [][]byte
	apart  []int
	again  []uint64 // results of the elements in apart
}

// foldHalf reduces the bytes lo to hi.
func (r *Reducer) foldHalf(dst []byte, at int64, lo, hi int, srcs [][]byte) {
	n := len(srcs)
	w := halfFolder{Reducer: r, exact: r.model.summer(r.model.rounder(r.d)), sums: arith.Options{}.HalfSums(r.d, min(halfTile, (hi-lo)/2)),
		in: make([]uint64, n), part: make([][]byte, n)}
	w.most = w.sums.Exact(n)
	w.safe = w.most
	if w.within = r.model.ResultBits > 0; w.within {
		// The lowest last place is then no lower than the least sum that is kept,
		// wherever in its granule the anchor lies.
		w.safe = max(min(w.most, r.model.ResultBits-w.exact.man-r.model.Granule+1), -1)
	}
	for ; lo < hi; lo += 2 * halfTile {
		end := min(lo+2*halfTile, hi)
		for i, src := range srcs {
			w.part[i] = src[lo:end]
		}
		w.tile(dst[lo:end], (at+int64(lo))/2)
	}
}

// tile reduces a tile, whose first element has that index. dst may be a source.
func (w *halfFolder) tile(dst []byte, index int64) {
	w.sums.Add(w.part...)
	w.look(len(dst)/2, index)
	w.round(dst, index)
	for k, i := range w.apart {
		binary.LittleEndian.PutUint16(dst[2*i:], uint16(w.again[k]))
	}
}

// look finds the elements to sum by themselves, and does.
func (w *halfFolder) look(n int, index int64) {
	f := &w.exact.format
	w.apart, w.again = w.apart[:0], w.again[:0]
	if w.safe < 0 { // a window that always matters
		for i := range n {
			w.apart = append(w.apart, i)
		}
	} else {
		w.apart = w.sums.Apart(w.apart, w.safe, int(f.infinity>>f.man)-1)
	}
	kept := w.apart[:0]
	for _, i := range w.apart {
		if w.fine(i) {
			continue
		}
		for r, src := range w.part {
			w.in[r] = uint64(binary.LittleEndian.Uint16(src[2*i:]))
		}
		kept = append(kept, i)
		w.again = append(w.again, w.exact.sum(w.in, index+int64(i)))
	}
	w.apart = kept
}

// fine reports whether the sum of an element is exact and large enough for the
// window to keep it.
func (w *halfFolder) fine(i int) bool {
	f := &w.exact.format
	least, greatest := w.sums.Spread(i)
	if !w.within || greatest >= f.infinity || int(greatest>>f.man)-int(least>>f.man) > w.most {
		return false
	}
	_, anchor := w.exact.window(extent{emax: max(int(greatest>>f.man), 1) - 1 + f.least})
	sum := math.Abs(w.sums.Sum(i))
	return sum == 0 || sum >= math.Ldexp(1, anchor-w.model.ResultBits)
}

// round rounds all sums; those in w.apart become anything.
func (w *halfFolder) round(dst []byte, index int64) {
	r := &w.exact.rounder
	if !r.ftz && !r.keepNeg0 && r.overflow != OverflowNaN {
		most := r.infinity
		if r.overflow == OverflowMax || r.final == finalRZ {
			most--
		}
		last, ok := map[final]num.Rounding{finalRNE: num.NearestEven, finalRZ: num.TowardZero, finalRA: num.AwayFromZero}[r.final]
		switch {
		case r.final == finalDIR:
			w.sums.Dither(dst, hashKey(r.seed, uint64(index)), uint16(most))
			return
		case ok:
			w.sums.Round(dst, last, uint16(most))
			return
		}
	}
	scale, cut := 0x1p-896, uint(45)
	if w.d == num.F16 {
		scale, cut = 0x1p-1008, 42
	}
	for i := range len(dst) / 2 {
		x := math.Float64bits(w.sums.Sum(i) * scale)
		neg, mag := x>>63 != 0, x&^(1<<63)
		out := r.signed(neg, 0)
		if mag != 0 {
			out = r.place(neg, mag>>cut, mag<<(64-cut), false, index+int64(i))
		}
		binary.LittleEndian.PutUint16(dst[2*i:], uint16(out))
	}
}
