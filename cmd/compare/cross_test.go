package main

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/conformance"
	"example.com/tandem/conformance/matrix"
)

// sidesOf finds the sides of two specs.
func sidesOf(t testing.TB, left, right string) (l, r conformance.Side) {
	t.Helper()
	a := &app{backends: backends()}
	l, r, err := a.sides(left, right)
	require.NoError(t, err)
	return l, r
}

// size is the greatest call of a test, in bytes of buffers.
func size(whole int64) int64 {
	if testing.Short() {
		return whole / 64
	}
	return whole
}

// TestRLKernelAgreesWithTandem: on every valid call of the class's the two
// fixed trees give the same bits; where it faults or refuses that is said.
func TestRLKernelAgreesWithTandem(t *testing.T) {
	for version, largest := range map[string]int64{"8ccb03c": size(5 << 18), "43f150f": 1 << 16} {
		l, r := sidesOf(t, "sim:rlkernel@"+version, "sim:tandem")
		cases, large := matrix.ExpandAll(matrix.For(l, r, matrix.Axes{MaxBytes: largest}), false)
		res, err := matrix.Run(context.Background(), l, r, cases, matrix.Options{})
		require.NoError(t, err)
		t.Logf("%s; %d cases are too large", res.Line(), large)
		require.Greater(t, res.Agree, 300)
		faults := 0
		for _, f := range res.Failures {
			require.Equal(t, api.CauseFault, f.Cause, "%s\n%s", f.Detail, f.Report.Repro)
			fault := f.Report.Left.Ranks[0].Fault
			for _, rank := range f.Report.Left.Ranks {
				if rank.Fault != nil {
					fault = rank.Fault
				}
			}
			require.Equal(t, api.FaultMisaligned, fault.Kind)
			require.Equal(t, api.BF16, f.Small.Call.DType)
			require.LessOrEqual(t, f.Small.Call.Count, int64(2), "%s", f.Small)
			faults += f.Calls
		}
		require.Positive(t, faults, "the pair store at an odd element")
		for _, why := range res.Refusals {
			require.Contains(t, why.Reason, "sim:rlkernel@"+version+": ", "only the class refuses")
		}
	}
}

// TestWithoutASwitchVersionsAgree: the request touches the NVLS paths only. What
// is left is the exchange, which the text of 2026 has for teams of a power of
// two only, and 3.4.5 for all.
func TestWithoutASwitchVersionsAgree(t *testing.T) {
	l, r := sidesOf(t, "sim:nvshmem@pr131?nvls=off", "sim:nvshmem@3.4.5?nvls=off")
	cases, large := matrix.ExpandAll(matrix.For(l, r, matrix.Axes{MaxBytes: size(1 << 18)}), false)
	res, err := matrix.Run(context.Background(), l, r, cases, matrix.Options{Checks: []api.Check{api.CheckValue, api.CheckLiveness, api.CheckRunToRun}, Repeats: 1})
	require.NoError(t, err)
	t.Logf("%s; %d cases are too large", res.Line(), large)
	exchanged := 0
	for _, f := range res.Failures {
		says := fmt.Sprintf("%s: %s %s: %s\n%s", f.Class, f.Check, f.Cause, f.Detail, f.Report.Repro)
		require.Contains(t, f.Report.Right.Evidence, "recexch", says)
		require.NotContains(t, f.Report.Left.Evidence, "recexch", says)
		require.Equal(t, 3, f.Small.Call.Ranks, says)
		require.Equal(t, api.CheckValue, f.Check)
		exchanged += f.Calls
	}
	require.Greater(t, res.Agree, 300)
	require.Less(t, exchanged, res.Agree/20)
	for _, why := range res.Refusals {
		require.True(t, strings.HasPrefix(why.Reason, "both sides fault: ") || strings.HasPrefix(why.Reason, l.String()+": "), why.Reason)
	}
}

// TestTandemKeepsItsPromises: all of them, on both modes, against itself on
// other grids and paths.
func TestTandemKeepsItsPromises(t *testing.T) {
	l, r := sidesOf(t, "sim:tandem", "sim:tandem?ctas=3&buffers=staged&placement=cyclic")
	cases, _ := matrix.ExpandAll(matrix.For(l, r, matrix.Axes{MaxBytes: size(1 << 13), Modes: []string{"", "f32"}}), false)
	res, err := matrix.Run(context.Background(), l, r, cases, matrix.Options{Checks: api.Checks(), Repeats: 1})
	require.NoError(t, err)
	t.Log(res.Line())
	for _, f := range res.Failures {
		t.Errorf("%s: %s %s in %d calls: %s\n%s", f.Class, f.Check, f.Cause, f.Calls, f.Detail, f.Report.Repro)
	}
	require.Greater(t, res.Agree, 300)
}
