package arith

import "example.com/tandem/api/num"

// converter is the kernel that rounds elements of from once into to.
func (o Options) converter(to, from num.DType, r num.Rounding) func(dst, src []byte) {
	if k := o.assemblyConverter(to, from, r); k != nil {
		return k
	}
	nearest := r == num.NearestEven
	switch {
	case to == num.F32 && from == num.BF16:
		return widenBF16ToF32 // the pattern of a NaN is kept here
	case to == num.BF16 && from == num.F32 && nearest:
		return narrowToBF16
	case to == num.F16 && from == num.F32 && nearest:
		return narrowToF16
	case to == num.BF16 && from == num.F32:
		return func(dst, src []byte) { narrowToBF16By(dst, src, r) }
	case to == num.F16 && from == num.F32:
		return func(dst, src []byte) { narrowToF16By(dst, src, r) }
	case to == num.BF16 && from == num.F64:
		return func(dst, src []byte) { narrowF64ToBF16(dst, src, r) }
	case to == num.F16 && from == num.F64:
		return func(dst, src []byte) { narrowF64ToF16(dst, src, r) }
	case to == num.F32 && from == num.F64 && nearest:
		return narrowF64ToF32
	case to == num.F32 && from == num.F64:
		return func(dst, src []byte) { narrowF64ToF32By(dst, src, r) }
	}
	return func(dst, src []byte) {
		for i, j := 0, 0; i < len(dst); i, j = i+to.Size(), j+from.Size() {
			num.Store(to, dst[i:], num.Convert(to, from, num.Load(from, src[j:]), r))
		}
	}
}

func narrowToBF16(dst, src []byte) {
	for i, j := 0, 0; i < len(dst)-1 && j < len(src)-3; i, j = i+2, j+4 {
		put16(dst, i, narrowBF16(getF32(src, j)))
	}
}

func narrowToF16(dst, src []byte) {
	for i, j := 0, 0; i < len(dst)-1 && j < len(src)-3; i, j = i+2, j+4 {
		put16(dst, i, narrowF16(getF32(src, j)))
	}
}

func narrowToBF16By(dst, src []byte, r num.Rounding) {
	for i, j := 0, 0; i < len(dst)-1 && j < len(src)-3; i, j = i+2, j+4 {
		put16(dst, i, narrowBF16By(getF32(src, j), r))
	}
}

func narrowToF16By(dst, src []byte, r num.Rounding) {
	for i, j := 0, 0; i < len(dst)-1 && j < len(src)-3; i, j = i+2, j+4 {
		put16(dst, i, narrowF16By(getF32(src, j), r))
	}
}

func narrowF64ToBF16(dst, src []byte, r num.Rounding) {
	for i, j := 0, 0; i < len(dst)-1 && j < len(src)-7; i, j = i+2, j+8 {
		put16(dst, i, narrowBF16By(odd32(getF64(src, j)), r))
	}
}

func narrowF64ToF16(dst, src []byte, r num.Rounding) {
	for i, j := 0, 0; i < len(dst)-1 && j < len(src)-7; i, j = i+2, j+8 {
		put16(dst, i, narrowF16By(odd32(getF64(src, j)), r))
	}
}

func narrowF64ToF32(dst, src []byte) {
	for i, j := 0, 0; i < len(dst)-3 && j < len(src)-7; i, j = i+4, j+8 {
		putF32(dst, i, canonical32(float32(getF64(src, j))))
	}
}

func narrowF64ToF32By(dst, src []byte, r num.Rounding) {
	for i, j := 0, 0; i < len(dst)-3 && j < len(src)-7; i, j = i+4, j+8 {
		putF32(dst, i, narrowF32By(getF64(src, j), r))
	}
}
