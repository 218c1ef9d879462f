package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
	"example.com/tandem/conformance"
	"example.com/tandem/sim"
	"example.com/tandem/sim/nvshmem"
)

// TestNativeDirections: cascade's multimem instructions on a virtual machine with
// a switch, under every direction and in every version, hold the simulator's bits
// and leave its holes; seeded directions are keyed by the element on both sides.
func TestNativeDirections(t *testing.T) {
	withoutRaceDetector(t)
	for _, env := range gpu.MulticastOffEnv() {
		name, _, _ := strings.Cut(env, "=")
		t.Setenv(name, "")
	}
	model := sim.New(nvshmem.Family{})
	for i, dir := range []string{"rz", "rne", "away", "seeded&seed=9"} {
		for k, version := range []string{"2dca770", "pr131", "pr131-team", "pr131-tail"} {
			if testing.Short() && i != k {
				continue
			}
			b := new(ptxBackend)
			left, err := api.ParseSpec("sim:nvshmem@" + version + "?dir=" + dir)
			require.NoError(t, err)
			right, err := api.ParseSpec("ptx:cascade@" + version + "?multicast=on&threads=32&dir=" + dir)
			require.NoError(t, err)
			r := conformance.Runner{Exact: true}
			for _, call := range []api.Call{
				{DType: api.BF16, Count: 500, Ranks: 2}, {DType: api.F16, Count: 2056, Ranks: 2, InPlace: api.InPlaceOwn},
				{DType: api.BF16, Count: 2052, Ranks: 2, SrcOffset: api.Offsets{2}, DstOffset: api.Offsets{2}}, {DType: api.F32, Count: 301, Ranks: 2},
			} {
				call.Collective, call.Op = api.AllReduce, api.Sum
				rep, err := r.Run(t.Context(), conformance.Side{Backend: model, Spec: left}, conformance.Side{Backend: b, Spec: right}, call)
				require.NoError(t, err)
				require.Equal(t, conformance.Agree, rep.Verdict, "%v %v: %+v", right, &call, rep.First)
				if call.InPlace == api.OutOfPlace { // in place the kernels' side cannot know
					require.Equal(t, rep.Left.Ranks[0].Unwritten, rep.Right.Ranks[0].Unwritten, "%v %v", right, &call)
				}
			}
			require.NoError(t, r.Close(t.Context()))
			require.NoError(t, b.Close())
		}
	}
}
