package inswitch

import (
	"fmt"
	"slices"

	"example.com/tandem/api"
	"example.com/tandem/hw/host"
)

// report is what a rank's kernel left behind when it gave up.
type report struct {
	reason  uint32
	step    Step
	barrier uint32 // its number in the call
	peer    int
	block   uint32
	epoch   uint64
	hash    uint64
}

func (t *Team) report(rank int) report {
	h := t.pages[rank].Host
	step := h.Load32(reportStep)
	return report{reason: h.Load32(reportFault), step: Step(step & 0xff), barrier: step >> 8, peer: int(h.Load32(reportPeer)),
		block: h.Load32(reportBlock), epoch: h.Load64(reportEpoch), hash: h.Load64(reportHash)}
}

// Verdicts reads the reports; nil if all ranks ended well.
func (t *Team) Verdicts(call *api.Call) []error {
	reports := make([]report, len(t.pages))
	failed := false
	for r := range reports {
		reports[r] = t.report(r)
		failed = failed || reports[r].reason != reasonFine
	}
	if !failed {
		return nil
	}
	out := make([]error, len(reports))
	for r := range reports {
		out[r] = verdict(r, reports, call)
	}
	return out
}

func verdict(rank int, reports []report, call *api.Call) error {
	for r, p := range reports {
		switch p.reason {
		case reasonDiffers:
			return &api.Mismatch{Rank: r, Other: p.peer, Call: host.Same(call), OtherCall: fmt.Sprintf("a call with hash %016x", p.hash), CallHash: host.Hash(call), OtherHash: p.hash}
		case reasonClaimed:
			return &api.Aborted{Rank: rank, Cause: r, Chain: []int{rank, r}, Reason: fmt.Sprintf("two calls of one team ran at once on rank %d, as on two streams", r)}
		case reasonStopped:
			return &api.Aborted{Rank: rank, Cause: -1, Reason: "the host stopped the call"}
		}
	}
	start := rank
	if reports[rank].reason == reasonFine {
		start = slices.IndexFunc(reports, func(p report) bool { return p.reason != reasonFine })
	}
	chain, what := blame(start, reports)
	if start != rank {
		chain = append([]int{rank}, chain...)
	}
	return &api.Aborted{Rank: rank, Cause: chain[len(chain)-1], Chain: chain, Reason: what}
}

// further reports whether a rank got further in the call than another.
func (p report) further(q report) bool {
	return p.step > q.step || p.step == q.step && p.barrier > q.barrier
}

// blame follows who waits for whom from a rank that reported, to one that waits
// for nobody, that came after all, or that was met before.
func blame(rank int, reports []report) (chain []int, what string) {
	first := reports[rank]
	if first.reason == reasonKilled {
		return []int{rank}, fmt.Sprintf("the rank was stopped at %s of call %d", first.step, first.epoch)
	}
	what = fmt.Sprintf("the deadline passed at %s of call %d, in block %d", first.step, first.epoch, first.block)
	for {
		chain = append(chain, rank)
		p := reports[rank]
		if p.reason == reasonFine || p.peer == rank || p.peer >= len(reports) {
			return chain, what
		}
		if q := reports[p.peer]; slices.Contains(chain, p.peer) || q.reason == reasonAborted && q.further(p) {
			return append(chain, p.peer), what
		}
		rank = p.peer
	}
}
