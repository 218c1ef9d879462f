package nvls

import (
	"fmt"
	"slices"
	"strings"

	"example.com/tandem/api/num"
)

// Form is one spelling of a multimem instruction, without its memory semantics:
// "multimem.ld_reduce.add.acc::f32.v4.bf16x2" is {"ld_reduce", "add", "f32", 4, "bf16x2"}.
type Form struct {
	Instr string // ld_reduce, st or red
	Op    string // add, min, max, and, or, xor; "" for st
	Acc   string // "", "f32" or "f16", of .acc::
	Vec   int    // 1, 2, 4 or 8
	Type  string // of one vector element
}

// ParseForm reads an instruction's name; qualifiers of memory semantics, scope
// and state space are skipped. It does not check that the form exists.
func ParseForm(text string) (Form, error) {
	parts := strings.Split(text, ".")
	if len(parts) < 3 || parts[0] != "multimem" {
		return Form{}, fmt.Errorf("%q is no multimem instruction", text)
	}
	f := Form{Instr: parts[1], Vec: 1, Type: parts[len(parts)-1]}
	for _, p := range parts[2 : len(parts)-1] {
		switch {
		case slices.Contains([]string{"weak", "relaxed", "acquire", "release", "cta", "cluster", "gpu", "sys", "global"}, p):
		case slices.Contains([]string{"add", "min", "max", "and", "or", "xor"}, p) && f.Op == "":
			f.Op = p
		case strings.HasPrefix(p, "acc::"):
			f.Acc = p[len("acc::"):]
		case slices.Contains([]string{"v2", "v4", "v8"}, p):
			f.Vec = int(p[1] - '0')
		default:
			return Form{}, fmt.Errorf("%q: .%s is no qualifier of a multimem instruction", text, p)
		}
	}
	return f, nil
}

// String is the name, without memory semantics.
func (f Form) String() string {
	var b strings.Builder
	b.WriteString("multimem." + f.Instr)
	if f.Op != "" {
		b.WriteString("." + f.Op)
	}
	if f.Acc != "" {
		b.WriteString(".acc::" + f.Acc)
	}
	if f.Vec > 1 {
		fmt.Fprintf(&b, ".v%d", f.Vec)
	}
	return b.String() + "." + f.Type
}

// formType is what a type of PTX holds.
type formType struct {
	d     num.DType
	lanes int
	// vecs are the vector widths it has; 1 is no vector.
	vecs []int
	ops  []string // of ld_reduce
	fp8  bool
}

var (
	floatOps = []string{"add", "min", "max"}
	addOnly  = []string{"add"}
	bitOps   = []string{"and", "or", "xor"}
	scalar   = []int{1}
)

var formTypes = map[string]formType{
	"b32": {num.U32, 1, scalar, bitOps, false}, "b64": {num.U64, 1, scalar, bitOps, false},
	"u32": {num.U32, 1, scalar, floatOps, false}, "u64": {num.U64, 1, scalar, floatOps, false},
	"s32": {num.I32, 1, scalar, floatOps, false},
	"s64": {num.I64, 1, scalar, []string{"min", "max"}, false}, // sums go as u64
	"f32": {num.F32, 1, []int{1, 2, 4}, addOnly, false}, "f64": {num.F64, 1, scalar, addOnly, false},
	"f16": {num.F16, 1, []int{2, 4, 8}, floatOps, false}, "bf16": {num.BF16, 1, []int{2, 4, 8}, floatOps, false},
	"f16x2": {num.F16, 2, []int{1, 2, 4}, floatOps, false}, "bf16x2": {num.BF16, 2, []int{1, 2, 4}, floatOps, false},
	"e4m3": {num.E4M3, 1, []int{4, 8}, floatOps, true}, "e5m2": {num.E5M2, 1, []int{4, 8}, floatOps, true},
	"e4m3x2": {num.E4M3, 2, []int{2, 4, 8}, floatOps, true}, "e5m2x2": {num.E5M2, 2, []int{2, 4, 8}, floatOps, true},
	"e4m3x4": {num.E4M3, 4, []int{1, 2, 4}, floatOps, true}, "e5m2x4": {num.E5M2, 4, []int{1, 2, 4}, floatOps, true},
}

// Bytes is the length of the whole access, which is also its alignment.
func (f Form) Bytes() int {
	t := formTypes[f.Type]
	if t.lanes == 0 {
		return 0
	}
	return max(f.Vec, 1) * t.lanes * t.d.Size()
}

// Check says whether PTX has the form on a target: sm is the compute capability
// times ten (90, 100, 103), and family that the code is built for a family of
// GPUs (sm_100f), which fp8 needs where it is not built for one GPU.
func (f Form) Check(sm int, family bool) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%s does not exist: %s", f, fmt.Sprintf(format, args...))
	}
	t, ok := formTypes[f.Type]
	vec := max(f.Vec, 1)
	switch {
	case sm < 90:
		return bad("multimem needs sm_90")
	case !ok:
		return bad("no type .%s", f.Type)
	case !slices.Contains([]string{"ld_reduce", "st", "red"}, f.Instr):
		return bad("no instruction multimem.%s", f.Instr)
	case t.fp8 && sm < 100:
		return bad("fp8 needs sm_100")
	case t.fp8 && sm == 103 && !family:
		return bad("fp8 on sm_103 needs a family build")
	case !slices.Contains(t.vecs, vec):
		return bad(".%s has vectors %v", f.Type, t.vecs)
	}
	if n := f.Bytes(); n != 4 && n != 8 && n != 16 {
		return bad("%d bytes, and an access has 4, 8 or 16", n)
	}
	return f.checkOp(t, bad)
}

func (f Form) checkOp(t formType, bad func(string, ...any) error) error {
	if f.Instr == "st" {
		if f.Op != "" || f.Acc != "" {
			return bad("a store reduces nothing")
		}
		return nil
	}
	switch {
	case f.Op == "":
		return bad("it names no operation")
	case !slices.Contains(t.ops, f.Op):
		return bad("operations on .%s are %v", f.Type, t.ops)
	case f.Instr == "red" && t.d.Float() && f.Op != "add":
		return bad("red on floats is add only")
	case f.Acc == "":
		return nil
	case f.Instr != "ld_reduce" || f.Op != "add":
		return bad(".acc belongs to ld_reduce.add")
	case f.Acc == "f32" && t.d.Size() == 2 && t.d.Float(), f.Acc == "f16" && t.fp8:
		return nil
	}
	return bad("no .acc::%s with .%s", f.Acc, f.Type)
}

// reduceOps are the operations by PTX's names.
var reduceOps = map[string]num.Op{"add": num.Sum, "min": num.Min, "max": num.Max, "and": num.And, "or": num.Or, "xor": num.Xor}

// FormFor is the load-reduce that gives one access of that many bytes for op on
// d, with the accumulator that libraries ask for; false where PTX has none on any
// target.
func FormFor(d num.DType, op num.Op, bytes int) (Form, bool) {
	f := Form{Instr: "ld_reduce", Vec: 1}
	for name, o := range reduceOps {
		if o == op {
			f.Op = name
		}
	}
	switch {
	case f.Op == "":
		return f, false
	case d.Float() && d.Size() <= 2:
		lanes := 4 / d.Size()
		f.Type, f.Vec = fmt.Sprintf("%sx%d", d, lanes), bytes/4
		if op == num.Sum {
			f.Acc = map[int]string{1: "f16", 2: "f32"}[d.Size()]
		}
	case d == num.F32:
		f.Type, f.Vec = "f32", bytes/4
	case d == num.F64:
		f.Type = "f64"
	case op.Bitwise():
		f.Type = fmt.Sprintf("b%d", 8*bytes) // of any width: bits do not mind
	case d.Size() < 4:
		return f, false
	case op == num.Sum && d == num.I64:
		f.Type = "u64"
	default:
		f.Type = map[bool]string{true: "s", false: "u"}[d.Signed()] + fmt.Sprint(8*d.Size())
	}
	return f, f.Bytes() == bytes && f.Check(100, false) == nil
}

// Widths are the lengths in bytes of the load-reduces there are for op on d,
// widest first; none where the switch cannot do it.
func Widths(d num.DType, op num.Op) []int {
	var out []int
	for _, w := range []int{16, 8, 4} {
		if _, ok := FormFor(d, op, w); ok {
			out = append(out, w)
		}
	}
	return out
}
