package asm

import "strconv"

// maxDepth is how deep blocks may nest.
const maxDepth = 64

// scope is a block in braces.
type scope struct {
	up       *scope
	depth    int
	regs     map[string]int
	families map[string]family
	vars     map[string]*Var
}

// family is %r<100>: its registers are made as they are used.
type family struct {
	t Type
	n int
}

func newScope(up *scope) *scope {
	s := &scope{up: up, regs: map[string]int{}, families: map[string]family{}, vars: map[string]*Var{}}
	if up != nil {
		s.depth = up.depth + 1
	}
	return s
}

// body reads a block and the blocks in it.
func (p *parser) body() {
	p.need("{")
	for p.scope.depth = 1; p.scope.depth > 0; {
		switch {
		case p.tok.kind == tokEnd:
			p.bad("function %s has no end", p.fn.Name)
		case p.take("{"):
			if p.scope.depth >= maxDepth {
				p.bad("blocks nested more than %d deep", maxDepth)
			}
			p.scope = newScope(p.scope)
		case p.take("}"):
			if p.scope.up == nil {
				return
			}
			p.scope = p.scope.up
		case p.take(";"):
		case p.tok.kind == tokDot:
			p.directive()
		default:
			p.statement()
		}
	}
}

// directive reads what begins with a dot in a body.
func (p *parser) directive() {
	switch {
	case p.dot("reg"):
		p.registers()
	case p.dot("loc"):
		p.place = Place{File: p.number(1 << 20), Line: p.number(1 << 30)}
		p.number(1 << 30)
		for p.take(",") {
			p.inlined()
		}
	case p.dot("file"):
		p.fileLine()
	case p.dot("pragma"):
		p.pragma()
	case p.tok.text == "param" || p.tok.text == "local" || p.tok.text == "shared" || p.tok.text == "global" || p.tok.text == "const":
		space, _ := spaceOf(p.tok.text)
		p.advance()
		for {
			v := p.variable(space)
			if p.scope.vars[v.Name] != nil {
				p.bad("%s is declared twice", v.Name)
			}
			p.scope.vars[v.Name] = v
			p.fn.Vars = append(p.fn.Vars, v)
			if !p.take(",") {
				break
			}
		}
		p.need(";")
	default:
		p.bad("unknown directive %v", p.tok)
	}
}

// inlined reads function_name label+off, or inlined_at file line column; an
// instruction may follow without anything between.
func (p *parser) inlined() {
	switch word := p.name(); word {
	case "function_name":
		p.name()
		if p.take("+") {
			p.number(1 << 30)
		}
	case "inlined_at":
		p.number(1 << 20)
		p.number(1 << 30)
		p.number(1 << 30)
	default:
		p.bad("unknown word %s of .loc", word)
	}
}

// registers reads .reg .b32 %r<10>, x;
func (p *parser) registers() {
	if p.tok.kind != tokDot {
		p.bad("%v where a type must be", p.tok)
	}
	t := TypeOf(p.tok.text)
	if t == NoType || t == B128 {
		p.bad("unknown type %v of a register", p.tok)
	}
	p.advance()
	for {
		name := p.name()
		if p.take("<") {
			n := p.number(maxRegs)
			p.need(">")
			p.scope.families[name] = family{t, n}
		} else {
			if _, ok := p.scope.regs[name]; ok {
				p.bad("register %s is declared twice", name)
			}
			p.scope.regs[name] = p.register(name, t)
		}
		if !p.take(",") {
			break
		}
	}
	p.need(";")
}

func (p *parser) register(name string, t Type) int {
	if len(p.fn.Regs) >= maxRegs {
		p.bad("more than %d registers", maxRegs)
	}
	p.fn.Regs = append(p.fn.Regs, t)
	p.fn.RegNames = append(p.fn.RegNames, name)
	return len(p.fn.Regs) - 1
}

// find gives the register of that name, in this scope or one around it.
func (p *parser) find(name string) (int, bool) {
	digits := len(name)
	for digits > 0 && name[digits-1] >= '0' && name[digits-1] <= '9' {
		digits--
	}
	for s := p.scope; s != nil; s = s.up {
		if r, ok := s.regs[name]; ok {
			return r, true
		}
		if f, ok := s.families[name[:digits]]; ok && digits < len(name) {
			if n, err := strconv.Atoi(name[digits:]); err == nil && n < f.n {
				r := p.register(name, f.t)
				s.regs[name] = r
				return r, true
			}
		}
	}
	return 0, false
}

func (p *parser) variableOf(name string) *Var {
	for s := p.scope; s != nil; s = s.up {
		if v := s.vars[name]; v != nil {
			return v
		}
	}
	return p.m.vars[name]
}

// statement reads a label or an instruction.
func (p *parser) statement() {
	in := Instr{Guard: -1, Line: p.tok.line, Place: p.place}
	if p.take("@") {
		in.Not = p.take("!")
		r, ok := p.find(p.tok.text)
		if !ok || p.fn.Regs[r] != Pred {
			p.bad("%v is no predicate", p.tok)
		}
		in.Guard = r
		p.advance()
	}
	in.Op = p.name()
	if in.Guard < 0 && p.take(":") {
		p.label(in.Op)
		return
	}
	for p.tok.kind == tokDot {
		in.Mods = append(in.Mods, p.tok.text)
		p.advance()
	}
	if in.Op == "call" {
		in.Call = p.call()
	} else {
		for !p.is(";") {
			in.Args = append(in.Args, p.operand())
			if !p.take(",") && !p.is(";") {
				p.bad("%v after an operand of %s", p.tok, in.Text())
			}
		}
	}
	p.need(";")
	p.fn.Body = append(p.fn.Body, in)
	args := p.fn.Body[len(p.fn.Body)-1].Args
	for i := range args {
		if args[i].Kind == Label {
			p.later = append(p.later, pending{&args[i], in.Line})
		}
	}
}

// label notes a label, or the table of a brx.idx.
func (p *parser) label(name string) {
	if p.tok.kind == tokDot && p.tok.text == "branchtargets" {
		p.advance()
		if _, ok := p.tables[name]; ok {
			p.bad("table %s is there twice", name)
		}
		var list []Operand
		for {
			list = append(list, Operand{Kind: Label, Name: p.name(), Reg: -1})
			if !p.take(",") {
				break
			}
		}
		p.need(";")
		p.tables[name] = list
		return
	}
	if p.tok.kind == tokDot && (p.tok.text == "callprototype" || p.tok.text == "calltargets") {
		p.bad("indirect calls are not known")
	}
	if _, ok := p.labels[name]; ok {
		p.bad("label %s is there twice", name)
	}
	p.labels[name] = len(p.fn.Body)
}

// call reads (results), name, (arguments).
func (p *parser) call() *Call {
	c := &Call{}
	list := func() (ops []Operand) {
		p.need("(")
		for !p.take(")") {
			ops = append(ops, p.operand())
			if !p.take(",") && !p.is(")") {
				p.bad("%v in a list of arguments", p.tok)
			}
		}
		return ops
	}
	if p.is("(") {
		c.Results = list()
		p.need(",")
	}
	c.Func = p.name()
	if p.take(",") {
		c.Args = list()
		if p.is(",") {
			p.bad("indirect calls are not known")
		}
	}
	return c
}
