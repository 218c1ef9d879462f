package nvls

import (
	"math/bits"

	"example.com/tandem/api/num"
)

// format is what rounding and unpacking need of a floating-point type.
type format struct {
	d        num.DType
	man      int    // stored mantissa bits
	least    int    // exponent of the least normal number
	sign     uint64 // bit
	infinity uint64 // first magnitude pattern beyond the finite ones
	nan      uint64 // canonical
}

func formatOf(d num.DType) format {
	f := format{d: d, man: d.MantissaBits(), least: 1 - d.Bias(), sign: 1 << (d.Bits() - 1), nan: num.CanonicalNaN(d)}
	f.infinity = (1<<d.ExponentBits() - 1) << f.man
	if d == num.E4M3 {
		f.infinity = 0x7F // its NaN
	}
	return f
}

// special reports whether a pattern is infinite or a NaN.
func (f *format) special(b uint64) bool { return b&(f.sign-1) >= f.infinity }

func (f *format) isNaN(b uint64) bool {
	return b&(f.sign-1) > f.infinity || f.d == num.E4M3 && b&(f.sign-1) == f.infinity
}

// unpack takes a finite pattern apart: ±mant * 2^exp.
func (f *format) unpack(b uint64) (mant uint64, exp int) {
	mag := b & (f.sign - 1)
	field := mag >> f.man
	mant = mag & (1<<f.man - 1)
	if field != 0 {
		mant |= 1 << f.man
		field--
	}
	return mant, int(field) + f.least - f.man
}

// total is a finite sum: ±(hi:lo) * 2^exp, and with sticky less than one unit of
// lo more in magnitude, where hi then has its top bit set.
type total struct {
	neg    bool
	hi, lo uint64
	exp    int
	sticky bool
}

func (t *total) zero() bool { return t.hi|t.lo == 0 }

// normal shifts so that the leading one is the top bit of hi.
func (t *total) normal() {
	if t.hi == 0 {
		t.hi, t.lo = t.lo, 0
		t.exp -= 64
	}
	n := bits.LeadingZeros64(t.hi)
	t.hi = t.hi<<n | t.lo>>(64-n)
	t.lo <<= n
	t.exp -= n
}

// lead is the exponent of the leading one of a normal total.
func (t *total) lead() int { return t.exp + 127 }

// rounder rounds totals into a format.
type rounder struct {
	format
	final    final
	overflow Overflow
	ftz      bool
	keepNeg0 bool
	seed     uint64
}

// final is Final for the inner loop.
type final uint8

const (
	finalRNE final = iota
	finalRNA
	finalRHU
	finalRZ
	finalRA
	finalRTN
	finalRTP
	finalODD
	finalG1
	finalDIR
	finalAdversarial
)

var finals = map[Final]final{
	RNE: finalRNE, RNA: finalRNA, RHU: finalRHU, RZ: finalRZ, RA: finalRA, RTN: finalRTN,
	RTP: finalRTP, ODD: finalODD, G1: finalG1, DIR: finalDIR, Adversarial: finalAdversarial,
}

func (m *Model) rounder(d num.DType) rounder {
	return rounder{formatOf(d), finals[m.Final], m.Overflow, m.FTZOut, m.KeepNeg0, m.Seed}
}

// round is a total that is not zero, rounded once. index is the element's.
func (r *rounder) round(t total, index int64) uint64 {
	low, frac, sticky := r.truncate(t)
	return r.place(t.neg, low, frac, sticky, index)
}

// place is round for what truncate leaves.
func (r *rounder) place(neg bool, low, frac uint64, sticky bool, index int64) uint64 {
	mag := low
	switch {
	case low >= r.infinity:
		mag = r.beyond(neg)
	case r.up(neg, low&1 == 1, frac, sticky, index):
		mag++
	}
	if mag >= r.infinity {
		return r.overflown(neg)
	}
	return r.signed(neg, mag)
}

// truncate is the magnitude pattern of t cut off, at least the infinity where t
// is beyond the finite numbers, and what was cut as a fraction of 2^64 of the
// last place.
func (r *rounder) truncate(t total) (low, frac uint64, sticky bool) {
	t.normal()
	e := max(t.lead(), r.least)
	if t.lead() > r.d.Bias()+1 {
		return r.infinity, 0, false
	}
	drop := e - r.man - t.exp // bits below the last place, at least 127-52
	switch {
	case drop >= 192:
		return 0, 0, true
	case drop > 128:
		return 0, t.hi >> (drop - 128), t.sticky || t.lo|t.hi<<(192-drop) != 0
	case drop == 128:
		return 0, t.hi, t.sticky || t.lo != 0
	}
	n := drop - 64 // 11 to 63
	low = t.hi>>n + uint64(e-r.least)<<r.man
	return low, t.hi<<(64-n) | t.lo>>n, t.sticky || t.lo<<(64-n) != 0
}

// up says whether the magnitude goes up, frac and sticky being what was cut.
func (r *rounder) up(neg, odd bool, frac uint64, sticky bool, index int64) bool {
	const half = 1 << 63
	if frac == 0 && !sticky {
		return false
	}
	nearest := frac > half || frac == half && (sticky || odd)
	switch r.final {
	case finalRNA:
		return frac >= half
	case finalRHU:
		return frac > half || frac == half && (sticky || !neg)
	case finalRZ:
		return false
	case finalRA:
		return true
	case finalRTN:
		return neg
	case finalRTP:
		return !neg
	case finalODD:
		return !odd
	case finalG1:
		return frac >= half && odd
	case finalDIR:
		d := hash(r.seed, uint64(index))
		return d < frac || d == frac && sticky
	case finalAdversarial:
		return !nearest
	}
	return nearest
}

// beyond is the magnitude of a sum that lies beyond the last finite number by a
// unit or more.
func (r *rounder) beyond(neg bool) uint64 {
	switch r.final {
	case finalRZ, finalODD, finalAdversarial:
		return r.infinity - 1
	case finalRTN:
		if !neg {
			return r.infinity - 1
		}
	case finalRTP:
		if neg {
			return r.infinity - 1
		}
	}
	return r.infinity
}

func (r *rounder) overflown(neg bool) uint64 {
	switch {
	case r.overflow == OverflowMax:
		return r.signed(neg, r.infinity-1)
	case r.overflow == OverflowNaN || r.d == num.E4M3:
		return r.nan
	}
	return r.signed(neg, r.infinity)
}

// signed attaches a sign to a finite or infinite magnitude, under the rules for
// subnormals and zeros.
func (r *rounder) signed(neg bool, mag uint64) uint64 {
	if r.ftz && mag < 1<<r.man {
		mag = 0
	}
	if !neg || mag == 0 && !r.keepNeg0 {
		return mag
	}
	return mag | r.sign
}
