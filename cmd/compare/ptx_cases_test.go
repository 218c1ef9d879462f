package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/conformance"
	"example.com/tandem/conformance/inputs"
	"example.com/tandem/hw"
	"example.com/tandem/sim"
	"example.com/tandem/sim/ptx"
	"example.com/tandem/sim/tandem"
)

// TestPTXBroadcastInTwoShots: the root's own slice is written once, before
// others read it; written again it raced with lines that they read.
func TestPTXBroadcastInTwoShots(t *testing.T) {
	withoutRaceDetector(t)
	d := ptx.Open(ptx.Options{Devices: 3, Seed: 1})
	h := hw.New("ptx", d)
	var r conformance.Runner
	r.Exact, r.Input.Kind = true, inputs.Values
	for _, c := range []struct {
		ranks    int
		count    int64
		src, dst api.Offsets
	}{{2, 9, api.Offsets{1}, api.Offsets{8}}, {2, 300, nil, nil}, {3, 301, api.Offsets{0, 1, 3}, api.Offsets{1, 0, 8}}} {
		for root := range c.ranks {
			call := api.Call{Collective: api.Broadcast, DType: api.BF16, Ranks: c.ranks, Root: root, Count: c.count, SrcOffset: c.src, DstOffset: c.dst}
			r.Input.Values = []uint64{0x1, 0x3f81, 0x8000}[:c.ranks]
			rep, err := r.Run(t.Context(), side(t, sim.New(tandem.Family{}), "sim:tandem"), side(t, h, "ptx:tandem?path=two_shot"), call)
			require.NoError(t, err, "%s", call)
			require.Equal(t, conformance.Agree, rep.Verdict, "%s", call)
		}
	}
	require.NoError(t, r.Close(t.Context()))
	require.NoError(t, h.Close())
	require.NoError(t, d.Close())
}
