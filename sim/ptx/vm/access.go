package vm

import (
	"slices"
	"strings"

	"example.com/tandem/api/num"
	"example.com/tandem/sim/ptx/asm"
)

// scope is how far away a thread may be that a strong access is strong for.
type scope uint8

const (
	ofBlock scope = iota // .cta, and .cluster: a cluster is one block
	ofDevice
	ofSystem
)

var scopes = map[string]scope{"cta": ofBlock, "cluster": ofBlock, "gpu": ofDevice, "sys": ofSystem}

// what an access does.
type what uint8

const (
	load what = iota
	store
	rmw // reads and writes
	multiLoad
	multiStore
	multiRed
)

// access is an instruction on memory.
type access struct {
	what             what
	strong           bool
	acquire, release bool
	scope            scope
	space            asm.Space
	constant         bool // .nc: not ordered by anything in the kernel
	n                int  // elements
	typ              asm.Type
	size             int // of an element
	offset           int64
	update           fn // of an atomic: new = update(old, b, c)
	reduce           fn // of a multiLoad of integers, min or max
	sum              num.DType
	packed           bool
}

func (a *access) loads() bool { return a.what == load || a.what == rmw || a.what == multiLoad }

// caches are modifiers that say how to cache, which changes no value.
var caches = []string{"ca", "cg", "cs", "lu", "cv", "wb", "wt", "noftz"}

// memory compiles an instruction on memory, if it is one.
func (c *compiler) memory(in *instr) bool {
	a := &access{n: 1, scope: ofSystem}
	mods := c.mods
	switch c.in.Op {
	case "ld":
		a.what = load
	case "st":
		a.what = store
	case "atom", "red":
		a.what, a.strong, a.scope = rmw, true, ofDevice
	case "multimem":
		switch c.one("ld_reduce", "st", "red") {
		case "ld_reduce":
			a.what = multiLoad
		case "st":
			a.what = multiStore
		default:
			a.what, a.strong = multiRed, true
		}
		mods = c.mods
	default:
		return false
	}
	op, acc := c.qualify(a, mods)
	if a.typ == asm.NoType {
		c.bad("a type is missing")
	}
	a.size = a.typ.Size()
	if a.n*a.size > 16 {
		c.bad("%d bytes, an access has 16 at most", a.n*a.size)
	}
	switch {
	case (a.acquire && !a.loads()) || (a.release && a.what != store && a.what != rmw && a.what != multiStore && a.what != multiRed):
		c.bad("an order that this access cannot have")
	case a.constant && (a.what != load || a.strong):
		c.bad(".nc belongs to weak loads")
	}
	c.operation(in, a, op, acc)
	in.kind, in.mem = kMem, a
	return true
}

// qualify takes the modifiers, which may come in any order.
func (c *compiler) qualify(a *access, mods []string) (op, acc string) {
	for _, m := range mods {
		s, isScope := scopes[m]
		t := asm.TypeOf(m)
		switch {
		case m == "weak":
			a.strong = false
			if a.what == rmw || a.what == multiRed {
				c.bad(".weak of an atomic")
			}
		case m == "relaxed", m == "volatile":
			a.strong = true
		case m == "acquire":
			a.strong, a.acquire = true, true
		case m == "release":
			a.strong, a.release = true, true
		case m == "acq_rel":
			a.strong, a.acquire, a.release = true, true, true
		case isScope:
			a.scope = s
		case m == "global":
			a.space = asm.Global
		case m == "shared", m == "shared::cta":
			a.space = asm.Shared
		case m == "local":
			a.space = asm.Local
		case m == "param", m == "param::entry":
			a.space = asm.Param
		case m == "const":
			a.space = asm.Const
		case m == "nc":
			a.constant = true
		case m == "v2":
			a.n = 2
		case m == "v4":
			a.n = 4
		case m == "v8":
			a.n = 8
		case slices.Contains(caches, m), strings.HasPrefix(m, "L1::"), strings.HasPrefix(m, "L2::"):
		case strings.HasPrefix(m, "acc::"):
			acc = m
		case t != asm.NoType && t != asm.Pred && a.typ == asm.NoType:
			a.typ = t
		case op == "" && (a.what >= rmw):
			op = m
		default:
			c.bad("modifier .%s is not known here", m)
		}
	}
	return op, acc
}

// operation compiles the operands.
func (c *compiler) operation(in *instr, a *access, op, acc string) {
	args := c.args
	dst := args
	if a.what == rmw && c.in.Op == "red" || !a.loads() {
		dst = nil
	} else if len(args) > 0 {
		dst, args = args[:1], args[1:]
	}
	if len(args) == 0 || args[0].Kind != asm.Memory {
		c.bad("an address is missing")
	}
	c.where(in, a, args[0])
	src := args[1:]
	switch a.what {
	case load, multiLoad:
		c.count(src, 0)
		c.elements(in, a, dst[0], true)
	case store, multiStore, multiRed:
		c.count(src, 1)
		c.elements(in, a, src[0], false)
	case rmw:
		if a.n != 1 {
			c.bad("atomics of vectors are not known")
		}
		if dst != nil {
			c.elements(in, a, dst[0], true)
		}
		in.b = operand{reg: -1}
		n := 1
		if op == "cas" {
			n = 2
		}
		c.count(src, n)
		in.b = c.value(src[0], a.typ)
		if n == 2 {
			in.c = c.value(src[1], a.typ)
		}
	}
	multi := a.what == multiLoad || a.what == multiRed
	if a.what == rmw || multi {
		a.update = c.updates(op, a.typ, multi)
	}
	if a.what == multiLoad {
		a.reduce, a.packed = a.update, a.typ == asm.F16X2 || a.typ == asm.BF16X2
		if a.typ.Float() && op == "add" {
			a.reduce, a.sum = nil, format(a.typ)
		}
	}
	switch {
	case acc != "" && (acc != "acc::f32" || a.what != multiLoad || op != "add" || a.sum != num.F16 && a.sum != num.BF16):
		c.bad(".%s belongs to ld_reduce.add of 16-bit floats", acc)
	case op != "" && a.update == nil:
		c.bad("operation .%s of %s is not known", op, a.typ)
	case (a.what >= multiLoad) && (a.size*a.n < 4 || a.space != asm.Global && a.space != asm.Generic):
		c.bad("a multimem access has 4, 8 or 16 bytes of global memory")
	}
}

func (c *compiler) count(args []asm.Operand, n int) {
	if len(args) != n {
		c.bad("%d operands, there must be %d more or less", len(c.args), n-len(args))
	}
}

// where compiles the address.
func (c *compiler) where(in *instr, a *access, o asm.Operand) {
	a.offset = o.Off
	switch {
	case o.Var != nil:
		if v := o.Var.Space; a.space == asm.Generic && v != asm.Global && v != asm.Const || a.space != asm.Generic && a.space != v && !(v == asm.Const && a.space == asm.Global) {
			c.bad("%s is in .%s", o.Var.Name, v)
		}
		if o.Var.Space == asm.Param && !slices.Contains(c.f.Params, o.Var) {
			a.space = asm.Local // where parameters of calls lie
		}
		in.a = c.address(asm.Operand{Kind: asm.Address, Var: o.Var})
	case o.Reg >= 0:
		t := c.f.Regs[o.Reg]
		if t.Size() != 8 && (a.space == asm.Global || a.space == asm.Generic || t.Size() != 4) || t.Float() {
			c.bad("register %s of type %s as an address", c.f.RegNames[o.Reg], t)
		}
		in.a = operand{reg: int32(o.Reg)}
	default:
		in.a = operand{reg: -1}
	}
}

// elements compiles the registers of an access.
func (c *compiler) elements(in *instr, a *access, o asm.Operand, write bool) {
	list := []asm.Operand{o}
	if o.Kind == asm.Vector {
		list = o.List
	}
	if len(list) != a.n {
		c.bad("%d registers for %d elements", len(list), a.n)
	}
	for _, e := range list {
		if write {
			r, _ := c.dest(e, a.size)
			in.vec = append(in.vec, operand{reg: r, imm: c.widen(e, a.typ)})
		} else {
			in.vec = append(in.vec, c.value(e, a.typ))
		}
	}
}

// widen is the mask of a destination register where the sign goes into it, 0
// where not.
func (c *compiler) widen(o asm.Operand, t asm.Type) uint64 {
	if o.Kind == asm.Reg && t.Signed() {
		return mask(c.f.Regs[o.Reg])
	}
	return 0
}

// updates is what an atomic operation makes of the old value; nil if there is no
// such one.
func (c *compiler) updates(op string, t asm.Type, multi bool) fn {
	less, _ := compare("lt", t)
	switch {
	case logic[op] != nil && (t == asm.B32 || t == asm.B64):
		f := logic[op]
		return func(a, b, _ uint64) uint64 { return f(a, b) }
	case op == "exch" && !multi:
		return func(_, b, _ uint64) uint64 { return b }
	case op == "cas" && !multi && t >= asm.B16 && t <= asm.B64:
		return func(a, b, x uint64) uint64 {
			if a == b {
				return x
			}
			return a
		}
	case op == "add" && t.Float():
		f := add(t, num.NearestEven)
		if t == asm.F32 {
			return func(a, b, _ uint64) uint64 { return flush(f(flush(a), flush(b), 0)) }
		}
		return f
	case op == "add" && intLike(t):
		return func(a, b, _ uint64) uint64 { return (a + b) & mask(t) }
	case (op == "min" || op == "max") && intLike(t):
		return func(a, b, _ uint64) uint64 {
			if less(a, b) == (op == "min") {
				return a
			}
			return b
		}
	case (op == "min" || op == "max") && slices.Contains(halves, t):
		return pick(t, op == "max", false)
	case op == "inc" && t == asm.U32 && !multi:
		return func(a, b, _ uint64) uint64 {
			if a >= b {
				return 0
			}
			return a + 1
		}
	case op == "dec" && t == asm.U32 && !multi:
		return func(a, b, _ uint64) uint64 {
			if a == 0 || a > b {
				return b
			}
			return a - 1
		}
	}
	return nil
}

// flush is what atom.add.f32 does to subnormals.
func flush(a uint64) uint64 {
	if a>>23&0xFF == 0 {
		return a & 0x80000000
	}
	return a
}
