package main

import (
	"fmt"
	"strings"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// lane is a width of integers with the instructions for it.
type lane struct {
	elem          format // of the same size
	bits          int
	shift, shiftU func(...Op)
	greater       func(...Op)
	equal         func(...Op)
	min, max      func(...Op)
	maxU, sub     func(...Op)
}

var (
	half = lane{f16, 16, VPSRAW, VPSRLW, VPCMPGTW, VPCMPEQW, VPMINSW, VPMAXSW, VPMAXUW, VPSUBW}
	word = lane{f32, 32, VPSRAD, VPSRLD, VPCMPGTD, VPCMPEQD, VPMINSD, VPMAXSD, VPMAXUD, VPSUBD}
)

// minmax makes min and max of floats by their patterns as integers.
func minmax() {
	for _, verb := range []string{"Min", "Max"} {
		pick(half, verb)
		pick(word, verb)
		ternary16(half, verb)
	}
}

// fill loads a parameter of the lane's width into every lane.
func (l lane) fill(name string) VecVirtual {
	x, y := XMM(), YMM()
	if l.bits == 16 {
		r := Load(Param(name), GP16())
		MOVWLZX(r, r.(GPVirtual).As32())
		VMOVD(r.(GPVirtual).As32(), x)
		VPBROADCASTW(x, y)
		return y
	}
	VMOVD(Load(Param(name), GP32()), x)
	VPBROADCASTD(x, y)
	return y
}

// magnitude is the mask of all bits but the sign.
func (l lane) magnitude() VecVirtual {
	if l.bits == 16 {
		return broadcast(0x7FFF7FFF)
	}
	return broadcast(0x7FFFFFFF)
}

// pick makes min or max under the rules that have an order of all patterns.
func pick(l lane, verb string) {
	name := fmt.Sprintf("pick%s%d", verb, l.bits)
	TEXT(name, NOSPLIT, fmt.Sprintf("func(dst, acc []byte, srcs [][]byte, most, as uint%d)", l.bits))
	Doc(fmt.Sprintf("%s is, with the ranges as slices of int%d, len(dst) a multiple of 16, mag the", name, l.bits),
		fmt.Sprintf("greatest int%d and every NaN counting as the key as,", l.bits),
		"",
		"	for i := range dst {",
		"		k, rest := key(acc[i]), srcs",
		"		if acc == nil {",
		"			k, rest = key(srcs[0][i]), srcs[1:]",
		"		}",
		"		for _, src := range rest {",
		fmt.Sprintf("			k = %s(k, key(src[i]))", strings.ToLower(verb)),
		"		}",
		fmt.Sprintf("		x := k ^ k>>%d&mag", l.bits-1),
		"		if k == as {",
		"			x = mag // the canonical NaN",
		"		}",
		"		dst[i] = x",
		"	}",
		"",
		fmt.Sprintf("where key(x) is as if x&mag > most, else x ^ x>>%d&mag.", l.bits-1))
	Pragma("noescape")
	mag, most, as := l.magnitude(), l.fill("most"), l.fill("as")
	choose := l.min
	if verb == "Max" {
		choose = l.max
	}
	key := func(x VecVirtual) {
		s, nan := YMM(), YMM()
		VPAND(mag, x, nan)
		l.greater(most, nan, nan)
		l.shift(U8(l.bits-1), x, s)
		VPAND(mag, s, s)
		VPXOR(s, x, x)
		VPBLENDVB(nan, as, x, x)
	}
	overSources(l, func(x []VecVirtual) {
		for i := range x {
			key(x[i])
		}
	}, func(x []VecVirtual, at func(i int) Mem) {
		for i := range x {
			y := YMM()
			VMOVDQU(at(i), y)
			key(y)
			choose(y, x[i], x[i])
		}
	}, func(x VecVirtual) {
		s, nan := YMM(), YMM()
		l.equal(as, x, nan)
		l.shift(U8(l.bits-1), x, s)
		VPAND(mag, s, s)
		VPXOR(s, x, x)
		VPBLENDVB(nan, mag, x, x)
	})
}

// ternary16 makes (x < y) ? x : y, or with >, on 16-bit floats.
func ternary16(l lane, verb string) {
	name := fmt.Sprintf("ternary%s16", verb)
	TEXT(name, NOSPLIT, "func(dst, acc []byte, srcs [][]byte, most uint16)")
	sign := map[string]string{"Min": "<", "Max": ">"}[verb]
	Doc(fmt.Sprintf("%s is, with the ranges as slices of int16 and len(dst) a multiple of 16,", name),
		"",
		"	for i := range dst {",
		"		x, rest := acc[i], srcs",
		"		if acc == nil {",
		"			x, rest = srcs[0][i], srcs[1:]",
		"		}",
		"		for _, src := range rest {",
		"			y := src[i]",
		fmt.Sprintf("			if !(max(x&mag, y&mag) <= most && value(x) %s value(y)) {", sign),
		"				x = y",
		"			}",
		"		}",
		"		dst[i] = x",
		"	}",
		"",
		"where mag is 0x7FFF and value(x) is x&mag, negated if x < 0.")
	Pragma("noescape")
	mag, most := l.magnitude(), l.fill("most")
	overSources(l, func([]VecVirtual) {}, func(xs []VecVirtual, at func(i int) Mem) {
		for i, x := range xs {
			y, mx, my, vx, vy, nan := YMM(), YMM(), YMM(), YMM(), YMM(), YMM()
			VMOVDQU(at(i), y)
			VPAND(mag, x, mx)
			VPAND(mag, y, my)
			VPSIGNW(x, mx, vx)
			VPSIGNW(y, my, vy)
			VPMAXUW(mx, my, nan)
			VPCMPGTW(most, nan, nan)
			if verb == "Min" {
				VPCMPGTW(vx, vy, vx)
			} else {
				VPCMPGTW(vy, vx, vx)
			}
			VPANDN(vx, nan, vx)
			VPBLENDVB(vx, x, y, x)
		}
	}, func(VecVirtual) {})
}

// overSources is the frame of a kernel on integers: open what the accumulators
// start from, step with each further source, close what is written.
func overSources(l lane, open func([]VecVirtual), step func([]VecVirtual, func(i int) Mem), done func(VecVirtual)) {
	dst := Load(Param("dst").Base(), GP64())
	end := Load(Param("dst").Len(), GP64())
	from := Load(Param("acc").Base(), GP64())
	srcs := Load(Param("srcs").Base(), GP64())
	count := Load(Param("srcs").Len(), GP64())
	off := GP64()
	blocks(l.elem, off, end, []int{32, unit}, func(n int) {
		label := func(s string) string { return fmt.Sprintf("%s%d", s, n) }
		x := make([]VecVirtual, n*l.bits/256)
		for i := range x {
			x[i] = YMM()
		}
		p, left, src := GP64(), GP64(), GP64()
		MOVQ(srcs, p)
		MOVQ(count, left)
		MOVQ(from, src)
		TESTQ(src, src)
		JNZ(LabelRef(label("open")))
		next(p, src)
		DECQ(left)
		Label(label("open"))
		at := func(i int) Mem { return Mem{Base: src, Index: off, Scale: 1, Disp: 32 * i} }
		for i := range x {
			VMOVDQU(at(i), x[i])
		}
		open(x)
		TESTQ(left, left)
		JZ(LabelRef(label("done")))
		Label(label("sources"))
		next(p, src)
		step(x, at)
		DECQ(left)
		JNZ(LabelRef(label("sources")))
		Label(label("done"))
		for i := range x {
			done(x[i])
			VMOVDQU(x[i], Mem{Base: dst, Index: off, Scale: 1, Disp: 32 * i})
		}
	})
}

// next takes the next source from the list at p.
func next(p, src Register) {
	MOVQ(Mem{Base: p}, src)
	ADDQ(U8(sliceHeader), p)
}
