package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// vector is the size of a register in bytes.
const vector = 32

// pass copies a vector with a store that passes the caches by.
func pass(from, to Mem) {
	y := YMM()
	VMOVDQU(from, y)
	VMOVNTDQ(y, to)
}

// stream makes the kernel that copies past the caches, and the fence that such
// stores need before others may be told of them.
func stream() {
	TEXT("stream", NOSPLIT, "func(dst, src []byte)")
	Doc("stream copies src to dst with stores that pass the caches by. dst lies at a multiple",
		"of 32 bytes, and len(src) is a multiple of 128. Call settle when all is copied.")
	Pragma("noescape")
	dst := Load(Param("dst").Base(), GP64())
	src := Load(Param("src").Base(), GP64())
	left := Load(Param("src").Len(), GP64())
	Label("loop")
	CMPQ(left, U32(4*vector))
	JL(LabelRef("done"))
	for i := range 4 {
		pass(Mem{Base: src, Disp: vector * i}, Mem{Base: dst, Disp: vector * i})
	}
	ADDQ(U32(4*vector), src)
	ADDQ(U32(4*vector), dst)
	SUBQ(U32(4*vector), left)
	JMP(LabelRef("loop"))
	Label("done")
	VZEROUPPER()
	RET()

	TEXT("settle", NOSPLIT, "func()")
	Doc("settle orders the stores that passed the caches by before all later ones.")
	SFENCE()
	RET()
}

// treeStream makes the kernel that combines 8 sources in a balanced tree and
// meanwhile copies something else: memory is slow to take stores that pass the
// caches by, and arithmetic hides that.
func treeStream(op operation, elem, acc format) {
	const n = 8
	name := kernelName("stream8", op, elem, acc, acc)
	TEXT(name, NOSPLIT, "func(dst []byte, srcs [][]byte, to, from []byte)")
	Doc(fmt.Sprintf("%s is %s, and copies from to", name, kernelName("tree8", op, elem, acc, acc)),
		"to as stream does: 8 bytes for every byte of one source.")
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
	to := Load(Param("to").Base(), GP64())
	from := Load(Param("from").Base(), GP64())
	off := GP64()
	XORQ(off, off)
	Label("loop")
	CMPQ(off, end)
	JGE(LabelRef("done"))
	accs := a.subtree(srcs, off)
	for i := 0; i < n*unit*elem.size; i += vector {
		pass(Mem{Base: from, Index: off, Scale: n, Disp: i}, Mem{Base: to, Index: off, Scale: n, Disp: i})
	}
	a.store(accs, dst, off)
	ADDQ(U32(unit*elem.size), off)
	JMP(LabelRef("loop"))
	Label("done")
	VZEROUPPER()
	RET()
}
