package ptxcheck

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/hw/kernels"
)

// switchModules are the modules whose memory has multicast addresses.
var switchModules = map[string][]byte{
	"nvls": kernels.NVLS, "nvls_emulated": kernels.NVLSEmulated, "cascade": kernels.Cascade, "cascade_emulated": kernels.CascadeEmulated,
}

func TestSwitchModules(t *testing.T) {
	for name, text := range switchModules {
		for i, p := range Check(text) {
			if i < 10 {
				t.Error(name, p)
			}
		}
		ks, _ := Read(text)
		require.Len(t, ks, map[bool]int{true: 2, false: 1}[strings.HasPrefix(name, "nvls")], name)
		for _, k := range ks {
			require.True(t, k.aliased(), k.Name)
		}
		require.Equal(t, !strings.Contains(name, "emulated"), strings.Contains(string(text), "multimem."), name)
	}
}

// TestAliasFences: every alias fence, and every fence beside one, that is dropped
// is missed, but for those of reports, which no multicast address reaches. A pair
// the other way round is missed too.
func TestAliasFences(t *testing.T) {
	for name, module := range switchModules {
		if testing.Short() && name != "nvls" {
			continue
		}
		text := string(module)
		for _, drop := range []string{"\tfence.proxy.alias;\n", "\tfence.acq_rel.sys;\n"} {
			parts := strings.SplitAfter(text, drop)
			found, step := 0, 1
			if testing.Short() {
				step = 3
			}
			for n := 0; n < len(parts)-1; n += step {
				mutant := strings.Join(parts[:n], "") + strings.TrimSuffix(parts[n], drop) + strings.Join(parts[n+1:], "")
				if report(parts[n+1]) {
					continue
				}
				require.NotEmpty(t, Check([]byte(mutant)), "%s: fence %d of %d:%s", name, n, len(parts)-1, drop)
				found++
			}
			require.Positive(t, found, name)
		}
		for _, pair := range []string{"\tfence.proxy.alias;\n\tfence.acq_rel.sys;\n", "\tfence.acq_rel.sys;\n\tfence.proxy.alias;\n"} {
			halves := strings.SplitAfter(pair, "\n")
			require.Contains(t, text, pair)
			require.NotEmpty(t, Check([]byte(strings.ReplaceAll(text, pair, halves[1]+halves[0]))), "%s: turned round", name)
		}
	}
}

// report says whether a fence is followed by the flag of a report.
func report(rest string) bool {
	lines := strings.SplitN(rest, "\n", 8)
	for _, l := range lines[:min(6, len(lines))] {
		switch {
		case strings.Contains(l, "//@release"):
			return strings.Contains(l, "st.relaxed.sys.global.b32")
		case strings.Contains(l, "fence."), strings.Contains(l, "add."), strings.Contains(l, "mov."):
		default:
			return false
		}
	}
	return false
}

// TestMultimemForms: forms that do not exist, or that have no order, are refused.
func TestMultimemForms(t *testing.T) {
	text := string(kernels.NVLS)
	for _, m := range [][2]string{
		{"ld_reduce.relaxed.sys.global.add.acc::f32.v4.bf16x2", "ld_reduce.global.add.acc::f32.v4.bf16x2"},
		{"ld_reduce.relaxed.sys.global.add.acc::f32.v4.bf16x2", "ld_reduce.relaxed.gpu.global.add.acc::f32.v4.bf16x2"},
		{"ld_reduce.relaxed.sys.global.add.acc::f32.v4.bf16x2", "ld_reduce.relaxed.sys.global.add.v4.bf16x2"},
		{"ld_reduce.relaxed.sys.global.min.v4.bf16x2", "ld_reduce.relaxed.sys.global.min.acc::f32.v4.bf16x2"},
		{"ld_reduce.relaxed.sys.global.add.u64", "ld_reduce.relaxed.sys.global.add.s64"},
		{"ld_reduce.relaxed.sys.global.add.f64", "ld_reduce.relaxed.sys.global.min.f64"},
		{"st.relaxed.sys.global.v4.bf16x2", "st.global.v4.bf16x2"},
	} {
		mutant := strings.ReplaceAll(text, m[0], m[1])
		require.NotEqual(t, text, mutant, m[0])
		require.NotEmpty(t, Check([]byte(mutant)), m[1])
	}
}
