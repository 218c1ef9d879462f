package conformance

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
	"example.com/tandem/conformance/internal/exact"
)

// TestSwitchSet has the measured ends of a switch's window (probe vectors C of
// nvls_rounding.md): a sum below 2^(anchor-38) reads +0, or is itself.
func TestSwitchSet(t *testing.T) {
	for _, c := range []struct {
		d    api.DType
		in   []uint64
		got  uint64
		want verdictOf
	}{
		{api.BF16, []uint64{0x3F80, 0xBF80, 0x2C00, 0}, 0, inside},             // e 0, residue 2^-39
		{api.BF16, []uint64{0x3F80, 0xBF80, 0x2C80, 0}, 0, outside},            // 2^-38
		{api.BF16, []uint64{0x4000, 0xC000, 0x3400, 0}, 0, inside},             // e 1: anchor 16, 2^-23
		{api.BF16, []uint64{0x4000, 0xC000, 0x3480, 0}, 0, outside},            // 2^-22
		{api.BF16, []uint64{0x4780, 0xC780, 0x3400, 0}, 0, inside},             // e 16 behaves as e 1
		{api.BF16, []uint64{0x4800, 0xC800, 0x3C00, 0}, 0, inside},             // e 17: anchor 32, 2^-7
		{api.BF16, []uint64{0x4800, 0xC800, 0x3C80, 0}, 0, outside},            // 2^-6
		{api.BF16, []uint64{0x3780, 0xB780, 0x2480, 0}, 0, outside},            // e -16: anchor -16, 2^-54
		{api.F16, []uint64{0x4000, 0xC000, 0x0002, 0}, 0, inside},              // 2^-23
		{api.F16, []uint64{0x4000, 0xC000, 0x0004, 0}, 0, outside},             // 2^-22
		{api.F32, []uint64{0x3f800000, 0xbf800000, 0x14000000, 0}, 0, inside},  // 2^-87
		{api.F32, []uint64{0x3f800000, 0xbf800000, 0x14800000, 0}, 0, outside}, // 2^-86
		{api.BF16, []uint64{0x8000, 0x8000}, 0, inside},                        // no -0
		{api.BF16, []uint64{0x8000, 0x8000}, 0x3f80, outside},
		{api.BF16, []uint64{0x3F80, 0xBF80, 0x2C00, 0}, 0x3f80, outside},
		{api.BF16, []uint64{0x7F80, 0x3F80}, 0, outside},                      // an infinity is no matter of windows
		{api.BF16, []uint64{0x3F80, 0xBF80, 0x2D7F, 0}, 0x2D00, undecided},    // bits below 2^-38 may be cut
		{api.BF16, []uint64{0x3F80, 0xBF80, 0x3F80, 0x2D7F}, 0x2D00, outside}, // but not near the anchor
		{api.F32, []uint64{0x3f800000, 0xbf800000, 0x147fffff, 0}, 0, inside},
	} {
		require.Equal(t, c.want, switchSet(c.d, c.in, exact.NewSum(c.d).Set(c.in), c.got), "%v %x -> %x", c.d, c.in, c.got)
	}
}

// nvls is a planned fake whose two halves are done in a switch and stepwise.
func nvls(f *fake) *planned {
	f.value = func(x *execution, rank, lane int, i int64, in []uint64, v uint64) uint64 {
		if i < x.call.Count/2 {
			return v
		}
		return num.Eval(x.call.Lane(lane).DType, num.Scheme{Op: x.call.Op}, in)
	}
	return &planned{f, func(call api.Call) (*api.Plan, error) {
		half := call.Count / 2
		return &api.Plan{
			Kernels: []api.Kernel{{CTAs: []api.CTA{
				{CTA: 0, Count: half, Algorithm: "two_shot", Slices: []api.Slice{{Rank: 0, Count: half}}},
				{CTA: 1, Start: half, Count: call.Count - half, Algorithm: "segment"},
			}}},
			Algorithms: map[string]api.Algorithm{
				"two_shot": {Evidence: api.Reported, Contract: api.Faithful},
				"segment":  {Evidence: api.Recorded, Contract: api.Exact},
			},
		}, nil
	}}
}

func exactly(r num.Rounding) *fake { return &fake{scheme: num.Scheme{Acc: num.AccExact, Last: r}} }

// TestFaithfulElements: in the half that the plans say is faithful either
// neighbour will do, in the other one bits must be equal.
func TestFaithfulElements(t *testing.T) {
	down, up := nvls(exactly(num.TowardZero)), nvls(exactly(num.AwayFromZero))
	rep := run(t, &Runner{}, down.side(), up.side(), allReduce(api.BF16, 4, 4000))
	require.Equal(t, Agree, rep.Verdict)
	require.Equal(t, api.Faithful, rep.Contract)
	require.Zero(t, rep.Differing.Elements)
	require.Greater(t, rep.Differing.InSwitch, int64(2000))
	require.Equal(t, map[string]api.Evidence{"two_shot": api.Reported, "segment": api.Recorded}, rep.Left.Evidence)
	require.Equal(t, rep.Differing.InSwitch, rep.ULPHistogram[1])
	require.Equal(t, int64(16000), rep.ULPHistogram[0]+rep.ULPHistogram[1])

	rep = run(t, &Runner{Exact: true}, down.side(), up.side(), allReduce(api.BF16, 4, 4000))
	require.Equal(t, Diverge, rep.Verdict)
	require.Equal(t, api.Exact, rep.Contract)
	require.Zero(t, rep.Differing.InSwitch)
	require.Equal(t, map[api.Cause]int64{api.CauseRounding: rep.Differing.Elements}, classes(rep))
	require.Contains(t, rep.Repro, " --contract exact")

	// The stepwise half differs from a switch that did it all.
	rep = run(t, &Runner{}, down.side(), exactly(num.TowardZero).side(), allReduce(api.BF16, 4, 4000))
	require.Equal(t, Diverge, rep.Verdict)
	for _, g := range rep.Ranges {
		require.GreaterOrEqual(t, g.Start, int64(2000))
	}
	require.Equal(t, map[api.Cause]int64{api.CauseAccumulator: rep.Differing.Elements}, classes(rep))

	// min and max are exact whatever a plan says.
	rep = run(t, &Runner{}, down.side(), up.side(), call(api.AllReduce, api.BF16, api.Max, 4, 4000))
	require.Equal(t, api.Exact, rep.Contract)
}

// TestEqualIsNotEnough: two sides that agree on a value that is no neighbour
// break the faithful contract.
func TestEqualIsNotEnough(t *testing.T) {
	weak := (&fake{impl: api.Implementation{Name: "plain", Contract: api.Faithful}}).side()
	rep := run(t, &Runner{}, weak, weak, allReduce(api.BF16, 4, 4096))
	require.Equal(t, Diverge, rep.Verdict)
	require.Equal(t, map[api.Cause]int64{api.CauseAccumulator: rep.Differing.Elements}, classes(rep))
	require.Contains(t, rep.Causes[0].Explanation, "both sides: in rank order")
	require.Equal(t, rep.Differing.Elements, rep.Left.Ranks[0].NotFaithful*4)
}

func TestUndecidedIsNeither(t *testing.T) {
	in := values(0x3F80, 0xBF80, 0x2D7F, 0)
	cut := &fake{value: func(*execution, int, int, int64, []uint64, uint64) uint64 { return 0x2D00 }, impl: api.Implementation{Name: "plain", Contract: api.Faithful}}
	rep := run(t, &Runner{Input: in}, cut.side(), (&fake{}).side(), allReduce(api.BF16, 4, 3))
	require.Equal(t, Agree, rep.Verdict)
	require.Equal(t, int64(12), rep.Differing.Undecided)
	require.Equal(t, int64(12), rep.Differing.InSwitch)
}

func TestHistogramBuckets(t *testing.T) {
	base := uint64(0x3f800000)
	for ulps, want := range map[uint64]int{1: 1, 2: 2, 3: 3, 4: 3, 5: 4, 8: 4, 9: 5, 1 << 15: 16, 1<<15 + 1: 17, 1 << 20: 17} {
		require.Equal(t, want, bucket(api.F32, base, base+ulps), "%d", ulps)
	}
	require.Equal(t, 0, bucket(api.F32, 0, 0x80000000), "zeros")
	require.Equal(t, 17, bucket(api.F32, base, 0x7fc00000), "a NaN")
	require.Equal(t, 17, bucket(api.F32, base, 0x7f800000), "an infinity")
	require.Len(t, bucketTops(), buckets)
}

func TestCompress(t *testing.T) {
	for _, c := range []struct {
		in   []int64
		want string
	}{
		{nil, "[]"},
		{[]int64{5}, "5+1x1"},
		{[]int64{5, 6, 7, 8}, "5+1x4"},
		{[]int64{5, 9}, "5+1x1 9+1x1"},
		{[]int64{5, 9, 13}, "5+4x3"},
		{[]int64{5, 10, 11, 12}, "5+1x1 10+1x3"},
		{[]int64{0, 1, 10, 11, 20, 21}, "0+1x2 10+1x2 20+1x2"},
		{[]int64{1, 3, 5, 6, 7}, "1+2x3 6+1x2"},
	} {
		var got string
		for _, r := range compress(c.in) {
			got += fmt.Sprintf(" %d+%dx%d", r.Start, r.Stride, r.Count)
		}
		if got == "" {
			got = " []"
		}
		require.Equal(t, " "+c.want, got)
	}
}
