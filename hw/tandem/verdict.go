package tandem

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

func (e *Engine) report(rank int) report {
	h := e.pages[rank].Host
	step := h.Load32(reportStep)
	return report{reason: h.Load32(reportFault), step: Step(step & 0xff), barrier: step >> 8, peer: int(h.Load32(reportPeer)),
		block: h.Load32(reportBlock), epoch: h.Load64(reportEpoch), hash: h.Load64(reportHash)}
}

// Stop ends running kernels at their next look at the clock.
func (e *Engine) Stop() {
	for _, p := range e.pages {
		p.Host.Store32(reportStop, reasonStopped)
	}
}

// Verdicts reads the reports. A rank without one ended well, unless somebody
// waited for it in vain.
func (e *Engine) Verdicts(call *api.Call) []error {
	reports := make([]report, len(e.pages))
	failed := false
	for r := range reports {
		reports[r] = e.report(r)
		reports[r].hash -= e.config.row(call.Ranks).hash()
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
			own := host.Same(call)
			return &api.Mismatch{Rank: r, Other: p.peer, Call: own, OtherCall: fmt.Sprintf("a call with hash %016x", p.hash), CallHash: host.Hash(call), OtherHash: p.hash}
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

// after reports whether a rank got further in the call than another.
func (p report) after(q report) bool {
	at := func(r report) uint64 {
		switch r.step {
		case StepBarrier:
			return 2 + uint64(r.barrier)
		case StepData:
			return 1
		}
		return 0
	}
	return at(p) > at(q)
}

// blame follows who waits for whom from a rank that reported, to one that waits
// for nobody or that was met before.
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
		if q := reports[p.peer]; q.reason == reasonAborted && q.after(p) {
			// It came after all, and then found the team poisoned.
			return append(chain, p.peer), what
		}
		if slices.Contains(chain, p.peer) {
			return append(chain, p.peer), what
		}
		rank = p.peer
	}
}
