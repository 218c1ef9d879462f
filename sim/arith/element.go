package arith

// The portable kernels on elements: dst[i] = a[i] op b[i], rounded to nearest
// even. All ranges of one call have the same length.

func addBF16(dst, a, b []byte) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := 0; i < len(dst)-1; i += 2 {
		x, y := widenBF16(get16(a, i)), widenBF16(get16(b, i))
		put16(dst, i, narrowBF16(float32(x+y)))
	}
}

func addF16(dst, a, b []byte) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := 0; i < len(dst)-1; i += 2 {
		x, y := widenF16(get16(a, i)), widenF16(get16(b, i))
		put16(dst, i, narrowF16(float32(x+y)))
	}
}

func addF32(dst, a, b []byte) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := 0; i < len(dst)-3; i += 4 {
		putF32(dst, i, canonical32(float32(getF32(a, i)+getF32(b, i))))
	}
}

func addF64(dst, a, b []byte) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := 0; i < len(dst)-7; i += 8 {
		x, y := getF64(a, i), getF64(b, i)
		putF64(dst, i, quiet64(float64(x+y), x, y))
	}
}

func mulBF16(dst, a, b []byte) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := 0; i < len(dst)-1; i += 2 {
		x, y := widenBF16(get16(a, i)), widenBF16(get16(b, i))
		put16(dst, i, narrowBF16(float32(x*y)))
	}
}

func mulF16(dst, a, b []byte) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := 0; i < len(dst)-1; i += 2 {
		x, y := widenF16(get16(a, i)), widenF16(get16(b, i))
		put16(dst, i, narrowF16(float32(x*y)))
	}
}

func mulF32(dst, a, b []byte) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := 0; i < len(dst)-3; i += 4 {
		putF32(dst, i, canonical32(float32(getF32(a, i)*getF32(b, i))))
	}
}

func mulF64(dst, a, b []byte) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := 0; i < len(dst)-7; i += 8 {
		x, y := getF64(a, i), getF64(b, i)
		putF64(dst, i, quiet64(float64(x*y), x, y))
	}
}
