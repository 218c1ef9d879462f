package ptxcheck

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

//go:embed forms.txt
var formsText string

// forms maps a form to the operands it takes.
func forms() map[string][]string {
	out := make(map[string][]string)
	for line := range strings.Lines(formsText) {
		f := strings.Fields(line)
		if len(f) == 0 || f[0] == "#" {
			continue
		}
		for _, form := range f[1:] {
			out[form] = append(out[form], f[0])
		}
	}
	return out
}

// banned are words that no line may have, with why.
var banned = []struct {
	word *regexp.Regexp
	why  string
}{
	{regexp.MustCompile(`\.nc\b`), "the non-coherent cache gives loads no order"},
	{regexp.MustCompile(`\.local\b|__local_depot`), "a stack frame makes launches allocate"},
	{regexp.MustCompile(`\.ftz\b`), "subnormals would be lost"},
	{regexp.MustCompile(`\bcall\b`), "calls have a stack"},
}

// Check holds PTX to the rules and lists where it breaks them.
func Check(ptx []byte) []Problem {
	var problems []Problem
	n := 0
	for line := range strings.Lines(string(ptx)) {
		n++
		text, _, _ := strings.Cut(line, "//")
		for _, b := range banned {
			if m := b.word.FindString(text); m != "" {
				problems = append(problems, Problem{n, m + ": " + b.why})
			}
		}
	}
	for _, want := range []string{".version 8.4\n", ".target sm_90\n", ".address_size 64\n"} {
		if !strings.Contains(string(ptx), want) {
			problems = append(problems, Problem{1, "there is no " + strings.TrimSpace(want)})
		}
	}
	kernels, unread := Read(ptx)
	problems = append(problems, unread...)
	table := forms()
	for _, k := range kernels {
		for i := range k.Body {
			if why := k.fits(&k.Body[i], table); why != "" {
				problems = append(problems, Problem{k.Body[i].Line, why})
			}
		}
		problems = append(problems, k.order()...)
		problems = append(problems, k.aliases()...)
		problems = append(problems, k.overlap()...)
	}
	if len(kernels) == 0 {
		problems = append(problems, Problem{1, "there is no kernel"})
	}
	slices.SortStableFunc(problems, func(a, b Problem) int { return a.Line - b.Line })
	return problems
}

// fits says what is wrong with the form or an operand of an instruction.
func (k *Kernel) fits(in *Instruction, table map[string][]string) string {
	signatures := table[in.Form]
	if signatures == nil {
		return "the form " + in.Form + " is not in the table"
	}
	if g := strings.TrimPrefix(in.Guard, "!"); g != "" && k.class(g) != 'p' {
		return "the guard " + in.Guard + " is no predicate"
	}
	if in.Mark != "" && !strings.Contains(in.Form, ".relaxed.sys.") {
		return "a flag needs an order and system scope, not " + in.Form
	}
	why := ""
	for _, s := range signatures {
		if why = k.matches(in, s); why == "" {
			return ""
		}
	}
	return why
}

// split gives the operands of a signature, vectors whole.
func split(signature string) (out []string) {
	if signature == "-" {
		return nil
	}
	for i := 0; i < len(signature); i++ {
		if signature[i] == '{' {
			end := i + strings.IndexByte(signature[i:], '}')
			out = append(out, signature[i:end+1])
			i = end
			continue
		}
		out = append(out, signature[i:i+1])
	}
	return out
}

func (k *Kernel) matches(in *Instruction, signature string) string {
	want := split(signature)
	if len(want) != len(in.Operands) {
		return fmt.Sprintf("%s has %d operands, not %d", in.Form, len(want), len(in.Operands))
	}
	for i, w := range want {
		if !k.operand(in.Operands[i], w, i > 0 || strings.HasPrefix(in.Form, "st.") || in.Form == "bar.warp.sync") {
			return fmt.Sprintf("%s: operand %d is %s, which does not fit %q", in.Form, i+1, in.Operands[i], w)
		}
	}
	return ""
}

var (
	number  = regexp.MustCompile(`^-?(0[fdFD])?[0-9A-Fa-fx]+$`)
	address = regexp.MustCompile(`^\[(\$?%?\w+)([+-]\d+)?\]$`)
	numbers = regexp.MustCompile(`\d+$`)
)

// class is that of a register, 0 if it is none.
func (k *Kernel) class(name string) byte {
	if c := k.Registers[name]; c != 0 {
		return c
	}
	return k.Registers[numbers.ReplaceAllString(name, "")]
}

func (k *Kernel) operand(text, want string, source bool) bool {
	c := k.class(text)
	switch want {
	case "p", "h", "r", "d":
		return c == want[0] || source && c == 0 && number.MatchString(text)
	case "i":
		return c == 'h' || c == 'r'
	case "s":
		return c == 0 || c == 'r' || c == 'd'
	case "l":
		return strings.HasPrefix(text, "$L")
	case "a":
		m := address.FindStringSubmatch(text)
		return m != nil && (k.class(m[1]) == 'd' || k.class(m[1]) == 0 && strings.HasPrefix(m[1], k.Name+"_param_"))
	}
	parts := strings.Split(strings.Trim(text, "{}"), ",")
	if len(parts) != len(want)-2 {
		return false
	}
	for i, p := range parts {
		p = strings.TrimSpace(p)
		if p != "_" && !k.operand(p, want[i+1:i+2], source) {
			return false
		}
	}
	return true
}
