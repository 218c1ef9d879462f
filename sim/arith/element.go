package arith

import (
	"encoding/binary"
	"math"
)

// The portable kernels on elements: dst[i] = a[i] op b[i], rounded to nearest
// even. All three ranges have the same length.

var le = binary.LittleEndian

func addBF16(dst, a, b []byte) {
	for i := 0; i+2 <= len(dst); i += 2 {
		x, y := widenBF16(le.Uint16(a[i:])), widenBF16(le.Uint16(b[i:]))
		le.PutUint16(dst[i:], narrowBF16(float32(x+y)))
	}
}

func addF16(dst, a, b []byte) {
	for i := 0; i+2 <= len(dst); i += 2 {
		x, y := widenF16(le.Uint16(a[i:])), widenF16(le.Uint16(b[i:]))
		le.PutUint16(dst[i:], narrowF16(float32(x+y)))
	}
}

func addF32(dst, a, b []byte) {
	for i := 0; i+4 <= len(dst); i += 4 {
		x, y := math.Float32frombits(le.Uint32(a[i:])), math.Float32frombits(le.Uint32(b[i:]))
		le.PutUint32(dst[i:], canonical32(float32(x+y)))
	}
}

func addF64(dst, a, b []byte) {
	for i := 0; i+8 <= len(dst); i += 8 {
		x, y := math.Float64frombits(le.Uint64(a[i:])), math.Float64frombits(le.Uint64(b[i:]))
		le.PutUint64(dst[i:], quiet64(x+y, x, y))
	}
}

func mulBF16(dst, a, b []byte) {
	for i := 0; i+2 <= len(dst); i += 2 {
		x, y := widenBF16(le.Uint16(a[i:])), widenBF16(le.Uint16(b[i:]))
		le.PutUint16(dst[i:], narrowBF16(float32(x*y)))
	}
}

func mulF16(dst, a, b []byte) {
	for i := 0; i+2 <= len(dst); i += 2 {
		x, y := widenF16(le.Uint16(a[i:])), widenF16(le.Uint16(b[i:]))
		le.PutUint16(dst[i:], narrowF16(float32(x*y)))
	}
}

func mulF32(dst, a, b []byte) {
	for i := 0; i+4 <= len(dst); i += 4 {
		x, y := math.Float32frombits(le.Uint32(a[i:])), math.Float32frombits(le.Uint32(b[i:]))
		le.PutUint32(dst[i:], canonical32(float32(x*y)))
	}
}

func mulF64(dst, a, b []byte) {
	for i := 0; i+8 <= len(dst); i += 8 {
		x, y := math.Float64frombits(le.Uint64(a[i:])), math.Float64frombits(le.Uint64(b[i:]))
		le.PutUint64(dst[i:], quiet64(x*y, x, y))
	}
}
