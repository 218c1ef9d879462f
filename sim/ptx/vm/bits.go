package vm

import (
	"math/bits"

	"example.com/tandem/sim/ptx/asm"
)

// logic gives and, or, xor by name.
var logic = map[string]func(a, b uint64) uint64{
	"and": func(a, b uint64) uint64 { return a & b },
	"or":  func(a, b uint64) uint64 { return a | b },
	"xor": func(a, b uint64) uint64 { return a ^ b },
}

// bits compiles the instructions on bit patterns.
func (c *compiler) bits(in *instr) {
	op := c.in.Op
	switch op {
	case "and", "or", "xor":
		f := logic[op]
		t := c.typed(join2(bitTypes, []asm.Type{asm.Pred})...)
		c.set(in, t, func(a, b, _ uint64) uint64 { return f(a, b) }, t, t)
	case "not":
		t := c.typed(join2(bitTypes, []asm.Type{asm.Pred})...)
		c.set(in, t, func(a, _, _ uint64) uint64 { return ^a }, t)
	case "cnot":
		t := c.typed(bitTypes...)
		c.set(in, t, func(a, _, _ uint64) uint64 {
			if a == 0 {
				return 1
			}
			return 0
		}, t)
	case "shl", "shr":
		c.shift(in, op == "shl")
	case "shf":
		c.funnel(in)
	case "bfe":
		t := c.typed(asm.U32, asm.U64, asm.S32, asm.S64)
		c.set(in, t, func(a, at, n uint64) uint64 { return extract(t, a, at&0xFF, n&0xFF) }, t, asm.U32, asm.U32)
	case "bfi":
		t := c.typed(asm.B32, asm.B64)
		c.end(5)
		in.vec = []operand{c.value(c.args[4], asm.U32)}
		c.args = c.args[:4]
		c.set(in, t, nil, t, t, asm.U32)
		in.kind, in.width = kInsert, uint8(8*t.Size())
	case "popc", "clz":
		t := c.typed(asm.B32, asm.B64)
		f := func(a, _, _ uint64) uint64 { return uint64(bits.OnesCount64(a)) }
		if op == "clz" {
			f = func(a, _, _ uint64) uint64 { return uint64(bits.LeadingZeros64(a) - 64 + 8*t.Size()) }
		}
		c.set(in, asm.U32, f, t)
	case "brev":
		t := c.typed(asm.B32, asm.B64)
		c.set(in, t, func(a, _, _ uint64) uint64 { return bits.Reverse64(a) >> (64 - 8*t.Size()) }, t)
	case "bfind":
		from := c.mod("shiftamt") != ""
		t := c.typed(asm.U32, asm.U64, asm.S32, asm.S64)
		c.set(in, asm.U32, func(a, _, _ uint64) uint64 {
			if a &= mask(t); t.Signed() && signed(t, a) < 0 {
				a = ^a & mask(t)
			}
			at := bits.Len64(a) - 1
			if from && at >= 0 {
				at = 8*t.Size() - 1 - at
			}
			return uint64(uint32(at))
		}, t)
	case "prmt":
		c.typed(asm.B32)
		c.set(in, asm.B32, permute, asm.B32, asm.B32, asm.B32)
	case "lop3":
		c.typed(asm.B32)
		c.end(5)
		if c.args[4].Kind != asm.Int || c.args[4].Bits > 255 {
			c.bad("a table that is no number up to 255")
		}
		table := c.args[4].Bits
		c.args = c.args[:4]
		c.set(in, asm.B32, func(a, b, x uint64) (v uint64) {
			for i := range 32 {
				v |= table >> (a>>i&1<<2 | b>>i&1<<1 | x>>i&1) & 1 << i
			}
			return v
		}, asm.B32, asm.B32, asm.B32)
	}
}

// shift compiles shl and shr, which clamp the amount.
func (c *compiler) shift(in *instr, left bool) {
	var t asm.Type
	if left {
		t = c.typed(bitTypes...)
	} else {
		t = c.typed(join2(bitTypes, integers)...)
	}
	n := uint64(8 * t.Size())
	f := func(a, b, _ uint64) uint64 { return a & mask(t) >> min(b, 64) }
	switch {
	case left:
		f = func(a, b, _ uint64) uint64 { return a << min(b, 64) & mask(t) }
	case t.Signed():
		f = func(a, b, _ uint64) uint64 { return uint64(signed(t, a)>>min(b, n-1)) & mask(t) }
	}
	c.set(in, t, f, t, asm.U32)
}

func (c *compiler) funnel(in *instr) {
	dir, how := c.one("l", "r"), c.one("wrap", "clamp")
	c.typed(asm.B32)
	c.set(in, asm.B32, func(lo, hi, n uint64) uint64 {
		if how == "wrap" {
			n &= 31
		} else {
			n = min(n, 32)
		}
		v := hi<<32 | lo
		if dir == "l" {
			return v << n >> 32
		}
		return v >> n & 0xFFFFFFFF
	}, asm.B32, asm.B32, asm.U32)
}

// extract is bfe: n bits of a from at on, with the sign if the type has one.
func extract(t asm.Type, a, at, n uint64) uint64 {
	size := uint64(8 * t.Size())
	a &= mask(t)
	sign := uint64(0)
	if t.Signed() && n > 0 {
		sign = a >> min(at+n-1, size-1) & 1
	}
	v := a >> min(at, 64)
	if n < size {
		v &= 1<<n - 1
		if sign != 0 {
			v |= ^uint64(0) << n
		}
	}
	return v & mask(t)
}

// insert is bfi: b with n bits from at on replaced by those of a.
func insert(a, b, at, n uint64, size uint8) uint64 {
	at, n = min(at&0xFF, uint64(size)), min(n&0xFF, uint64(size))
	m := (uint64(1)<<n - 1) << at
	return b&^m | a<<at&m
}

// permute is prmt in its default mode.
func permute(a, b, sel uint64) (v uint64) {
	all := b<<32 | a
	for i := range 4 {
		s := sel >> (4 * i) & 15
		x := all >> (8 * (s & 7)) & 0xFF
		if s&8 != 0 {
			x = -(x >> 7) & 0xFF
		}
		v |= x << (8 * i)
	}
	return v
}
