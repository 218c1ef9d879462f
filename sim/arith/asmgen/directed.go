package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// The direction that a hash draws, by what multiplies it.
const (
	seeded     rounding = "Seeded"
	seededLong rounding = "SeededLong" // AVX-512DQ and VL
)

// constant is a register's worth of a 64-bit number, in memory.
func constant(name string, words ...uint64) Mem {
	m := GLOBL(name, RODATA|NOPTR)
	for i := range 4 {
		DATA(8*i, U64(words[i%len(words)]))
	}
	return m
}

// directing makes the roundings of f64 sums into 16-bit formats.
func directing() {
	magnitude := constant("magnitudes", 1<<63-1)
	for _, to := range []format{bf16, f16} {
		// The factor moves the exponents so that the upper bits are those of the
		// format, for its subnormals too; cut bits are below.
		scale, cut := uint64(1023-896), uint8(45)
		if to == f16 {
			scale, cut = 1023-1008, 42
		}
		d := directed{
			to: to, cut: cut, magnitude: magnitude,
			scale: constant("scale"+to.name, scale<<52),
			below: constant("below"+to.name, 1<<cut-1),
			half:  constant("half"+to.name, 1<<(cut-1)-1),
		}
		for _, r := range []rounding{nearest, truncate, away, seeded, seededLong} {
			d.kernel(r)
		}
	}
}

// directed is what the kernels into one format have in common.
type directed struct {
	to                            format
	cut                           uint8
	magnitude, scale, below, half Mem
}

// The factors of arith.Mix.
const mixFirst, mixSecond uint64 = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB

func (d *directed) kernel(r rounding) {
	name := fmt.Sprintf("sums%s%s", d.to.name, r)
	signature, says := "func(dst, src []byte, most uint64)", fmt.Sprintf("directed(num.%s, src[i], most, %s)", d.to.name, rule[r])
	if r == seeded || r == seededLong {
		signature, says = "func(dst, src []byte, most, key uint64)", fmt.Sprintf("dithered(num.%s, src[i], most, mix(key+uint64(i)))", d.to.name)
	}
	TEXT(name, NOSPLIT, signature)
	Doc(fmt.Sprintf("%s is, with dst as a slice of %s, src of finite f64 and len(dst) a", name, d.to.lower),
		"multiple of 16,",
		"",
		"	for i := range dst {",
		"		dst[i] = "+says,
		"	}")
	Pragma("noescape")
	dst, end, src, off := ranges()
	most, sign, zero := wide(Load(Param("most"), GP64())), wideConstant(1<<15), YMM()
	VPXOR(zero, zero, zero)
	var m *mixer
	var one VecVirtual
	switch r {
	case seeded, seededLong:
		m = newMixer(Load(Param("key"), GP64()), r == seededLong)
	case nearest:
		one = wideConstant(1)
	}
	blocks(d.to, off, end, []int{unit}, func(int) {
		quarter := func(i int) VecVirtual {
			x, mag := YMM(), YMM()
			VADDPD(Mem{Base: src, Index: off, Scale: 4, Disp: 32 * i}, zero, x) // -0 becomes +0
			VMULPD(d.scale, x, x)
			VPAND(d.magnitude, x, mag)
			switch r {
			case seeded, seededLong:
				VPADDQ(d.below, mag, mag)
				h := m.next()
				VPSRLQ(U8(64-d.cut), h, h)
				VPSUBQ(h, mag, mag)
			case away:
				VPADDQ(d.below, mag, mag)
			case nearest:
				odd := YMM()
				VPSRLQ(U8(d.cut), mag, odd)
				VPAND(one, odd, odd)
				VPADDQ(d.half, mag, mag)
				VPADDQ(odd, mag, mag)
			}
			VPSRLQ(U8(d.cut), mag, mag)
			VPMINUD(most, mag, mag)
			VPSRLQ(U8(48), x, x)
			VPAND(sign, x, x)
			VPOR(x, mag, mag)
			return mag
		}
		packWords(quarter, Mem{Base: dst, Index: off, Scale: 1})
	})
}

// packWords writes 16 numbers that come in quarters, below 2^16 each.
func packWords(quarter func(int) VecVirtual, m Mem) {
	a := quarter(0)
	VPACKUSDW(quarter(1), a, a)
	b := quarter(2)
	VPACKUSDW(quarter(3), b, b)
	VPACKUSDW(b, a, a)
	order := YMM()
	VMOVDQU(constantOnce("quarters", 4<<32, 5<<32|1, 6<<32|2, 7<<32|3), order)
	VPERMD(a, order, a)
	VMOVDQU(a, m)
}

var constants = map[string]Mem{}

// constantOnce is a constant that several kernels share.
func constantOnce(name string, words ...uint64) Mem {
	if _, ok := constants[name]; !ok {
		constants[name] = constant(name, words...)
	}
	return constants[name]
}

// wide fills a register with a 64-bit number.
func wide(r Register) VecVirtual {
	x, y := XMM(), YMM()
	VMOVQ(r, x)
	VPBROADCASTQ(x, y)
	return y
}

func wideConstant(v uint64) VecVirtual {
	r := GP64()
	MOVQ(U64(v), r)
	return wide(r)
}

// mixer hashes numbers that follow each other, four at a time.
type mixer struct {
	at      VecVirtual
	factors [2][2]VecVirtual // lower and upper halves
	long    bool             // there is a multiplication of 64 bits: factors are whole
}

func newMixer(key Register, long bool) *mixer {
	m := &mixer{at: wide(key), long: long}
	VPADDQ(constantOnce("steps", 0, 1, 2, 3), m.at, m.at)
	for i, f := range []uint64{mixFirst, mixSecond} {
		if long {
			m.factors[i][0] = wideConstant(f)
			continue
		}
		m.factors[i] = [2]VecVirtual{wideConstant(f & (1<<32 - 1)), wideConstant(f >> 32)}
	}
	return m
}

// next is mix of the next four.
func (m *mixer) next() VecVirtual {
	z := YMM()
	VMOVDQA(m.at, z)
	VPADDQ(constantOnce("four", 4), m.at, m.at)
	for range 2 {
		fold := func(n uint8) {
			t := YMM()
			VPSRLQ(U8(n), z, t)
			VPXOR(t, z, z)
		}
		fold(30)
		m.times(0, z)
		fold(27)
		m.times(1, z)
		fold(31)
	}
	return z
}

// times multiplies by a factor, modulo 2^64.
func (m *mixer) times(factor int, z VecVirtual) {
	low, high := m.factors[factor][0], m.factors[factor][1]
	if m.long {
		VPMULLQ(low, z, z)
		return
	}
	t, cross := YMM(), YMM()
	VPSRLQ(U8(32), z, t)
	VPMULUDQ(low, t, t)
	VPMULUDQ(high, z, cross)
	VPADDQ(cross, t, t)
	VPSLLQ(U8(32), t, t)
	VPMULUDQ(low, z, z)
	VPADDQ(t, z, z)
}
