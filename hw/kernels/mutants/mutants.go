package mutants

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/tandem/api"
	"example.com/tandem/hw/tandem"
)

// Kind is what is wrong with a mutant.
type Kind string

// The kinds. Order mutants may give right values on a GPU that happens to keep
// the order; all others give wrong ones, or none, where their trials show them.
const (
	Value   Kind = "value"
	Barrier Kind = "barrier"
	Epoch   Kind = "stale epoch"
	Header  Kind = "skipped header"
	Order   Kind = "order"
)

// Mutant is one way to break the kernels.
type Mutant struct {
	Name string
	Kind Kind
	Edit Edit
	// Whole says that all kernels are broken at once; else each in which the
	// edit finds its place is a mutant of its own.
	Whole bool
	// Trials are calls that show it, in kernels that these calls use.
	Trials []Trial
}

// Trial is calls that are right with the kernels as they are.
type Trial struct {
	Params string // of the Spec
	Call   api.Call
	// Calls is how many are made, with new data each, on one team; 0 is 3. Every
	// second one has an element less.
	Calls int
	// Fault delays a rank in all calls but the first, or, where it differs, has
	// it announce another call in the last: then a mismatch is what is right.
	Fault tandem.Fault
	// Reuse overwrites the source of rank 0 on its stream behind the call: the
	// memory is the caller's again as soon as the call has ended on its rank. It
	// takes a GPU for each rank: ranks of one GPU are one launch, which ends on
	// all of them together.
	Reuse bool
}

// Kernels are those in which the edit finds its place: "" alone where all are
// broken at once. None is an error: the pattern must follow the kernels.
func (m *Mutant) Kernels(module []byte) ([]string, error) {
	text := string(module)
	var out []string
	for _, k := range kernelsOf(text) {
		body, n := m.Edit(text[k.start:k.end])
		if n > 0 && body == text[k.start:k.end] {
			return nil, fmt.Errorf("mutant %q: its edit of %s changes nothing", m.Name, k.name)
		}
		if n > 0 {
			out = append(out, k.name)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("mutant %q finds no place in any kernel: they have changed, and its pattern must follow them", m.Name)
	}
	if m.Whole {
		return []string{""}, nil
	}
	return out, nil
}

// Apply gives the module with the mutation in one kernel, or for "" in all.
func (m *Mutant) Apply(module []byte, kernel string) []byte {
	text := string(module)
	var out strings.Builder
	from := 0
	for _, k := range kernelsOf(text) {
		if kernel != "" && k.name != kernel {
			continue
		}
		body, _ := m.Edit(text[k.start:k.end])
		out.WriteString(text[from:k.start])
		out.WriteString(body)
		from = k.end
	}
	return []byte(out.String() + text[from:])
}

// Alone has every kernel but one return at once, so that a driver compiles no
// more than what a mutant needs; "" leaves all as they are.
func Alone(module []byte, name string) []byte {
	if name == "" {
		return module
	}
	text := string(module)
	var out strings.Builder
	from := 0
	for _, k := range kernelsOf(text) {
		out.WriteString(text[from:k.start])
		if body := text[k.start:k.end]; k.name == name {
			out.WriteString(body)
		} else {
			out.WriteString(stub(body))
		}
		from = k.end
	}
	return []byte(out.String() + text[from:])
}

// late is how long ranks are held up: far longer than a call takes.
const late = 500 * time.Microsecond

var (
	paths      = []string{"direct", "push", "two_shot", "staged"}
	reductions = []api.Collective{api.AllReduce, api.ReduceScatter}
	copies     = []api.Collective{api.AllGather, api.Broadcast, api.AllToAll}
)

func call(k api.Collective, d api.DType, op api.Op, ranks int, count int64) api.Call {
	c := api.Call{Collective: k, DType: d, Ranks: ranks, Count: count}
	if k.Reduces() {
		c.Op = op
	}
	return c
}

// each is trials of collectives by every path, over two ranks and over more.
func each(list []api.Collective, d api.DType, op api.Op, more int, count int64, offsets api.Offsets) []Trial {
	var out []Trial
	for _, path := range paths {
		for _, k := range list {
			for _, ranks := range []int{2, more} {
				c := call(k, d, op, ranks, count)
				c.SrcOffset = offsets
				if len(offsets) > 1 {
					c.SrcOffset = offsets[:ranks]
				}
				out = append(out, Trial{Params: "path=" + path, Call: c, Calls: 2})
			}
		}
	}
	return out
}

// lately are trials in which one rank of two comes late to a step.
func lately(paths []string, step tandem.Step, rank, calls int, offsets api.Offsets) []Trial {
	var out []Trial
	for _, path := range paths {
		for _, k := range slices.Concat(reductions, copies) {
			c := call(k, api.BF16, api.Sum, 2, 2000)
			c.SrcOffset = offsets
			out = append(out, Trial{Params: "path=" + path, Call: c, Calls: calls, Fault: tandem.Fault{Rank: rank, Step: step, Delay: late}})
		}
	}
	return out
}

// meetings are trials that need barriers between ranks: on the ways through
// stages and in two shots, with buffers that lie alike in their lines or not, and
// at the end, by the kernels of plain arithmetic and by the others.
func meetings() []Trial {
	var out []Trial
	for _, path := range []string{"direct", "two_shot", "staged"} {
		for _, k := range slices.Concat(reductions, copies) {
			for _, op := range []api.Op{api.Sum, api.Avg} {
				if op == api.Sum || k.Reduces() {
					out = append(out, Trial{Params: "path=" + path, Call: call(k, api.BF16, op, 2, 2000), Reuse: true,
						Fault: tandem.Fault{Rank: 1, Step: tandem.StepAgreed, Delay: late}})
				}
			}
		}
	}
	for _, step := range []tandem.Step{tandem.StepAgreed, tandem.StepData, tandem.StepBarrier} {
		for rank := range 2 {
			out = append(out, lately([]string{"two_shot", "staged"}, step, rank, 3, nil)...)
			out = append(out, lately([]string{"two_shot"}, step, rank, 3, api.Offsets{0, 1})...)
		}
	}
	return out
}

// entries are trials in which a rank comes late with new data to a call like the
// one before, or comes and sends late, by every path.
func entries() []Trial {
	var out []Trial
	for _, step := range []tandem.Step{tandem.StepHeader, tandem.StepEntry} {
		for rank := range 2 {
			out = append(out, lately([]string{"push", "direct"}, step, rank, 4, nil)...)
		}
	}
	return out
}

// mismatches are trials in which one rank makes another call.
func mismatches() []Trial {
	var out []Trial
	for _, path := range paths {
		for _, k := range slices.Concat(reductions, copies) {
			for _, ranks := range []int{2, 3} {
				out = append(out, Trial{Params: "path=" + path, Call: call(k, api.BF16, api.Sum, ranks, 200), Fault: tandem.Fault{Rank: 1, Differ: true}})
			}
		}
	}
	return out
}

// flagLoad is how a barrier polls the flag of a peer.
const flagLoad = `ld\.relaxed\.sys\.global\.b64 (%\w+), \[[^\]]*\]; //@acquire`

// barriers have one barrier of a kernel wait for nobody, for as many as any
// kernel has.
func barriers(module string) []Mutant {
	most := 0
	for _, k := range kernelsOf(module) {
		_, n := replace(flagLoad, "")(module[k.start:k.end])
		most = max(most, n)
	}
	var out []Mutant
	for n := range most {
		out = append(out, Mutant{Name: fmt.Sprintf("barrier %d waits for nobody", n+1), Kind: Barrier,
			Edit: only(n, flagLoad, "mov.b64 $1, 9223372036854775807;"), Trials: meetings()})
	}
	return out
}

// List is every mutant of a module.
func List(module []byte) []Mutant {
	out := values()
	out = append(out, barriers(string(module))...)
	out = append(out,
		Mutant{Name: "the epoch stands still", Kind: Epoch, Edit: standStill(), Trials: entries()},
		Mutant{Name: "lines of any epoch", Kind: Epoch, Edit: alike(false), Trials: entries()},
		Mutant{Name: "headers that say nothing of the call", Kind: Header, Edit: sameHash(), Trials: mismatches()},
		Mutant{Name: "headers of any epoch", Kind: Header, Edit: alike(true), Trials: entries()},
		Mutant{Name: "headers that are not sent", Kind: Header, Edit: replace(`(?m)^\tst\.relaxed\.sys\.global\.v2\.b64 .*//@release$`, ""), Trials: entries()},
	)
	return append(out, orders()...)
}

// standStill drops the store of the next epoch, behind the count of the blocks
// that have left.
func standStill() Edit {
	return after(`atom\.\w+\.sys\.global\.(?:add|inc)\.u32`, 20, `st\.relaxed\.sys\.global\.b64 \[[^\]]*\], %\w+;`, "")
}

// values give wrong results by themselves.
func values() []Mutant {
	tails := append(each(reductions, api.BF16, api.Sum, 3, 1021, nil), each(copies, api.BF16, api.Sum, 3, 1021, nil)...)
	bytes := append(each(copies, api.U8, api.Sum, 3, 1021, nil), each(reductions, api.U8, api.Sum, 3, 1021, nil)...)
	shifted := append(each(copies, api.BF16, api.Sum, 3, 1021, api.Offsets{1, 3, 2}), each(reductions, api.BF16, api.Sum, 3, 1021, api.Offsets{1, 3, 2})...)
	sums, means := each(reductions, api.F32, api.Sum, 4, 1000, nil), each(reductions, api.BF16, api.Avg, 3, 1021, nil)
	const tail = `(?m)^\s+(?:@\S+\s+)?st\.global\.b16 .*$`
	return []Mutant{
		{Name: "another order: leaf by leaf", Kind: Value, Edit: leftToRight("add.rn.bf16x2"), Trials: more(each(reductions, api.BF16, api.Sum, 4, 1000, nil))},
		{Name: "another order in f32: leaf by leaf", Kind: Value, Edit: leftToRight("add.rn.f32"), Trials: more(sums)},
		{Name: "another operation", Kind: Value, Edit: replace(`add\.rn\.f32`, "sub.rn.f32"), Trials: sums},
		{Name: "another rounding", Kind: Value, Edit: replace(`add\.rn\.f32`, "add.rz.f32"), Trials: sums},
		{Name: "another rounding of a quotient", Kind: Value, Edit: replace(`cvt\.rn\.bf16\.f32`, "cvt.rz.bf16.f32"), Trials: means},
		{Name: "NaN by another rule", Kind: Value, Edit: replace(`\bmax\.bf16x2`, "max.NaN.bf16x2"), Trials: each(reductions, api.BF16, api.Max, 3, 1021, nil)},
		{Name: "a dropped tail", Kind: Value, Edit: replace(tail, ""), Trials: tails},
		{Name: "loads one byte on", Kind: Value, Edit: replace(`(ld\.global\.u8 %\w+, \[%\w+)\]`, "$1+1]"), Trials: bytes},
		{Name: "stores one byte on", Kind: Value, Edit: replace(`(st\.global\.b8 \[%\w+)\]`, "$1+1]"), Trials: bytes},
		{Name: "lines put together the other way round", Kind: Value, Edit: replace(`shf\.r\.wrap`, "shf.l.wrap"), Trials: shifted},
	}
}

// more leaves out the trials of two ranks, where every order is one.
func more(list []Trial) []Trial {
	return slices.DeleteFunc(slices.Clone(list), func(t Trial) bool { return t.Call.Ranks == 2 })
}

// orders lose an order that the compiler and ptxas do not miss.
func orders() []Mutant {
	const line = `(\[[^\]]*\]), \{(%\w+), (%\w+)\};`
	inFour := `{
	.reg .b32 a, b, c, d;
	mov.b64 {a, b}, $2;
	mov.b64 {c, d}, $3;
	st.relaxed.sys.global.v4.b32 $1, {a, b, c, d};
	}`
	fromFour := `{
	.reg .b32 a, b, c, d;
	ld.relaxed.sys.global.v4.b32 {a, b, c, d}, $3;
	mov.b64 $1, {a, b};
	mov.b64 $2, {c, d};
	}`
	trials := each([]api.Collective{api.AllReduce, api.AllGather}, api.BF16, api.Sum, 3, 300, nil)
	m := func(name string, e Edit) Mutant {
		return Mutant{Name: name, Kind: Order, Whole: true, Edit: e, Trials: trials}
	}
	return []Mutant{
		m("no fences", replace(`fence\.acq_rel\.sys;`, "")),
		m("fences of one GPU", replace(`fence\.acq_rel\.sys;`, "fence.acq_rel.gpu;")),
		m("fences of one block", replace(`fence\.acq_rel\.sys;`, "fence.acq_rel.cta;")),
		m("weak loads of lines", replace(`ld\.relaxed\.sys\.global\.v2\.b64`, "ld.global.v2.b64")),
		m("weak stores of lines", replace(`st\.relaxed\.sys\.global\.v2\.b64`, "st.global.v2.b64")),
		m("weak stores of flags", replace(`st\.relaxed\.sys(\.global\.b64 .*//@release)`, "st$1")),
		m("polls of one GPU", replace(`ld\.relaxed\.sys\.global\.b64`, "ld.relaxed.gpu.global.b64")),
		m("flags of one GPU", replace(`st\.relaxed\.sys(\.global\.b64 .*//@release)`, "st.relaxed.gpu$1")),
		m("lines stored as four words", replace(`st\.relaxed\.sys\.global\.v2\.b64 `+line, inFour)),
		m("lines loaded as four words", replace(`ld\.relaxed\.sys\.global\.v2\.b64 \{(%\w+), (%\w+)\}, (\[[^\]]*\]);`, fromFour)),
		m("non-coherent loads", replace(`ld\.global\.v4\.b32`, "ld.global.nc.v4.b32")),
	}
}
