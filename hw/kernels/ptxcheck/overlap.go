package ptxcheck

import "strings"

const (
	awaits = "griddepcontrol.wait"
	lets   = "griddepcontrol.launch_dependents"
)

// touches reports whether an instruction uses memory in a way that the kernel
// before on the stream must have ended for. What is polled for may be looked at
// any time.
func touches(form string) bool {
	switch op, rest, _ := strings.Cut(form, "."); op {
	case "ld":
		return !strings.HasPrefix(rest, "param.") && !strings.HasPrefix(rest, "relaxed.")
	case "st", "atom", "red", "multimem":
		return true
	}
	return form == lets
}

// overlap follows every path of a kernel that may begin before the one before it
// has ended: to all that uses memory, and to the start of the next, must lead a
// wait for that one.
func (k *Kernel) overlap() (problems []Problem) {
	has := false
	for _, x := range k.Body {
		has = has || x.Form == awaits || x.Form == lets
	}
	if !has {
		return nil
	}
	seen := make([]bool, len(k.Body))
	work := []int{0}
	for len(work) > 0 {
		i := work[len(work)-1]
		work = work[:len(work)-1]
		if i >= len(k.Body) || seen[i] {
			continue
		}
		seen[i] = true
		x := &k.Body[i]
		if x.Form == awaits && x.Guard == "" {
			continue
		}
		if touches(x.Form) {
			problems = append(problems, Problem{x.Line, x.Form + " with no " + awaits + " before: the kernel before on the stream may still run"})
			continue
		}
		work = append(work, k.next(i)...)
	}
	return problems
}
