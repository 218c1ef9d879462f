package matrix

import (
	"hash/fnv"

	"example.com/tandem/api"
	"example.com/tandem/conformance/inputs"
)

// Special is an input of an axis: every rank holds one of the values at which
// rules differ (zeros, infinities, NaNs with payloads, the ends of the range,
// subnormals), other ones in every call.
var Special = inputs.Input{Kind: inputs.Values}

// specials are bit patterns of a type.
func specials(d api.DType) []uint64 {
	if !d.Float() {
		top := uint64(1) << (d.Bits() - 1)
		return []uint64{0, 1, d.Mask(), top, top - 1, top + 1, 3}
	}
	m := d.MantissaBits()
	sign, one := uint64(1)<<(d.Bits()-1), uint64(d.Bias())<<m
	inf := (uint64(1)<<d.ExponentBits() - 1) << m
	return []uint64{
		0, sign, // zeros
		1, sign | 1, 1<<m - 1, 1 << m, // subnormals, the least normal number
		one, sign | one, one + 1, // where sums round
		inf - 1, sign | (inf - 1), // the greatest
		inf, sign | inf,
		inf | 1<<(m-1), inf | 1<<(m-1) | 1, sign | inf | (1<<m - 1), inf | 1, // NaNs, a signalling one too
	}
}

// special chooses the patterns of a call by what it is.
func special(c *api.Call, seed uint64) []uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(c.String()))
	x := h.Sum64() + seed*0x9E3779B97F4A7C15
	all := specials(c.Lane(0).DType)
	out := make([]uint64, c.Ranks)
	for r := range out {
		x = (x ^ x>>29) * 0xBF58476D1CE4E5B9 // every rank its own, whatever the others have
		x ^= x >> 32
		out[r] = all[x%uint64(len(all))]
	}
	return out
}
