package tandem

import (
	"math/bits"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
)

// A type word tells the kernel the size and the arithmetic of a lane:
// log2 of the size, then eight bits each of join, scale and part.

// Joins of whole lines, in the order of JOINS in kinds.h.
var floatJoins = map[api.DType]uint64{api.BF16: 0, api.F16: 6, api.F32: 12, api.F64: 18}
var intJoins = map[int]uint64{1: 24, 2: 30, 4: 36, 8: 42}

const joinBits = 48 // and, or, xor

// Offsets of the operations of a type from its first join.
const (
	joinAdd = iota
	joinMul
	joinMin
	joinMax
	joinMinNaN
	joinMaxNaN
)

// plainJoin reports whether a join is of PLAIN in plain.h.
func plainJoin(join uint64) bool {
	switch base, op := join/6*6, join%6; base {
	case floatJoins[api.F64], intJoins[1], intJoins[2]:
		return op == joinAdd
	case intJoins[8]:
		return op != joinMul
	}
	return true
}

// Scales, in the order of Scale in kinds.h.
const (
	scaleNone = iota
	premulBF16
	premulF16
	premulF32
	premulF64
	premulPart
	divBF16
	divF16
	divF32
	divF64
	divPart
	divS8
	divS16
	divS32
	divS64
	divU8
	divU16
	divU32
	divU64
)

var premuls = map[api.DType]uint64{api.BF16: premulBF16, api.F16: premulF16, api.F32: premulF32, api.F64: premulF64}

var divides = map[api.DType]uint64{
	api.BF16: divBF16, api.F16: divF16, api.F32: divF32, api.F64: divF64,
	api.I8: divS8, api.I16: divS16, api.I32: divS32, api.I64: divS64,
	api.U8: divU8, api.U16: divU16, api.U32: divU32, api.U64: divU64,
}

// Formats of elements that are taken one by one.
var parts = map[api.DType]uint64{api.BF16: 1, api.F16: 2, api.E4M3: 3, api.E5M2: 4}

const partRounds = 8

// typeWord says what the ranks' elements become, in the kernel's words.
func typeWord(d api.DType, s num.Scheme) uint64 {
	word := uint64(bits.TrailingZeros(uint(d.Size())))
	if s.Op == num.None {
		return word
	}
	put := func(join, scale, part uint64) uint64 { return word | join<<8 | scale<<16 | part<<24 }
	if !d.Float() {
		return put(intJoin(d, s.Op), intScale(d, s.Op), 0)
	}
	node := floatNode(s)
	eight := d.Size() == 1
	wide := s.Acc == num.AccF32 && d.Size() == 2 && s.Op != num.Min && s.Op != num.Max
	scale := uint64(scaleNone)
	switch {
	case s.Op != num.Avg:
	case s.Avg == num.AvgPremul && eight:
		scale = premulPart
	case s.Avg == num.AvgPremul:
		scale = premuls[d]
	case eight || wide:
		scale = divPart
	default:
		scale = divides[d]
	}
	if !eight && !wide {
		return put(floatJoins[d]+node, scale, 0)
	}
	part := parts[d] | node<<4
	if s.Acc != num.AccF32 {
		part |= partRounds
	}
	return put(0, scale, part)
}

func floatNode(s num.Scheme) uint64 {
	propagate := s.MinMax == num.PropagateNaN
	switch {
	case s.Op == num.Prod:
		return joinMul
	case s.Op == num.Min && propagate:
		return joinMinNaN
	case s.Op == num.Min:
		return joinMin
	case s.Op == num.Max && propagate:
		return joinMaxNaN
	case s.Op == num.Max:
		return joinMax
	}
	return joinAdd
}

func intJoin(d api.DType, op api.Op) uint64 {
	base := intJoins[d.Size()]
	unsigned := uint64(0)
	if !d.Signed() {
		unsigned = 2
	}
	switch op {
	case num.Prod:
		return base + 1
	case num.Min:
		return base + 2 + unsigned
	case num.Max:
		return base + 3 + unsigned
	case num.And, num.Or, num.Xor:
		return joinBits + uint64(op-num.And)
	}
	return base
}

func intScale(d api.DType, op api.Op) uint64 {
	if op == num.Avg {
		return divides[d]
	}
	return scaleNone
}
