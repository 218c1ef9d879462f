package asm

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// Limits of what is read, so that a hostile text costs little.
const (
	maxText = 64 << 20
	maxVar  = 1 << 30 // bytes of a variable
	maxRegs = 1 << 20 // registers of a function
)

type parser struct {
	lexer
	tok   token
	m     *Module
	fn    *Func
	scope *scope
	// labels of the function being read.
	labels map[string]int
	tables map[string][]Operand
	place  Place
	later  []pending
}

// pending is a label that was used and may come later.
type pending struct {
	op   *Operand
	line int
}

// Parse reads a text; file stands for it in errors.
func Parse(file string, text []byte) (m *Module, err error) {
	if len(text) > maxText {
		return nil, &Error{file, 1, fmt.Sprintf("%d bytes of text, at most %d are read", len(text), maxText)}
	}
	p := &parser{
		lexer: lexer{file: file, src: string(text), line: 1},
		m:     &Module{File: file, Files: map[int]string{}, vars: map[string]*Var{}, funcs: map[string]*Func{}},
	}
	defer func() {
		if r := recover(); r != nil {
			var bad *Error
			if e, ok := r.(error); !ok || !errors.As(e, &bad) {
				panic(r)
			}
			m, err = nil, bad
		}
	}()
	p.advance()
	for p.tok.kind != tokEnd {
		p.top()
	}
	if p.m.Version == "" {
		p.bad("no .version")
	}
	if p.m.Target == "" {
		p.bad("no .target")
	}
	return p.m, nil
}

func (p *parser) advance() { p.tok = p.next() }

func (p *parser) bad(format string, args ...any) { p.fail(p.tok.line, format, args...) }

func (t token) String() string {
	switch t.kind {
	case tokEnd:
		return "the end of the text"
	case tokDot:
		return "." + t.text
	}
	return strconv.Quote(t.text)
}

// is reports whether the token is that punctuation.
func (p *parser) is(punct string) bool { return p.tok.kind == tokPunct && p.tok.text == punct }

// take skips that punctuation, if it is there.
func (p *parser) take(punct string) bool {
	if p.is(punct) {
		p.advance()
		return true
	}
	return false
}

func (p *parser) need(punct string) {
	if !p.take(punct) {
		p.bad("%v where %q must be", p.tok, punct)
	}
}

func (p *parser) dot(name string) bool {
	if p.tok.kind == tokDot && p.tok.text == name {
		p.advance()
		return true
	}
	return false
}

func (p *parser) name() string {
	if p.tok.kind != tokName {
		p.bad("%v where a name must be", p.tok)
	}
	s := p.tok.text
	p.advance()
	return s
}

// number reads a non-negative integer of at most max.
func (p *parser) number(max uint64) int {
	if p.tok.kind != tokNumber {
		p.bad("%v where a number must be", p.tok)
	}
	v, err := strconv.ParseUint(trimU(p.tok.text), 0, 64)
	if err != nil || v > max {
		p.bad("%v is no number up to %d", p.tok, max)
	}
	p.advance()
	return int(v)
}

func trimU(s string) string {
	if n := len(s); n > 1 && s[n-1] == 'U' {
		return s[:n-1]
	}
	return s
}

// top reads what may stand outside functions.
func (p *parser) top() {
	if p.tok.kind != tokDot {
		if p.take(";") {
			return
		}
		p.bad("%v outside a function", p.tok)
	}
	switch {
	case p.dot("version"):
		if p.m.Version = p.tok.text; p.tok.kind != tokNumber {
			p.bad("%v is no version", p.tok)
		}
		p.advance()
	case p.dot("target"):
		p.m.Target = p.name()
		for p.take(",") {
			p.name()
		}
	case p.dot("address_size"):
		if n := p.number(64); n != 64 {
			p.bad(".address_size %d, only 64 is known", n)
		}
	case p.dot("file"):
		p.fileLine()
	case p.dot("section"):
		p.section()
	case p.dot("pragma"):
		p.pragma()
	case p.dot("alias"):
		p.bad(".alias is not known")
	default:
		p.declaration()
	}
}

// fileLine reads the rest of .file 1 "name"[, timestamp, size].
func (p *parser) fileLine() {
	n := p.number(1 << 20)
	if p.tok.kind != tokString {
		p.bad("%v where a file name must be", p.tok)
	}
	p.m.Files[n] = p.tok.text
	p.advance()
	for p.take(",") {
		p.number(1 << 62)
	}
}

// section skips debug data.
func (p *parser) section() {
	if p.tok.kind == tokDot || p.tok.kind == tokName {
		p.advance()
	}
	p.need("{")
	for !p.is("}") {
		if p.tok.kind == tokEnd {
			p.bad("a section without an end")
		}
		p.advance()
	}
	p.advance()
}

func (p *parser) pragma() {
	for {
		if p.tok.kind != tokString {
			p.bad("%v where a string must be", p.tok)
		}
		p.advance()
		if !p.take(",") {
			break
		}
	}
	p.need(";")
}

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

// resolve fills in the labels that were used.
func (p *parser) resolve() {
	for _, l := range p.later {
		at, ok := p.labels[l.op.Name]
		if !ok {
			p.fail(l.line, "no label %s in %s", l.op.Name, p.fn.Name)
		}
		l.op.Target = at
	}
	for _, name := range slices.Sorted(maps.Keys(p.tables)) {
		for i := range p.tables[name] {
			o := &p.tables[name][i]
			at, ok := p.labels[o.Name]
			if !ok {
				p.bad("no label %s in %s", o.Name, p.fn.Name)
			}
			o.Target = at
		}
	}
}
