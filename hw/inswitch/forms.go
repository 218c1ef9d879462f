package inswitch

import (
	"math/bits"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
)

// Form is a load-reduce, in the order of Form in nvls_layout.h.
type Form uint32

// The forms, Sum of a type first.
const (
	SumBF16 Form = iota
	SumF16
	SumF32
	SumF64
	MinBF16
	MaxBF16
	MinF16
	MaxF16
	SumU32
	MinS32
	MaxS32
	MinU32
	MaxU32
	SumU64
	MinS64
	MaxS64
	MinU64
	MaxU64
	AndB64
	OrB64
	XorB64
)

type pair struct {
	d  api.DType
	op api.Op
}

var forms = map[pair]Form{
	{api.BF16, api.Sum}: SumBF16, {api.F16, api.Sum}: SumF16, {api.F32, api.Sum}: SumF32, {api.F64, api.Sum}: SumF64,
	{api.BF16, api.Min}: MinBF16, {api.BF16, api.Max}: MaxBF16, {api.F16, api.Min}: MinF16, {api.F16, api.Max}: MaxF16,
	{api.I32, api.Sum}: SumU32, {api.U32, api.Sum}: SumU32, {api.I64, api.Sum}: SumU64, {api.U64, api.Sum}: SumU64,
	{api.I32, api.Min}: MinS32, {api.I32, api.Max}: MaxS32, {api.U32, api.Min}: MinU32, {api.U32, api.Max}: MaxU32,
	{api.I64, api.Min}: MinS64, {api.I64, api.Max}: MaxS64, {api.U64, api.Min}: MinU64, {api.U64, api.Max}: MaxU64,
}

// FormOf is the load-reduce for an operation on a type, by words of 16 bytes
// whatever the number of accesses; false where the switch has none.
func FormOf(d api.DType, op api.Op) (Form, bool) {
	if op.Bitwise() && !d.Float() {
		return AndB64 + Form(op-num.And), true
	}
	f, ok := forms[pair{d, op}]
	return f, ok
}

// Joins of two lines, in the order of JOINS in kinds.h.
const (
	joinInts = 24 // of 8 bits; six for each width
	joinBits = 48 // and, or, xor
)

// JoinOf is the number of an operation on two lines; false where there is none.
func JoinOf(d api.DType, op api.Op) (uint32, bool) {
	switch {
	case d.Float():
		base := map[api.DType]uint32{api.BF16: 0, api.F16: 6, api.F32: 12, api.F64: 18}
		at, ok := base[d]
		off, known := map[api.Op]uint32{api.Sum: 0, api.Prod: 1, api.Min: 2, api.Max: 3}[op]
		return at + off, ok && known
	case op.Bitwise():
		return joinBits + uint32(op-num.And), true
	}
	off, ok := map[api.Op]uint32{api.Sum: 0, api.Prod: 1, api.Min: 2, api.Max: 3}[op]
	if (op == api.Min || op == api.Max) && !d.Signed() {
		off += 2
	}
	return joinInts + 6*Log(d) + off, ok
}

// Log is log2 of the size of an element.
func Log(d api.DType) uint32 { return uint32(bits.TrailingZeros(uint(d.Size()))) }

// Direction is the last rounding of a 16-bit sum in the emulated form.
type Direction uint32

// The directions.
const (
	Nearest Direction = iota
	TowardZero
	Away
	Seeded
)

// Fabric is the arithmetic of the emulated form. Sums of f32 and f64 are rounded
// to nearest even whatever the direction.
type Fabric struct {
	Dir    Direction
	Seed   uint64 // of seeded directions, which follow from it and the index of the element
	Window bool   // of a Blackwell switch: what lies too far below the largest term is lost
}

// Window of a Blackwell switch, in bits below the anchor, which is the exponent
// of the largest term rounded up to a multiple of 16.
const (
	halfResult = 38
	wideResult = 86
	wideTerm   = 95
)

// Set fills in what arguments say of the arithmetic of a type.
func (f Fabric) Set(a *Args, d api.DType) {
	a.Dir, a.Seed = f.Dir, f.Seed
	if d.Size() != 2 {
		a.Dir = Nearest
	}
	switch {
	case !f.Window:
	case d.Size() == 2:
		a.ResultBits = halfResult
	default:
		a.ResultBits, a.TermBits = wideResult, wideTerm
	}
}
