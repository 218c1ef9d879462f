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
