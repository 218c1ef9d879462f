package nvls

import (
	"encoding/binary"
	"math"
	"math/bits"

	"example.com/tandem/api/num"
)

// Sums of 16-bit terms that lie no further apart than f64 is wide are exact in
// f64, in any order. Directions that no kernel knows, the seeded one above all,
// are rounded from there.

// planSmall says whether the model's sums can be done so.
func (r *Reducer) planSmall() {
	m := &r.model
	r.small = r.scheme == nil && r.windowed == nil && r.d.Float() && r.d.Size() == 2 && !m.FTZIn &&
		(m.Kind == KindExact || m.Kind == KindWindow && m.TermBits == 0)
}

// smallTile reduces a tile if the magnitudes in it allow that.
func (w *windowFolder) smallTile(dst []byte, at int64) bool {
	f := &w.exact.format
	least, greatest := w.extremes()
	if greatest >= f.infinity || greatest == 0 {
		return false
	}
	x := extent{emax: max(int(greatest>>f.man), 1) - 1 + f.least, low: max(int(least>>f.man), 1) - 1 + f.least - f.man}
	if x.emax+1-x.low+bits.Len(uint(len(w.part))) > 53 {
		return false
	}
	limit := 0.0
	if _, anchor := w.exact.window(x); w.model.ResultBits > 0 && x.low < anchor-w.model.ResultBits {
		limit = math.Ldexp(1, anchor-w.model.ResultBits)
	}
	term := termBF16
	if w.d == num.F16 {
		term = termF16
	}
	for i := 0; i < len(dst); i += 2 {
		sum := 0.0
		for _, src := range w.part {
			sum += term(binary.LittleEndian.Uint16(src[i:]))
		}
		abs := math.Abs(sum)
		index := (at + int64(i)) / 2
		var b uint64
		switch {
		case abs < limit || sum == 0:
			// A window may end here, or zeros have signs.
			for k, src := range w.part {
				w.in[k] = uint64(binary.LittleEndian.Uint16(src[i:]))
			}
			b = w.exact.sum(w.in, index)
		default:
			word := math.Float64bits(abs)
			b = w.exact.round(total{neg: sum < 0, hi: 1<<63 | word<<11, exp: int(word>>52) - 1023 - 127}, index)
		}
		binary.LittleEndian.PutUint16(dst[i:], uint16(b))
	}
	return true
}

func termBF16(b uint16) float64 { return float64(math.Float32frombits(uint32(b) << 16)) }

// termF16 puts exponent and mantissa where a float32 has them; the factor makes
// up for the other bias, for subnormals too.
func termF16(b uint16) float64 {
	x := math.Float32frombits(uint32(b&0x7FFF)<<13) * 0x1p112
	return float64(math.Float32frombits(math.Float32bits(x) | uint32(b&0x8000)<<16))
}
