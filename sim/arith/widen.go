package arith

import "math"

// The portable kernels on f32 and f64 accumulators for elements that are
// narrower: widenXToY is acc[i] = src[i], the other ones dst[i] = acc[i] op src[i]
// in the accumulator's format. A NaN on the way need not be canonical: the
// conversion that ends the sum makes it so.

func widenBF16ToF32(acc, src []byte) {
	for i := 0; i+2 <= len(src); i += 2 {
		le.PutUint32(acc[2*i:], math.Float32bits(widenBF16(le.Uint16(src[i:]))))
	}
}

func addBF16ToF32(dst, acc, src []byte) {
	for i := 0; i+2 <= len(src); i += 2 {
		x, y := math.Float32frombits(le.Uint32(acc[2*i:])), widenBF16(le.Uint16(src[i:]))
		le.PutUint32(dst[2*i:], math.Float32bits(float32(x+y)))
	}
}

func mulBF16ToF32(dst, acc, src []byte) {
	for i := 0; i+2 <= len(src); i += 2 {
		x, y := math.Float32frombits(le.Uint32(acc[2*i:])), widenBF16(le.Uint16(src[i:]))
		le.PutUint32(dst[2*i:], math.Float32bits(float32(x*y)))
	}
}

func widenF16ToF32(acc, src []byte) {
	for i := 0; i+2 <= len(src); i += 2 {
		le.PutUint32(acc[2*i:], math.Float32bits(widenF16(le.Uint16(src[i:]))))
	}
}

func addF16ToF32(dst, acc, src []byte) {
	for i := 0; i+2 <= len(src); i += 2 {
		x, y := math.Float32frombits(le.Uint32(acc[2*i:])), widenF16(le.Uint16(src[i:]))
		le.PutUint32(dst[2*i:], math.Float32bits(float32(x+y)))
	}
}

func mulF16ToF32(dst, acc, src []byte) {
	for i := 0; i+2 <= len(src); i += 2 {
		x, y := math.Float32frombits(le.Uint32(acc[2*i:])), widenF16(le.Uint16(src[i:]))
		le.PutUint32(dst[2*i:], math.Float32bits(float32(x*y)))
	}
}

func widenBF16ToF64(acc, src []byte) {
	for i := 0; i+2 <= len(src); i += 2 {
		le.PutUint64(acc[4*i:], math.Float64bits(float64(widenBF16(le.Uint16(src[i:])))))
	}
}

func addBF16ToF64(dst, acc, src []byte) {
	for i := 0; i+2 <= len(src); i += 2 {
		x, y := math.Float64frombits(le.Uint64(acc[4*i:])), float64(widenBF16(le.Uint16(src[i:])))
		le.PutUint64(dst[4*i:], math.Float64bits(float64(x+y)))
	}
}

func mulBF16ToF64(dst, acc, src []byte) {
	for i := 0; i+2 <= len(src); i += 2 {
		x, y := math.Float64frombits(le.Uint64(acc[4*i:])), float64(widenBF16(le.Uint16(src[i:])))
		le.PutUint64(dst[4*i:], math.Float64bits(float64(x*y)))
	}
}

func widenF16ToF64(acc, src []byte) {
	for i := 0; i+2 <= len(src); i += 2 {
		le.PutUint64(acc[4*i:], math.Float64bits(float64(widenF16(le.Uint16(src[i:])))))
	}
}

func addF16ToF64(dst, acc, src []byte) {
	for i := 0; i+2 <= len(src); i += 2 {
		x, y := math.Float64frombits(le.Uint64(acc[4*i:])), float64(widenF16(le.Uint16(src[i:])))
		le.PutUint64(dst[4*i:], math.Float64bits(float64(x+y)))
	}
}

func mulF16ToF64(dst, acc, src []byte) {
	for i := 0; i+2 <= len(src); i += 2 {
		x, y := math.Float64frombits(le.Uint64(acc[4*i:])), float64(widenF16(le.Uint16(src[i:])))
		le.PutUint64(dst[4*i:], math.Float64bits(float64(x*y)))
	}
}

func widenF32ToF64(acc, src []byte) {
	for i := 0; i+4 <= len(src); i += 4 {
		le.PutUint64(acc[2*i:], math.Float64bits(float64(math.Float32frombits(le.Uint32(src[i:])))))
	}
}

func addF32ToF64(dst, acc, src []byte) {
	for i := 0; i+4 <= len(src); i += 4 {
		x, y := math.Float64frombits(le.Uint64(acc[2*i:])), float64(math.Float32frombits(le.Uint32(src[i:])))
		le.PutUint64(dst[2*i:], math.Float64bits(float64(x+y)))
	}
}

func mulF32ToF64(dst, acc, src []byte) {
	for i := 0; i+4 <= len(src); i += 4 {
		x, y := math.Float64frombits(le.Uint64(acc[2*i:])), float64(math.Float32frombits(le.Uint32(src[i:])))
		le.PutUint64(dst[2*i:], math.Float64bits(float64(x*y)))
	}
}
