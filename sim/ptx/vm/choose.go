package vm

import (
	"example.com/tandem/api/num"
	"example.com/tandem/sim/ptx/asm"
)

func (c *compiler) choice(in *instr) {
	if c.in.Op == "selp" {
		t := c.typed(anyType[1:]...)
		c.set(in, t, func(a, b, p uint64) uint64 {
			if p&1 != 0 {
				return a
			}
			return b
		}, t, t, asm.Pred)
		return
	}
	if len(c.mods) == 0 {
		c.bad("no comparison")
	}
	name := c.mods[0]
	c.mods = c.mods[1:]
	join := c.mod("and", "or", "xor")
	t := c.typed(join2(join2(integers, bitTypes), []asm.Type{asm.F16, asm.BF16, asm.F32, asm.F64})...)
	cmp, ok := compare(name, t)
	if !ok {
		c.bad("unknown comparison .%s of %s", name, t)
	}
	f := func(a, b, p uint64) (v, w uint64) {
		if cmp(a, b) {
			v = 1
		}
		w = v ^ 1
		switch join {
		case "and":
			return v & p, w & p
		case "or":
			return v | p, w | p
		case "xor":
			return v ^ p, w ^ p
		}
		return v, w
	}
	n := 3
	flip := uint64(0)
	if join != "" {
		n = 4
		if len(c.args) == 4 && c.args[3].Kind == asm.Reg && c.args[3].Not {
			flip, c.args = 1, append([]asm.Operand(nil), c.args...)
			c.args[3].Not = false
		}
	}
	c.end(n)
	in.kind, in.mask = kBoth, 1
	d := c.args[0]
	if d.Kind == asm.Pair {
		in.dst, _ = c.dest(d.List[0], 0)
		in.dst2, _ = c.dest(d.List[1], 0)
	} else {
		in.dst, _ = c.dest(d, 0)
	}
	in.a, in.b = c.value(c.args[1], t), c.value(c.args[2], t)
	if n == 4 {
		in.c = c.value(c.args[3], asm.Pred)
	}
	in.fn = func(a, b, p uint64) uint64 { v, w := f(a, b, p^flip); return v | w<<32 }
}

// compared is set: a comparison whose result is a number, all ones of an integer
// and 1 of a float; of packed halves one for each half.
func (c *compiler) compared(in *instr) {
	if len(c.mods) == 0 {
		c.bad("no comparison")
	}
	name := c.mods[0]
	c.mods = c.mods[1:]
	to := c.typed(asm.U32, asm.S32, asm.U16, asm.S16, asm.F16, asm.BF16, asm.F32, asm.F16X2, asm.BF16X2)
	from := c.typed(join2(join2(integers, bitTypes), floats)...)
	packed := from == asm.F16X2 || from == asm.BF16X2
	element := map[asm.Type]asm.Type{asm.F16X2: asm.F16, asm.BF16X2: asm.BF16}[from]
	if !packed {
		element = from
	}
	cmp, ok := compare(name, element)
	if !ok || packed != (to == asm.F16X2 || to == asm.BF16X2) && !(packed && to.Size() == 4 && !to.Float()) {
		c.bad("comparison .%s of %s into %s is not known", name, from, to)
	}
	yes := mask(to)
	if to.Float() {
		yes = num.Encode(format(to), 1, num.NearestEven)
	} else if packed {
		yes = 0xFFFF
	}
	c.set(in, to, pairs(from, func(a, b, _ uint64) uint64 {
		if cmp(a, b) {
			return yes
		}
		return 0
	}), from, from)
}
