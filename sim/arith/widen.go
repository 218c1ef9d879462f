package arith

// The portable kernels on f32 and f64 accumulators for elements that are
// narrower. widenXToY is acc[i] = src[i]; addXToY is dst[i] = acc[i] + src[i] and
// mulXToY dst[i] = acc[i] * src[i], in the accumulator's format; sumXToY, the
// start of a sum, is acc[i] = a[i] + b[i] of elements. A NaN on the way need not
// be canonical: the conversion that ends the reduction makes it so.

func widenBF16ToF32(acc, src []byte) {
	for i, j := 0, 0; i < len(src)-1 && j < len(acc)-3; i, j = i+2, j+4 {
		putF32(acc, j, widenBF16(get16(src, i)))
	}
}

func sumBF16ToF32(acc, a, b []byte) {
	b = b[:len(a)]
	for i, j := 0, 0; i < len(a)-1 && j < len(acc)-3; i, j = i+2, j+4 {
		putF32(acc, j, widenBF16(get16(a, i))+widenBF16(get16(b, i)))
	}
}

func addBF16ToF32(dst, acc, src []byte) {
	dst = dst[:len(acc)]
	for i, j := 0, 0; i < len(src)-1 && j < len(acc)-3; i, j = i+2, j+4 {
		putF32(dst, j, float32(getF32(acc, j)+widenBF16(get16(src, i))))
	}
}

func mulBF16ToF32(dst, acc, src []byte) {
	dst = dst[:len(acc)]
	for i, j := 0, 0; i < len(src)-1 && j < len(acc)-3; i, j = i+2, j+4 {
		putF32(dst, j, float32(getF32(acc, j)*widenBF16(get16(src, i))))
	}
}

func widenF16ToF32(acc, src []byte) {
	for i, j := 0, 0; i < len(src)-1 && j < len(acc)-3; i, j = i+2, j+4 {
		putF32(acc, j, widenF16(get16(src, i)))
	}
}

func sumF16ToF32(acc, a, b []byte) {
	b = b[:len(a)]
	for i, j := 0, 0; i < len(a)-1 && j < len(acc)-3; i, j = i+2, j+4 {
		putF32(acc, j, widenF16(get16(a, i))+widenF16(get16(b, i)))
	}
}

func addF16ToF32(dst, acc, src []byte) {
	dst = dst[:len(acc)]
	for i, j := 0, 0; i < len(src)-1 && j < len(acc)-3; i, j = i+2, j+4 {
		putF32(dst, j, float32(getF32(acc, j)+widenF16(get16(src, i))))
	}
}

func mulF16ToF32(dst, acc, src []byte) {
	dst = dst[:len(acc)]
	for i, j := 0, 0; i < len(src)-1 && j < len(acc)-3; i, j = i+2, j+4 {
		putF32(dst, j, float32(getF32(acc, j)*widenF16(get16(src, i))))
	}
}

func widenBF16ToF64(acc, src []byte) {
	for i, j := 0, 0; i < len(src)-1 && j < len(acc)-7; i, j = i+2, j+8 {
		putF64(acc, j, float64(widenBF16(get16(src, i))))
	}
}

func addBF16ToF64(dst, acc, src []byte) {
	dst = dst[:len(acc)]
	for i, j := 0, 0; i < len(src)-1 && j < len(acc)-7; i, j = i+2, j+8 {
		putF64(dst, j, float64(getF64(acc, j)+float64(widenBF16(get16(src, i)))))
	}
}

func mulBF16ToF64(dst, acc, src []byte) {
	dst = dst[:len(acc)]
	for i, j := 0, 0; i < len(src)-1 && j < len(acc)-7; i, j = i+2, j+8 {
		putF64(dst, j, float64(getF64(acc, j)*float64(widenBF16(get16(src, i)))))
	}
}

func widenF16ToF64(acc, src []byte) {
	for i, j := 0, 0; i < len(src)-1 && j < len(acc)-7; i, j = i+2, j+8 {
		putF64(acc, j, float64(widenF16(get16(src, i))))
	}
}

func addF16ToF64(dst, acc, src []byte) {
	dst = dst[:len(acc)]
	for i, j := 0, 0; i < len(src)-1 && j < len(acc)-7; i, j = i+2, j+8 {
		putF64(dst, j, float64(getF64(acc, j)+float64(widenF16(get16(src, i)))))
	}
}

func mulF16ToF64(dst, acc, src []byte) {
	dst = dst[:len(acc)]
	for i, j := 0, 0; i < len(src)-1 && j < len(acc)-7; i, j = i+2, j+8 {
		putF64(dst, j, float64(getF64(acc, j)*float64(widenF16(get16(src, i)))))
	}
}

func widenF32ToF64(acc, src []byte) {
	for i, j := 0, 0; i < len(src)-3 && j < len(acc)-7; i, j = i+4, j+8 {
		putF64(acc, j, float64(getF32(src, i)))
	}
}

func addF32ToF64(dst, acc, src []byte) {
	dst = dst[:len(acc)]
	for i, j := 0, 0; i < len(src)-3 && j < len(acc)-7; i, j = i+4, j+8 {
		putF64(dst, j, float64(getF64(acc, j)+float64(getF32(src, i))))
	}
}

func mulF32ToF64(dst, acc, src []byte) {
	dst = dst[:len(acc)]
	for i, j := 0, 0; i < len(src)-3 && j < len(acc)-7; i, j = i+4, j+8 {
		putF64(dst, j, float64(getF64(acc, j)*float64(getF32(src, i))))
	}
}
