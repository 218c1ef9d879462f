package vm

import (
	"fmt"
	"slices"

	"example.com/tandem/sim/ptx/asm"
)

// maxBody is how many instructions a function may have, or registers, with all
// calls in line.
const maxBody = 1 << 20

// assertFail is what assert calls; no text has it.
const assertFail = "__assertfail"

// inliner remembers what it has done: nil is a function that is being done.
type inliner struct {
	m    *asm.Module
	done map[*asm.Func]*asm.Func
}

// inline gives a function without calls: the bodies of the functions that it
// calls stand in their place, with registers of their own and the caller's
// parameters for theirs.
func (x *inliner) inline(f *asm.Func) (*asm.Func, error) {
	if done := x.done[f]; done != nil {
		return done, nil
	}
	x.done[f] = nil
	g, err := x.expand(f)
	x.done[f] = g
	return g, err
}

func (x *inliner) expand(f *asm.Func) (*asm.Func, error) {
	if !slices.ContainsFunc(f.Body, func(in asm.Instr) bool { return in.Op == "call" }) {
		return f, nil
	}
	res := *f
	res.Regs, res.RegNames, res.Vars, res.Body = slices.Clone(f.Regs), slices.Clone(f.RegNames), slices.Clone(f.Vars), nil
	at := make([]int, len(f.Body)+1)
	own := []int{}
	for i := range f.Body {
		in := f.Body[i]
		at[i] = len(res.Body)
		if in.Op != "call" {
			own = append(own, len(res.Body))
			in.Args = copyOf(in.Args)
			res.Body = append(res.Body, in)
			continue
		}
		bad := func(format string, args ...any) error {
			return &asm.Error{File: x.m.File, Line: in.Line, What: in.Text() + " " + in.Call.Func + ": " + fmt.Sprintf(format, args...)}
		}
		callee := x.m.Func(in.Call.Func)
		done, known := x.done[callee]
		switch {
		case callee == nil && in.Call.Func == assertFail:
			own = append(own, len(res.Body))
			in.Op, in.Mods, in.Args, in.Call = assertFail, nil, nil, nil
			res.Body = append(res.Body, in)
			continue
		case callee == nil:
			return nil, bad("no such function in this text")
		case known && done == nil:
			return nil, bad("recursion is not known")
		}
		c, err := x.inline(callee)
		if err != nil {
			return nil, err
		}
		vars, why := bind(c, in.Call)
		if why != "" {
			return nil, bad("%s", why)
		}
		if len(res.Body)+len(c.Body) > maxBody || len(res.Regs)+len(c.Regs) > maxBody {
			return nil, bad("more than %d instructions or registers with all calls in line", maxBody)
		}
		splice(&res, c, &in, vars)
	}
	at[len(f.Body)] = len(res.Body)
	for _, i := range own {
		each(res.Body[i].Args, func(o *asm.Operand) {
			if o.Kind == asm.Label {
				o.Target = at[o.Target]
			}
		})
	}
	return &res, nil
}

// bind gives the variables that stand for a function's parameters and results.
func bind(c *asm.Func, call *asm.Call) (map[*asm.Var]*asm.Var, string) {
	vars := map[*asm.Var]*asm.Var{}
	pair := func(formal []*asm.Var, actual []asm.Operand) string {
		if len(formal) != len(actual) {
			return fmt.Sprintf("%d arguments or results, the function has %d", len(actual), len(formal))
		}
		for i, v := range formal {
			if a := actual[i].Var; actual[i].Kind != asm.Address || a.Space != asm.Param || a.Bytes() < v.Bytes() {
				return fmt.Sprintf("what is given for %s is no parameter of %d bytes", v.Name, v.Bytes())
			}
			vars[v] = actual[i].Var
		}
		return ""
	}
	if why := pair(c.Params, call.Args); why != "" {
		return nil, why
	}
	return vars, pair(c.Results, call.Results)
}

// splice appends the body of c in place of a call.
func splice(res, c *asm.Func, call *asm.Instr, vars map[*asm.Var]*asm.Var) {
	base := len(res.Regs)
	res.Regs, res.RegNames, res.Vars = append(res.Regs, c.Regs...), append(res.RegNames, c.RegNames...), append(res.Vars, c.Vars...)
	start := len(res.Body)
	if call.Guard >= 0 {
		start++
	}
	end := asm.Operand{Kind: asm.Label, Reg: -1, Name: "return", Target: start + len(c.Body)}
	if call.Guard >= 0 {
		res.Body = append(res.Body, asm.Instr{Op: "bra", Guard: call.Guard, Not: !call.Not, Args: []asm.Operand{end}, Line: call.Line, Place: call.Place})
	}
	for _, in := range c.Body {
		in.Args = copyOf(in.Args)
		if in.Guard >= 0 {
			in.Guard += base
		}
		each(in.Args, func(o *asm.Operand) {
			if o.Kind == asm.Label {
				o.Target += start
			}
			if (o.Kind == asm.Reg || o.Kind == asm.Memory) && o.Reg >= 0 {
				o.Reg += base
			}
			if v := vars[o.Var]; v != nil {
				o.Var = v
			}
		})
		if in.Op == "ret" {
			in.Op, in.Mods, in.Args = "bra", nil, []asm.Operand{end}
		}
		res.Body = append(res.Body, in)
	}
}

func copyOf(args []asm.Operand) []asm.Operand {
	args = slices.Clone(args)
	for i := range args {
		args[i].List = copyOf(args[i].List)
	}
	return args
}

// each visits operands and those in them.
func each(args []asm.Operand, visit func(*asm.Operand)) {
	for i := range args {
		visit(&args[i])
		each(args[i].List, visit)
	}
}
