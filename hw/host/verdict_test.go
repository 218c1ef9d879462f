package host

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
)

// TestVerdicts: who is to blame, for each rank's report.
func TestVerdicts(t *testing.T) {
	waits := func(peer int, far uint64) Report {
		return Report{Reason: Deadline, Peer: peer, Far: far, At: "the data", Call: 7, Block: -1}
	}
	let := func(peer int, far uint64) Report {
		r := waits(peer, far)
		r.Reason = Aborted
		return r
	}
	killed := Report{Reason: Killed, Peer: 0, At: "the headers", Call: 7}
	c := call(3)
	for name, c := range map[string]struct {
		reports []Report
		chains  [][]int
	}{
		"one is late":                  {[]Report{waits(1, 0), {}}, [][]int{{0, 1}, {1, 0, 1}}},
		"a rank that never came":       {[]Report{waits(2, 0), let(2, 0), {}}, [][]int{{0, 2}, {1, 2}, {2, 0, 2}}},
		"a chain":                      {[]Report{waits(1, 3), let(2, 3), {}}, [][]int{{0, 1, 2}, {1, 2}, {2, 0, 1, 2}}},
		"one was stopped":              {[]Report{waits(1, 0), killed, let(1, 0)}, [][]int{{0, 1}, {1}, {2, 1}}},
		"it came after all":            {[]Report{waits(1, 0), let(0, 1)}, [][]int{{0, 1}, {1, 0, 1}}},
		"it got no further":            {[]Report{waits(1, 1), let(2, 1), {}}, [][]int{{0, 1, 2}, {1, 2}, {2, 0, 1, 2}}},
		"a cycle":                      {[]Report{waits(1, 0), waits(0, 0)}, [][]int{{0, 1, 0}, {1, 0, 1}}},
		"a peer that there is not":     {[]Report{waits(9, 0), {}}, [][]int{{0}, {1, 0}}},
		"itself":                       {[]Report{waits(0, 0), {}}, [][]int{{0}, {1, 0}}},
		"the first to wait is no help": {[]Report{{}, waits(0, 0)}, [][]int{{0, 1, 0}, {1, 0}}},
	} {
		call := call(3)
		errs := Verdicts(c.reports, &call)
		require.Len(t, errs, len(c.reports), name)
		for r, err := range errs {
			var a *api.Aborted
			require.ErrorAs(t, err, &a, name)
			require.Equal(t, c.chains[r], a.Chain, "%s, rank %d", name, r)
			require.Equal(t, c.chains[r][len(c.chains[r])-1], a.Cause, name)
			require.Equal(t, r, a.Rank, name)
		}
	}
	require.Nil(t, Verdicts(make([]Report, 4), &c))
}

// TestVerdictWords: what errors say of each reason.
func TestVerdictWords(t *testing.T) {
	c := call(3)
	at := func(why Reason) []Report {
		return []Report{{}, {Reason: why, At: "a barrier", Call: 9, Block: 4, Hash: 0xab}}
	}
	for why, says := range map[Reason]string{
		Deadline: "aborted on rank 0: the deadline passed at a barrier of call 9, in block 4 (rank 0 is to blame)",
		Claimed:  "two calls of one team ran at once on rank 1",
		Stopped:  "the host stopped the call",
		Killed:   "the rank was stopped at a barrier of call 9 (rank 1 is to blame)",
		Differs:  "a call with hash 00000000000000ab",
	} {
		require.ErrorContains(t, Verdicts(at(why), &c)[0], says)
	}
	none := at(Deadline)
	none[1].Block = -1
	require.NotContains(t, Verdicts(none, &c)[0].Error(), "block")
	var m *api.Mismatch
	require.ErrorAs(t, Verdicts(at(Differs), &c)[0], &m)
	require.Equal(t, api.Mismatch{Rank: 1, Other: 0, Call: Same(&c), OtherCall: m.OtherCall, CallHash: Hash(&c), OtherHash: 0xab}, *m)
}

// TestReport: every word of a report is read from its place.
func TestReport(t *testing.T) {
	h := gpu.HostMemory{Bytes: make([]byte, ReportBytes)}
	h.Store32(ReportFault, uint32(Differs))
	h.Store32(ReportStep, 0x0305)
	h.Store64(ReportEpoch, 1<<40)
	h.Store32(ReportPeer, 6)
	h.Store32(ReportBlock, 7)
	h.Store64(ReportHash, 1<<50)
	r := ReadReport(h, func(step, barrier uint32) (string, uint64) {
		require.Equal(t, []uint32{5, 3}, []uint32{step, barrier})
		return "there", 11
	})
	require.Equal(t, Report{Reason: Differs, Peer: 6, Call: 1 << 40, At: "there", Block: 7, Hash: 1 << 50, Far: 11}, r)
	StopKernels([]Page{{Host: h}})
	require.EqualValues(t, Stopped, h.Load32(ReportStop))
}
