package asm

import "slices"

// linking are words before a declaration.
var linking = []string{"visible", "extern", "weak", "common"}

// declaration reads a variable or a function.
func (p *parser) declaration() {
	extern := false
	for p.tok.kind == tokDot && slices.Contains(linking, p.tok.text) {
		extern = extern || p.tok.text == "extern"
		p.advance()
	}
	switch {
	case p.dot("entry"):
		p.function(true)
	case p.dot("func"):
		p.function(false)
	default:
		if p.tok.kind != tokDot {
			p.bad("%v where a declaration must be", p.tok)
		}
		space, ok := spaceOf(p.tok.text)
		if !ok || space == Param || space == Local {
			p.bad("unknown directive %v", p.tok)
		}
		p.advance()
		v := p.variable(space)
		v.Extern = extern
		if old := p.m.vars[v.Name]; old != nil && !old.Extern {
			p.fail(v.Line, "%s is declared twice", v.Name)
		}
		p.need(";")
		p.m.vars[v.Name] = v
		p.m.Vars = append(p.m.Vars, v)
	}
}

// variable reads .align 8 .b8 name[24] = ...; the space has been read.
func (p *parser) variable(space Space) *Var {
	v := &Var{Space: space, Count: 1, Line: p.tok.line}
	for p.tok.kind == tokDot && v.Type == NoType {
		switch {
		case p.dot("align"):
			v.Align = p.number(1 << 20)
			if v.Align == 0 || v.Align&(v.Align-1) != 0 {
				p.bad(".align %d is no power of two", v.Align)
			}
		case p.dot("ptr"): // of a kernel parameter: what it points to
			for p.dot("global") || p.dot("shared") || p.dot("const") || p.dot("local") {
			}
			if p.dot("align") {
				p.number(1 << 20)
			}
		default:
			if v.Type = TypeOf(p.tok.text); v.Type == NoType || v.Type == Pred {
				p.bad("unknown type %v of a variable", p.tok)
			}
			p.advance()
			if p.dot("ptr") {
				for p.dot("global") || p.dot("shared") || p.dot("const") || p.dot("local") {
				}
				if p.dot("align") {
					p.number(1 << 20)
				}
			}
		}
	}
	if v.Type == NoType {
		p.bad("a variable without a type")
	}
	v.Align = max(v.Align, v.Type.Size())
	v.Name = p.name()
	for p.is("[") {
		p.advance()
		n := 0
		if !p.is("]") {
			n = p.number(maxVar)
		}
		if v.Array && n == 0 {
			p.bad("an inner dimension without a size")
		}
		v.Array = true
		v.Count *= n
		if v.Count > maxVar/v.Type.Size() {
			p.bad("%s is too large", v.Name)
		}
		p.need("]")
	}
	if p.take("=") {
		p.initial(v)
	}
	return v
}

// initial reads the value of a variable.
func (p *parser) initial(v *Var) {
	add := func() {
		o := p.literal()
		bits := o.Bits
		if o.Kind == Float && v.Type == F32 && !o.Single {
			p.bad("a double as the value of a float")
		}
		for range v.Type.Size() {
			v.Init = append(v.Init, byte(bits))
			bits >>= 8
		}
		if len(v.Init) > max(v.Bytes(), v.Type.Size()) && (v.Count != 0 || len(v.Init) > maxVar/16) {
			p.bad("more values than %s holds", v.Name)
		}
	}
	if !p.take("{") {
		add()
		return
	}
	for !p.take("}") {
		add()
		if !p.take(",") && !p.is("}") {
			p.bad("%v in a list of values", p.tok)
		}
	}
	if v.Count == 0 {
		v.Count = len(v.Init) / v.Type.Size()
	}
}

// params reads a list of parameters in parentheses.
func (p *parser) params() (list []*Var) {
	p.need("(")
	for !p.take(")") {
		switch {
		case p.dot("param"):
			list = append(list, p.variable(Param))
		case p.dot("reg"):
			p.bad("parameters in registers are not known")
		default:
			p.bad("%v where a parameter must be", p.tok)
		}
		if !p.take(",") && !p.is(")") {
			p.bad("%v in a list of parameters", p.tok)
		}
	}
	return list
}

// function reads .entry or .func, after that word.
func (p *parser) function(entry bool) {
	f := &Func{Entry: entry, Line: p.tok.line}
	if !entry && p.is("(") {
		f.Results = p.params()
	}
	f.Name = p.name()
	if p.is("(") {
		f.Params = p.params()
	}
	for p.tok.kind == tokDot {
		switch {
		case p.dot("maxntid"):
			f.MaxThreads = p.dims()
		case p.dot("reqntid"):
			f.MaxThreads = p.dims()
		case p.dot("minnctapersm"), p.dot("maxnctapersm"), p.dot("maxnreg"):
			p.number(1 << 20)
		case p.dot("noreturn"):
		case p.dot("pragma"):
			p.pragma()
		default:
			p.bad("unknown directive %v of function %s", p.tok, f.Name)
		}
	}
	if p.take(";") {
		return // declared only
	}
	if p.m.funcs[f.Name] != nil {
		p.bad("function %s is there twice", f.Name)
	}
	p.fn, p.place = f, Place{}
	p.labels, p.tables, p.later = map[string]int{}, map[string][]Operand{}, nil
	p.scope = newScope(nil)
	for _, v := range slices.Concat(f.Params, f.Results) {
		p.scope.vars[v.Name] = v
	}
	p.body()
	p.resolve()
	p.m.funcs[f.Name] = f
	p.m.Funcs = append(p.m.Funcs, f)
}

// dims reads up to three numbers and gives their product.
func (p *parser) dims() int {
	n := p.number(1 << 20)
	for range 2 {
		if p.take(",") {
			n *= p.number(1 << 20)
		}
	}
	return min(n, 1<<30)
}
