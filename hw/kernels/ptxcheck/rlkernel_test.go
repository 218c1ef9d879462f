package ptxcheck

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/hw/kernels"
)

func TestRLKernelModule(t *testing.T) {
	for i, p := range Check(kernels.RLKernel) {
		if i < 30 {
			t.Error(p)
		}
	}
	ks, _ := Read(kernels.RLKernel)
	var names []string
	marks := map[string]int{}
	for _, k := range ks {
		names = append(names, k.Name)
		for _, in := range k.Body {
			marks[in.Mark]++
		}
	}
	require.ElementsMatch(t, []string{"rl_fused_gather", "rl_fused_reduce", "rl_stage", "rl_finish", "rl_signal", "rl_copy", "rl_gather", "rl_reduce"}, names)
	require.Positive(t, marks["release"])
	require.Positive(t, marks["acquire"])
	require.NotContains(t, string(kernels.RLKernel), "add.f", "sums name their rounding")
}

// TestRLKernelFences: every fence is there for a counter, before it is raised or
// after it was awaited: each that is dropped is missed. Those of reports order
// strong stores only, and those of rl_signal the launches after it, which the
// check does not follow.
func TestRLKernelFences(t *testing.T) {
	text := string(kernels.RLKernel)
	signal := strings.Index(text, "rl_signal(")
	signal, end := strings.Count(text[:signal], "fence.acq_rel.sys;\n"), strings.Count(text[:signal+strings.Index(text[signal:], "\n}\n")], "fence.acq_rel.sys;\n")
	parts := strings.SplitAfter(text, "fence.acq_rel.sys;\n")
	report := regexp.MustCompile(`^(\t(add|mov)\..*\n)*\tst\.relaxed\.sys\.global\.b32 .*//@release\n`)
	counters := 0
	for n := range len(parts) - 1 {
		if report.MatchString(parts[n+1]) || n >= signal && n < end {
			continue
		}
		counters++
		if testing.Short() && n%8 != 0 {
			continue
		}
		mutant := strings.Join(parts[:n], "") + strings.TrimSuffix(parts[n], "fence.acq_rel.sys;\n") + strings.Join(parts[n+1:], "")
		require.NotEmpty(t, Check([]byte(mutant)), "fence %d of %d", n, len(parts)-1)
	}
	require.Greater(t, counters, 10)
	require.Less(t, counters, len(parts)-1)
}
