package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// A rounding and its name in the kernels' names.
type rounding string

const (
	nearest  rounding = "Nearest"
	truncate rounding = "Truncate"
	away     rounding = "Away"
	up       rounding = "Up"
	down     rounding = "Down"
)

var rule = map[rounding]string{
	nearest:  "num.NearestEven",
	truncate: "num.TowardZero",
	away:     "num.AwayFromZero",
	up:       "num.Up",
	down:     "num.Down",
}

// narrowing makes the conversions that end a reduction.
func narrowing() {
	for _, r := range []rounding{nearest, truncate, away, up, down} {
		narrowFrom32(bf16, r)
		narrowFrom32(f16, r)
	}
	oddFrom64()
	narrow64To32()
}

func narrowFrom32(to format, r rounding) {
	name := fmt.Sprintf("narrow%s%s", to.name, r)
	start(name, to, f32, fmt.Sprintf("num.Convert(num.%s, num.F32, src[i], %s)", to.name, rule[r]))
	dst, end, src, off := ranges()
	if to == bf16 {
		nan, add, one := broadcast(0x7FFF0000), YMM(), broadcast(1)
		switch r {
		case nearest:
			add = broadcast(0x7FFF)
		case away, up, down:
			add = broadcast(0xFFFF)
		}
		blocks(to, off, end, []int{unit}, func(int) {
			var half [2]VecVirtual
			for i := range half {
				x := YMM()
				VMOVUPS(Mem{Base: src, Index: off, Scale: 2, Disp: 32 * i}, x)
				mask := nans(x)
				switch r {
				case nearest:
					halfUp(x, one, add)
				case away:
					VPADDD(add, x, x)
				case up, down:
					t := YMM()
					VPSRAD(U8(31), x, t)
					if r == up {
						VPANDN(add, t, t)
					} else {
						VPAND(add, t, t)
					}
					VPADDD(t, x, x)
				}
				VBLENDVPS(mask, nan, x, x)
				half[i] = x
			}
			packHigh(half[0], half[1], Mem{Base: dst, Index: off, Scale: 1})
		})
		return
	}
	nan, sign := broadcast(0x7FFFE000), broadcast(0x80000000)
	blocks(to, off, end, []int{unit}, func(int) {
		for i := range 2 {
			x := YMM()
			m := Mem{Base: dst, Index: off, Scale: 1, Disp: 16 * i}
			VMOVUPS(Mem{Base: src, Index: off, Scale: 2, Disp: 32 * i}, x)
			canonical(x, nan)
			if r == away {
				awayF16(x, sign, m)
			} else {
				VCVTPS2PH(U8(map[rounding]uint8{nearest: 0, down: 1, up: 2, truncate: 3}[r]), x, m)
			}
		}
	})
}

// awayF16 rounds the magnitudes up and puts the signs back.
func awayF16(x, sign VecVirtual, m Mem) {
	s, mag, h := YMM(), YMM(), XMM()
	VPANDN(x, sign, mag)
	VPAND(x, sign, s)
	VCVTPS2PH(U8(2), mag, h)
	// The signs of eight words, as eight halves.
	VPSRLD(U8(16), s, s)
	VPACKUSDW(s, s, s)
	VPERMQ(U8(0xD8), s, s)
	VPOR(s.AsX(), h, h)
	VMOVDQU(h, m)
}

// start opens a kernel dst[i] = expression.
func start(name string, to, from format, expression string) {
	TEXT(name, NOSPLIT, "func(dst, src []byte)")
	Doc(fmt.Sprintf("%s is, with dst as a slice of %s, src of %s and len(dst) a multiple of 16,", name, to.lower, from.lower),
		"",
		"	for i := range dst {",
		"		dst[i] = "+expression,
		"	}")
	Pragma("noescape")
}

func ranges() (dst, end, src, off Register) {
	dst = Load(Param("dst").Base(), GP64())
	end = Load(Param("dst").Len(), GP64())
	src = Load(Param("src").Base(), GP64())
	return dst, end, src, GP64()
}

// oddFrom64 makes the first half of a conversion from f64 to a 16-bit format.
func oddFrom64() {
	start("oddF64ToF32", f32, f64, "odd32(src[i]) // any NaN for a NaN")
	dst, end, src, off := ranges()
	one, magnitude := YMM(), YMM()
	VPCMPEQD(one, one, one)
	VPSRLQ(U8(1), one, magnitude)
	VPSRLD(U8(31), one, one)
	blocks(f32, off, end, []int{unit}, func(int) {
		for i := range 4 {
			x, back, inexact := YMM(), YMM(), YMM()
			f := XMM()
			VMOVUPD(Mem{Base: src, Index: off, Scale: 2, Disp: 32 * i}, x)
			VCVTPD2PSY(x, f)
			VCVTPS2PD(f, back)
			VCMPPD(U8(12), x, back, inexact) // ordered and not equal
			VANDPD(magnitude, x, x)
			VANDPD(magnitude, back, back)
			larger := YMM()
			VCMPPD(U8(30), x, back, larger) // back > x in magnitude
			// One less if the conversion went up; then the last bit if it was not exact.
			VPADDD(half64(larger), f, f)
			inexact32 := half64(inexact)
			VPAND(one.AsX(), inexact32, inexact32)
			VPOR(inexact32, f, f)
			VMOVDQU(f, Mem{Base: dst, Index: off, Scale: 1, Disp: 16 * i})
		}
	})
}

// half64 keeps a half of each of four 64-bit masks.
func half64(mask VecVirtual) VecVirtual {
	hi, out := XMM(), XMM()
	VEXTRACTF128(U8(1), mask, hi)
	VSHUFPS(U8(0x88), hi, mask.AsX(), out)
	return out
}

func narrow64To32() {
	start("narrowF64ToF32Nearest", f32, f64, "num.Convert(num.F32, num.F64, src[i], num.NearestEven)")
	dst, end, src, off := ranges()
	nan := broadcast(0x7FFFFFFF)
	blocks(f32, off, end, []int{unit}, func(int) {
		for i := range 4 {
			x, mask := XMM(), XMM()
			VCVTPD2PSY(Mem{Base: src, Index: off, Scale: 2, Disp: 32 * i}, x)
			VCMPPS(U8(3), x, x, mask)
			VBLENDVPS(mask, nan.AsX(), x, x)
			VMOVUPS(x, Mem{Base: dst, Index: off, Scale: 1, Disp: 16 * i})
		}
	})
}
