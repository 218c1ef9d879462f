//go:build amd64 && !noasm

package arith

import (
	"math"

	"example.com/tandem/api/num"
	"golang.org/x/sys/cpu"
)

//go:generate sh -c "cd asmgen && go run . -out ../kernels_amd64.s -stubs ../kernels_amd64.go -pkg arith"

// group is the most sources of one kernel call: more streams than a first-level cache has
// ways evict each other where they lie a power of two apart.
const group = 8

var hasAssembly = cpu.X86.HasAVX2 && cpu.X86.HasF16C && cpu.X86.HasFMA

// assembly says what kernels there are besides the portable ones.
func assembly() string {
	if hasAssembly {
		return "AVX2"
	}
	return "none"
}

type (
	foldKernel   func(dst, acc []byte, srcs [][]byte)
	treeKernel   func(dst []byte, srcs [][]byte)
	streamKernel func(dst []byte, srcs [][]byte, to, from []byte)
)

// kernels are those of one operation on elements of a type in accumulators of a
// format; there need not be trees.
type kernels struct {
	fold         foldKernel
	last         foldKernel // from accumulators to elements
	tree4, tree8 treeKernel
	stream8      streamKernel // tree8 that copies meanwhile
}

type kernelKey struct {
	acc, d num.DType
	prod   bool
}

var floatKernels = map[kernelKey]kernels{
	{num.BF16, num.BF16, false}: {foldSumBF16, nil, tree4SumBF16, tree8SumBF16, stream8SumBF16},
	{num.F16, num.F16, false}:   {foldSumF16, nil, tree4SumF16, tree8SumF16, stream8SumF16},
	{num.F32, num.F32, false}:   {foldSumF32, nil, tree4SumF32, tree8SumF32, stream8SumF32},
	{num.F64, num.F64, false}:   {foldSumF64, nil, tree4SumF64, tree8SumF64, nil},
	{num.F32, num.BF16, false}:  {foldSumBF16ToF32, foldSumBF16ByF32, tree4SumBF16ToF32, tree8SumBF16ToF32, stream8SumBF16ToF32},
	{num.F32, num.F16, false}:   {foldSumF16ToF32, foldSumF16ByF32, tree4SumF16ToF32, tree8SumF16ToF32, stream8SumF16ToF32},
	{num.F64, num.BF16, false}:  {fold: foldSumBF16ToF64},
	{num.F64, num.F16, false}:   {fold: foldSumF16ToF64},
	{num.F64, num.F32, false}:   {fold: foldSumF32ToF64},
	{num.BF16, num.BF16, true}:  {foldProdBF16, nil, tree4ProdBF16, tree8ProdBF16, nil},
	{num.F16, num.F16, true}:    {foldProdF16, nil, tree4ProdF16, tree8ProdF16, nil},
	{num.F32, num.F32, true}:    {foldProdF32, nil, tree4ProdF32, tree8ProdF32, nil},
	{num.F64, num.F64, true}:    {foldProdF64, nil, tree4ProdF64, tree8ProdF64, nil},
	{num.F32, num.BF16, true}:   {foldProdBF16ToF32, foldProdBF16ByF32, tree4ProdBF16ToF32, tree8ProdBF16ToF32, nil},
	{num.F32, num.F16, true}:    {foldProdF16ToF32, foldProdF16ByF32, tree4ProdF16ToF32, tree8ProdF16ToF32, nil},
	{num.F64, num.BF16, true}:   {fold: foldProdBF16ToF64},
	{num.F64, num.F16, true}:    {fold: foldProdF16ToF64},
	{num.F64, num.F32, true}:    {fold: foldProdF32ToF64},
}

// assemblySteps are the kernels of a sum or product, also those of avg, which is
// a sum as long as it does not divide.
func (o Options) assemblySteps(acc, d num.DType, op num.Op) steps {
	k, ok := floatKernels[kernelKey{acc, d, op == num.Prod}]
	if o.Portable || !hasAssembly || !ok {
		return steps{}
	}
	rest := Options{Portable: true}.floatSteps(acc, d, op)
	s := assembled(acc.Size(), d.Size(), k, rest)
	if k.last != nil {
		s.last = lastOf(k.last, acc.Size(), d.Size(), rest, Options{Portable: true}.converter(d, acc, num.NearestEven))
	}
	if acc != d {
		join := floatKernels[kernelKey{acc, acc, op == num.Prod}]
		s.join = assembled(acc.Size(), acc.Size(), join, Options{Portable: true}.floatSteps(acc, acc, op)).join
	}
	return s
}

// assemblyMinMax are the kernels of min and max of floats.
func (o Options) assemblyMinMax(d num.DType, s num.Scheme) steps {
	if o.Portable || !hasAssembly {
		return steps{}
	}
	k := kernels{fold: pickKernel(d, s)}
	if s.MinMax == num.Ternary {
		k.fold = ternaryKernel(d, s)
	}
	if k.fold == nil {
		return steps{}
	}
	rest := Options{Portable: true}.minMaxSteps(d, s)
	steps := assembled(d.Size(), d.Size(), k, rest)
	steps.anyOrder = rest.anyOrder
	return steps
}

func pickKernel(d num.DType, s num.Scheme) foldKernel {
	most := num.Encode(d, math.Inf(1), num.NearestEven)
	low := (s.MinMax == num.PropagateNaN) == (s.Op == num.Min) // what a NaN counts as
	switch {
	case d == num.BF16 || d == num.F16:
		k, as := pickMin16, uint16(math.MaxInt16)
		if s.Op == num.Max {
			k = pickMax16
		}
		if low {
			as = 1 << 15
		}
		return func(dst, acc []byte, srcs [][]byte) { k(dst, acc, srcs, uint16(most), as) }
	case d == num.F32:
		k, as := pickMin32, uint32(math.MaxInt32)
		if s.Op == num.Max {
			k = pickMax32
		}
		if low {
			as = 1 << 31
		}
		return func(dst, acc []byte, srcs [][]byte) { k(dst, acc, srcs, uint32(most), as) }
	}
	return nil
}

func ternaryKernel(d num.DType, s num.Scheme) foldKernel {
	most := uint16(num.Encode(d, math.Inf(1), num.NearestEven))
	less := s.Op == num.Min
	switch {
	case d.Size() == 2 && less:
		return func(dst, acc []byte, srcs [][]byte) { ternaryMin16(dst, acc, srcs, most) }
	case d.Size() == 2:
		return func(dst, acc []byte, srcs [][]byte) { ternaryMax16(dst, acc, srcs, most) }
	case d == num.F32 && less:
		return foldLessF32
	case d == num.F32:
		return foldMoreF32
	case d == num.F64 && less:
		return foldLessF64
	case d == num.F64:
		return foldMoreF64
	}
	return nil
}

// assembled makes steps of kernels that work in whole units and of portable ones
// for the rest of a range.
func assembled(accSize, size int, k kernels, rest steps) steps {
	s := steps{group: group}
	fold := func(dst, acc []byte, srcs [][]byte) {
		n := len(dst) / accSize &^ (unit - 1)
		if n > 0 {
			k.fold(dst[:n*accSize], acc, srcs)
		}
		if n*accSize < len(dst) {
			foldRest(rest, n, accSize, size, dst[n*accSize:], acc, srcs)
		}
	}
	s.first = func(acc []byte, srcs [][]byte) { fold(acc, nil, srcs) }
	if accSize == size {
		s.first = func(acc []byte, srcs [][]byte) {
			if len(srcs) == 1 {
				copy(acc, srcs[0]) // nothing is computed
				return
			}
			fold(acc, nil, srcs)
		}
	}
	s.more = fold
	s.join = func(dst, a, b []byte) { fold(dst, a, [][]byte{b}) }
	if k.tree8 != nil {
		s.tree = func(dst []byte, srcs [][]byte) {
			n := len(dst) / accSize &^ (unit - 1)
			switch {
			case n == 0:
			case len(srcs) == 4:
				k.tree4(dst[:n*accSize], srcs)
			default:
				k.tree8(dst[:n*accSize], srcs)
			}
			if n*accSize < len(dst) {
				treeRest(rest, n, accSize, size, dst, srcs)
			}
		}
		s.treeStream = k.stream8
	}
	return s
}

// lastOf makes steps.last of a kernel, steps and a conversion for the rest.
func lastOf(k foldKernel, accSize, size int, rest steps, narrow func(dst, acc []byte)) func(dst, acc []byte, srcs [][]byte) {
	return func(dst, acc []byte, srcs [][]byte) {
		n := len(dst) / size &^ (unit - 1)
		if n > 0 {
			k(dst[:n*size], acc, srcs)
		}
		if n*size < len(dst) {
			sum := make([]byte, len(dst)/size*accSize-n*accSize)
			foldRest(rest, n, accSize, size, sum, acc, srcs)
			narrow(dst[n*size:], sum)
		}
	}
}

// streams reports whether stores can pass the caches by.
func streams() bool { return hasAssembly }

// foldRest folds the elements from n on, fewer than a unit, into dst, which may
// be part of any of the sources and is written last.
func foldRest(s steps, n, accSize, size int, dst, acc []byte, srcs [][]byte) {
	room := make([]byte, len(dst))
	if acc != nil {
		copy(room, acc[n*accSize:])
	} else {
		s.first(room, [][]byte{srcs[0][n*size:]})
		srcs = srcs[1:]
	}
	for _, src := range srcs {
		s.more(room, room, [][]byte{src[n*size:]})
	}
	copy(dst, room)
}

// treeRest combines the elements from n on of 4 or 8 sources, as foldRest does.
func treeRest(s steps, n, accSize, size int, dst []byte, srcs [][]byte) {
	var room [group][]byte
	for i, src := range srcs {
		room[i] = make([]byte, len(dst)-n*accSize)
		s.first(room[i], [][]byte{src[n*size:]})
	}
	for step := 1; step < len(srcs); step *= 2 {
		for i := 0; i+step < len(srcs); i += 2 * step {
			s.join(room[i], room[i], room[i+step])
		}
	}
	copy(dst[n*accSize:], room[0])
}
