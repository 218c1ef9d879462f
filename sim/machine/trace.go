package machine

import (
	"fmt"
	"strings"
	"time"
)

// logger writes the text of a run: one line a step, stable under a seed.
type logger struct {
	on bool
	b  strings.Builder
}

func (l *logger) reset(on bool) {
	l.on = on
	l.b.Reset()
}

func (l *logger) text() string { return l.b.String() }

func (l *logger) step(m *Machine, a *agent, s *Step, what string) {
	if !l.on {
		return
	}
	fmt.Fprintf(&l.b, "%v r%d.c%d #%d %s", time.Duration(m.now), a.rank, a.cta, a.pc, describe(s))
	if what != "" {
		l.b.WriteString(": " + what)
	}
	l.b.WriteByte('\n')
}

func (l *logger) halt(m *Machine, rank int, in *Injection) {
	if !l.on {
		return
	}
	if in.Harm == Delay {
		fmt.Fprintf(&l.b, "%v r%d sleeps for %v\n", time.Duration(m.now), rank, in.For)
		return
	}
	fmt.Fprintf(&l.b, "%v r%d stops\n", time.Duration(m.now), rank)
}

// describe is one step as text.
func describe(s *Step) string {
	var b strings.Builder
	b.WriteString(s.Kind.String())
	if s.Kind == Wait && len(s.Srcs) > 0 {
		fmt.Fprintf(&b, " %v of %d flag %s", s.Srcs, s.Bytes, operand(s))
		return b.String() + note(s)
	}
	switch s.Kind {
	case Copy, Reduce, Stamp:
		describeData(&b, s)
	case Barrier:
		fmt.Fprintf(&b, " %d of %d", s.Value, s.Count)
	case Fence:
		fmt.Fprintf(&b, " %v.%v", s.Order, s.Scope)
		if s.Alias {
			b.WriteString(" proxy.alias")
		}
	case Goto:
		fmt.Fprintf(&b, " %d", s.Else)
	case Exit:
		fmt.Fprintf(&b, " %d", s.Value)
	case Nop, Begin:
	default:
		describeWord(&b, s)
	}
	return b.String() + note(s)
}

func note(s *Step) string {
	if s.Note == "" {
		return ""
	}
	return " (" + s.Note + ")"
}

func describeData(b *strings.Builder, s *Step) {
	fmt.Fprintf(b, " %v", s.Dst)
	for i, r := range s.Srcs {
		sep := ","
		if i == 0 {
			sep = " ="
		}
		if i == 4 && len(s.Srcs) > 5 {
			fmt.Fprintf(b, ", .. %d more", len(s.Srcs)-i)
			break
		}
		fmt.Fprintf(b, "%s %v", sep, r)
	}
	fmt.Fprintf(b, " of %d", s.Bytes)
	if s.Kind == Reduce {
		fmt.Fprintf(b, " %v %v", s.DType, s.Scheme.Op)
	}
	if s.Width > 0 {
		fmt.Fprintf(b, " by %d", s.Width)
	}
	if s.Value != 0 || s.Base.Space != Nothing {
		b.WriteString(" flag " + operand(s))
	}
}

func describeWord(b *strings.Builder, s *Step) {
	op := "="
	switch s.Kind {
	case Add, Record:
		op = "+="
	case Swap:
		op = fmt.Sprintf("== %d ? =", s.Expect)
	case Wait, Test:
		op = s.Cmp.String()
	case Await:
		op = ">="
	}
	fmt.Fprintf(b, " %v", s.Word)
	for i, r := range s.More {
		if i == 3 && len(s.More) > 4 {
			fmt.Fprintf(b, ", .. %d more", len(s.More)-i)
			break
		}
		fmt.Fprintf(b, ", %v", r)
	}
	fmt.Fprintf(b, " %s %s %v.%v", op, operand(s), s.Order, s.Scope)
}

func operand(s *Step) string {
	if s.Base.Space == Nothing {
		return fmt.Sprint(s.Value)
	}
	text := s.Base.String()
	if s.Shift > 0 {
		text += fmt.Sprintf("<<%d", s.Shift)
	}
	if s.Value != 0 {
		text += fmt.Sprintf("+%d", s.Value)
	}
	return text
}
