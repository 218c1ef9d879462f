package asm

import (
	"fmt"
	"strings"
)

// tokKind is the kind of a token.
type tokKind uint8

const (
	tokEnd    tokKind = iota
	tokName           // name, %name, $name
	tokDot            // .name
	tokNumber         // 1, 0x1F, 1.5, 0f3F800000
	tokString         // "text", without the quotes
	tokPunct          // one character
)

type token struct {
	kind tokKind
	text string
	line int
	// tight says that nothing lies between the token before and this one, so
	// that ld.param.u32 can be told from ld .param.
	tight bool
}

type lexer struct {
	file  string
	src   string
	pos   int
	line  int
	tight bool
}

func (l *lexer) fail(line int, format string, args ...any) {
	panic(&Error{l.file, line, fmt.Sprintf(format, args...)})
}

// space skips blanks and comments.
func (l *lexer) space() {
	l.tight = true
	for l.pos < len(l.src) {
		rest := l.src[l.pos:]
		switch {
		case rest[0] == '\n':
			l.line++
			l.pos++
		case rest[0] == ' ' || rest[0] == '\t' || rest[0] == '\r':
			l.pos++
		case strings.HasPrefix(rest, "//"):
			n := strings.IndexByte(rest, '\n')
			if n < 0 {
				n = len(rest)
			}
			l.pos += n
		case strings.HasPrefix(rest, "/*"):
			n := strings.Index(rest, "*/")
			if n < 0 {
				l.fail(l.line, "a comment without an end")
			}
			l.line += strings.Count(rest[:n], "\n")
			l.pos += n + 2
		default:
			return
		}
		l.tight = false
	}
}

func nameByte(c byte, first bool) bool {
	return c == '_' || c == '$' || c == '%' && first || c|0x20 >= 'a' && c|0x20 <= 'z' || !first && c >= '0' && c <= '9'
}

// next gives one token.
func (l *lexer) next() token {
	l.space()
	t := token{line: l.line, tight: l.tight}
	if l.pos >= len(l.src) {
		return t
	}
	c := l.src[l.pos]
	start := l.pos
	run := func(more func(byte) bool) string {
		for l.pos < len(l.src) && more(l.src[l.pos]) {
			l.pos++
		}
		return l.src[start:l.pos]
	}
	inName := func(c byte) bool { return nameByte(c, false) }
	digit := func(c byte) bool { return c >= '0' && c <= '9' }
	switch {
	case nameByte(c, true):
		t.kind = tokName
		l.pos++
		t.text = run(inName)
	case c == '.' && l.pos+1 < len(l.src) && nameByte(l.src[l.pos+1], true):
		t.kind = tokDot
		l.pos++
		t.text = run(inName)[1:]
		for strings.HasPrefix(l.src[l.pos:], "::") { // .acc::f32, .shared::cta
			l.pos += 2
			t.text = run(inName)[1:]
		}
	case digit(c):
		t.kind = tokNumber
		run(func(c byte) bool { return inName(c) || c == '.' })
		// 1.5e-3, but not 0x1E+4
		if hex := strings.HasPrefix(l.src[start:l.pos], "0"); !hex || strings.Contains(l.src[start:l.pos], ".") {
			if e := l.src[l.pos-1] | 0x20; e == 'e' && l.pos < len(l.src) && (l.src[l.pos] == '-' || l.src[l.pos] == '+') {
				l.pos++
				run(digit)
			}
		}
		t.text = l.src[start:l.pos]
	case c == '"':
		t.kind = tokString
		n := strings.IndexAny(l.src[l.pos+1:], "\"\n")
		if n < 0 || l.src[l.pos+1+n] == '\n' {
			l.fail(l.line, "a string without an end")
		}
		t.text = l.src[l.pos+1 : l.pos+1+n]
		l.pos += n + 2
	default:
		t.kind = tokPunct
		l.pos++
		t.text = l.src[start:l.pos]
	}
	return t
}
