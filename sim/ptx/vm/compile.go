package vm

import (
	"math"
	"math/bits"

	"example.com/tandem/api/num"
	"example.com/tandem/sim/ptx/asm"
)

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
	case "add", "sub", "mul", "mad", "fma", "div", "rem", "min", "max", "neg", "abs", "sqrt":
		c.arithmetic(in)
	case "and", "or", "xor", "not", "shl", "shr", "shf", "bfe", "bfi", "popc", "clz", "brev", "bfind", "prmt", "lop3", "cnot":
		c.bits(in)
	case "setp", "selp":
		c.choice(in)
	case "cvt":
		c.convert(in)
	case "cvta":
		c.windows(in)
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
	case "nanosleep":
		c.typed(asm.U32)
		c.end(1)
		in.kind, in.a = kSleep, c.value(c.args[0], asm.U32)
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

// rounding takes .rn and its like; the default is to nearest even.
func (c *compiler) rounding() num.Rounding {
	return map[string]num.Rounding{"": num.NearestEven, "rn": num.NearestEven, "rz": num.TowardZero, "rm": num.Down, "rp": num.Up}[c.mod("rn", "rz", "rm", "rp")]
}

func (c *compiler) arithmetic(in *instr) {
	op := c.in.Op
	r := c.rounding()
	part := c.mod("lo", "hi", "wide")
	full := c.mod("NaN")
	t := c.typed(join2(integers, floats)...)
	if !t.Float() {
		if full != "" || r != num.NearestEven {
			c.bad("rounding, or NaN, of integers")
		}
		c.integer(in, op, part, t)
		return
	}
	if t != asm.F32 && (r != num.NearestEven) {
		c.bad("rounding of %s other than to nearest is not known", t)
	}
	if part != "" || full != "" && op != "min" && op != "max" {
		c.bad("a modifier that a %s of %s does not have", op, t)
	}
	d := format(t)
	sign := uint64(1) << (d.Bits() - 1)
	switch op {
	case "add":
		c.set(in, t, add(t, r), t, t)
	case "sub":
		plus := add(t, r)
		flip := sign
		if t == asm.F16X2 || t == asm.BF16X2 {
			flip |= sign << 16
		}
		c.set(in, t, func(a, b, _ uint64) uint64 { return plus(a, b^flip, 0) }, t, t)
	case "mul":
		c.set(in, t, mul(t, r), t, t)
	case "fma", "mad":
		c.set(in, t, fma(t, r), t, t, t)
	case "min", "max":
		c.set(in, t, pick(t, op == "max", full != ""), t, t)
	case "neg":
		c.set(in, t, pairs(t, func(a, _, _ uint64) uint64 { return a ^ sign }), t)
	case "abs":
		c.set(in, t, pairs(t, func(a, _, _ uint64) uint64 { return a &^ sign }), t)
	case "div", "sqrt":
		if t != asm.F32 && t != asm.F64 || r != num.NearestEven {
			c.bad("%s of %s with this rounding is not known", op, t)
		}
		if op == "div" {
			c.set(in, t, div(t), t, t)
		} else {
			c.set(in, t, sqrt(t), t)
		}
	default:
		c.bad("%s of %s is not known", op, t)
	}
}

// wider is the type of twice the size.
var wider = map[asm.Type]asm.Type{asm.U16: asm.U32, asm.U32: asm.U64, asm.S16: asm.S32, asm.S32: asm.S64}

func (c *compiler) integer(in *instr, op, part string, t asm.Type) {
	product := func(a, b uint64) uint64 { return a * b }
	result := t
	sext := func(v uint64) uint64 { return v & mask(t) }
	if t.Signed() {
		sext = func(v uint64) uint64 { return uint64(signed(t, v)) }
	}
	switch {
	case part == "wide" && wider[t] != asm.NoType:
		result = wider[t]
		product = func(a, b uint64) uint64 { return sext(a) * sext(b) }
	case part == "wide":
		c.bad("there is no type wider than %s", t)
	case part == "hi" && t.Size() == 8:
		product = func(a, b uint64) uint64 {
			hi, _ := bits.Mul64(a, b)
			if t.Signed() {
				hi -= a>>63*b + b>>63*a
			}
			return hi
		}
	case part == "hi":
		product = func(a, b uint64) uint64 { return sext(a) * sext(b) >> (8 * t.Size()) }
	}
	if (part != "") != (op == "mul" || op == "mad") {
		c.bad(".lo, .hi or .wide belong to mul and mad")
	}
	switch op {
	case "add":
		c.set(in, t, func(a, b, _ uint64) uint64 { return a + b }, t, t)
	case "sub":
		c.set(in, t, func(a, b, _ uint64) uint64 { return a - b }, t, t)
	case "mul":
		c.set(in, result, func(a, b, _ uint64) uint64 { return product(a, b) }, t, t)
	case "mad":
		c.set(in, result, func(a, b, x uint64) uint64 { return product(a, b) + x }, t, t, result)
	case "neg":
		c.set(in, t, func(a, _, _ uint64) uint64 { return -a }, t)
	case "abs":
		c.set(in, t, func(a, _, _ uint64) uint64 { v := signed(t, a); return uint64(max(v, -v)) }, t)
	case "min", "max":
		less, _ := compare("lt", t)
		most := op == "max"
		c.set(in, t, func(a, b, _ uint64) uint64 {
			if less(a, b) != most {
				return a
			}
			return b
		}, t, t)
	case "div", "rem":
		c.set(in, t, divide(t, op == "rem"), t, t)
	default:
		c.bad("%s of %s is not known", op, t)
	}
	if in.mask != 0 {
		in.mask &= mask(result)
	}
}

// divide is division toward zero. By zero PTX leaves it open; GPUs give all
// ones, and the dividend as the rest.
func divide(t asm.Type, rest bool) fn {
	return func(a, b, _ uint64) uint64 {
		a, b = a&mask(t), b&mask(t)
		switch {
		case b == 0 && rest:
			return a
		case b == 0:
			return mask(t)
		case t.Signed() && rest:
			return uint64(signed(t, a) % signed(t, b))
		case t.Signed():
			return uint64(signed(t, a) / signed(t, b))
		case rest:
			return a % b
		}
		return a / b
	}
}

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

// toFloat rounds a float to nearest even into another format.
func toFloat(to, from asm.Type) fn {
	d, s := format(to), format(from)
	return func(a, _, _ uint64) uint64 { return num.Convert(d, s, a, num.NearestEven) }
}

func (c *compiler) convert(in *instr) {
	names := []string{"rn", "rz", "rm", "rp", "rni", "rzi", "rmi", "rpi"}
	how := c.mod(names...)
	sat := c.mod("satfinite")
	all := join2(anyType[4:], []asm.Type{asm.E4M3X2, asm.E5M2X2})
	to, from := c.typed(all...), c.typed(all...)
	r, direct := map[string]num.Rounding{"rn": num.NearestEven, "rz": num.TowardZero, "rm": num.Down, "rp": num.Up}[how]
	if sat != "" {
		c.bad(".satfinite is not known")
	}
	packed := to == asm.F16X2 || to == asm.BF16X2
	switch {
	case packed && from == asm.F32 && direct:
		d := format(to)
		c.set(in, to, func(a, b, _ uint64) uint64 {
			return num.Convert(d, num.F32, a, r)<<16 | num.Convert(d, num.F32, b, r)
		}, asm.F32, asm.F32)
	case packed || from == asm.F16X2 || from == asm.BF16X2 || to == asm.E4M3X2 || to == asm.E5M2X2 || from == asm.E4M3X2 || from == asm.E5M2X2:
		c.bad("a conversion from %s to %s is not known", from, to)
	case to.Float() && from.Float():
		d, s := format(to), format(from)
		widens := d.Size() > s.Size()
		if widens == (how != "") || how != "" && !direct {
			c.bad("rounding .%s of a conversion from %s to %s", how, from, to)
		}
		c.set(in, to, func(a, _, _ uint64) uint64 { return num.Convert(d, s, a, r) }, from)
	case to.Float():
		if how != "rn" || !intLike(from) {
			c.bad("only .rn is known of conversions from integers")
		}
		c.set(in, to, fromInt(to, from), from)
	case from.Float():
		round, ok := map[string]func(float64) float64{"rni": math.RoundToEven, "rzi": math.Trunc, "rmi": math.Floor, "rpi": math.Ceil}[how]
		if !ok {
			c.bad("a conversion to an integer needs .rni, .rzi, .rmi or .rpi")
		}
		c.set(in, to, toInt(to, from, round), from)
		in.mask &= mask(to)
	default:
		if how != "" {
			c.bad("rounding .%s between integers", how)
		}
		c.set(in, to, func(a, _, _ uint64) uint64 {
			if from.Signed() {
				a = uint64(signed(from, a))
			} else {
				a &= mask(from)
			}
			if to.Signed() {
				return uint64(signed(to, a)) // the register may be wider
			}
			return a & mask(to)
		}, from)
	}
}

func intLike(t asm.Type) bool { return t >= asm.U8 && t <= asm.S64 }

// windows are the generic addresses of spaces.
func (c *compiler) windows(in *instr) {
	back := c.mod("to") != ""
	base := map[string]uint64{"global": 0, "const": 0, "param": paramWindow, "shared": sharedWindow, "shared::cta": sharedWindow, "local": localWindow}[c.one("global", "const", "param", "shared", "shared::cta", "local")]
	c.typed(asm.U64)
	if back {
		base = -base
	}
	c.set(in, asm.U64, func(a, _, _ uint64) uint64 { return a + base }, asm.U64)
}
