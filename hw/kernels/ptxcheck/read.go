package ptxcheck

import (
	"bufio"
	"bytes"
	"fmt"
	"regexp"
	"strings"
)

// Instruction is one instruction of a kernel.
type Instruction struct {
	Line     int
	Form     string   // ld.relaxed.sys.global.b64
	Guard    string   // %p1, !%p1, or ""
	Operands []string // as written, vectors in braces
	Mark     string   // release, acquire or ""
}

// Kernel is the body of an entry.
type Kernel struct {
	Name      string
	Body      []Instruction
	Labels    map[string]int      // index into Body of what follows
	Targets   map[string][]string // of brx.idx
	Registers map[string]byte     // class of a register without its number
}

// Problem is a place where a rule is broken.
type Problem struct {
	Line int
	Text string
}

// Error is the line and what is wrong there.
func (p Problem) Error() string { return fmt.Sprintf("line %d: %s", p.Line, p.Text) }

var (
	entry    = regexp.MustCompile(`^\.visible \.entry (\w+)\(`)
	label    = regexp.MustCompile(`^(\$\w+):$`)
	targets  = regexp.MustCompile(`^(\$\w+):\s*\.branchtargets$`)
	register = regexp.MustCompile(`^\.reg \.(pred|b16|b32|b64)\s+(.*);$`)
	mark     = regexp.MustCompile(`//@(\w+);?\s*$`)
	classes  = map[string]byte{"pred": 'p', "b16": 'h', "b32": 'r', "b64": 'd'}
)

// Read takes a module apart. What it does not know is a Problem.
func Read(ptx []byte) ([]*Kernel, []Problem) {
	var kernels []*Kernel
	var problems []Problem
	var k *Kernel
	var table string
	scan := bufio.NewScanner(bytes.NewReader(ptx))
	scan.Buffer(nil, 1<<20)
	for n := 1; scan.Scan(); n++ {
		text := strings.TrimSpace(scan.Text())
		note := ""
		if m := mark.FindStringSubmatchIndex(text); m != nil {
			note, text = text[m[2]:m[3]], strings.TrimSpace(text[:m[0]])
		}
		switch {
		case text == "", strings.HasPrefix(text, "//"), text == "{", text == "}", text == ")", strings.HasPrefix(text, ".param"), strings.HasPrefix(text, ".maxntid"), strings.HasPrefix(text, ".minnctapersm"):
		case strings.HasPrefix(text, ".version"), strings.HasPrefix(text, ".target"), strings.HasPrefix(text, ".address_size"), strings.HasPrefix(text, ".pragma \"nounroll\""):
		case table != "":
			k.Targets[table] = append(k.Targets[table], strings.TrimRight(text, ",;"))
			if strings.HasSuffix(text, ";") {
				table = ""
			}
		case entry.MatchString(text):
			k = &Kernel{Name: entry.FindStringSubmatch(text)[1], Labels: map[string]int{}, Targets: map[string][]string{}, Registers: map[string]byte{}}
			kernels = append(kernels, k)
		case k == nil:
			problems = append(problems, Problem{n, "nothing but kernels is known here: " + text})
		case register.MatchString(text):
			m := register.FindStringSubmatch(text)
			for _, name := range strings.Split(m[2], ",") {
				name, _, _ = strings.Cut(strings.TrimSpace(name), "<")
				k.Registers[name] = classes[m[1]]
			}
		case targets.MatchString(text):
			table = targets.FindStringSubmatch(text)[1]
		case label.MatchString(text):
			k.Labels[label.FindStringSubmatch(text)[1]] = len(k.Body)
		case strings.HasPrefix(text, "."):
			problems = append(problems, Problem{n, "unknown directive: " + text})
		default:
			k.Body = append(k.Body, instruction(n, text, note))
		}
	}
	return kernels, problems
}

func instruction(n int, text, note string) Instruction {
	in := Instruction{Line: n, Mark: note}
	text = strings.TrimSuffix(text, ";")
	if rest, ok := strings.CutPrefix(text, "@"); ok {
		in.Guard, text, _ = strings.Cut(rest, " ")
		text = strings.TrimSpace(text)
	}
	form, rest, _ := strings.Cut(strings.ReplaceAll(text, "\t", " "), " ")
	in.Form = form
	depth, last := 0, 0
	rest = strings.TrimSpace(rest)
	for i, c := range rest {
		switch c {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case ',':
			if depth == 0 {
				in.Operands = append(in.Operands, strings.TrimSpace(rest[last:i]))
				last = i + 1
			}
		}
	}
	if rest != "" {
		in.Operands = append(in.Operands, strings.TrimSpace(rest[last:]))
	}
	return in
}
