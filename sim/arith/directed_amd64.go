//go:build amd64 && !noasm

package arith

import (
	"golang.org/x/sys/cpu"

	"example.com/tandem/api/num"
)

// hasLong is a multiplication of 64 bits by vector, which hashing is made of.
var hasLong = hasAssembly && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VL

// Each of these does whole units and says how far it came, 0 without assembly.

// spreadKernel counts in bytes.
func (o Options) spreadKernel(high, low []byte, srcs [][]byte) int {
	n := len(high) &^ (2*unit - 1)
	if n == 0 || !hasAssembly || o.Portable {
		return 0
	}
	spread16(high[:n], low[:n], srcs)
	return n
}

// anyApart reports whether some element of a whole number of units may be too far
// apart.
func (o Options) anyApart(high, low []byte, most, top uint16, man uint64) bool {
	return !hasAssembly || o.Portable || over16(high, low, most, top, man) != 0
}

func (o Options) roundKernel(dst, sums []byte, d num.DType, r num.Rounding, most uint16) int {
	n := len(dst) / 2 &^ (unit - 1)
	if n == 0 || !hasAssembly || o.Portable {
		return 0
	}
	dst, sums = dst[:2*n], sums[:8*n]
	switch half := d == num.F16; {
	case half && r == num.NearestEven:
		sumsF16Nearest(dst, sums, uint64(most))
	case half && r == num.AwayFromZero:
		sumsF16Away(dst, sums, uint64(most))
	case half:
		sumsF16Truncate(dst, sums, uint64(most))
	case r == num.NearestEven:
		sumsBF16Nearest(dst, sums, uint64(most))
	case r == num.AwayFromZero:
		sumsBF16Away(dst, sums, uint64(most))
	default:
		sumsBF16Truncate(dst, sums, uint64(most))
	}
	return n
}

func (o Options) ditherKernel(dst, sums []byte, d num.DType, key uint64, most uint16) int {
	n := len(dst) / 2 &^ (unit - 1)
	if n == 0 || !hasAssembly || o.Portable {
		return 0
	}
	dst, sums = dst[:2*n], sums[:8*n]
	switch {
	case d == num.F16 && hasLong:
		sumsF16SeededLong(dst, sums, uint64(most), key)
	case d == num.F16:
		sumsF16Seeded(dst, sums, uint64(most), key)
	case hasLong:
		sumsBF16SeededLong(dst, sums, uint64(most), key)
	default:
		sumsBF16Seeded(dst, sums, uint64(most), key)
	}
	return n
}
