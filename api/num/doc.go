// Package num holds the number formats of collectives and the one scalar
// evaluator that says what a reduction is worth, bit for bit.
//
// Values travel as bit patterns in a uint64, in the low bits of the format's
// width; the upper bits are zero. The rule users break: a bit pattern is not a
// value of Go's float types, so never compare patterns with == after a
// conversion through float64 of your own; use [Decode], [Encode] and [Ulps].
//
// [Eval] is the reference: too simple to be wrong and too slow for ranges.
// The range kernels of sim/arith must equal it for every input.
package num
