package vm_test

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
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

// golden gives the results of a row kernel for one a, all threads of a block
// doing one a each.
func golden(t testing.TB, k *vm.Kernel, a, n int) []byte {
	m := vm.New(vm.Options{})
	out := vm.NewStore(uint64(n)<<17, 0, true)
	at := m.Place(&vm.Region{Bytes: uint64(n) << 17, Store: out})
	for i := range n {
		var args gpu.Args
		args.Uint64(0).Uint64(uint64(a + i)).Uint64(at + uint64(i)<<17).Uint64(0)
		m.Start(vm.Work{Kernel: k, Args: args.Bytes(), Stream: uint32(i), Seq: 1})
	}
	require.True(t, m.Run(1<<40))
	return out.Data
}

// TestGolden compares instructions with recordings of an H200. A row is 256
// first operands; the normal test executes the conversions to f32 and a whole row
// of one form, and with TANDEM_EXHAUSTIVE=1 a row
// row of every form.
func TestGolden(t *testing.T) {
	all := os.Getenv("TANDEM_EXHAUSTIVE") == "1"
	f, err := os.Open("../../arith/testdata/arith-sm90.jsonl")
	require.NoError(t, err)
	defer f.Close()
	seen := 0
	for in := bufio.NewScanner(f); in.Scan(); {
		var line struct {
			DType, Op string
			Rows      []string
		}
		require.NoError(t, json.Unmarshal(in.Bytes(), &line))
		if line.Op == "to_f32" {
			seen++
			m, err := vm.Load("golden.ptx", []byte(head+kernel("k", row("cvt.f32."+line.DType+" %f2, %h2; st.b32 [%out], %f2; add.s64 %out, %out, 2; mov.b32 {%h3, %h4}, %f2; mov.b16 %h3, %h4;"))))
			require.NoError(t, err)
			mach := vm.New(vm.Options{})
			out := vm.NewStore(1<<18, 0, true)
			at := mach.Place(&vm.Region{Bytes: 1 << 18, Store: out})
			mach.Start(vm.Work{Kernel: m.Kernel("k"), Args: new(gpu.Args).Uint64(0).Uint64(0).Uint64(at).Uint64(0).Bytes(), Seq: 1})
			require.True(t, mach.Run(1<<40))
			require.Equal(t, line.Rows[0], fmt.Sprintf("%016x", fnv(fnvBasis, out.Data)))
			continue
		}
		form, ok := forms[line.Op]
		require.True(t, ok, line.Op)
		seen++
		if !all && (line.Op != "hadd" || line.DType != "bf16" || testing.Short()) {
			continue
		}
		m, err := vm.Load("golden.ptx", []byte(head+kernel("k", row(fmt.Sprintf(form, line.DType)))))
		require.NoError(t, err)
		g := (0x7C + 37*seen) & 0xFF
		h := uint64(fnvBasis)
		for a := 256 * g; a < 256*(g+1); a += 16 {
			data := golden(t, m.Kernel("k"), a, 16)
			for i := range 16 {
				h = fnv(h, binary.LittleEndian.AppendUint64(nil, fnv(fnvBasis, data[i<<17:(i+1)<<17])))
			}
		}
		require.Equal(t, line.Rows[g], fmt.Sprintf("%016x", h), "%s %s row %d", line.DType, line.Op, g)
	}
	require.Equal(t, 30, seen)
}
