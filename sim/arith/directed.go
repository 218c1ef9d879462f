package arith

import (
	"math"
	"math/bits"

	"example.com/tandem/api/num"
)

// HalfSums are the sums of a tile of bf16 or f16 in f64, for a last rounding and
// for limits that are the caller's. A sum is exact where the terms lie no further
// apart than [HalfSums.Exact]; a tile of one worker serves one goroutine.
type HalfSums struct {
	d               num.DType
	o               Options
	steps           steps // in f64
	short, widen    steps // in f32, and from there to f64
	sums, high, low []byte
	room            [4][]byte
}

// HalfSums readies tiles of at most so many elements of d, which is bf16 or f16.
func (o Options) HalfSums(d num.DType, elements int) *HalfSums {
	if d != num.BF16 && d != num.F16 {
		panic(badDType)
	}
	h := &HalfSums{d: d, o: o, steps: o.floatSteps(num.F64, d, num.Sum)}
	h.short, h.widen = o.floatSteps(num.F32, d, num.Sum), o.floatSteps(num.F64, num.F32, num.Sum)
	h.room = [4][]byte{make([]byte, 8*elements), make([]byte, 2*elements), make([]byte, 2*elements), make([]byte, 4*elements)}
	return h
}

// Exact is how many binades apart the greatest and the least of n terms may be,
// zeros aside, for their sum to be exact.
func (h *HalfSums) Exact(n int) int { return h.exactIn(num.F64, n) }

func (h *HalfSums) exactIn(acc num.DType, n int) int {
	return acc.MantissaBits() - h.d.MantissaBits() - bits.Len(uint(n-1))
}

// Add sets the sums to those of the elements of srcs, all of one length.
func (h *HalfSums) Add(srcs ...[]byte) {
	n := len(srcs[0]) / 2
	h.sums, h.high, h.low = h.room[0][:8*n], h.room[1][:2*n], h.room[2][:2*n]
	clear(h.high)
	clear(h.low)
	whole := h.o.spreadKernel(h.high, h.low, srcs)
	spreadRest(h.high[whole:], h.low[whole:], srcs, whole)
	if h.shorter() {
		h.sumShort(srcs)
	} else {
		h.sum(srcs)
	}
}

// sum adds the sources from the left.
func (h *HalfSums) sum(srcs [][]byte) {
	n := min(max(h.steps.group-1, 1), len(srcs))
	h.steps.first(h.sums, srcs[:n])
	for srcs = srcs[n:]; len(srcs) > 0; srcs = srcs[n:] {
		n = min(h.steps.group-1, len(srcs))
		h.steps.more(h.sums, h.sums, srcs[:n])
	}
}

// sumShort adds them in f32, a group at a time, and the groups in f64, which takes
// half the time.
func (h *HalfSums) sumShort(srcs [][]byte) {
	short := h.room[3][:len(h.sums)/2]
	for i := 0; i < len(srcs); i += h.short.group {
		h.short.first(short, srcs[i:min(i+h.short.group, len(srcs))])
		if i == 0 {
			h.widen.first(h.sums, [][]byte{short})
		} else {
			h.widen.more(h.sums, h.sums, [][]byte{short})
		}
	}
}

// shorter reports whether the sums of groups are exact in f32 too, by what
// exactSteps has, for all elements of the tile.
func (h *HalfSums) shorter() bool {
	n := h.short.group
	most, top := h.exactIn(num.F32, n), 1<<h.d.ExponentBits()-2
	if h.d == num.BF16 {
		top -= bits.Len(uint(n - 1)) // no sum may be beyond f32's range
	}
	return len(h.high)%(2*unit) == 0 && !h.o.anyApart(h.high, h.low, uint16(most), uint16(top), uint64(h.d.MantissaBits()))
}

// spreadRest is the kernel spread16 in Go, for what lies from byte at on in the
// sources.
func spreadRest(high, low []byte, srcs [][]byte, at int) {
	for i := 0; i < len(high); i += 2 {
		hi, lo := get16(high, i), get16(low, i)
		for _, src := range srcs {
			mag := get16(src, at+i) & 0x7FFF
			hi, lo = max(hi, mag), max(lo, -mag)
		}
		put16(high, i, hi)
		put16(low, i, lo)
	}
}

// Sum is that of element i.
func (h *HalfSums) Sum(i int) float64 { return getF64(h.sums, 8*i) }

// Spread is the least magnitude but zero among the terms of element i and the
// greatest one, as patterns; both are 0 where all terms are zeros.
func (h *HalfSums) Spread(i int) (least, greatest uint64) {
	return uint64(-get16(h.low, 2*i)), uint64(get16(h.high, 2*i))
}

// Apart appends the elements whose terms are more than most binades apart, or
// have an exponent field above top.
func (h *HalfSums) Apart(to []int, most, top int) []int {
	man := h.d.MantissaBits()
	for lo := 0; lo < len(h.high); lo += 2 * fixSearch {
		hi := min(lo+2*fixSearch, len(h.high))
		if hi-lo == 2*fixSearch && !h.o.anyApart(h.high[lo:hi], h.low[lo:hi], uint16(most), uint16(top), uint64(man)) {
			continue
		}
		for i := lo / 2; i < hi/2; i++ {
			least, greatest := h.Spread(i)
			if int(greatest>>man)-int(least>>man) > most || int(greatest>>man) > top {
				to = append(to, i)
			}
		}
	}
	return to
}

// fixSearch is how many elements are searched at once, by an instruction for many.
const fixSearch = 4 * unit

// Round sets dst to the sums, rounded once: r is nearest even, toward zero or away
// from zero. A magnitude pattern above most becomes most, and -0 becomes +0. Sums
// that are not finite leave anything.
func (h *HalfSums) Round(dst []byte, r num.Rounding, most uint16) {
	n := h.o.roundKernel(dst, h.sums, h.d, r, most)
	scale, cut := halfScale(h.d)
	below := uint64(1)<<cut - 1
	for i := n; i < len(dst)/2; i++ {
		x := math.Float64bits((h.Sum(i) + 0) * scale)
		mag := x &^ (1 << 63)
		switch r {
		case num.NearestEven:
			mag += below>>1 + mag>>cut&1
		case num.AwayFromZero:
			mag += below
		}
		put16(dst, 2*i, uint16(min(mag>>cut, uint64(most))|x>>48&0x8000))
	}
}

// Dither is Round up in magnitude with the probability of what is cut off: where
// that, as a fraction of 2^64 of the last place, is above Mix(key + element).
func (h *HalfSums) Dither(dst []byte, key uint64, most uint16) {
	n := h.o.ditherKernel(dst, h.sums, h.d, key, most)
	scale, cut := halfScale(h.d)
	below := uint64(1)<<cut - 1
	for i := n; i < len(dst)/2; i++ {
		x := math.Float64bits((h.Sum(i) + 0) * scale)
		mag := x&^(1<<63) + below - Mix(key+uint64(i))>>(64-cut)
		put16(dst, 2*i, uint16(min(mag>>cut, uint64(most))|x>>48&0x8000))
	}
}

// halfScale is the factor that moves the exponents of an f64 so that its bits from
// cut on are a pattern of d, subnormals too. Nothing is lost by it: a sum of
// elements is a multiple of the least subnormal.
func halfScale(d num.DType) (scale float64, cut uint) {
	if d == num.F16 {
		return 0x1p-1008, 42
	}
	return 0x1p-896, 45
}

// Mix is the finalizer of splitmix64, twice, so that near numbers become far
// apart.
func Mix(z uint64) uint64 {
	for range 2 {
		z ^= z >> 30
		z *= 0xBF58476D1CE4E5B9
		z ^= z >> 27
		z *= 0x94D049BB133111EB
		z ^= z >> 31
	}
	return z
}
