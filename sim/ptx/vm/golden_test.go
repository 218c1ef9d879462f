package vm_test

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api/gpu"
	"example.com/tandem/sim/ptx/vm"
)

// forms are the PTX of the operations recorded on an H200, where they have one:
// of %h1 and %h2 they make %h3; %f1 is the float with the bits a<<16|b.
var forms = map[string]string{
	"hadd": "add.rn.%s %%h3, %%h1, %%h2;", "operator+": "add.%s %%h3, %%h1, %%h2;",
	"hmul": "mul.rn.%s %%h3, %%h1, %%h2;", "operator*": "mul.%s %%h3, %%h1, %%h2;",
	"hmin": "min.%s %%h3, %%h1, %%h2;", "hmax": "max.%s %%h3, %%h1, %%h2;",
	"hmin_nan": "min.NaN.%s %%h3, %%h1, %%h2;", "hmax_nan": "max.NaN.%s %%h3, %%h1, %%h2;",
	"f32add_rn":   "cvt.f32.%[1]s %%f2, %%h1; cvt.f32.%[1]s %%f3, %%h2; add.rn.f32 %%f2, %%f2, %%f3; cvt.rn.%[1]s.f32 %%h3, %%f2;",
	"f32add_rz":   "cvt.f32.%[1]s %%f2, %%h1; cvt.f32.%[1]s %%f3, %%h2; add.rn.f32 %%f2, %%f2, %%f3; cvt.rz.%[1]s.f32 %%h3, %%f2;",
	"from_f32_rn": "cvt.rn.%s.f32 %%h3, %%f1;", "from_f32_rz": "cvt.rz.%s.f32 %%h3, %%f1;",
	"ternary_lt_min": "setp.lt.%[1]s %%p1, %%h1, %%h2; selp.b16 %%h3, %%h1, %%h2, %%p1;",
	"ternary_gt_max": "setp.gt.%[1]s %%p1, %%h1, %%h2; selp.b16 %%h3, %%h1, %%h2, %%p1;",
}

// one is a kernel that stores what a form makes of two halves.
func one(form string) string {
	return ".visible .entry k(.param .b16 a, .param .b16 b)\n{\n.reg .pred %p<4>; .reg .b16 %h<8>; .reg .f32 %f<8>;\n" +
		"ld.param.b16 %h1, [a]; ld.param.b16 %h2, [b];\n" + single(form) + "\nst.global.b16 [0], %h3; ret;\n}\n"
}

// single is a form behind the making of its float, where it has one.
func single(form string) string {
	if strings.Contains(form, "%f1") {
		return "mov.b32 %f1, {%h2, %h1};\n" + form
	}
	return form
}

// row is a kernel that stores, for every b of 2^16, what the form makes of a
// and b; a is the second half of the parameter y.
func row(form string) string {
	return "ld.param.b16 %h1, [y]; mov.b32 %r1, 0;\nL: cvt.u16.u32 %h2, %r1; mov.b32 %f1, {%h2, %h1};" + form +
		"st.b16 [%out], %h3; add.s64 %out, %out, 2; add.u32 %r1, %r1, 1; setp.lt.u32 %p2, %r1, 65536; @%p2 bra L;"
}

const (
	fnvBasis = 0xCBF29CE484222325
	fnvPrime = 0x100000001B3
)

func fnv(h uint64, p []byte) uint64 {
	for _, b := range p {
		h = (h ^ uint64(b)) * fnvPrime
	}
	return h
}

// executed gives the results of a row kernel for one a.
func executed(t testing.TB, k *vm.Kernel, a int) []byte {
	m := vm.New(vm.Options{})
	out := vm.NewStore(1<<18, 0, true)
	at := m.Place(&vm.Region{Bytes: 1 << 18, Store: out})
	m.Start(vm.Work{Kernel: k, Args: new(gpu.Args).Uint64(0).Uint64(uint64(a)).Uint64(at).Uint64(0).Bytes(), Seq: 1})
	require.True(t, m.Run(1<<40))
	return out.Data
}

// goldenRow is the hash of 256 first operands with all second ones.
func goldenRow(eval func(a, b uint64) uint64, g int) string {
	h := uint64(fnvBasis)
	for a := 256 * g; a < 256*(g+1); a++ {
		x := uint64(fnvBasis)
		for b := range uint64(1 << 16) {
			v := eval(uint64(a), b)
			x = (x ^ v&0xFF) * fnvPrime
			x = (x ^ v>>8) * fnvPrime
		}
		h = fnv(h, binary.LittleEndian.AppendUint64(nil, x))
	}
	return fmt.Sprintf("%016x", h)
}

// TestGolden compares instructions with recordings of an H200, of all pairs of
// 16-bit operands: every row of every form with TANDEM_EXHAUSTIVE=1, and else a
// row of some forms. What is compared is the instruction as compiled; that the
// interpreter gives the same is looked at for one operand.
func TestGolden(t *testing.T) {
	all := os.Getenv("TANDEM_EXHAUSTIVE") != ""
	f, err := os.Open("../../arith/testdata/arith-sm90.jsonl")
	require.NoError(t, err)
	defer f.Close()
	seen := 0
	in := bufio.NewScanner(f)
	in.Buffer(nil, 1<<20)
	for ; in.Scan(); seen++ {
		var line recorded
		require.NoError(t, json.Unmarshal(in.Bytes(), &line))
		n := seen
		t.Run(line.DType+"/"+line.Op, func(t *testing.T) {
			t.Parallel()
			if line.Op == "to_f32" {
				m, err := vm.Load("golden.ptx", []byte(head+kernel("k", row("cvt.f32."+line.DType+" %f2, %h2; st.b32 [%out], %f2; add.s64 %out, %out, 2; mov.b32 {%h3, %h4}, %f2; mov.b16 %h3, %h4;"))))
				require.NoError(t, err)
				require.Equal(t, line.Rows[0], fmt.Sprintf("%016x", fnv(fnvBasis, executed(t, m.Kernel("k"), 0))))
				return
			}
			line.check(t, n, all)
		})
	}
	require.NoError(t, in.Err())
	require.Equal(t, 30, seen)
}

// recorded is a line of the recordings.
type recorded struct {
	DType, Op string
	Rows      []string
}

// check holds line number n to the instruction that gave it.
func (line *recorded) check(t *testing.T, n int, all bool) {
	form, ok := forms[line.Op]
	require.True(t, ok, line.Op)
	form = fmt.Sprintf(form, line.DType)
	m, err := vm.Load("golden.ptx", []byte(head+one(form)))
	require.NoError(t, err)
	eval := vm.Evaluator(m.Kernel("k"))
	if !testing.Short() || n%5 == 0 {
		m, err = vm.Load("golden.ptx", []byte(head+kernel("k", row(form))))
		require.NoError(t, err)
		a := (0x7F80 + 4099*n) & 0xFFFF
		data := executed(t, m.Kernel("k"), a)
		for b := range uint64(1 << 16) {
			require.Equal(t, uint64(binary.LittleEndian.Uint16(data[2*b:])), eval(uint64(a), b), "%s of 0x%x and 0x%x", form, a, b)
		}
	}
	rows := 0
	for g := range line.Rows {
		if all || g == (0x7C+37*n)&0xFF && n%10 == 1 && !testing.Short() {
			require.Equal(t, line.Rows[g], goldenRow(eval, g), "%s %s row %d", line.DType, line.Op, g)
			rows++
		}
	}
	t.Logf("%d of %d rows", rows, len(line.Rows))
}
