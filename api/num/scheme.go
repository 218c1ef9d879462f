package num

// Rounding says where a result goes that the format does not hold.
type Rounding uint8

// The roundings. The zero value is the IEEE default.
const (
	NearestEven Rounding = iota
	NearestAway          // nearest, ties away from zero
	TowardZero           // truncation
	Up                   // toward +infinity
	Down                 // toward -infinity
	AwayFromZero
	ToOdd // toward zero, last bit set if inexact
)

// Order says in which order the inputs handed to Eval are combined.
type Order uint8

// The orders.
const (
	// Linear folds from the left: ((x0+x1)+x2)+...
	Linear Order = iota
	// Balanced is the fixed tree: split at the largest power of two below n,
	// so ((x0+x1)+(x2+x3))+((x4+x5)+(x6+x7)) for 8 and ((x0+x1)+x2) for 3.
	Balanced
)

// Acc is the format a reduction accumulates in.
type Acc uint8

// The accumulators.
const (
	AccElement Acc = iota // every step is rounded to the element type
	AccF32                // go to f32, add there, round at the end
	AccF64                // the same in f64
	AccExact              // the exact sum or product, rounded once, by Last
)

// MinMaxRule says what min and max do with NaN and with equal values.
type MinMaxRule uint8

// The rules in use.
const (
	// DropNaN is CUDA's fmin/fmax, __hmin and NCCL: the other operand wins
	// over a NaN, two NaNs give the canonical NaN, and -0 is below +0.
	DropNaN MinMaxRule = iota
	// PropagateNaN is CUDA's __hmin_nan: any NaN gives the canonical NaN,
	// and -0 is below +0.
	PropagateNaN
	// Ternary is NVSHMEM's (x < y) ? x : y, so the second operand where
	// the comparison is false: unordered or equal.
	Ternary
)

// AvgRule says how avg divides.
type AvgRule uint8

// The rules in use. Integers always divide the wrapped sum, truncating.
const (
	// AvgDivide sums under the scheme and divides once by n: the division
	// is a step, done in the accumulator's format, for AccF32 and AccF64,
	// and correctly rounded by Last into the element type for AccElement
	// and AccExact.
	AvgDivide AvgRule = iota
	// AvgPremul multiplies every input by 1/n (rounded to nearest even) in
	// the element type, a step for each, then sums under the scheme.
	AvgPremul
	// AvgPremulFused is NCCL's: as AvgPremul, but a product that goes into
	// a sum by itself, as every one after the first does in a linear order,
	// is fused with that addition, in the accumulator's format:
	// fma(x, 1/n, acc).
	AvgPremulFused
	// AvgMultiply sums under the scheme, goes to f32, multiplies there once
	// by 1/n (in f32, to nearest even) and goes to the element type. For
	// f64 elements f64 takes the place of f32.
	AvgMultiply
)

// Scheme says completely how n inputs become one output. The zero Scheme with
// an Op set is the plainest reduction a GPU does: left to right, rounded to
// nearest even in the element type at each step, CUDA's NaN and zero rules.
//
// NaN results of arithmetic are canonical ([CanonicalNaN]), except where the
// steps are done in f64 and the elements are f64: there the hardware quiets and
// passes on a NaN operand (the first one; in a fused step the accumulator comes
// first) and an invalid operation gives 0xFFF8000000000000. An exact sum or
// product has no hardware to follow, its NaN is canonical in every format.
//
// An exact zero sum is +0, -0 if every term was -0 or, where the rounding is
// Down and the terms had both signs, as IEEE has it.
//
// Integers know only wrap-around; min, max and bitwise operations never round.
// There Acc, Step and Last mean nothing.
type Scheme struct {
	Op     Op
	Order  Order
	Acc    Acc
	Step   Rounding // of every step, in the accumulator's format
	Last   Rounding // of the final conversion to the element type
	MinMax MinMaxRule
	Avg    AvgRule
}
