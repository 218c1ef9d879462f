package num

import "math/bits"

// exactLow is the exponent of an Exact's lowest bit: the least product of two
// f64 numbers is 2^-2148. exactWords reaches past 2^2048, the greatest product,
// by enough for 2^60 terms.
const (
	exactLow   = -2148
	exactWords = (2*1074+2048+60)/64 + 1
)

// Exact is an exact sum of floating-point numbers: a fixed-point number wide
// enough for every finite value of every format, so that nothing is rounded
// before [Exact.Round]. The zero Exact is the empty sum, +0. Up to 2^60 terms
// fit. Infinities and NaNs follow IEEE whatever their order.
type Exact struct {
	// Positive and negative terms are summed apart, so that a change of the
	// total's sign costs no carry through all the words.
	pos, neg magnitudes
	nan      bool
}

// magnitudes is a sum of terms of one sign.
type magnitudes struct {
	words  [exactWords]uint64 // little-endian
	lo, hi int                // words outside lo:hi are zero
	seen   bool               // a term, if only a zero, had this sign
	inf    bool
}

// Reset makes x the empty sum again.
func (x *Exact) Reset() {
	x.nan = false
	x.pos.reset()
	x.neg.reset()
}

func (m *magnitudes) reset() {
	clear(m.words[m.lo:m.hi])
	m.lo, m.hi, m.seen, m.inf = 0, 0, false, false
}

// Add adds the pattern b of d.
func (x *Exact) Add(d DType, b uint64) {
	switch {
	case IsNaN(d, b):
		x.nan = true
	case IsInf(d, b):
		x.side(SignBit(d, b)).inf = true
	default:
		x.add(unpack(d, b))
	}
}

func (x *Exact) side(neg bool) *magnitudes {
	if neg {
		return &x.neg
	}
	return &x.pos
}

// addProduct adds the exact product of two patterns, the second one finite.
func (x *Exact) addProduct(d DType, a, c uint64) {
	switch {
	case IsNaN(d, a) || IsInf(d, a) && IsZero(d, c):
		x.nan = true
	case IsInf(d, a):
		x.side(SignBit(d, a) != SignBit(d, c)).inf = true
	default:
		x.add(unpack(d, a).times(unpack(d, c)))
	}
}

// add adds a number of at most 128 bits.
func (x *Exact) add(t real) {
	m := x.side(t.neg)
	m.seen = true
	if t.zero() {
		return
	}
	at := t.exp - exactLow
	w, shift := at/64, at%64
	top := t.hi >> (64 - shift)
	mid := t.hi<<shift | t.lo>>(64-shift)
	if m.lo == m.hi {
		m.lo, m.hi = w, w
	}
	m.lo = min(m.lo, w)
	var carry uint64
	m.words[w], carry = bits.Add64(m.words[w], t.lo<<shift, 0)
	for w++; mid|top|carry != 0; w++ {
		m.words[w], carry = bits.Add64(m.words[w], mid, carry)
		mid, top = top, 0
	}
	m.hi = max(m.hi, w)
}

// Round is the sum, rounded once into d. An exact zero is +0; it is -0 if every
// term was -0, or, rounding down, if the terms had both signs, as IEEE has it.
// NaN is canonical.
func (x *Exact) Round(d DType, r Rounding) uint64 { return x.round(d, r, 1) }

// round is the sum divided by n, rounded once into d.
func (x *Exact) round(d DType, r Rounding, n uint64) uint64 {
	mustFloat(d)
	switch {
	case x.nan || x.pos.inf && x.neg.inf:
		return CanonicalNaN(d)
	case x.pos.inf || x.neg.inf:
		return withSign(d, x.neg.inf, infinity(d))
	}
	var words [exactWords]uint64
	lo, hi, neg := x.difference(&words)
	if lo == hi {
		neg = x.neg.seen && (!x.pos.seen || r == Down)
		return withSign(d, neg, 0)
	}
	return wide{neg, words[lo:hi], exactLow + 64*lo}.over(n).round(d, r)
}

// difference writes |pos - neg| to words; all of it is in words[lo:hi], and
// words[hi-1] is not zero. For a difference of zero lo == hi.
func (x *Exact) difference(words *[exactWords]uint64) (lo, hi int, neg bool) {
	lo, hi = min(x.pos.lo, x.neg.lo), max(x.pos.hi, x.neg.hi)
	if x.pos.lo == x.pos.hi {
		lo = x.neg.lo
	} else if x.neg.lo == x.neg.hi {
		lo = x.pos.lo
	}
	a, b := &x.pos.words, &x.neg.words
	for hi > lo && a[hi-1] == b[hi-1] {
		hi--
	}
	if neg = hi > lo && a[hi-1] < b[hi-1]; neg {
		a, b = b, a
	}
	var borrow uint64
	for i := lo; i < hi; i++ {
		words[i], borrow = bits.Sub64(a[i], b[i], borrow)
	}
	for hi > lo && words[hi-1] == 0 {
		hi--
	}
	return lo, hi, neg
}

// wide is the finite number ±words * 2^exp, the words little-endian.
type wide struct {
	neg   bool
	words []uint64
	exp   int
}

// over is x / n, cut off at least 64 bits below its leading one; the lowest bit
// is jammed.
func (x wide) over(n uint64) wide {
	if n == 1 {
		return x
	}
	q := make([]uint64, len(x.words)+2)
	copy(q[2:], x.words)
	var rest uint64
	for i := len(q) - 1; i >= 0; i-- {
		q[i], rest = bits.Div64(rest, q[i], n)
	}
	if rest != 0 {
		q[0] |= 1
	}
	return wide{x.neg, q, x.exp - 128}
}

// times multiplies x by the 64-bit magnitude and the sign of y.
func (x wide) times(y real) wide {
	p := make([]uint64, len(x.words)+1)
	var carry uint64
	for i, w := range x.words {
		hi, lo := bits.Mul64(w, y.lo)
		var c uint64
		p[i], c = bits.Add64(lo, carry, 0)
		carry = hi + c
	}
	p[len(x.words)] = carry
	return wide{x.neg != y.neg, p, x.exp + y.exp}
}

// round rounds x once into d.
func (x wide) round(d DType, r Rounding) uint64 {
	n := len(x.words)
	for n > 0 && x.words[n-1] == 0 {
		n--
	}
	if n == 0 {
		return withSign(d, x.neg, 0)
	}
	at := func(i int) uint64 {
		if i < 0 {
			return 0
		}
		return x.words[i]
	}
	lead := bits.LeadingZeros64(at(n - 1))
	top := at(n-1)<<lead | at(n-2)>>(64-lead)
	below := at(n-2) << lead
	for i := range max(n-2, 0) {
		below |= x.words[i]
	}
	return pack(d, x.neg, top, x.exp+64*(n-1)-lead, below != 0, r)
}
