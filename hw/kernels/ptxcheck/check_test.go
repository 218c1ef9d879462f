package ptxcheck

import (
	"bytes"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/hw/kernels"
)

func TestCommittedKernels(t *testing.T) {
	for i, p := range Check(kernels.Tandem) {
		if i < 30 {
			t.Error(p)
		}
	}
	ks, _ := Read(kernels.Tandem)
	require.Len(t, ks, 9)
	marks := map[string]int{}
	for _, k := range ks {
		for _, in := range k.Body {
			marks[in.Mark]++
		}
	}
	require.Positive(t, marks["release"])
	require.Positive(t, marks["acquire"])
}

// TestOrderingMutants: each way of losing an order that the compiler and ptxas
// accept is found.
func TestOrderingMutants(t *testing.T) {
	source := string(kernels.Tandem)
	replaceNth := func(s, old, to string, n int) string {
		at := 0
		for range n {
			i := strings.Index(s[at:], old)
			if i < 0 {
				return s
			}
			at += i + len(old)
		}
		i := strings.Index(s[at:], old)
		if i < 0 {
			return s
		}
		return s[:at+i] + to + s[at+i+len(old):]
	}
	mutants := map[string]struct{ old, to string }{
		"scope of a flag":        {"st.relaxed.sys.global.b64", "st.relaxed.gpu.global.b64"},
		"scope of a poll":        {"ld.relaxed.sys.global.v2.b64", "ld.relaxed.gpu.global.v2.b64"},
		"scope of a fence":       {"fence.acq_rel.sys", "fence.acq_rel.gpu"},
		"weak flag":              {"st.relaxed.sys.global.b64", "st.global.b64"},
		"volatile poll":          {"ld.relaxed.sys.global.b64", "ld.volatile.global.b64"},
		"scope of a counter":     {"atom.relaxed.sys.global.inc.u32", "atom.relaxed.gpu.global.inc.u32"},
		"line of four words":     {"st.relaxed.sys.global.v2.b64", "st.relaxed.sys.global.v4.b32"},
		"non-coherent load":      {"ld.global.v4.b32", "ld.global.nc.v4.b32"},
		"flush to zero":          {"add.rn.f32", "add.rn.ftz.f32"},
		"contractable addition":  {"add.rn.f32", "add.f32"},
		"stack":                  {".reg .b32", ".local .align 4 .b8 __local_depot0[8];\n\t.reg .b32"},
		"width of a line's half": {"st.relaxed.sys.global.v2.b64 [%rd", "st.relaxed.sys.global.v2.b64 [%r"},
	}
	for i, name := range slices.Sorted(maps.Keys(mutants)) {
		if testing.Short() && i%4 != 0 {
			continue // each reads 700 KB of PTX, which the race detector makes slow
		}
		m := mutants[name]
		mutant := replaceNth(source, m.old, m.to, 0)
		require.NotEqual(t, source, mutant, name)
		// A weak flag is found where it was marked as one.
		if name == "weak flag" {
			mutant = regexp.MustCompile(`st\.relaxed\.sys\.global\.b64 (.*//@release)`).ReplaceAllString(source, "st.global.b64 $1")
			require.NotEmpty(t, Check([]byte(mutant)), name)
			continue
		}
		require.NotEmpty(t, Check([]byte(mutant)), name)
	}
	// Every fence is there for a flag, before it is raised or after it was
	// awaited: each that is dropped is missed.
	fences := strings.Count(source, "fence.acq_rel.sys;\n")
	require.Positive(t, fences)
	step := 3
	if testing.Short() {
		step = 18
	}
	if os.Getenv("TANDEM_EXHAUSTIVE") != "" {
		step = 1
	}
	for n := 0; n < fences; n += step {
		require.NotEmpty(t, Check([]byte(replaceNth(source, "fence.acq_rel.sys;\n", "\n", n))), "fence %d of %d", n, fences)
	}
}

func TestReaderRefusesWhatItDoesNotKnow(t *testing.T) {
	head := ".version 8.4\n.target sm_90\n.address_size 64\n"
	kernel := func(body string) []byte {
		return []byte(head + ".visible .entry k(\n\t.param .u64 k_param_0\n)\n{\n\t.reg .pred %p<4>;\n\t.reg .b32 %r<4>;\n\t.reg .b64 %rd<4>;\n" + body + "\n\tret;\n}\n")
	}
	require.Empty(t, Check(kernel("\tld.param.b64 %rd1, [k_param_0];\n\tadd.s64 %rd2, %rd1, 8;")))
	for _, body := range []string{
		"\tadd.s64 %r1, %rd1, 8;", "\tadd.s64 %rd1, %rd1;", "\tbogus.s64 %rd1, %rd1;", "\t@%r1 add.s64 %rd1, %rd1, 1;",
		"\tld.global.b64 %rd1, [%r1];", "\tld.global.b64 %r1, [%rd1];", "\tst.global.b64 [%rd1], %r1;", "\t.shared .b32 x;",
		"\tst.relaxed.sys.global.b64 [%rd1], %rd2; //@release",
		"\tld.relaxed.sys.global.b64 %rd1, [%rd2]; //@acquire\n\tst.global.b64 [%rd2], %rd1;",
		"\tcall (%r1), f;",
	} {
		require.NotEmpty(t, Check(kernel(body)), body)
	}
	require.NotEmpty(t, Check(nil))
	require.NotEmpty(t, Check(bytes.Replace(kernel(""), []byte("sm_90"), []byte("sm_80"), 1)))
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(".visible .entry k(\n)\n{\n\tret;\n}\n"))
	f.Add([]byte("$L_brx_0: .branchtargets\n\t$L,\n"))
	f.Fuzz(func(t *testing.T, b []byte) { Check(b) })
}
