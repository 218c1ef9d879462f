package ptxcheck

import (
	"maps"
	"slices"
	"strings"
)

// state is what a path brings to an instruction: whether memory was written,
// here or before a barrier, since the last fence, and whether a flag was awaited
// without a fence since. Line is where.
type state struct{ written, awaited int }

func (s state) join(t state) state {
	return state{max(s.written, t.written), max(s.awaited, t.awaited)}
}

// weak reports whether an instruction is an access that flags must order.
func weak(form string) bool {
	return strings.HasPrefix(form, "ld.global.") || strings.HasPrefix(form, "st.global.")
}

// order follows every path of a kernel: to a marked store a fence must lead,
// with nothing written in between; from a marked load a fence, before anything
// it orders.
func (k *Kernel) order() []Problem {
	found := map[Problem]bool{}
	in := map[int]state{0: {written: 1}}
	work := []int{0}
	for len(work) > 0 {
		i := work[len(work)-1]
		work = work[:len(work)-1]
		if i >= len(k.Body) {
			continue
		}
		out := k.step(i, in[i], found)
		for _, next := range k.next(i) {
			old, seen := in[next]
			if merged := old.join(out); !seen || merged != old {
				in[next] = merged
				work = append(work, next)
			}
		}
	}
	return slices.Collect(maps.Keys(found))
}

func (k *Kernel) step(i int, s state, found map[Problem]bool) state {
	x := &k.Body[i]
	switch {
	case x.Form == "fence.acq_rel.sys" && x.Guard == "":
		return state{}
	case x.Mark == "release":
		if s.written != 0 {
			found[Problem{x.Line, "a flag is raised with no fence since memory was written"}] = true
		}
	case x.Mark == "acquire":
		s.awaited = x.Line
	case strings.HasPrefix(x.Form, "barrier."):
		if s.awaited != 0 {
			found[Problem{x.Line, "a barrier with no fence since a flag was awaited"}] = true
		}
		s = state{written: x.Line}
	case strings.HasPrefix(x.Form, "st.") && strings.Contains(x.Form, ".global."):
		s.written = x.Line
	}
	if weak(x.Form) && strings.HasPrefix(x.Form, "st.") && s.awaited != 0 {
		found[Problem{x.Line, "data is written with no fence since a flag was awaited"}] = true
	}
	return s
}

// next are the instructions that may follow.
func (k *Kernel) next(i int) []int {
	x := &k.Body[i]
	var to []int
	switch x.Form {
	case "ret":
	case "bra", "bra.uni":
		if at, ok := k.Labels[x.Operands[0]]; ok {
			to = append(to, at)
		}
	case "brx.idx":
		for _, l := range k.Targets[x.Operands[1]] {
			to = append(to, k.Labels[l])
		}
		return to
	default:
		return []int{i + 1}
	}
	if x.Guard != "" {
		to = append(to, i+1)
	}
	return to
}
