package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// spread makes the two kernels that tell how far the exponents of bf16 numbers
// are apart.
func spread() {
	TEXT("spreadBF16", NOSPLIT, "func(high, low []byte, srcs [][]byte)")
	Doc("spreadBF16 is, with the ranges as slices of uint16 and len(high) a multiple of 16,",
		"",
		"	for i := range high {",
		"		for _, src := range srcs {",
		"			high[i] = max(high[i], src[i]&0x7FFF)",
		"			low[i] = max(low[i], -(src[i]&0x7FFF))",
		"		}",
		"	}")
	Pragma("noescape")
	high := Load(Param("high").Base(), GP64())
	end := Load(Param("high").Len(), GP64())
	low := Load(Param("low").Base(), GP64())
	srcs := Load(Param("srcs").Base(), GP64())
	count := Load(Param("srcs").Len(), GP64())
	mag, zero := broadcast(0x7FFF7FFF), YMM()
	VPXOR(zero, zero, zero)
	off := GP64()
	blocks(bf16, off, end, []int{unit}, func(int) {
		p, left, src := GP64(), GP64(), GP64()
		hi, lo, x := YMM(), YMM(), YMM()
		VMOVDQU(Mem{Base: high, Index: off, Scale: 1}, hi)
		VMOVDQU(Mem{Base: low, Index: off, Scale: 1}, lo)
		MOVQ(srcs, p)
		MOVQ(count, left)
		Label("sources")
		TESTQ(left, left)
		JZ(LabelRef("done"))
		next(p, left, src)
		VPAND(Mem{Base: src, Index: off, Scale: 1}, mag, x)
		VPMAXUW(x, hi, hi)
		VPSUBW(x, zero, x)
		VPMAXUW(x, lo, lo)
		JMP(LabelRef("sources"))
		Label("done")
		VMOVDQU(hi, Mem{Base: high, Index: off, Scale: 1})
		VMOVDQU(lo, Mem{Base: low, Index: off, Scale: 1})
	})
	over()
}

func over() {
	TEXT("overBF16", NOSPLIT, "func(high, low []byte, most uint16) uint32")
	Doc("overBF16 is, with the ranges as slices of uint16 and len(high) a multiple of 16,",
		"",
		"	for i := range high {",
		"		if int(high[i]>>7)-int(-low[i]>>7) > int(most) {",
		"			return a number other than 0",
		"		}",
		"	}",
		"	return 0")
	Pragma("noescape")
	high := Load(Param("high").Base(), GP64())
	end := Load(Param("high").Len(), GP64())
	low := Load(Param("low").Base(), GP64())
	most := lane{bits: 16}.fill("most")
	zero, any := YMM(), YMM()
	VPXOR(zero, zero, zero)
	VPXOR(any, any, any)
	off := GP64()
	XORQ(off, off)
	Label("blocks")
	CMPQ(off, end)
	JGE(LabelRef("done"))
	hi, lo := YMM(), YMM()
	VMOVDQU(Mem{Base: high, Index: off, Scale: 1}, hi)
	VPSUBW(Mem{Base: low, Index: off, Scale: 1}, zero, lo)
	VPSRLW(U8(7), hi, hi)
	VPSRLW(U8(7), lo, lo)
	VPSUBW(lo, hi, hi)
	VPCMPGTW(most, hi, hi)
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
