package mutants

import (
	"fmt"
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
	// Kernel is the one that is broken; "" is every one in which the edit finds
	// its place.
	Kernel string
	Edit   Edit
	// Trials are run in order until one catches the mutant.
	Trials []Trial
	// Blind says why one GPU cannot show the mutant; "" if it does.
	Blind string
}

// Trial is calls that are right with the kernels as they are.
type Trial struct {
	Params string // of the Spec
	Call   api.Call
	// Calls is how many are made, with new data each, on one team; 0 is 3. The
	// second and later ones differ in their count from the one before.
	Calls int
	// Fault delays a rank in all calls but the first, or, where it differs, has
	// it announce another call in the last: then a mismatch is what is right.
	Fault tandem.Fault
	// Reuse overwrites the source of rank 0 on its stream behind the call: the
	// memory is the caller's again as soon as the call has ended on its rank. It
	// takes a GPU for each rank.
	Reuse bool
}

// Apply gives the module with the mutation in it, or says why there is none.
func (m *Mutant) Apply(module []byte) ([]byte, error) {
	text := string(module)
	var out strings.Builder
	from, places := 0, 0
	for _, k := range kernelsOf(text) {
		if m.Kernel != "" && k.name != m.Kernel {
			continue
		}
		body, n := m.Edit(text[k.start:k.end])
		if n > 0 && body == text[k.start:k.end] {
			return nil, fmt.Errorf("mutant %q: its edit of %s changes nothing", m.Name, k.name)
		}
		out.WriteString(text[from:k.start])
		out.WriteString(body)
		from, places = k.end, places+n
	}
	if places == 0 {
		where := "any kernel"
		if m.Kernel != "" {
			where = m.Kernel
		}
		return nil, fmt.Errorf("mutant %q finds no place in %s: the kernels have changed, and its pattern must follow them", m.Name, where)
	}
	return []byte(out.String() + text[from:]), nil
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

const (
	reduce = "tandem_reduce"
	clone  = "tandem_copy"
	// late is how long ranks are held up: far longer than a call takes.
	late = 3 * time.Millisecond
)

// call is a call of two or more ranks; reductions sum.
func call(k api.Collective, d api.DType, ranks int, count int64) api.Call {
	c := api.Call{Collective: k, DType: d, Ranks: ranks, Count: count}
	if k.Reduces() {
		c.Op = api.Sum
	}
	return c
}

// sum is all_reduce over four ranks, by every path that has it.
func sum(d api.DType, count int64) []Trial {
	var out []Trial
	for _, path := range []string{"push", "direct", "two_shot", "staged"} {
		out = append(out, Trial{Params: "path=" + path, Call: call(api.AllReduce, d, 4, count), Calls: 2})
	}
	return out
}

// meetings are trials in which one rank comes late to the barriers of a path.
func meetings(k api.Collective, path string) []Trial {
	var out []Trial
	for _, step := range []tandem.Step{tandem.StepAgreed, tandem.StepData, tandem.StepBarrier} {
		for rank := range 2 {
			out = append(out, Trial{Params: "path=" + path, Call: call(k, api.BF16, 2, 3000), Fault: tandem.Fault{Rank: rank, Step: step, Delay: late}})
		}
	}
	return out
}

// reuse are trials that overwrite a source behind a call.
func reuse(k api.Collective) []Trial {
	return []Trial{{Params: "path=direct", Call: call(k, api.BF16, 2, 3000), Reuse: true, Fault: tandem.Fault{Rank: 1, Step: tandem.StepAgreed, Delay: late}}}
}

// pushed are trials of the push path in which one rank sends late.
func pushed(k api.Collective) []Trial {
	var out []Trial
	for rank := range 2 {
		out = append(out, Trial{Params: "path=push", Call: call(k, api.BF16, 2, 2000), Calls: 6, Fault: tandem.Fault{Rank: rank, Step: tandem.StepEntry, Delay: late}})
	}
	return out
}

// ordered are trials for what only the memory model shows: every path, once.
func ordered(d api.DType) []Trial {
	var out []Trial
	for _, path := range []string{"direct", "push", "two_shot", "staged"} {
		out = append(out, Trial{Params: "path=" + path, Call: call(api.AllReduce, d, 2, 300), Calls: 2})
	}
	return out
}

// meets is how many barriers between ranks a kernel has: of the staged path, of
// the two shots, and at the end.
const meets = 3

// unmet is the edit that has one of them wait for nobody.
func unmet(n int) Edit {
	const flag = `ld\.relaxed\.sys\.global\.b64 (%\w+), \[[^\]]*\]; //@acquire`
	count := replace(flag, "")
	drop := only(n, flag, "mov.b64 $1, 9223372036854775807;")
	return func(body string) (string, int) {
		if _, found := count(body); found != meets {
			return body, 0
		}
		return drop(body)
	}
}

const oneLaunch = "ranks of one GPU are one launch: it ends on all of them together"

// List is every mutant.
func List() []Mutant {
	var out []Mutant
	out = append(out, values()...)
	for _, k := range []struct {
		kernel     string
		collective api.Collective
		shots      api.Collective
	}{{reduce, api.AllReduce, api.AllReduce}, {clone, api.AllGather, api.Broadcast}} {
		add := func(kind Kind, name string, e Edit, trials []Trial, blind string) {
			out = append(out, Mutant{Name: name + " (" + strings.TrimPrefix(k.kernel, "tandem_") + ")", Kind: kind, Kernel: k.kernel, Edit: e, Trials: trials, Blind: blind})
		}
		add(Barrier, "no barrier before a stage is read", unmet(0), meetings(k.collective, "staged"), "")
		add(Barrier, "no barrier between two shots", unmet(1), meetings(k.shots, "two_shot"), "")
		add(Barrier, "no barrier at the end", unmet(2), reuse(k.collective), oneLaunch)
		add(Epoch, "the epoch stands still", standStill, pushed(k.collective), "")
		add(Epoch, "lines of any epoch", alike(false), pushed(k.collective), "")
		add(Header, "headers that say nothing of the call", sameHash, mismatched(k.collective), "")
		add(Header, "headers of any epoch", alike(true), pushed(k.collective), "")
		add(Header, "headers that are not sent", replace(`(?m)^\tst\.relaxed\.sys\.global\.v2\.b64 .*//@release$`, ""), pushed(k.collective), "")
	}
	return append(out, orders()...)
}

func mismatched(k api.Collective) []Trial {
	return []Trial{{Params: "path=push", Call: call(k, api.BF16, 2, 200), Fault: tandem.Fault{Rank: 1, Differ: true}}}
}

// standStill drops the store of the next epoch, behind the count of the blocks
// that have left.
var standStill = after(`atom\.acq_rel\.sys\.global\.add\.u32`, 14, `st\.relaxed\.sys\.global\.b64 \[[^\]]*\], %\w+;`, "")

// sameHash has the comparison of hashes hold always.
var sameHash = after(`ld\.relaxed\.sys\.global\.v2\.b64 .*//@acquire`, 60, `setp\.(eq|ne)\.(b|u|s)64(\s+%\w+), (%\w+), %\w+;`, "setp.$1.${2}64$3, $4, $4;")

// values give wrong results by themselves.
func values() []Mutant {
	tail := []Trial{
		{Params: "path=direct", Call: call(api.AllReduce, api.BF16, 3, 1021)},
		{Params: "path=push", Call: call(api.AllReduce, api.BF16, 3, 1021)},
	}
	bytes := []Trial{{Params: "path=direct", Call: call(api.AllGather, api.U8, 2, 1021)}}
	shifted := call(api.AllGather, api.BF16, 2, 1021)
	shifted.SrcOffset = api.Offsets{1, 3}
	largest := call(api.AllReduce, api.BF16, 3, 1021)
	largest.Op = api.Max
	mean := call(api.AllReduce, api.BF16, 3, 1021)
	mean.Op = api.Avg
	return []Mutant{
		{Name: "another order: leaf by leaf", Kind: Value, Kernel: reduce, Edit: leftToRight("add.rn.bf16x2"), Trials: sum(api.BF16, 3000)},
		{Name: "another order in f32: leaf by leaf", Kind: Value, Kernel: reduce, Edit: leftToRight("add.rn.f32"), Trials: sum(api.F32, 3000)},
		{Name: "another operation", Kind: Value, Kernel: reduce, Edit: replace(`add\.rn\.f32`, "sub.rn.f32"), Trials: sum(api.F32, 300)},
		{Name: "another rounding", Kind: Value, Kernel: reduce, Edit: replace(`add\.rn\.f32`, "add.rz.f32"), Trials: sum(api.F32, 300)},
		{Name: "another rounding of a quotient", Kind: Value, Kernel: reduce, Edit: replace(`cvt\.rn\.bf16\.f32`, "cvt.rz.bf16.f32"), Trials: []Trial{{Call: mean}}},
		{Name: "NaN by another rule", Kind: Value, Kernel: reduce, Edit: replace(`\bmax\.bf16x2`, "max.NaN.bf16x2"), Trials: []Trial{{Call: largest}}},
		{Name: "a dropped tail (reduce)", Kind: Value, Kernel: reduce, Edit: replace(`(?m)^(\s+)(@\S+\s+)?st\.global\.b16 .*$`, ""), Trials: tail},
		{Name: "a dropped tail (copy)", Kind: Value, Kernel: clone, Edit: replace(`(?m)^(\s+)(@\S+\s+)?st\.global\.b16 .*$`, ""), Trials: []Trial{{Params: "path=direct", Call: call(api.AllGather, api.BF16, 2, 1021)}}},
		{Name: "loads one byte on", Kind: Value, Kernel: clone, Edit: replace(`(ld\.global\.u8 %\w+, \[%\w+)\]`, "$1+1]"), Trials: bytes},
		{Name: "stores one byte on", Kind: Value, Kernel: clone, Edit: replace(`(st\.global\.b8 \[%\w+)\]`, "$1+1]"), Trials: bytes},
		{Name: "lines put together the other way round", Kind: Value, Kernel: clone, Edit: replace(`shf\.r\.wrap`, "shf.l.wrap"), Trials: []Trial{{Params: "path=direct", Call: shifted}}},
	}
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
	m := func(name string, e Edit) Mutant {
		return Mutant{Name: name, Kind: Order, Kernel: reduce, Edit: e, Trials: ordered(api.BF16)}
	}
	return []Mutant{
		m("no fences", replace(`fence\.acq_rel\.sys;`, "")),
		m("fences of one GPU", replace(`fence\.acq_rel\.sys;`, "fence.acq_rel.gpu;")),
		m("fences of one block", replace(`fence\.acq_rel\.sys;`, "fence.acq_rel.cta;")),
		m("leaving is relaxed", replace(`atom\.acq_rel\.sys\.global\.add`, "atom.relaxed.sys.global.add")),
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
