package asm

import "fmt"

// Error is what is wrong with a text, and where.
type Error struct {
	File string
	Line int
	What string
}

// Error is file:line: what.
func (e *Error) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.What) }

// Type is the type of a register, variable, parameter or instruction.
type Type uint8

// The types. X2 are two elements packed in 32 bits.
const (
	NoType Type = iota
	Pred
	B8
	B16
	B32
	B64
	B128
	U8
	U16
	U32
	U64
	S8
	S16
	S32
	S64
	F16
	F16X2
	BF16
	BF16X2
	F32
	F64
	E4M3X2
	E5M2X2
	types
)

var typeNames = [types]string{"none", "pred", "b8", "b16", "b32", "b64", "b128", "u8", "u16", "u32", "u64",
	"s8", "s16", "s32", "s64", "f16", "f16x2", "bf16", "bf16x2", "f32", "f64", "e4m3x2", "e5m2x2"}

var typeSizes = [types]int{0, 1, 1, 2, 4, 8, 16, 1, 2, 4, 8, 1, 2, 4, 8, 2, 4, 2, 4, 4, 8, 2, 2}

// TypeOf finds a type by its name, without the dot; NoType if there is none.
func TypeOf(name string) Type {
	for t := Pred; t < types; t++ {
		if typeNames[t] == name {
			return t
		}
	}
	return NoType
}

// String is the name without the dot.
func (t Type) String() string { return typeNames[min(t, types-1)] }

// Size is in bytes; a predicate takes one.
func (t Type) Size() int { return typeSizes[t] }

// Float reports whether it is a floating-point type.
func (t Type) Float() bool { return t >= F16 }

// Signed reports whether it is a signed integer.
func (t Type) Signed() bool { return t >= S8 && t <= S64 }

// Space is a state space.
type Space uint8

// The state spaces.
const (
	Generic Space = iota
	Global
	Shared
	Local
	Const
	Param
)

var spaceNames = []string{"generic", "global", "shared", "local", "const", "param"}

// String is the name without the dot.
func (s Space) String() string { return spaceNames[s] }

func spaceOf(name string) (Space, bool) {
	for i, n := range spaceNames[1:] {
		if n == name {
			return Space(i + 1), true
		}
	}
	return 0, false
}

// Place is a line of the source that a compiler made an instruction of.
type Place struct {
	File int // in Module.Files; 0 is no place
	Line int
}

// Module is a text that was read.
type Module struct {
	File    string // as given to Parse
	Version string // 8.4
	Target  string // sm_90
	Files   map[int]string
	Vars    []*Var // of the module, in order
	Funcs   []*Func
	vars    map[string]*Var
	funcs   map[string]*Func
}

// Func finds a function that has a body.
func (m *Module) Func(name string) *Func { return m.funcs[name] }

// Source is the place in words, file:line, or "".
func (m *Module) Source(p Place) string {
	if p.File == 0 {
		return ""
	}
	return fmt.Sprintf("%s:%d", m.Files[p.File], p.Line)
}

// Var is a variable: of a module, of a function, or a parameter.
type Var struct {
	Name   string
	Space  Space
	Type   Type
	Align  int // bytes
	Count  int // elements of an array, 0 if it has no size; 1 for a scalar
	Array  bool
	Extern bool
	Init   []byte // nil if it has none; shorter than the variable at most
	Line   int
}

// Bytes is the size.
func (v *Var) Bytes() int { return v.Type.Size() * v.Count }

// Func is a function with a body.
type Func struct {
	Name       string
	Entry      bool
	Params     []*Var
	Results    []*Var // of a function that is not an entry
	Vars       []*Var // declared in the body, parameters of calls included
	Regs       []Type // of all registers, in all scopes
	RegNames   []string
	Body       []Instr
	MaxThreads int // a block; 0 if nothing is said
	Line       int
}

// Instr is an instruction.
type Instr struct {
	Op    string   // ld
	Mods  []string // relaxed, sys, global, v2, b64
	Guard int      // register of the predicate, or -1
	Not   bool     // runs where the predicate is false
	Args  []Operand
	Line  int
	Place Place
	Call  *Call // of a call
}

// Text is the opcode with its modifiers.
func (i *Instr) Text() string {
	s := i.Op
	for _, m := range i.Mods {
		s += "." + m
	}
	return s
}

// Call is what a call names.
type Call struct {
	Func    string
	Results []Operand
	Args    []Operand
}

// Kind says which fields of an Operand mean something.
type Kind uint8

// The kinds of operands.
const (
	Reg     Kind = iota // Reg, Not for !p
	Int                 // Bits
	Float               // Bits of a double, or of a float if Single
	Address             // Var, or the function's own
	Special             // Name: %tid.x
	Memory              // [base + Off]: base is Reg, Var, or nothing
	Vector              // List
	Sink                // _
	Label               // Target
	Table               // List of labels
	Pair                // List of two predicates: p|q
)

// Operand is one operand.
type Operand struct {
	Kind   Kind
	Reg    int // index into Func.Regs; -1 in Memory without one
	Not    bool
	Single bool
	Bits   uint64
	Off    int64
	Var    *Var
	Name   string
	Target int // index into Func.Body
	List   []Operand
}
