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
