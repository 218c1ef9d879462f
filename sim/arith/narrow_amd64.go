//go:build amd64 && !noasm

package arith

import "example.com/tandem/api/num"

type narrowKey struct {
	to num.DType
	r  num.Rounding
}

var narrowKernels = map[narrowKey]func(dst, src []byte){
	{num.BF16, num.NearestEven}:  narrowBF16Nearest,
	{num.BF16, num.TowardZero}:   narrowBF16Truncate,
	{num.BF16, num.AwayFromZero}: narrowBF16Away,
	{num.BF16, num.Up}:           narrowBF16Up,
	{num.BF16, num.Down}:         narrowBF16Down,
	{num.F16, num.NearestEven}:   narrowF16Nearest,
	{num.F16, num.TowardZero}:    narrowF16Truncate,
	{num.F16, num.AwayFromZero}:  narrowF16Away,
	{num.F16, num.Up}:            narrowF16Up,
	{num.F16, num.Down}:          narrowF16Down,
}

// assemblyConverter is the kernel of a conversion.
func (o Options) assemblyConverter(to, from num.DType, r num.Rounding) func(dst, src []byte) {
	if o.Portable || !hasAssembly {
		return nil
	}
	narrow := narrowKernels[narrowKey{to, r}]
	var k func(dst, src []byte)
	switch {
	case to == num.F32 && from == num.BF16:
		k = func(dst, src []byte) { foldSumBF16ToF32(dst, nil, [][]byte{src}) }
	case narrow != nil && from == num.F32:
		k = narrow
	case narrow != nil && from == num.F64:
		k = func(dst, src []byte) { narrowByOdd(dst, src, narrow) }
	case to == num.F32 && from == num.F64 && r == num.NearestEven:
		k = narrowF64ToF32Nearest
	default:
		return nil
	}
	rest := Options{Portable: true}.converter(to, from, r)
	return func(dst, src []byte) {
		n := len(dst) / to.Size() &^ (unit - 1)
		if n > 0 {
			k(dst[:n*to.Size()], src[:n*from.Size()])
		}
		if n*to.Size() < len(dst) {
			rest(dst[n*to.Size():], src[n*from.Size():])
		}
	}
}

// narrowByOdd converts f64 to a 16-bit format by way of f32, rounded to odd.
func narrowByOdd(dst, src []byte, narrow func(dst, src []byte)) {
	var odd [4 * 512]byte
	for i := 0; i < len(dst); i += len(odd) / 2 {
		part := odd[:2*min(len(odd)/2, len(dst)-i)]
		oddF64ToF32(part, src[4*i:])
		narrow(dst[i:i+len(part)/2], part)
	}
}
