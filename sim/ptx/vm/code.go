package vm

import (
	"fmt"
	"strings"

	"example.com/tandem/sim/ptx/asm"
)

// kind says how the interpreter runs an instruction.
type kind uint8

const (
	kFn      kind = iota // dst = fn(a, b, c)
	kBoth                // dst, dst2 = two results of fn: low and high bit 32 up
	kSpecial             // dst = special register
	kUnpack              // {dst...} = parts of a
	kPack                // dst = {vec...}
	kBra
	kTable
	kExit
	kTrap
	kAssert // a trap that says why
	kInsert // dst = b with bits of a, from c on, vec[0] many
	kMem
	kFence
	kProxy
	kBarrier
	kWarp
	kSleep
	kNop
)

// operand is a register, or a constant where reg is -1, or the address of a
// variable of the module where it is -2.
type operand struct {
	reg int32
	imm uint64
}

type instr struct {
	kind      kind
	not       bool
	guard     int32
	dst, dst2 int32 // -1 is nowhere
	mask      uint64
	a, b, c   operand
	fn        fn
	target    int32
	table     []int32
	special   special
	width     uint8 // bits of a part, of kPack and kUnpack
	vec       []operand
	mem       *access
	sync      *sync
	scope     scope
	sc        bool
	src       *asm.Instr
}

// Kernel is a compiled entry.
type Kernel struct {
	Name       string
	Params     []asm.Var
	ParamBytes int
	Shared     int // static, bytes
	Local      int // bytes a thread
	Registers  int // 32-bit ones a thread
	MaxThreads int
	module     *Module
	code       []instr
	regs       int
	dynamic    uint64 // offset of dynamic shared memory
}

// Module is a text that can be executed.
type Module struct {
	*asm.Module
	Kernels []*Kernel
	Globals []*asm.Var // in order; an operand names one by its index
}

// Kernel finds a kernel by name.
func (m *Module) Kernel(name string) *Kernel {
	for _, k := range m.Kernels {
		if k.Name == name {
			return k
		}
	}
	return nil
}

// Load reads and compiles a text. Everything in it is known, or the error says
// what is not, with file and line.
func Load(file string, text []byte) (m *Module, err error) {
	t, err := asm.Parse(file, text)
	if err != nil {
		return nil, err
	}
	m = &Module{Module: t}
	for _, v := range t.Vars {
		switch {
		case v.Space == asm.Shared:
		case v.Extern:
			return nil, &asm.Error{File: file, Line: v.Line, What: fmt.Sprintf("%s is in another module, and there is only this one", v.Name)}
		default:
			m.Globals = append(m.Globals, v)
		}
	}
	calls := inliner{t, map[*asm.Func]*asm.Func{}}
	for _, f := range t.Funcs {
		if !f.Entry {
			continue // stands in line where it is called
		}
		if f, err = calls.inline(f); err != nil {
			return nil, err
		}
		k, err := compile(m, f)
		if err != nil {
			return nil, err
		}
		m.Kernels = append(m.Kernels, k)
	}
	return m, nil
}

// compiler turns the instructions of one function into code.
type compiler struct {
	m     *Module
	f     *asm.Func
	k     *Kernel
	in    *asm.Instr
	mods  []string // not yet taken
	args  []asm.Operand
	place map[*asm.Var]uint64 // offsets in their space
}

func (c *compiler) bad(format string, args ...any) {
	panic(&asm.Error{File: c.m.File, Line: c.in.Line, What: c.in.Text() + ": " + fmt.Sprintf(format, args...)})
}

func compile(m *Module, f *asm.Func) (k *Kernel, err error) {
	defer func() {
		if r := recover(); r != nil {
			bad, ok := r.(*asm.Error)
			if !ok {
				panic(r)
			}
			k, err = nil, bad
		}
	}()
	k = &Kernel{Name: f.Name, module: m, MaxThreads: f.MaxThreads}
	c := &compiler{m: m, f: f, k: k, place: map[*asm.Var]uint64{}}
	c.layout()
	k.code = make([]instr, len(f.Body)+1)
	for i := range f.Body {
		c.in = &f.Body[i]
		k.code[i] = instr{kind: kNop, guard: int32(c.in.Guard), not: c.in.Not, dst: -1, dst2: -1, src: c.in,
			a: operand{reg: -1}, b: operand{reg: -1}, c: operand{reg: -1}}
		c.instruction(&k.code[i])
	}
	last := &asm.Instr{Op: "ret", Guard: -1, Line: f.Line}
	if n := len(f.Body); n > 0 {
		last.Line = f.Body[n-1].Line
	}
	none := operand{reg: -1}
	k.code[len(f.Body)] = instr{kind: kExit, guard: -1, dst: -1, dst2: -1, src: last, a: none, b: none, c: none}
	allocate(k, len(f.Regs))
	return k, nil
}

// align rounds up.
func align(n, to int) int { return (n + to - 1) / to * to }

// layout gives parameters and variables their offsets.
func (c *compiler) layout() {
	for _, p := range c.f.Params {
		at := align(c.k.ParamBytes, p.Align)
		c.place[p] = uint64(at)
		c.k.ParamBytes = at + p.Bytes()
		c.k.Params = append(c.k.Params, *p)
	}
	put := func(v *asm.Var, end *int) {
		*end = align(*end, v.Align)
		c.place[v] = uint64(*end)
		*end += v.Bytes()
	}
	var dynamic []*asm.Var
	for _, list := range [][]*asm.Var{c.m.Vars, c.f.Vars} {
		for _, v := range list {
			switch {
			case v.Space == asm.Shared && v.Count == 0:
				dynamic = append(dynamic, v)
			case v.Space == asm.Shared:
				put(v, &c.k.Shared)
			case v.Space == asm.Local:
				put(v, &c.k.Local)
			case v.Space == asm.Param: // of calls
				put(v, &c.k.Local)
			case v.Space == asm.Global || v.Space == asm.Const:
				if c.place[v] == 0 && !c.global(v) {
					c.in = &asm.Instr{Op: "." + v.Space.String(), Guard: -1, Line: v.Line}
					c.bad("%s: a variable inside a function", v.Name)
				}
			}
		}
	}
	c.k.dynamic = uint64(c.k.Shared)
	for _, v := range dynamic {
		c.k.dynamic = uint64(align(int(c.k.dynamic), max(v.Align, 16)))
	}
	for _, v := range dynamic {
		c.place[v] = c.k.dynamic
	}
}

func (c *compiler) global(v *asm.Var) bool {
	for i, g := range c.m.Globals {
		if g == v {
			c.place[v] = uint64(i)
			return true
		}
	}
	return false
}

// mod takes the next modifier if it is one of those; "" if not.
func (c *compiler) mod(names ...string) string {
	if len(c.mods) > 0 {
		for _, n := range names {
			if c.mods[0] == n {
				c.mods = c.mods[1:]
				return n
			}
		}
	}
	return ""
}

// one is mod that must find something.
func (c *compiler) one(names ...string) string {
	if s := c.mod(names...); s != "" {
		return s
	}
	got := "nothing"
	if len(c.mods) > 0 {
		got = "." + c.mods[0]
	}
	c.bad("%s where one of .%s must be", got, strings.Join(names, " ."))
	return ""
}

// typed takes the next modifier, which must be one of those types.
func (c *compiler) typed(allowed ...asm.Type) asm.Type {
	if len(c.mods) > 0 {
		t := asm.TypeOf(c.mods[0])
		for _, a := range allowed {
			if t == a && t != asm.NoType {
				c.mods = c.mods[1:]
				return t
			}
		}
		c.bad("type .%s is not known here", c.mods[0])
	}
	c.bad("a type is missing")
	return asm.NoType
}

// end says that all modifiers were taken and there are so many operands.
func (c *compiler) end(args int) {
	if len(c.mods) > 0 {
		c.bad("modifier .%s is not known here", c.mods[0])
	}
	if len(c.args) != args {
		c.bad("%d operands, there must be %d", len(c.args), args)
	}
}

// value is a source operand of that type.
func (c *compiler) value(o asm.Operand, t asm.Type) operand {
	switch o.Kind {
	case asm.Reg:
		if o.Not {
			c.bad("a negated predicate where none is known")
		}
		if rt := c.f.Regs[o.Reg]; (rt == asm.Pred) != (t == asm.Pred) || rt.Size() < t.Size() && t != asm.Pred {
			c.bad("register %s of type %s as a %s", c.f.RegNames[o.Reg], rt, t)
		}
		return operand{reg: int32(o.Reg)}
	case asm.Int:
		if t.Float() && t != asm.F16X2 && t != asm.BF16X2 {
			c.bad("an integer as a %s", t)
		}
		if t == asm.Pred {
			o.Bits &= 1
		}
		return operand{-1, o.Bits & mask(t)}
	case asm.Float:
		return operand{-1, c.constant(o, t)}
	case asm.Address:
		return c.address(o)
	}
	c.bad("an operand that is no value")
	return operand{}
}

func (c *compiler) constant(o asm.Operand, t asm.Type) uint64 {
	switch {
	case o.Single && t.Size() == 4 && t != asm.F16X2 && t != asm.BF16X2:
		return o.Bits
	case !o.Single && t.Size() == 8:
		return o.Bits
	case !o.Single && t == asm.F32:
		return toFloat(asm.F32, asm.F64)(o.Bits, 0, 0)
	}
	c.bad("a floating-point constant as a %s", t)
	return 0
}

// address is the address of a variable in its own space.
func (c *compiler) address(o asm.Operand) operand {
	v := o.Var
	at, ok := c.place[v]
	if !ok {
		c.bad("variable %s has no place here", v.Name)
	}
	if v.Space == asm.Global || v.Space == asm.Const {
		return operand{-2, at | uint64(o.Off)<<20}
	}
	return operand{-1, at + uint64(o.Off)}
}

// dest is a register to be written; -1 for _.
func (c *compiler) dest(o asm.Operand, size int) (int32, uint64) {
	if o.Kind == asm.Sink {
		return -1, 0
	}
	if o.Kind != asm.Reg || o.Not {
		c.bad("a destination that is no register")
	}
	t := c.f.Regs[o.Reg]
	if t.Size() < size || (t == asm.Pred) != (size == 0) {
		c.bad("register %s of type %s is too small, or no predicate", c.f.RegNames[o.Reg], t)
	}
	return int32(o.Reg), mask(t)
}

// registers visits the registers of an instruction: what it reads and writes.
func (in *instr) registers(read, write func(*int32)) {
	if in.guard >= 0 {
		read(&in.guard)
	}
	for _, o := range []*operand{&in.a, &in.b, &in.c} {
		if o.reg >= 0 {
			read(&o.reg)
		}
	}
	for i := range in.vec {
		if in.vec[i].reg >= 0 {
			if in.kind == kUnpack || in.kind == kMem && in.mem.loads() {
				write(&in.vec[i].reg)
			} else {
				read(&in.vec[i].reg)
			}
		}
	}
	if in.dst >= 0 {
		write(&in.dst)
	}
	if in.dst2 >= 0 {
		write(&in.dst2)
	}
}
