package conformance

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
)

// TestAnUnstableSideOwesNothing: bits that were equal by chance in one of two
// runs are no agreement, whichever side it was.
func TestAnUnstableSideOwesNothing(t *testing.T) {
	moving := func() Side { // right in the first run, another in the second
		return (&fake{blind: true, value: func(x *execution, rank, _ int, i int64, _ []uint64, v uint64) uint64 {
			if rank == 0 && i == 70 {
				return v + uint64(x.run)
			}
			return v
		}}).side()
	}
	for _, sides := range [][2]Side{{moving(), (&fake{}).side()}, {(&fake{}).side(), moving()}} {
		rep := run(t, &Runner{}, sides[0], sides[1], allReduce(api.U32, 2, 200))
		require.Equal(t, Diverge, rep.Verdict)
		require.Equal(t, []int64{1, 0}, rep.Differing.PerRank)
		require.Equal(t, map[api.Cause]int64{api.CauseStale: 1}, classes(rep))
	}
}

// TestRanksThatWroteDifferentPartsDisagree, also where what they hold is the same
// bits: poison is not a value, even where it looks like one.
func TestRanksThatWroteDifferentPartsDisagree(t *testing.T) {
	partly := (&fake{
		skip:  func(_ *api.Call, rank, _ int, i int64) bool { return rank == 1 && i == 5 },
		value: func(*execution, int, int, int64, []uint64, uint64) uint64 { return 0xff },
	}).side()
	rep := run(t, &Runner{}, partly, (&fake{}).side(), allReduce(api.U8, 2, 9))
	require.False(t, *rep.RankAgreement.Left)
	require.True(t, *rep.RankAgreement.Right)
}

// TestTwoNaNsAreNoDistance apart, and neither are two zeros.
func TestTwoNaNsAreNoDistance(t *testing.T) {
	require.Equal(t, 0, bucket(api.F32, 0x7fc00000, 0x7fffffff))
	require.Equal(t, 0, bucket(api.BF16, 0x7fc1, 0xffff))
	require.Equal(t, 0, bucket(api.BF16, 0, 0x8000))
	require.Equal(t, buckets-1, bucket(api.BF16, 0x7fc0, 0x3f80))
	require.Equal(t, 1, bucket(api.BF16, 0x3f80, 0x3f81))
}
