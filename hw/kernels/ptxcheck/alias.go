package ptxcheck

import (
	"maps"
	"slices"
	"strings"
)

// aliasState is what a path brings to an instruction in a kernel whose memory has
// two kinds of addresses, as lines; 0 is nothing.
type aliasState struct {
	touched int // memory was accessed, here or before a barrier, since the last alias fence
	loose   int // an alias fence that no fence has followed
	awaited int // a flag that no alias fence has followed
	early   int // a flag that no fence has followed
}

func (s aliasState) join(t aliasState) aliasState {
	return aliasState{max(s.touched, t.touched), max(s.loose, t.loose), max(s.awaited, t.awaited), max(s.early, t.early)}
}

// aliased reports whether a kernel reaches memory through multicast addresses
// too, or is the emulated form of one that does.
func (k *Kernel) aliased() bool {
	return slices.ContainsFunc(k.Body, func(x Instruction) bool {
		return x.Form == "fence.proxy.alias" || strings.HasPrefix(x.Form, "multimem.")
	})
}

// aliases follows every path of such a kernel: between an access and a flag that
// is raised stand fence.proxy.alias and then fence.acq_rel.sys; between a flag
// that was awaited and an access, fence.acq_rel.sys and then fence.proxy.alias.
// Unicast and multicast addresses of the same bytes are different proxies, and
// ptxas takes every other order too.
func (k *Kernel) aliases() []Problem {
	if !k.aliased() {
		return nil
	}
	found := map[Problem]bool{}
	in := map[int]aliasState{0: {touched: 1}}
	work := []int{0}
	for len(work) > 0 {
		i := work[len(work)-1]
		work = work[:len(work)-1]
		if i >= len(k.Body) {
			continue
		}
		out := in[i].after(&k.Body[i], func(why string) { found[Problem{k.Body[i].Line, why}] = true })
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

// after is the state behind an instruction.
func (s aliasState) after(x *Instruction, bad func(string)) aliasState {
	multi := strings.HasPrefix(x.Form, "multimem.")
	switch {
	case multi && !strings.Contains(x.Form, ".relaxed.sys."):
		bad("a multicast access needs relaxed order and system scope, not " + x.Form)
	case x.Form == "fence.proxy.alias" && x.Guard == "":
		s.touched, s.loose = 0, x.Line
		if s.early == 0 {
			s.awaited = 0
		}
	case x.Form == "fence.acq_rel.sys" && x.Guard == "":
		s.loose, s.early = 0, 0
	case x.Mark == "release":
		if s.touched != 0 {
			bad("a flag is raised with no alias fence since memory was accessed")
		}
		if s.loose != 0 {
			bad("a flag is raised with no fence since the alias fence")
		}
	case x.Mark == "acquire":
		s.awaited, s.early = x.Line, x.Line
	}
	barrier := strings.HasPrefix(x.Form, "barrier.")
	if multi || barrier || weak(x.Form) {
		if s.awaited != 0 {
			bad("memory is accessed, or others are let to, with no alias fence since a flag was awaited")
		}
		s.touched = x.Line
	}
	return s
}
