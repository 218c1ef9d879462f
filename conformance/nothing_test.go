package conformance

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/conformance/inputs"
	"example.com/tandem/conformance/vectors"
)

// TestNothingCompared: agreement about no output at all is no agreement.
func TestNothingCompared(t *testing.T) {
	ctx := context.Background()
	none := (&fake{skip: func(*api.Call, int, int, int64) bool { return true }}).side()
	for _, c := range []struct {
		side Side
		call api.Call
		says string
	}{
		{(&fake{}).side(), allReduce(api.F32, 2, 0), "nothing was compared: the call has no elements"},
		{none, allReduce(api.F32, 2, 3), "nothing was compared: both sides left every output unwritten, all 6 of them"},
		{none, allReduce(api.F32, 1, 1), "nothing was compared: both sides left every output unwritten, of one"},
	} {
		_, err := Run(ctx, c.side, c.side, c.call)
		var nothing *NothingCompared
		require.ErrorAs(t, err, &nothing)
		require.ErrorIs(t, err, api.ErrInvalid)
		require.EqualError(t, err, c.says)
		rep := run(t, &Runner{}, c.side, c.side, c.call)
		require.True(t, rep.Holds(), "guards and sources do")
		require.EqualError(t, rep.Nothing(), c.says)
		require.Contains(t, string(text(t, rep)), "AGREE: no output was compared\n")
	}
	damage := (&fake{after: func(x *execution) { x.mem[1][0].Dst.Bytes[0] = 3 }}).side()
	rep, err := Run(ctx, damage, (&fake{}).side(), allReduce(api.F32, 2, 0))
	require.NoError(t, err, "an empty call that hits a guard is an answer")
	require.Equal(t, map[api.Cause]int64{api.CauseGuard: 1}, classes(rep))
}

// TestHolesOnBothSidesAreCounted, and are not among what was compared.
func TestHolesOnBothSidesAreCounted(t *testing.T) {
	holes := (&fake{skip: func(_ *api.Call, _, _ int, i int64) bool { return i >= 30 }}).side()
	rep, err := Run(context.Background(), holes, holes, allReduce(api.F32, 2, 32))
	require.NoError(t, err)
	require.Equal(t, int64(4), rep.Differing.Unwritten)
	require.Contains(t, string(text(t, rep)), "AGREE: the 60 outputs compared, of 64, hold the exact contract (equal bits)\n  4 are unwritten on both sides: nothing there was compared\n")
}

// TestASideWithoutABackend is a mistake of the caller's, not a crash.
func TestASideWithoutABackend(t *testing.T) {
	ctx, ok := context.Background(), (&fake{}).side()
	var invalid *api.InvalidError
	_, err := Run(ctx, Side{}, ok, allReduce(api.F32, 2, 3))
	require.ErrorAs(t, err, &invalid)
	require.ErrorContains(t, err, "left side has no backend")
	_, err = Run(ctx, ok, Side{}, allReduce(api.F32, 2, 3))
	require.ErrorContains(t, err, "right side has no backend")
	_, err = new(Runner).Record(ctx, Side{}, allReduce(api.F32, 2, 3))
	require.ErrorAs(t, err, &invalid)
	_, err = Replay(ctx, recording(t, vectors.Header{}), Side{})
	require.ErrorAs(t, err, &invalid)
}

// TestValuesOfSmallCalls are shown, agree or not, ranks that hold the same as
// one.
func TestValuesOfSmallCalls(t *testing.T) {
	named := values(0x4380, 0x3f80, 0x3f80, 0x3f80)
	rep := run(t, &Runner{Input: named}, (&fake{order: turned}).side(), (&fake{}).side(), allReduce(api.BF16, 4, 2))
	require.Contains(t, string(text(t, rep)), `
values
  ranks 0, 3, elements 0 to 1: left 0x4380 (256), right 0x4380 (256)
  ranks 1, 2, elements 0 to 1: left 0x4382 (260), right 0x4380 (256)
`)
	rep = run(t, &Runner{Input: named}, (&fake{}).side(), (&fake{}).side(), allReduce(api.BF16, 4, 4096))
	require.Contains(t, string(text(t, rep)), `
values
  ranks 0, 1, 2, 3, elements 0 to 7: left 0x4380 (256), right 0x4380 (256)
  the first 8 elements of 4096
`)
	rep = run(t, &Runner{Input: inputs.Input{Kind: inputs.Ones}}, (&fake{skip: func(_ *api.Call, _, _ int, i int64) bool { return i == 0 }}).side(), (&fake{}).side(), allReduce(api.U8, 1, 1))
	require.Contains(t, string(text(t, rep)), "all_reduce sum of u8, 1 rank x 1 element, on_stream")
	require.Contains(t, string(text(t, rep)), "\nvalues\n  rank 0: left nothing, right 0x01 (1)\n")
	require.Contains(t, string(text(t, rep)), "1 of 1 output breaks the exact contract")
	require.NotContains(t, string(text(t, run(t, &Runner{}, (&fake{}).side(), (&fake{}).side(), allReduce(api.BF16, 4, 9)))), "values\n")
}
