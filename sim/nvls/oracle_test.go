package nvls

import (
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/tandem/api/num"
)

// oracleTerms are the finite values of the inputs in big numbers; the second
// result is what specials make of the sum, and whether they do.
func oracleTerms(d num.DType, in []uint64) (terms []*big.Float, special uint64, done bool) {
	var pos, neg, nan bool
	for _, b := range in {
		switch {
		case num.IsNaN(d, b):
			nan = true
		case num.IsInf(d, b) && num.SignBit(d, b):
			neg = true
		case num.IsInf(d, b):
			pos = true
		default:
			terms = append(terms, new(big.Float).SetPrec(5000).SetFloat64(num.Decode(d, b)))
		}
	}
	inf := num.Encode(d, math.Inf(1), num.NearestEven)
	switch {
	case nan || pos && neg:
		return nil, num.CanonicalNaN(d), true
	case pos:
		return nil, inf, true
	case neg:
		return nil, num.Neg(d, inf), true
	}
	return terms, 0, false
}

// cutTo is x cut toward zero to a multiple of 2^place.
func cutTo(x *big.Float, place int) *big.Float {
	scaled := new(big.Float).SetPrec(5000).SetMantExp(x, -place)
	i, _ := scaled.Int(nil)
	return new(big.Float).SetPrec(5000).SetMantExp(new(big.Float).SetPrec(5000).SetInt(i), place)
}

// oracle is a window, aligned or exact sum in big numbers, written from the
// description; the last rounding is RNE, RZ or RA.
func oracle(m *Model, d num.DType, in []uint64) uint64 {
	terms, special, done := oracleTerms(d, in)
	if done {
		return special
	}
	emax, nonzero := 1-d.Bias(), false
	for _, x := range terms {
		if x.Sign() != 0 {
			nonzero = true
			emax = max(emax, x.MantExp(nil)-1)
		}
	}
	if !nonzero {
		return 0
	}
	anchor := 0
	if m.Granule > 0 {
		for anchor < emax {
			anchor += m.Granule
		}
		for anchor-m.Granule >= emax {
			anchor -= m.Granule
		}
	}
	sum := new(big.Float).SetPrec(5000)
	for _, x := range terms {
		switch {
		case m.Kind == KindAligned:
			x = cutTo(x, emax-m.AlignBits)
		case m.Kind == KindWindow && m.TermBits > 0:
			x = cutTo(x, anchor-m.TermBits)
		}
		sum.Add(sum, x)
	}
	one := new(big.Float).SetInt64(1)
	if sum.Sign() == 0 || m.Kind == KindWindow && new(big.Float).Abs(sum).Cmp(new(big.Float).SetMantExp(one, anchor-m.ResultBits)) < 0 {
		return 0
	}
	return oracleRound(d, sum, m.Final)
}

// oracleRound finds the neighbours by bisection over the magnitudes.
func oracleRound(d num.DType, sum *big.Float, last Final) uint64 {
	value := func(mag uint64) *big.Float {
		return new(big.Float).SetPrec(5000).SetFloat64(num.Decode(d, mag))
	}
	abs := new(big.Float).Abs(sum)
	f := formatOf(d)
	lo, hi := uint64(0), f.infinity // value(lo) <= abs, and hi lies above
	for lo+1 < hi {
		if mid := (lo + hi) / 2; value(mid).Cmp(abs) <= 0 {
			lo = mid
		} else {
			hi = mid
		}
	}
	mag := lo
	if value(lo).Cmp(abs) != 0 {
		up := last == RA
		if last == RNE {
			// The number after the greatest is one more last place away.
			next := value(lo)
			if lo+1 < f.infinity {
				next = value(lo + 1)
			} else {
				next.Add(next, new(big.Float).Sub(value(lo), value(lo-1)))
			}
			twice := new(big.Float).Add(value(lo), next)
			c := new(big.Float).Add(abs, abs).Cmp(twice)
			up = c > 0 || c == 0 && lo&1 == 1
		}
		if up {
			mag++
		}
	}
	if num.IsNaN(d, mag) {
		return num.CanonicalNaN(d)
	}
	if sum.Sign() < 0 && mag != 0 {
		mag |= f.sign
	}
	return mag
}

// drawInputs are patterns that lie near each other, far apart, cancel, or are
// special.
func drawInputs(t *rapid.T, d num.DType, most int) []uint64 {
	n := rapid.IntRange(2, most).Draw(t, "ranks")
	in := make([]uint64, n)
	shape := rapid.IntRange(0, 4).Draw(t, "shape")
	for i := range in {
		b := rapid.Uint64().Draw(t, "pattern") & d.Mask()
		switch {
		case shape == 1: // exponents near one
			exp := uint64(d.Bias()+rapid.IntRange(-3, 3).Draw(t, "exp")) << d.MantissaBits()
			b = b&^(uint64(1<<d.ExponentBits()-1)<<d.MantissaBits()) | exp
		case shape == 2 && i%2 == 1: // cancellation, up to a last bit or two
			b = num.Neg(d, in[i-1]) ^ b&1
		case shape == 3 && i > 0 && i%2 == 0: // exact cancellation, and something left
			in[i-1] = num.Neg(d, in[0])
		case shape == 4: // subnormals and zeros
			b &= 1<<d.MantissaBits() - 1 | 1<<(d.Bits()-1)
		}
		in[i] = b
	}
	return in
}

var oracleModels = []Model{
	{Kind: KindWindow, Granule: 16, TermBits: 95, ResultBits: 86, Final: RNE},
	halfWindow("", RNE), halfWindow("", RZ), halfWindow("", RA),
	{Kind: KindAligned, AlignBits: 25, Final: RNE}, {Kind: KindAligned, AlignBits: 70, Final: RZ},
	{Kind: KindExact, Final: RNE}, {Kind: KindExact, Final: RA},
	{Kind: KindWindow, Granule: 7, TermBits: 300, ResultBits: 200, Final: RNE},
}

// TestOracle: sums without big numbers equal sums in big numbers.
func TestOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.SampledFrom(floats).Draw(t, "dtype")
		m := oracleModels[rapid.IntRange(0, len(oracleModels)-1).Draw(t, "model")]
		in := drawInputs(t, d, 9)
		require.Equal(t, oracle(&m, d, in), m.Word(d, num.Sum, in, 0), "%v of %v: %#x", m, d, in)
	})
}

// TestDirections: whatever the direction, a result is one of the two neighbours
// of the same total, and each direction is the one it says.
func TestDirections(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.SampledFrom(halves).Draw(t, "dtype")
		in := drawInputs(t, d, 6)
		of := func(last Final) uint64 {
			m := halfWindow("", last)
			return m.Word(d, num.Sum, in, 3)
		}
		low, high, near, neg := of(RZ), of(RA), of(RNE), num.SignBit(d, of(RZ))
		require.Contains(t, []uint64{low, high}, near)
		require.Contains(t, []uint64{low, high}, of(DIR))
		if low == high {
			require.Equal(t, low, of(Adversarial))
			return
		}
		require.Equal(t, low+1, high)
		require.NotEqual(t, near, of(Adversarial))
		down, up := low, high
		if neg {
			down, up = high, low
		}
		require.Equal(t, down, of(RTN))
		require.Equal(t, up, of(RTP))
		if odd := of(ODD); high != formatOf(d).infinity && high != formatOf(d).infinity|formatOf(d).sign {
			require.EqualValues(t, 1, odd&1)
		}
	})
}

// TestReducer: ranges equal single elements, for every preset, at any place and
// with any number of workers.
func TestReducer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SampledFrom(Presets()).Draw(t, "preset")
		d := rapid.SampledFrom(p.DTypes).Draw(t, "dtype")
		p.Seed = rapid.Uint64Range(0, 9).Draw(t, "seed")
		ranks := rapid.IntRange(2, 5).Draw(t, "ranks")
		n := rapid.IntRange(0, 40).Draw(t, "elements")
		at := rapid.Int64Range(0, 1000).Draw(t, "at")
		srcs := make([][]byte, ranks)
		for r := range srcs {
			srcs[r] = make([]byte, n*d.Size())
		}
		for i := range n {
			in := drawInputs(t, d, 2)
			for r := range srcs {
				num.Store(d, srcs[r][i*d.Size():], in[(r*7+i)%2])
			}
		}
		r, err := NewReducer(p.Model, d, num.Sum, ranks)
		require.NoError(t, err)
		r.Workers = rapid.IntRange(0, 3).Draw(t, "workers")
		dst := make([]byte, n*d.Size())
		r.Fold(dst, at*int64(d.Size()), srcs...)
		for i := range n {
			in := make([]uint64, ranks)
			for k := range in {
				in[k] = num.Load(d, srcs[k][i*d.Size():])
			}
			require.Equal(t, p.Word(d, num.Sum, in, at+int64(i)), num.Load(d, dst[i*d.Size():]), "%s %v %#x", p.Name, d, in)
		}
	})
}

// TestWindowTiles: tiles in which nothing, something or everything must be done
// again equal single elements, in place too.
func TestWindowTiles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.SampledFrom([]num.DType{num.BF16, num.F16, num.F32, num.F64}).Draw(t, "dtype")
		m := halfWindow("", rapid.SampledFrom([]Final{RNE, RZ, RA, DIR, G1, Adversarial, ODD, RTP}).Draw(t, "final"))
		if d.Size() > 2 {
			m = Model{Kind: KindWindow, Granule: 16, TermBits: 95, ResultBits: 86, Final: m.Final}
		}
		n := rapid.SampledFrom([]int{1, 37, windowTile + 3}).Draw(t, "elements")
		wild := rapid.SliceOfN(rapid.IntRange(0, n-1), 0, 6).Draw(t, "wild")
		size, ranks := d.Size(), 4
		srcs := make([][]byte, ranks)
		for r := range srcs {
			srcs[r] = make([]byte, n*size)
			for i := range n {
				exp := uint64(d.Bias()+(r*5+i*3)%7-3) << d.MantissaBits()
				num.Store(d, srcs[r][i*size:], exp|hash(uint64(r), uint64(i))>>(64-d.MantissaBits())|uint64(i&1)<<(d.Bits()-1))
			}
		}
		for _, i := range wild {
			for r, b := range drawInputs(t, d, 2) {
				num.Store(d, srcs[r][i*size:], b)
				num.Store(d, srcs[r+2][i*size:], b)
			}
		}
		want := make([]uint64, n)
		in := make([]uint64, ranks)
		for i := range want {
			for r := range in {
				in[r] = num.Load(d, srcs[r][i*size:])
			}
			want[i] = m.Word(d, num.Sum, in, int64(i))
		}
		r, err := NewReducer(m, d, num.Sum, ranks)
		require.NoError(t, err)
		dst := make([]byte, n*size)
		if rapid.Bool().Draw(t, "in place") {
			dst = srcs[2]
		}
		r.Fold(dst, 0, srcs...)
		for i := range want {
			require.Equal(t, want[i], num.Load(d, dst[i*size:]), "element %d", i)
		}
	})
}
