package nvls

import (
	"math"
	"math/bits"
)

// summer adds the terms of one element exactly, in what of them the model's
// window keeps, and rounds once. It serves one goroutine.
type summer struct {
	rounder
	kind       Kind
	granule    int
	termBits   int
	resultBits int
	alignBits  int
	ftzIn      bool
	wide       []uint64 // for sums that need more than 128 bits
}

func (m *Model) summer(r rounder) *summer {
	return &summer{rounder: r, kind: m.Kind, granule: m.Granule, termBits: m.TermBits, resultBits: m.ResultBits, alignBits: m.AlignBits, ftzIn: m.FTZIn}
}

// extent is what a first look at the terms finds.
type extent struct {
	nonzero   bool
	negZeros  bool // every term is -0
	emax      int  // exponent of the greatest term, subnormals counting as the least normal
	low       int  // exponent of the lowest last place
	pos, neg  bool // infinities
	notNumber bool
}

func (s *summer) look(in []uint64) extent {
	x := extent{negZeros: true, low: math.MaxInt}
	top, bottom := -1, math.MaxInt
	for _, b := range in {
		mag := b & (s.sign - 1)
		if mag >= s.infinity {
			switch {
			case s.isNaN(b):
				x.notNumber = true
			case b&s.sign != 0:
				x.neg = true
			default:
				x.pos = true
			}
			continue
		}
		x.negZeros = x.negZeros && b == s.sign
		if mag == 0 || s.ftzIn && mag < 1<<s.man {
			continue
		}
		field := max(int(mag>>s.man), 1)
		top, bottom = max(top, field), min(bottom, field)
	}
	if top >= 0 {
		x.nonzero = true
		x.emax = top - 1 + s.least
		x.low = bottom - 1 + s.least - s.man
	}
	return x
}

// sum is the element of that index.
func (s *summer) sum(in []uint64, index int64) uint64 {
	x := s.look(in)
	switch {
	case x.notNumber || x.pos && x.neg:
		return s.nan
	case x.pos:
		return s.infinity
	case x.neg:
		return s.infinity | s.sign
	case !x.nonzero:
		return s.signed(x.negZeros, 0)
	}
	base, anchor := s.window(x)
	t := s.add(in, x, base)
	if t.zero() {
		return 0
	}
	if s.resultBits > 0 {
		if t.normal(); t.lead() < anchor-s.resultBits {
			return 0
		}
	}
	return s.round(t, index)
}

// window is the exponent of the lowest bit that is kept, and the anchor.
func (s *summer) window(x extent) (base, anchor int) {
	base = x.low
	switch s.kind {
	case KindWindow:
		anchor = s.granule * ceilDiv(x.emax, s.granule)
		if s.termBits > 0 {
			base = max(base, anchor-s.termBits)
		}
	case KindAligned:
		base = max(base, x.emax-s.alignBits)
	}
	return base, anchor
}

func ceilDiv(a, b int) int {
	q := a / b
	if a%b > 0 {
		q++
	}
	return q
}

// add sums the terms, each cut toward zero to a multiple of 2^base.
func (s *summer) add(in []uint64, x extent, base int) total {
	// The terms are below 2^(emax+1); a sign and the carries of all come on top.
	width := x.emax + 2 - base + bits.Len(uint(len(in)))
	switch {
	case width <= 63:
		return s.add64(in, base)
	case width <= 127:
		return s.add128(in, base)
	}
	return s.addWide(in, base, width)
}

// term is the magnitude of a finite term and how far it must be shifted up.
func (s *summer) term(b uint64, base int) (mant uint64, shift int) {
	mant, exp := s.unpack(b)
	if s.ftzIn && mant < 1<<s.man {
		mant = 0
	}
	return mant, exp - base
}

func (s *summer) add64(in []uint64, base int) total {
	var acc int64
	for _, b := range in {
		mant, shift := s.term(b, base)
		if shift < 0 {
			mant >>= min(-shift, 63)
		} else if mant != 0 {
			mant <<= shift
		}
		if b&s.sign != 0 {
			acc -= int64(mant)
		} else {
			acc += int64(mant)
		}
	}
	if acc < 0 {
		return total{neg: true, lo: uint64(-acc), exp: base}
	}
	return total{lo: uint64(acc), exp: base}
}

func (s *summer) add128(in []uint64, base int) total {
	var hi, lo, carry uint64
	for _, b := range in {
		mant, shift := s.term(b, base)
		var h, l uint64
		switch {
		case mant == 0:
			continue
		case shift < 0:
			l = mant >> min(-shift, 63)
		case shift < 64:
			h, l = mant>>(64-shift), mant<<shift
		default:
			h = mant << (shift - 64)
		}
		if b&s.sign != 0 {
			lo, carry = bits.Sub64(lo, l, 0)
			hi, _ = bits.Sub64(hi, h, carry)
		} else {
			lo, carry = bits.Add64(lo, l, 0)
			hi, _ = bits.Add64(hi, h, carry)
		}
	}
	t := total{hi: hi, lo: lo, exp: base}
	if int64(hi) < 0 {
		t.neg = true
		t.lo, carry = bits.Sub64(0, lo, 0)
		t.hi, _ = bits.Sub64(0, hi, carry)
	}
	return t
}

// addWide is add in as many words as it takes: sums without a window whose terms
// lie far apart.
func (s *summer) addWide(in []uint64, base, width int) total {
	n := width/64 + 2
	if cap(s.wide) < n {
		s.wide = make([]uint64, n)
	}
	w := s.wide[:n]
	clear(w)
	for _, b := range in {
		mant, shift := s.term(b, base)
		if shift < 0 {
			mant, shift = mant>>min(-shift, 63), 0
		}
		if mant != 0 {
			accumulate(w, mant, shift, b&s.sign != 0)
		}
	}
	neg := int64(w[n-1]) < 0
	if neg {
		negate(w)
	}
	top := n - 1
	for top > 1 && w[top] == 0 {
		top--
	}
	// Two words below the leading one need not be full: take a third.
	t := total{neg: neg, hi: w[top], lo: w[top-1], exp: base + 64*(top-1)}
	if t.hi == 0 || top < 2 {
		return t
	}
	lead := bits.LeadingZeros64(t.hi)
	next := w[top-2]
	t.hi = t.hi<<lead | t.lo>>(64-lead)
	t.lo = t.lo<<lead | next>>(64-lead)
	t.exp -= lead
	t.sticky = next<<lead != 0
	for _, rest := range w[:top-2] {
		t.sticky = t.sticky || rest != 0
	}
	return t
}

// accumulate adds ±mant * 2^shift to a number in two's complement.
func accumulate(w []uint64, mant uint64, shift int, neg bool) {
	at, by := shift/64, shift%64
	parts := [2]uint64{mant << by, mant >> (64 - by)} // a shift by 64 gives 0
	var carry uint64
	for i := 0; at+i < len(w); i++ {
		var p uint64
		if i < 2 {
			p = parts[i]
		} else if carry == 0 {
			return
		}
		if neg {
			w[at+i], carry = bits.Sub64(w[at+i], p, carry)
		} else {
			w[at+i], carry = bits.Add64(w[at+i], p, carry)
		}
	}
}

func negate(w []uint64) {
	var borrow uint64
	for i := range w {
		w[i], borrow = bits.Sub64(0, w[i], borrow)
	}
}
