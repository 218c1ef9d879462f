//go:build !amd64 || noasm

package arith

import "example.com/tandem/api/num"

// Without assembly there is nothing to choose from.

// assembly says what kernels there are besides the portable ones.
func assembly() string { return "none" }

func streams() bool { return false }

func stream(dst, src []byte) { copy(dst, src) }

func settle() {}

func (o Options) assemblySteps(acc, d num.DType, op num.Op) steps { return steps{} }

func (o Options) assemblyMinMax(d num.DType, s num.Scheme) steps { return steps{} }

func (o Options) assemblyConverter(to, from num.DType, r num.Rounding) func(dst, src []byte) {
	return nil
}

func (o Options) assemblyExact(d num.DType, s num.Scheme, n int) func(elements int) func(dst []byte, srcs [][]byte) {
	return nil
}

func (o Options) spreadKernel(high, low []byte, srcs [][]byte) int { return 0 }

func (o Options) anyApart(high, low []byte, most, top uint16, man uint64) bool { return true }

func (o Options) roundKernel(dst, sums []byte, d num.DType, r num.Rounding, most uint16) int {
	return 0
}

func (o Options) ditherKernel(dst, sums []byte, d num.DType, key uint64, most uint16) int { return 0 }
