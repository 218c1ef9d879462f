package arith

import (
	"unsafe"

	"example.com/tandem/api/num"
)

// integer is a type whose arithmetic is that of an element type.
type integer interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64
}

// size is a constant in every instance.
func size[T integer]() int { return int(unsafe.Sizeof(T(0))) }

// load reads the little-endian T at byte i.
func load[T integer](p []byte, i int) T {
	switch size[T]() {
	case 1:
		return T(p[i])
	case 2:
		return T(get16(p, i))
	case 4:
		return T(get32(p, i))
	}
	return T(get64(p, i))
}

// store writes a little-endian T at byte i.
func store[T integer](p []byte, i int, v T) {
	switch size[T]() {
	case 1:
		p[i] = byte(v)
	case 2:
		put16(p, i, uint16(v))
	case 4:
		put32(p, i, uint32(v))
	default:
		put64(p, i, uint64(v))
	}
}

// intSteps are the kernels of an operation on integers. All of them wrap or
// choose, so that the order makes no difference.
func (o Options) intSteps(d num.DType, s num.Scheme) steps {
	if s := o.assemblySteps(d, d, s.Op); s.join != nil {
		return s
	}
	var join func(dst, a, b []byte)
	switch d {
	case num.I8:
		join = intJoin[int8](s.Op)
	case num.I16:
		join = intJoin[int16](s.Op)
	case num.I32:
		join = intJoin[int32](s.Op)
	case num.I64:
		join = intJoin[int64](s.Op)
	case num.U8:
		join = intJoin[uint8](s.Op)
	case num.U16:
		join = intJoin[uint16](s.Op)
	case num.U32:
		join = intJoin[uint32](s.Op)
	case num.U64:
		join = intJoin[uint64](s.Op)
	}
	steps := pairwise(join)
	steps.anyOrder = true
	return steps
}

func intJoin[T integer](op num.Op) func(dst, a, b []byte) {
	switch op {
	case num.Prod:
		return mulInts[T]
	case num.Min:
		return minInts[T]
	case num.Max:
		return maxInts[T]
	case num.And:
		return andInts[T]
	case num.Or:
		return orInts[T]
	case num.Xor:
		return xorInts[T]
	}
	return addInts[T] // sum, and avg before its division
}

func addInts[T integer](dst, a, b []byte) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := 0; i <= len(dst)-size[T](); i += size[T]() {
		store(dst, i, load[T](a, i)+load[T](b, i))
	}
}

func mulInts[T integer](dst, a, b []byte) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := 0; i <= len(dst)-size[T](); i += size[T]() {
		store(dst, i, load[T](a, i)*load[T](b, i))
	}
}

func minInts[T integer](dst, a, b []byte) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := 0; i <= len(dst)-size[T](); i += size[T]() {
		store(dst, i, min(load[T](a, i), load[T](b, i)))
	}
}

func maxInts[T integer](dst, a, b []byte) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := 0; i <= len(dst)-size[T](); i += size[T]() {
		store(dst, i, max(load[T](a, i), load[T](b, i)))
	}
}

func andInts[T integer](dst, a, b []byte) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := 0; i <= len(dst)-size[T](); i += size[T]() {
		store(dst, i, load[T](a, i)&load[T](b, i))
	}
}

func orInts[T integer](dst, a, b []byte) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := 0; i <= len(dst)-size[T](); i += size[T]() {
		store(dst, i, load[T](a, i)|load[T](b, i))
	}
}

func xorInts[T integer](dst, a, b []byte) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := 0; i <= len(dst)-size[T](); i += size[T]() {
		store(dst, i, load[T](a, i)^load[T](b, i))
	}
}

// divideInts is the end of avg: the wrapped sum divided by n, toward zero.
func divideInts(d num.DType, n int) func(dst, acc []byte) {
	up := 64 - d.Bits()
	return func(dst, acc []byte) {
		for i := 0; i < len(dst); i += d.Size() {
			b := num.Load(d, acc[i:])
			if d.Signed() {
				b = uint64(int64(b<<up) >> up / int64(n))
			} else {
				b /= uint64(n)
			}
			num.Store(d, dst[i:], b)
		}
	}
}
