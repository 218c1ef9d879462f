package arith

import (
	"math"

	"example.com/tandem/api/num"
)

// converter is the kernel that rounds elements of from once into to.
func (o Options) converter(to, from num.DType, r num.Rounding) func(dst, src []byte) {
	if k := o.assemblyConverter(to, from, r); k != nil {
		return k
	}
	nearest := r == num.NearestEven
	switch {
	case to == num.BF16 && from == num.F32 && nearest:
		return narrowRange(func(x float32) uint16 { return narrowBF16(x) })
	case to == num.F16 && from == num.F32 && nearest:
		return narrowRange(func(x float32) uint16 { return narrowF16(x) })
	case to == num.BF16 && from == num.F32:
		return narrowRange(func(x float32) uint16 { return narrowBF16By(x, r) })
	case to == num.F16 && from == num.F32:
		return narrowRange(func(x float32) uint16 { return narrowF16By(x, r) })
	case to == num.BF16 && from == num.F64:
		return narrowWideRange(func(x float32) uint16 { return narrowBF16By(x, r) })
	case to == num.F16 && from == num.F64:
		return narrowWideRange(func(x float32) uint16 { return narrowF16By(x, r) })
	case to == num.F32 && from == num.F64 && nearest:
		return narrowF64ToF32
	}
	return func(dst, src []byte) {
		for i := range len(dst) / to.Size() {
			b := num.Load(from, src[i*from.Size():])
			num.Store(to, dst[i*to.Size():], num.Convert(to, from, b, r))
		}
	}
}

func narrowRange(narrow func(float32) uint16) func(dst, src []byte) {
	return func(dst, src []byte) {
		for i := 0; i+2 <= len(dst); i += 2 {
			le.PutUint16(dst[i:], narrow(math.Float32frombits(le.Uint32(src[2*i:]))))
		}
	}
}

func narrowWideRange(narrow func(float32) uint16) func(dst, src []byte) {
	return func(dst, src []byte) {
		for i := 0; i+2 <= len(dst); i += 2 {
			le.PutUint16(dst[i:], narrow(odd32(math.Float64frombits(le.Uint64(src[4*i:])))))
		}
	}
}

func narrowF64ToF32(dst, src []byte) {
	for i := 0; i+4 <= len(dst); i += 4 {
		le.PutUint32(dst[i:], canonical32(float32(math.Float64frombits(le.Uint64(src[2*i:])))))
	}
}
