package asm

import (
	"math"
	"strconv"
	"strings"
)

// operand reads one operand.
func (p *parser) operand() Operand {
	switch {
	case p.take("["):
		return p.memory()
	case p.take("{"):
		o := Operand{Kind: Vector, Reg: -1}
		for !p.take("}") {
			if len(o.List) >= 8 || !p.is("-") && p.tok.kind != tokNumber && p.tok.kind != tokName {
				p.bad("a vector of more than 8 elements, or of other than registers")
			}
			e := p.operand()
			o.List = append(o.List, e)
			if !p.take(",") && !p.is("}") {
				p.bad("%v in a vector", p.tok)
			}
		}
		return o
	case p.take("!"):
		o := p.named()
		if o.Kind != Reg || p.fn.Regs[o.Reg] != Pred {
			p.bad("! before what is no predicate")
		}
		o.Not = !o.Not
		return o
	case p.is("-") || p.tok.kind == tokNumber:
		return p.literal()
	}
	return p.named()
}

// named reads an operand that is a name.
func (p *parser) named() Operand {
	name := p.name()
	if name == "_" {
		return Operand{Kind: Sink, Reg: -1}
	}
	if r, ok := p.find(name); ok {
		o := Operand{Kind: Reg, Reg: r}
		if p.take("|") {
			q := Operand{Kind: Sink, Reg: -1}
			if name := p.name(); name != "_" {
				if q.Reg, ok = p.find(name); !ok {
					p.bad("%s is no register", name)
				}
				q.Kind = Reg
			}
			return Operand{Kind: Pair, Reg: -1, List: []Operand{o, q}}
		}
		return o
	}
	if v := p.variableOf(name); v != nil {
		o := Operand{Kind: Address, Reg: -1, Var: v}
		if p.take("+") {
			o.Off = int64(p.number(maxVar))
		}
		return o
	}
	if t, ok := p.tables[name]; ok {
		return Operand{Kind: Table, Reg: -1, Name: name, List: t}
	}
	if strings.HasPrefix(name, "%") {
		for p.tok.kind == tokDot {
			name += "." + p.tok.text
			p.advance()
		}
		return Operand{Kind: Special, Reg: -1, Name: name}
	}
	if name == "WARP_SZ" {
		return Operand{Kind: Int, Reg: -1, Bits: 32}
	}
	return Operand{Kind: Label, Reg: -1, Name: name}
}

// memory reads the inside of [ ] after the bracket.
func (p *parser) memory() Operand {
	o := Operand{Kind: Memory, Reg: -1}
	if p.is("-") || p.tok.kind == tokNumber {
		o.Off = int64(p.literal().Bits)
	} else {
		switch base := p.named(); base.Kind {
		case Reg:
			o.Reg = base.Reg
		case Address:
			o.Var, o.Off = base.Var, base.Off
		default:
			p.bad("%s is neither a register nor a variable", base.Name)
		}
		neg := p.is("-")
		if neg || p.take("+") {
			v := p.literal()
			if v.Kind != Int {
				p.bad("an offset that is no integer")
			}
			o.Off += int64(v.Bits)
		}
	}
	p.need("]")
	return o
}

// literal reads a number, with its sign.
func (p *parser) literal() Operand {
	neg := p.take("-")
	if p.tok.kind != tokNumber {
		p.bad("%v where a number must be", p.tok)
	}
	o, ok := number(p.tok.text)
	if !ok {
		p.bad("%v is no number", p.tok)
	}
	p.advance()
	switch {
	case neg && o.Kind == Int:
		o.Bits = -o.Bits
	case neg && o.Single:
		o.Bits ^= 1 << 31
	case neg:
		o.Bits ^= 1 << 63
	}
	return o
}

// number is a literal without a sign.
func number(s string) (Operand, bool) {
	o := Operand{Kind: Int, Reg: -1}
	var err error
	switch {
	case len(s) == 10 && (s[:2] == "0f" || s[:2] == "0F"):
		o.Kind, o.Single = Float, true
		o.Bits, err = strconv.ParseUint(s[2:], 16, 32)
	case len(s) == 18 && (s[:2] == "0d" || s[:2] == "0D"):
		o.Kind = Float
		o.Bits, err = strconv.ParseUint(s[2:], 16, 64)
	case strings.Contains(s, ".") || !strings.HasPrefix(s, "0") && strings.ContainsAny(s, "eE"):
		var f float64
		f, err = strconv.ParseFloat(s, 64)
		o.Kind, o.Bits = Float, math.Float64bits(f)
	default:
		o.Bits, err = strconv.ParseUint(trimU(s), 0, 64)
	}
	return o, err == nil
}
