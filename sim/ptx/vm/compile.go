package vm

import "example.com/tandem/sim/ptx/asm"

var (
	integers = []asm.Type{asm.U16, asm.U32, asm.U64, asm.S16, asm.S32, asm.S64}
	bitTypes = []asm.Type{asm.B16, asm.B32, asm.B64}
	halves   = []asm.Type{asm.F16, asm.F16X2, asm.BF16, asm.BF16X2}
	floats   = []asm.Type{asm.F16, asm.F16X2, asm.BF16, asm.BF16X2, asm.F32, asm.F64}
	anyType  = []asm.Type{asm.B8, asm.B16, asm.B32, asm.B64, asm.U8, asm.U16, asm.U32, asm.U64, asm.S8, asm.S16, asm.S32, asm.S64, asm.F16, asm.F16X2, asm.BF16, asm.BF16X2, asm.F32, asm.F64}
)

func join2(a, b []asm.Type) []asm.Type { return append(append([]asm.Type(nil), a...), b...) }

// instruction compiles c.in into in.
func (c *compiler) instruction(in *instr) {
	c.mods, c.args = c.in.Mods, c.in.Args
	switch c.in.Op {
	case "mov":
		c.move(in)
	case "add", "sub", "mul", "mad", "fma", "div", "rem", "min", "max", "neg", "abs", "sqrt", "rcp", "sad", "copysign":
		c.arithmetic(in)
	case "ex2", "lg2", "sin", "cos", "tanh", "rsqrt":
		c.bad("%s", approximate)
	case "and", "or", "xor", "not", "shl", "shr", "shf", "bfe", "bfi", "popc", "clz", "brev", "bfind", "prmt", "lop3", "cnot":
		c.bits(in)
	case "setp", "selp":
		c.choice(in)
	case "set":
		c.compared(in)
	case "cvt":
		c.convert(in)
	case "cvta":
		c.windows(in)
	case "isspacep":
		c.within(in)
	case "prefetch", "prefetchu": // does nothing but for the time
		c.mod("global", "local")
		c.one("L1", "L2", "L2::evict_last", "L2::evict_normal")
		c.end(1)
		if c.args[0].Kind != asm.Memory {
			c.bad("an operand that is no address")
		}
	case "bra":
		c.mod("uni")
		c.end(1)
		if c.args[0].Kind != asm.Label {
			c.bad("a target that is no label")
		}
		in.kind, in.target = kBra, int32(c.args[0].Target)
	case "brx":
		c.one("idx")
		c.mod("uni")
		c.end(2)
		if c.args[1].Kind != asm.Table {
			c.bad("a target that is no table of labels")
		}
		in.kind, in.a = kTable, c.value(c.args[0], asm.U32)
		for _, t := range c.args[1].List {
			in.table = append(in.table, int32(t.Target))
		}
	case "ret", "exit":
		c.mod("uni")
		c.end(0)
		in.kind = kExit
	case "trap", "brkpt":
		c.end(0)
		in.kind = kTrap
	case assertFail:
		in.kind = kAssert
	case "nanosleep":
		c.typed(asm.U32)
		c.end(1)
		in.kind, in.a = kSleep, c.value(c.args[0], asm.U32)
	case "griddepcontrol":
		c.one("wait", "launch_dependents")
		c.end(0)
		in.kind = kNop // launches of a stream run one after the other here
	default:
		if !c.memory(in) && !c.synchronise(in) {
			c.bad("unknown instruction")
		}
	}
}

// set makes in compute f of the arguments after the first.
func (c *compiler) set(in *instr, result asm.Type, f fn, types ...asm.Type) {
	c.end(len(types) + 1)
	in.kind, in.fn = kFn, f
	size := result.Size()
	if result == asm.Pred {
		size = 0
	}
	in.dst, in.mask = c.dest(c.args[0], size)
	for i, t := range types {
		*[]*operand{&in.a, &in.b, &in.c}[i] = c.value(c.args[i+1], t)
	}
}

func identity(a, _, _ uint64) uint64 { return a }

func (c *compiler) move(in *instr) {
	if c.mod("pred") != "" {
		c.set(in, asm.Pred, identity, asm.Pred)
		return
	}
	t := c.typed(join2(anyType[1:], nil)...)
	c.end(2)
	dst, src := c.args[0], c.args[1]
	for _, o := range c.args {
		if o.Kind == asm.Vector && len(o.List) == 0 {
			c.bad("an empty vector")
		}
	}
	switch {
	case src.Kind == asm.Special:
		s, ok := specials[src.Name]
		if !ok {
			c.bad("unknown special register %s", src.Name)
		}
		in.kind, in.special = kSpecial, s
		in.dst, in.mask = c.dest(dst, t.Size())
	case dst.Kind == asm.Vector:
		in.kind, in.width, in.a = kUnpack, uint8(8*t.Size()/len(dst.List)), c.value(src, t)
		for _, o := range dst.List {
			r, _ := c.dest(o, int(in.width)/8)
			in.vec = append(in.vec, operand{reg: r})
		}
	case src.Kind == asm.Vector:
		in.kind, in.width = kPack, uint8(8*t.Size()/len(src.List))
		part := map[uint8]asm.Type{8: asm.B8, 16: asm.B16, 32: asm.B32}[in.width]
		if part == asm.NoType {
			c.bad("a vector of %d", len(src.List))
		}
		for _, o := range src.List {
			in.vec = append(in.vec, c.value(o, part))
		}
		in.dst, in.mask = c.dest(dst, t.Size())
	default:
		c.set(in, t, identity, t)
	}
	if in.kind == kUnpack && (in.width < 8 || int(in.width)*len(in.vec) != 8*t.Size()) {
		c.bad("a vector of %d", len(in.vec))
	}
}
