package ptxcheck

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func overlapping(t *testing.T, body string) []Problem {
	return Check([]byte(".version 8.4\n.target sm_90\n.address_size 64\n.visible .entry k(\n)\n{\n.reg .b64 %rd<4>;\n.reg .b32 %r<4>;\n.reg .pred %p<2>;\n" + body + "}\n"))
}

// TestOverlap is the rule on small kernels: line 10 is the first of a body.
func TestOverlap(t *testing.T) {
	const poll = "ld.relaxed.sys.global.b32 %r0, [%rd0];\n"
	for name, c := range map[string]struct {
		body string
		line int // of the problem, 0 for none
	}{
		"no overlap":            {body: "st.global.b32 [%rd0], %r1;\nret;\n"},
		"after the wait":        {body: poll + awaits + ";\n" + lets + ";\nst.global.b32 [%rd0], %r1;\nret;\n"},
		"a store before":        {body: poll + "st.relaxed.sys.global.b32 [%rd0], %r1;\n" + awaits + ";\nret;\n", line: 11},
		"a load before":         {body: "ld.global.b32 %r0, [%rd0];\n" + awaits + ";\nret;\n", line: 10},
		"an atomic before":      {body: "atom.relaxed.sys.global.exch.b32 %r0, [%rd0], %r1;\n" + awaits + ";\nret;\n", line: 10},
		"the next before":       {body: lets + ";\n" + awaits + ";\nret;\n", line: 10},
		"no wait":               {body: poll + lets + ";\nret;\n", line: 11},
		"a guarded wait":        {body: "setp.eq.b32 %p0, %r0, %r1;\n@%p0 " + awaits + ";\nst.global.b32 [%rd0], %r1;\nret;\n", line: 12},
		"a way around the wait": {body: "setp.eq.b32 %p0, %r0, %r1;\n@%p0 bra $L1;\n" + awaits + ";\n$L1:\nst.global.b32 [%rd0], %r1;\nret;\n", line: 14},
		"a way out":             {body: "setp.eq.b32 %p0, %r0, %r1;\n@%p0 bra $L1;\n" + awaits + ";\nst.global.b32 [%rd0], %r1;\n$L1:\nret;\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var lines []int
			for _, p := range overlapping(t, c.body) {
				require.Contains(t, p.Text, "before", "%v", p)
				lines = append(lines, p.Line)
			}
			if c.line == 0 {
				require.Empty(t, lines)
			} else {
				require.Equal(t, []int{c.line}, lines)
			}
		})
	}
}

// TestNoWaitIsFound drops each wait of the committed kernels.
func TestNoWaitIsFound(t *testing.T) {
	ptx, err := os.ReadFile("../tandem.ptx")
	require.NoError(t, err)
	kernels, _ := Read(ptx)
	lines := strings.SplitAfter(string(ptx), "\n")
	n := 0
	for _, k := range kernels {
		for _, x := range k.Body {
			if x.Form != awaits {
				continue
			}
			n++
			old := lines[x.Line-1]
			lines[x.Line-1] = strings.Replace(old, awaits+";", "", 1)
			require.NotEmpty(t, Check([]byte(strings.Join(lines, ""))), "%s without its wait in line %d", k.Name, x.Line)
			lines[x.Line-1] = old
		}
	}
	require.GreaterOrEqual(t, n, 4, "the kernels of small calls, and those with faults, wait")
}
