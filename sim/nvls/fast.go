package nvls

import (
	"encoding/binary"
	"unsafe"

	"example.com/tandem/api/num"
	"example.com/tandem/sim/arith"
)

// A window changes a sum of f32 only where terms lie far apart: everywhere else it is
// the exact sum, rounded once, for which arith has kernels. Ranges are done in
// tiles; a look at the greatest and the least magnitude in a tile says whether
// the window can matter, and elements for which it may are done again.

// windowTile is the elements of a tile: the sources of a few ranks fit into a
// second-level cache.
const windowTile = 4096

// planWindow sets the scheme where a window's results are nearly always those of
// the exact sum.
func (r *Reducer) planWindow() {
	last, ok := map[Final]num.Rounding{RNE: num.NearestEven, RZ: num.TowardZero, RA: num.AwayFromZero}[r.model.Final]
	m := &r.model
	if ok && m.Kind == KindWindow && !m.FTZIn && !m.FTZOut && (m.Overflow == "" || m.Overflow == OverflowIEEE) && r.d == num.F32 && r.ranks > 1 {
		r.windowed = &num.Scheme{Op: num.Sum, Acc: num.AccExact, Last: last}
	}
}

// foldWindow reduces the bytes lo to hi.
func (r *Reducer) foldWindow(dst []byte, at int64, lo, hi int, srcs [][]byte) {
	w := windowFolder{Reducer: r, exact: r.model.summer(r.model.rounder(r.d)), in: make([]uint64, len(srcs)), part: make([][]byte, len(srcs))}
	step := windowTile * r.d.Size()
	for ; lo < hi; lo += step {
		end := min(lo+step, hi)
		for i, src := range srcs {
			w.part[i] = src[lo:end]
			if unsafe.SliceData(src) == unsafe.SliceData(dst) {
				w.saved = append(w.saved[:0], src[lo:end]...)
				w.part[i] = w.saved
			}
		}
		w.tile(dst[lo:end], at+int64(lo))
	}
}

// windowFolder is what one goroutine needs.
type windowFolder struct {
	*Reducer
	exact *summer
	in    []uint64
	part  [][]byte
	saved []byte // of the source that is the destination
}

func (w *windowFolder) tile(dst []byte, at int64) {
	arith.Options{Workers: 1}.Reduce(dst, w.d, *w.windowed, w.part...)
	f := &w.exact.format
	least, greatest := w.extremes()
	if greatest >= f.infinity {
		w.again(dst, at, ^uint64(0)) // specials are everybody's own business
		return
	}
	if greatest == 0 {
		clear(dst)
		return
	}
	x := extent{emax: max(int(greatest>>f.man), 1) - 1 + f.least, low: max(int(least>>f.man), 1) - 1 + f.least - f.man}
	base, anchor := w.exact.window(x)
	switch cut := anchor - w.model.ResultBits; {
	case base > x.low:
		w.again(dst, at, ^uint64(0)) // terms may be cut
	case x.low >= cut:
		w.again(dst, at, 0) // no sum but zero is as small as that
	default:
		w.again(dst, at, w.pattern(cut))
	}
}

// pattern is the magnitude pattern of 2^place, or of the least normal number.
func (w *windowFolder) pattern(place int) uint64 {
	f := &w.exact.format
	return uint64(max(place-f.least+1, 1)) << f.man
}

// again does the elements whose result is below a magnitude again. Zeros are +0
// whatever they come from.
func (w *windowFolder) again(dst []byte, at int64, below uint64) {
	size := w.d.Size()
	f := &w.exact.format
	for i := 0; i < len(dst); i += size {
		b := num.Load(w.d, dst[i:])
		switch mag := b & (f.sign - 1); {
		case mag == 0 && below != ^uint64(0):
			if b != 0 {
				num.Store(w.d, dst[i:], 0)
			}
		case mag < below:
			for k, src := range w.part {
				w.in[k] = num.Load(w.d, src[i:])
			}
			num.Store(w.d, dst[i:], w.exact.sum(w.in, (at+int64(i))/int64(size)))
		}
	}
}

// extremes are the least magnitude but zero and the greatest one in the tile.
func (w *windowFolder) extremes() (least, greatest uint64) {
	lo, hi := ^uint32(0), uint32(0)
	for _, src := range w.part {
		for ; len(src) >= 4; src = src[4:] {
			mag := binary.LittleEndian.Uint32(src) & 0x7FFFFFFF
			lo, hi = min(lo, mag-1), max(hi, mag) // zero less one is above every magnitude
		}
	}
	return uint64(lo) + 1, uint64(hi)
}
