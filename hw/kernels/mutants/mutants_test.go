package mutants

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/hw/kernels"
	"example.com/tandem/hw/kernels/ptxcheck"
	"example.com/tandem/hw/tandem"
)

// TestEveryMutantHasItsPlace: on the kernels as they are, every edit changes
// something, no two do the same, and trials are calls.
func TestEveryMutantHasItsPlace(t *testing.T) {
	seen := map[string]string{string(kernels.Tandem): "none"}
	names, trials := map[string]bool{}, map[string]bool{}
	for _, m := range List(kernels.Tandem) {
		where, err := m.Kernels(kernels.Tandem)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, k := range where {
			text := string(m.Apply(kernels.Tandem, k))
			require.Empty(t, seen[text], "%s of %s is the same as another", m.Name, k)
			seen[text] = m.Name
		}
		require.False(t, names[m.Name], m.Name)
		names[m.Name] = true
		require.NotEmpty(t, m.Trials, m.Name)
		for _, trial := range m.Trials {
			require.NoError(t, trial.Call.Validate(), m.Name)
			_, err := api.ParseSpec("hw:" + tandem.Name + "?" + trial.Params)
			require.NoError(t, err)
			trials[fmt.Sprintf("%+v", trial)] = true
		}
	}
	t.Logf("%d mutants in %d modules, %d trials", len(names), len(seen)-1, len(trials))
}

// TestTheCheckCatches lists what the check of the PTX says of every mutant: it
// must find each that only loses an order.
func TestTheCheckCatches(t *testing.T) {
	require.Empty(t, ptxcheck.Check(kernels.Tandem))
	for i, m := range List(kernels.Tandem) {
		if testing.Short() && i%5 != 0 {
			continue // each reads the whole module, which the race detector makes slow
		}
		problems := ptxcheck.Check(m.Apply(kernels.Tandem, ""))
		said := "not caught"
		if len(problems) > 0 {
			said = problems[0].Text
		}
		t.Logf("%-14s %-40s %s", m.Kind, m.Name, said)
		if m.Kind == Order {
			require.NotEmpty(t, problems, m.Name)
		}
	}
}

// TestLost: an edit without a place is an error that says so.
func TestLost(t *testing.T) {
	m := Mutant{Name: "x", Edit: replace("no such instruction", "")}
	_, err := m.Kernels(kernels.Tandem)
	require.ErrorContains(t, err, `mutant "x" finds no place in any kernel`)
	m.Edit = replace(`(ret);`, "$1;")
	_, err = m.Kernels(kernels.Tandem)
	require.ErrorContains(t, err, "changes nothing")
}

// TestEdits: the edits on a text that fits the eye.
func TestEdits(t *testing.T) {
	body := "\tadd.f %b, %b, %c;\n\tadd.f %a, %a, %b;\n"
	got, n := leftToRight("add.f")(body)
	require.Equal(t, 1, n)
	require.Equal(t, "\tadd.f %a, %a, %b;\n\tmov.b32 %b, %c;\n\tadd.f %a, %a, %b;\n", got)

	body = "\tld.relaxed.sys.global.v2.b64 {%x, %y}, [%z];\n\tmov.b64 \t{_, %r1}, %x;\n\tsetp.eq.b32 \t%p1, %r9, %r1;\n\tmov.b64 \t{_, %r2}, %y;\n\tsetp.eq.b32 \t%p2, %r2, %r9;\n"
	got, n = alike(false)(body + body)
	require.Equal(t, 4, n)
	require.Equal(t, 2, strings.Count(got, "%p1, %r1, %r1;"))
	require.Equal(t, 2, strings.Count(got, "%p2, %r2, %r2;"))
	_, n = alike(true)(body)
	require.Zero(t, n)

	body = "\tor.b64 \t%h, %a, %b;\n\t@%p3 bra x;\n\tsetp.eq.b64 \t%p1, %h, %own;\n\tsetp.ne.b64 \t%p2, %h, %own;\n"
	got, n = sameHash()(body)
	require.Equal(t, 1, n)
	require.Contains(t, got, "%p1, %h, %h;\n\tsetp.ne.b64 \t%p2, %h, %own;")

	got, n = only(1, `x(\d)`, "y$1")("x1 x2 x3")
	require.Equal(t, 1, n)
	require.Equal(t, "x1 y2 x3", got)
	_, n = only(3, `x(\d)`, "y$1")("x1 x2 x3")
	require.Zero(t, n)

	got, n = after("mark", 2, "x", "y")("x mark\nx\nx mark x\n")
	require.Equal(t, 2, n)
	require.Equal(t, "x mark\ny\nx mark y\n", got)
}

// TestAlone leaves one kernel whole.
func TestAlone(t *testing.T) {
	all := kernelsOf(string(kernels.Tandem))
	name := all[len(all)-1].name
	text := Alone(kernels.Tandem, name)
	require.Less(t, len(text), len(kernels.Tandem)/2)
	require.Len(t, kernelsOf(string(text)), len(all))
	require.Equal(t, string(kernels.Tandem), string(Alone(kernels.Tandem, "")))
	read, problems := ptxcheck.Read(text)
	require.Empty(t, problems)
	for _, k := range read {
		require.Equal(t, k.Name != name, len(k.Body) == 1, k.Name)
	}
}
