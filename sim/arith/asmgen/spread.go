package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// spread makes the kernel that keeps the greatest and the least magnitude of
// floats; zeros do not count as the least.
func spread(l lane) {
	name := fmt.Sprintf("spread%d", l.bits)
	TEXT(name, NOSPLIT, "func(high, low []byte, srcs [][]byte)")
	Doc(fmt.Sprintf("%s is, with the ranges as slices of uint%d, len(high) a multiple of 16 and mag", name, l.bits),
		fmt.Sprintf("the greatest int%d,", l.bits),
		"",
		"	for i := range high {",
		"		for _, src := range srcs {",
		"			high[i] = max(high[i], src[i]&mag)",
		"			low[i] = max(low[i], -(src[i]&mag))",
		"		}",
		"	}")
	Pragma("noescape")
	high := Load(Param("high").Base(), GP64())
	end := Load(Param("high").Len(), GP64())
	low := Load(Param("low").Base(), GP64())
	srcs := Load(Param("srcs").Base(), GP64())
	count := Load(Param("srcs").Len(), GP64())
	mag, zero := l.magnitude(), YMM()
	VPXOR(zero, zero, zero)
	off := GP64()
	blocks(l.elem, off, end, []int{256 / l.bits}, func(int) {
		p, left, src := GP64(), GP64(), GP64()
		hi, lo, x := YMM(), YMM(), YMM()
		VMOVDQU(Mem{Base: high, Index: off, Scale: 1}, hi)
		VMOVDQU(Mem{Base: low, Index: off, Scale: 1}, lo)
		MOVQ(srcs, p)
		MOVQ(count, left)
		Label("sources")
		next(p, src)
		VPAND(Mem{Base: src, Index: off, Scale: 1}, mag, x)
		l.maxU(x, hi, hi)
		l.sub(x, zero, x)
		l.maxU(x, lo, lo)
		DECQ(left)
		JNZ(LabelRef("sources"))
		VMOVDQU(hi, Mem{Base: high, Index: off, Scale: 1})
		VMOVDQU(lo, Mem{Base: low, Index: off, Scale: 1})
	})
}

// over makes the kernel that tells whether some exponents are too far apart.
func over(l lane) {
	name := fmt.Sprintf("over%d", l.bits)
	TEXT(name, NOSPLIT, fmt.Sprintf("func(high, low []byte, most, top uint%d, man uint64) uint32", l.bits))
	Doc(fmt.Sprintf("%s is, with the ranges as slices of uint%d and len(high) a multiple of 16,", name, l.bits),
		"",
		"	for i := range high {",
		"		if h := high[i] >> man; int(h)-int(-low[i]>>man) > int(most) || h > top {",
		"			return a number other than 0",
		"		}",
		"	}",
		"	return 0")
	Pragma("noescape")
	high := Load(Param("high").Base(), GP64())
	end := Load(Param("high").Len(), GP64())
	low := Load(Param("low").Base(), GP64())
	most, top, shift := l.fill("most"), l.fill("top"), XMM()
	VMOVQ(Load(Param("man"), GP64()), shift)
	zero, any := YMM(), YMM()
	VPXOR(zero, zero, zero)
	VPXOR(any, any, any)
	off := GP64()
	XORQ(off, off)
	Label("blocks")
	CMPQ(off, end)
	JGE(LabelRef("done"))
	hi, lo, t := YMM(), YMM(), YMM()
	VMOVDQU(Mem{Base: high, Index: off, Scale: 1}, hi)
	l.sub(Mem{Base: low, Index: off, Scale: 1}, zero, lo)
	l.shiftU(shift, hi, hi)
	l.shiftU(shift, lo, lo)
	l.greater(top, hi, t)
	VPOR(t, any, any)
	l.sub(lo, hi, hi)
	l.greater(most, hi, hi)
	VPOR(hi, any, any)
	ADDQ(U8(32), off)
	JMP(LabelRef("blocks"))
	Label("done")
	found := GP32()
	VPMOVMSKB(any, found)
	VZEROUPPER()
	Store(found, ReturnIndex(0))
	RET()
}
