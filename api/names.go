package api

import "example.com/tandem/api/num"

// DType is an element type; see package num.
type DType = num.DType

// Op is a reduction operation; see package num.
type Op = num.Op

// The element types.
const (
	BF16 = num.BF16
	F16  = num.F16
	F32  = num.F32
	F64  = num.F64
	E4M3 = num.E4M3
	E5M2 = num.E5M2
	I8   = num.I8
	I16  = num.I16
	I32  = num.I32
	I64  = num.I64
	U8   = num.U8
	U16  = num.U16
	U32  = num.U32
	U64  = num.U64
)

// The operations. NoOp is for collectives that only copy.
const (
	NoOp = num.None
	Sum  = num.Sum
	Prod = num.Prod
	Min  = num.Min
	Max  = num.Max
	Avg  = num.Avg
	And  = num.And
	Or   = num.Or
	Xor  = num.Xor
)

// DTypes lists every element type.
func DTypes() []DType { return num.DTypes() }

// Ops lists every reduction operation.
func Ops() []Op { return num.Ops() }
