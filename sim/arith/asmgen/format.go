package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// format is an element type.
type format struct {
	name, lower string
	size        int
}

var (
	bf16 = format{"BF16", "bf16", 2}
	f16  = format{"F16", "f16", 2}
	f32  = format{"F32", "f32", 4}
	f64  = format{"F64", "f64", 8}
)

// operation is what is done with two accumulators.
type operation struct{ name, sign string }

var (
	sum  = operation{"Sum", "+"}
	prod = operation{"Prod", "*"}
	less = operation{"Less", "<"} // x < y ? x : y, as MINPS and MINPD do it
	more = operation{"More", ">"}
)

// unit is the number of elements that every kernel works in; what is left of a
// range is the caller's.
const unit = 16

// sliceHeader is the size of a Go slice: its first word is the pointer.
const sliceHeader = 24

// broadcast fills a register with a 32-bit constant.
func broadcast(v uint32) VecVirtual {
	r, x, y := GP32(), XMM(), YMM()
	MOVL(U32(v), r)
	VMOVD(r, x)
	VPBROADCASTD(x, y)
	return y
}

// arithmetic is the code for operations on elements of elem in accumulators of
// acc, with the constants it needs.
type arithmetic struct {
	op             operation
	elem, acc, out format
	bias, one      VecVirtual // to round f32 to bf16
	high           VecVirtual
	nan            VecVirtual // the canonical NaN, as f32
}

func newArithmetic(op operation, elem, acc, out format) *arithmetic {
	a := &arithmetic{op: op, elem: elem, acc: acc, out: out}
	if out == bf16 {
		a.bias, a.one = broadcast(0x7FFF), broadcast(1)
	}
	if acc == bf16 {
		a.high = broadcast(0xFFFF0000)
	}
	switch {
	case out == bf16:
		a.nan = broadcast(0x7FFF0000)
	case out == f16:
		a.nan = broadcast(0x7FFFE000)
	case elem == f32 && acc == f32 && (op == sum || op == prod):
		a.nan = broadcast(0x7FFFFFFF)
	}
	return a
}

// lanes is how many accumulators a register holds.
func (a *arithmetic) lanes() int {
	if a.acc == f64 {
		return 4
	}
	return 8
}

// at is the operand of element i of the source at p.
func (a *arithmetic) at(p, off Register, i int) Mem {
	return Mem{Base: p, Index: off, Scale: 1, Disp: i * a.elem.size}
}

// accAt is the operand of accumulator i of a range of them.
func (a *arithmetic) accAt(p, off Register, i int) Mem {
	return Mem{Base: p, Index: off, Scale: uint8(a.acc.size / a.elem.size), Disp: i * a.acc.size}
}

// load takes a register of elements in, as accumulators. Sums of bf16 and f16 are
// done in f32 registers, rounded to the element after each step.
func (a *arithmetic) load(m Mem) VecVirtual {
	y := YMM()
	switch {
	case a.acc == f64 && a.elem == bf16:
		x := XMM()
		VPMOVZXWD(m, x)
		VPSLLD(U8(16), x, x)
		VCVTPS2PD(x, y)
	case a.acc == f64 && a.elem == f16:
		x := XMM()
		VCVTPH2PS(m, x)
		VCVTPS2PD(x, y)
	case a.acc == f64 && a.elem == f32:
		VCVTPS2PD(m, y)
	case a.elem == bf16:
		VPMOVZXWD(m, y)
		VPSLLD(U8(16), y, y)
	case a.elem == f16:
		VCVTPH2PS(m, y)
	default:
		VMOVUPS(m, y)
	}
	return y
}

// direct reports whether a source can be an operand as it lies in memory.
func (a *arithmetic) direct() bool { return a.elem == a.acc && a.elem.size >= 4 }

// combine is x = x op y, rounded; y may be memory where direct.
func (a *arithmetic) combine(x VecVirtual, y Op) {
	single := map[operation]func(...Op){sum: VADDPS, prod: VMULPS, less: VMINPS, more: VMAXPS}
	double := map[operation]func(...Op){sum: VADDPD, prod: VMULPD, less: VMINPD, more: VMAXPD}
	if a.acc == f64 {
		double[a.op](y, x, x)
	} else {
		single[a.op](y, x, x)
	}
	switch a.acc {
	case bf16:
		// To nearest even by an integer addition. The low half of a NaN is zero
		// here, so that the addition leaves it one.
		halfUp(x, a.one, a.bias)
		VPAND(a.high, x, x)
	case f16:
		h := XMM()
		VCVTPS2PH(U8(0), x, h)
		VCVTPH2PS(h, x)
	}
}

// step combines every accumulator with its element of the source at p.
func (a *arithmetic) step(accs []VecVirtual, p, off Register) {
	for i, acc := range accs {
		m := a.at(p, off, i*a.lanes())
		if a.direct() {
			a.combine(acc, m)
		} else {
			a.combine(acc, a.load(m))
		}
	}
}

// store writes accumulators out, NaNs canonical where they are elements.
func (a *arithmetic) store(accs []VecVirtual, p, off Register) {
	for i := 0; i < len(accs); i++ {
		m := Mem{Base: p, Index: off, Scale: uint8(a.out.size / a.elem.size), Disp: i * a.lanes() * a.out.size}
		switch {
		case a.out == bf16:
			for _, x := range accs[i : i+2] {
				mask := nans(x)
				if a.acc == f32 {
					halfUp(x, a.one, a.bias)
				}
				VBLENDVPS(mask, a.nan, x, x)
			}
			packHigh(accs[i], accs[i+1], m)
			i++
		case a.out == f16:
			canonical(accs[i], a.nan)
			VCVTPS2PH(U8(0), accs[i], m)
		default:
			if a.nan != nil {
				canonical(accs[i], a.nan)
			}
			VMOVUPS(accs[i], m)
		}
	}
}

// halfUp adds to f32 patterns what rounds their upper halves to nearest even. It
// makes NaNs of some patterns with a nonzero lower half something else.
func halfUp(x, one, bias VecVirtual) {
	t := YMM()
	VPSRLD(U8(16), x, t)
	VPAND(one, t, t)
	VPADDD(bias, t, t)
	VPADDD(t, x, x)
}

// nans is a mask of the NaNs in a register of f32.
func nans(x VecVirtual) VecVirtual {
	mask := YMM()
	VCMPPS(U8(3), x, x, mask) // unordered with itself
	return mask
}

// canonical replaces the NaNs of a register of f32.
func canonical(x, nan VecVirtual) { VBLENDVPS(nans(x), nan, x, x) }

// packHigh writes the upper halves of 16 words.
func packHigh(lo, hi VecVirtual, m Mem) {
	VPSRLD(U8(16), lo, lo)
	VPSRLD(U8(16), hi, hi)
	VPACKUSDW(hi, lo, lo) // within each 128-bit half
	VPERMQ(U8(0xD8), lo, lo)
	VMOVDQU(lo, m)
}

// blocks runs body for as many blocks of the given number of elements as there
// are left, larger ones first. off is the byte offset into a source, end its
// limit.
func blocks(f format, off, end Register, sizes []int, body func(elements int)) {
	XORQ(off, off)
	for _, n := range sizes {
		loop, next := fmt.Sprintf("blocks%d", n), fmt.Sprintf("below%d", n)
		left := GP64()
		Label(loop)
		MOVQ(end, left)
		SUBQ(off, left)
		CMPQ(left, U32(n*f.size))
		JL(LabelRef(next))
		body(n)
		ADDQ(U32(n*f.size), off)
		JMP(LabelRef(loop))
		Label(next)
	}
	VZEROUPPER()
	RET()
}
