package rlkernel

import (
	"fmt"
	"slices"

	"example.com/tandem/api"
)

// report is what a rank's kernel left behind when it gave up.
type report struct {
	reason   uint32
	step     Step
	peer     int
	sequence uint64
}

func (e *Engine) report(rank int) report {
	h := e.pages[rank].Host
	return report{h.Load32(reportReason), Step(h.Load32(reportStep)), int(h.Load32(reportPeer)), h.Load64(reportSequence)}
}

// Stop ends running kernels at their next look at the clock.
func (e *Engine) Stop() {
	for _, p := range e.pages {
		p.Host.Store32(reportStop, reasonStopped)
	}
}

// Verdicts reads the reports; nil if there is none.
func (e *Engine) Verdicts(*api.Call) []error {
	reports := make([]report, len(e.pages))
	for r := range reports {
		reports[r] = e.report(r)
	}
	return verdicts(reports)
}

func verdicts(reports []report) []error {
	first := slices.IndexFunc(reports, func(p report) bool { return p.reason != reasonFine })
	if first < 0 {
		return nil
	}
	out := make([]error, len(reports))
	for r := range reports {
		out[r] = verdict(r, first, reports)
	}
	return out
}

// verdict is how a rank ended in a call that some rank gave up. Where it did not
// itself, it was let down by the first that did.
func verdict(rank, first int, reports []report) error {
	for r, p := range reports {
		switch p.reason {
		case reasonClaimed:
			return &api.Aborted{Rank: rank, Cause: r, Chain: []int{rank, r}, Reason: fmt.Sprintf("two calls of one team ran at once on rank %d, as on two streams", r)}
		case reasonStopped:
			return &api.Aborted{Rank: rank, Cause: -1, Reason: "the host stopped the call"}
		}
	}
	var chain []int
	from := rank
	if reports[rank].reason == reasonFine {
		chain, from = append(chain, rank), first
	}
	links, reason := blame(from, reports)
	chain = append(chain, links...)
	return &api.Aborted{Rank: rank, Cause: chain[len(chain)-1], Chain: chain, Reason: reason}
}

// after reports whether a rank got further than another.
func (p report) after(q report) bool {
	return p.sequence > q.sequence || p.sequence == q.sequence && p.step > q.step
}

// blame follows who waits for whom from a rank that gave up, to one that waits
// for nobody, that was met before, or that came after all and then found the team
// poisoned while it waited at a later step.
func blame(rank int, reports []report) (chain []int, reason string) {
	p := reports[rank]
	reason = fmt.Sprintf("the deadline passed at %s of call %d", p.step, p.sequence+1)
	if p.reason == reasonKilled {
		return []int{rank}, fmt.Sprintf("the rank was stopped at %s of call %d", p.step, p.sequence+1)
	}
	chain = []int{rank}
	for p.reason == reasonDeadline || p.reason == reasonAborted {
		if p.peer >= len(reports) {
			break
		}
		next := reports[p.peer]
		met := slices.Contains(chain, p.peer)
		chain = append(chain, p.peer)
		if met || next.reason == reasonAborted && next.after(p) {
			break
		}
		p = next
	}
	return chain, reason
}
