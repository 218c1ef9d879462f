package vm

import (
	"math"

	"example.com/tandem/api/num"
	"example.com/tandem/sim/ptx/asm"
)

// toFloat rounds a float to nearest even into another format.
func toFloat(to, from asm.Type) fn {
	d, s := format(to), format(from)
	return func(a, _, _ uint64) uint64 { return num.Convert(d, s, a, num.NearestEven) }
}

func (c *compiler) convert(in *instr) {
	names := []string{"rn", "rz", "rm", "rp", "rni", "rzi", "rmi", "rpi"}
	how := c.mod(names...)
	finite := c.mod("satfinite") != ""
	clamp := c.mod("sat", "relu")
	all := join2(anyType[4:], []asm.Type{asm.E4M3X2, asm.E5M2X2})
	to, from := c.typed(all...), c.typed(all...)
	r, direct := map[string]num.Rounding{"rn": num.NearestEven, "rz": num.TowardZero, "rm": num.Down, "rp": num.Up}[how]
	packed := to == asm.F16X2 || to == asm.BF16X2
	narrow := to == asm.E4M3X2 || to == asm.E5M2X2
	if narrow != finite || clamp == "relu" && (!to.Float() || narrow || format(to).Size() != 2) || clamp == "sat" && (narrow || packed) {
		c.bad("this clamping of a conversion from %s to %s is not known", from, to)
	}
	if clamp != "" {
		defer func() {
			if to.Float() {
				in.fn = clamped(to, clamp, in.fn)
			}
		}()
	}
	switch {
	case narrow && how == "rn" && (from == asm.F32 || from == asm.F16X2):
		c.toNarrow(in, to, from)
	case to == asm.F16X2 && how == "rn" && (from == asm.E4M3X2 || from == asm.E5M2X2):
		s := format(from)
		c.set(in, to, func(a, _, _ uint64) uint64 {
			return num.Convert(num.F16, s, a>>8&0xFF, r)<<16 | num.Convert(num.F16, s, a&0xFF, r)
		}, from)
	case packed && from == asm.F32 && direct:
		d := format(to)
		c.set(in, to, func(a, b, _ uint64) uint64 {
			return num.Convert(d, num.F32, a, r)<<16 | num.Convert(d, num.F32, b, r)
		}, asm.F32, asm.F32)
	case packed || narrow || from == asm.F16X2 || from == asm.BF16X2 || from == asm.E4M3X2 || from == asm.E5M2X2:
		c.bad("a conversion from %s to %s is not known", from, to)
	case to == from && to.Float() && whole[how] != nil:
		d, round := format(to), whole[how]
		c.set(in, to, func(a, _, _ uint64) uint64 {
			if num.IsNaN(d, a) {
				return num.Convert(d, d, a, num.NearestEven)
			}
			return num.Encode(d, round(num.Decode(d, a)), num.NearestEven)
		}, from)
	case to == from && to.Float() && how == "" && clamp == "sat":
		c.set(in, to, identity, from)
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
		round := whole[how]
		if round == nil {
			c.bad("a conversion to an integer needs .rni, .rzi, .rmi or .rpi")
		}
		c.set(in, to, toInt(to, from, round), from)
		in.mask &= mask(to)
	default:
		if how != "" {
			c.bad("rounding .%s between integers", how)
		}
		if clamp == "sat" {
			c.set(in, to, saturate(to, from), from)
			return
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

// whole are the roundings to integers.
var whole = map[string]func(float64) float64{"rni": math.RoundToEven, "rzi": math.Trunc, "rmi": math.Floor, "rpi": math.Ceil}

// saturate is a conversion between integers to the nearest that there is.
func saturate(to, from asm.Type) fn {
	top := mask(to)
	low := int64(0)
	if to.Signed() {
		top >>= 1
		low = -int64(top) - 1
	}
	return func(a, _, _ uint64) uint64 {
		if !from.Signed() {
			return min(a&mask(from), top)
		}
		v := max(signed(from, a), low)
		if v > 0 {
			return min(uint64(v), top)
		}
		return uint64(v)
	}
}

// toNarrow is a conversion of two numbers to 8 bits each: what is too large, and
// infinity, becomes the largest finite number.
func (c *compiler) toNarrow(in *instr, to, from asm.Type) {
	d, s := format(to), format(from)
	largest := map[num.DType]uint64{num.E4M3: 0x7E, num.E5M2: 0x7B}[d]
	limit := num.Decode(d, largest)
	one := func(a uint64) uint64 {
		if x := num.Decode(s, a); math.Abs(x) > limit { // no NaN
			if x < 0 {
				return largest | 0x80
			}
			return largest
		}
		return num.Convert(d, s, a, num.NearestEven)
	}
	if from == asm.F32 {
		c.set(in, to, func(a, b, _ uint64) uint64 { return one(a)<<8 | one(b) }, asm.F32, asm.F32)
		return
	}
	c.set(in, to, func(a, _, _ uint64) uint64 { return one(a>>16&0xFFFF)<<8 | one(a&0xFFFF) }, from)
}

// within is isspacep: whether a generic address lies in a space's window.
func (c *compiler) within(in *instr) {
	space := c.one("global", "const", "param", "param::entry", "shared", "shared::cta", "local")
	want := map[string]uint64{"param": paramWindow, "param::entry": paramWindow, "shared": sharedWindow, "shared::cta": sharedWindow, "local": localWindow}[space]
	if space == "const" {
		c.bad("constant memory is part of global memory here")
	}
	c.set(in, asm.Pred, func(a, _, _ uint64) uint64 { return flag(a&windowMask == want) }, asm.U64)
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
