package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// kernelName is foldSumBF16, foldSumBF16ToF32 or foldSumBF16ByF32, which goes
// back to the element.
func kernelName(verb string, op operation, elem, acc, out format) string {
	name := verb + op.name + elem.name
	switch {
	case acc != elem && out == elem:
		name += "By" + acc.name
	case acc != elem:
		name += "To" + acc.name
	}
	return name
}

// rounded is the Go expression for one step.
func rounded(op operation, acc format, x, y string) string {
	if op == less || op == more {
		return fmt.Sprintf("ternary(%s %s %s, %s, %s)", x, op.sign, y, x, y)
	}
	return fmt.Sprintf("%s(%s %s %s)", acc.lower, x, op.sign, y)
}

// fold makes the kernel that combines sources from the left and leaves the result
// as out: an accumulator or, if these are wider, an element.
func fold(op operation, elem, acc, out format) {
	name := kernelName("fold", op, elem, acc, out)
	TEXT(name, NOSPLIT, "func(dst, acc []byte, srcs [][]byte)")
	Doc(fmt.Sprintf("%s is, with the ranges as slices of %s (acc of %s, dst of", name, elem.lower, acc.lower),
		fmt.Sprintf("%s) and len(dst) a multiple of 16,", out.lower),
		"",
		"	for i := range dst {",
		"		x, rest := acc[i], srcs",
		"		if acc == nil {",
		fmt.Sprintf("			x, rest = %s(srcs[0][i]), srcs[1:]", acc.lower),
		"		}",
		"		for _, src := range rest {",
		fmt.Sprintf("			x = %s", rounded(op, acc, "x", "src[i]")),
		"		}",
		fmt.Sprintf("		dst[i] = %s(x)", out.lower),
		"	}")
	Pragma("noescape")
	a := newArithmetic(op, elem, acc, out)
	dst := Load(Param("dst").Base(), GP64())
	end := Load(Param("dst").Len(), GP64())
	from := Load(Param("acc").Base(), GP64())
	srcs := Load(Param("srcs").Base(), GP64())
	count := Load(Param("srcs").Len(), GP64())
	for s := out.size; s > elem.size; s /= 2 {
		SHRQ(U8(1), end)
	}
	off := GP64()
	sizes := []int{32, unit}
	if acc == f64 {
		sizes = []int{unit}
	}
	blocks(elem, off, end, sizes, func(n int) {
		foldBlock(a, n, dst, from, srcs, count, off)
	})
}

func foldBlock(a *arithmetic, n int, dst, from, srcs, count, off Register) {
	label := func(s string) string { return fmt.Sprintf("%s%d", s, n) }
	p, left, src := GP64(), GP64(), GP64()
	accs := make([]VecVirtual, n/a.lanes())
	for i := range accs {
		accs[i] = YMM()
	}
	MOVQ(srcs, p)
	MOVQ(count, left)
	TESTQ(from, from)
	JZ(LabelRef(label("start")))
	for i, acc := range accs {
		m := a.accAt(from, off, i*a.lanes())
		if a.direct() || a.acc != a.elem {
			VMOVUPS(m, acc)
		} else {
			VMOVAPS(a.load(m), acc)
		}
	}
	JMP(LabelRef(label("sources")))
	Label(label("start"))
	next(p, src)
	DECQ(left)
	for i, acc := range accs {
		VMOVAPS(a.load(a.at(src, off, i*a.lanes())), acc)
	}
	TESTQ(left, left)
	JZ(LabelRef(label("done")))
	Label(label("sources"))
	next(p, src)
	a.step(accs, src, off)
	DECQ(left)
	JNZ(LabelRef(label("sources")))
	Label(label("done"))
	a.store(accs, dst, off)
}

// tree makes the kernel that combines n sources, a power of two, in a balanced
// tree.
func tree(op operation, elem, acc format, n int) {
	name := kernelName(fmt.Sprintf("tree%d", n), op, elem, acc, acc)
	TEXT(name, NOSPLIT, "func(dst []byte, srcs [][]byte)")
	value := func(i int) string { return fmt.Sprintf("srcs[%d][i]", i) }
	Doc(fmt.Sprintf("%s is, with the ranges as slices of %s (dst of %s), len(dst) a multiple", name, elem.lower, acc.lower),
		fmt.Sprintf("of 16 and op(x, y) = %s,", rounded(op, acc, "x", "y")),
		"",
		"	for i := range dst {",
		"		dst[i] = "+treeText(0, n, value),
		"	}")
	Pragma("noescape")
	a := newArithmetic(op, elem, acc, acc)
	dst := Load(Param("dst").Base(), GP64())
	end := Load(Param("dst").Len(), GP64())
	list := Load(Param("srcs").Base(), GP64())
	for s := acc.size; s > elem.size; s /= 2 {
		SHRQ(U8(1), end)
	}
	srcs := make([]Register, n)
	for i := range srcs {
		srcs[i] = GP64()
		MOVQ(Mem{Base: list, Disp: sliceHeader * i}, srcs[i])
	}
	off := GP64()
	blocks(elem, off, end, []int{unit}, func(int) {
		accs := a.subtree(srcs, off)
		a.store(accs, dst, off)
	})
}

func treeText(lo, n int, value func(int) string) string {
	if n == 1 {
		return value(lo)
	}
	return fmt.Sprintf("op(%s, %s)", treeText(lo, n/2, value), treeText(lo+n/2, n/2, value))
}

// subtree leaves the tree over some sources in registers.
func (a *arithmetic) subtree(srcs []Register, off Register) []VecVirtual {
	if len(srcs) == 1 {
		accs := make([]VecVirtual, unit/a.lanes())
		for i := range accs {
			accs[i] = a.load(a.at(srcs[0], off, i*a.lanes()))
		}
		return accs
	}
	half := len(srcs) / 2
	left := a.subtree(srcs[:half], off)
	if half == 1 {
		a.step(left, srcs[1], off)
		return left
	}
	for i, right := range a.subtree(srcs[half:], off) {
		a.combine(left[i], right)
	}
	return left
}
