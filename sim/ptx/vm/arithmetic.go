package vm

import (
	"math/bits"

	"example.com/tandem/api/num"
	"example.com/tandem/sim/ptx/asm"
)

// rounding takes .rn and its like; the default is to nearest even.
func (c *compiler) rounding() num.Rounding {
	return map[string]num.Rounding{"": num.NearestEven, "rn": num.NearestEven, "rz": num.TowardZero, "rm": num.Down, "rp": num.Up}[c.mod("rn", "rz", "rm", "rp")]
}

func (c *compiler) arithmetic(in *instr) {
	op := c.in.Op
	r := c.rounding()
	if c.mod("approx", "full") != "" {
		c.bad("%s", approximate)
	}
	clamp := c.mod("sat", "relu")
	part := c.mod("lo", "hi", "wide")
	full := c.mod("NaN")
	t := c.typed(join2(integers, floats)...)
	if !t.Float() {
		if full != "" || clamp != "" || r != num.NearestEven {
			c.bad("rounding, clamping or NaN of integers")
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
	if clamp == "sat" && (op != "add" && op != "sub" && op != "mul" && op != "fma" || t != asm.F32 && t != asm.F16 && t != asm.F16X2) ||
		clamp == "relu" && (op != "fma" || format(t).Size() != 2) {
		c.bad(".%s is not known of %s of %s", clamp, op, t)
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
	case "div", "sqrt", "rcp", "copysign":
		if t != asm.F32 && t != asm.F64 || r != num.NearestEven {
			c.bad("%s of %s with this rounding is not known", op, t)
		}
		switch over := div(t); op {
		case "div":
			c.set(in, t, over, t, t)
		case "sqrt":
			c.set(in, t, sqrt(t), t)
		case "rcp":
			one := num.Encode(d, 1, r)
			c.set(in, t, func(a, _, _ uint64) uint64 { return over(one, a, 0) }, t)
		default:
			c.set(in, t, func(a, b, _ uint64) uint64 { return a&sign | b&^sign }, t, t)
		}
	default:
		c.bad("%s of %s is not known", op, t)
	}
	if clamp != "" {
		in.fn = clamped(t, clamp, in.fn)
	}
}

// approximate is why an instruction has no place here.
const approximate = "an approximation, whose bits are the hardware's own and not known"

// clamped keeps results at 0 or more (relu), or between 0 and 1 (sat). A NaN
// stays one under relu, and is 0 under sat.
func clamped(t asm.Type, how string, f fn) fn {
	d := format(t)
	one := num.Encode(d, 1, num.NearestEven)
	fix := pairs(t, func(v, _, _ uint64) uint64 {
		switch {
		case num.IsNaN(d, v) && how == "relu":
			return num.CanonicalNaN(d)
		case num.IsNaN(d, v) || num.SignBit(d, v):
			return 0
		case how == "sat":
			return min(v, one) // bits of positive numbers are in their order
		}
		return v
	})
	return func(a, b, c uint64) uint64 { return fix(f(a, b, c), 0, 0) }
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
	case "sad":
		less, _ := compare("lt", t)
		c.set(in, t, func(a, b, x uint64) uint64 {
			if less(a, b) {
				a, b = b, a
			}
			return a - b + x
		}, t, t, t)
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
