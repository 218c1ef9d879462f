package rlkernel

import (
	"example.com/tandem/api"
	"example.com/tandem/hw/host"
)

// reasons are why a kernel gives up, by its own numbers: it compares no headers.
var reasons = []host.Reason{host.Fine, host.Deadline, host.Aborted, host.Claimed, host.Stopped, host.Killed}

// stopped is host.Stopped among them.
const stopped = 4

// Stop ends running kernels at their next look at the clock.
func (e *Engine) Stop() {
	for _, p := range e.pages {
		p.Host.Store32(reportStop, stopped)
	}
}

// Verdicts reads the reports; nil if there is none.
func (e *Engine) Verdicts(call *api.Call) []error {
	reports := make([]host.Report, len(e.pages))
	for r, p := range e.pages {
		h := p.Host
		reports[r] = report(h.Load32(reportReason), Step(h.Load32(reportStep)), int(h.Load32(reportPeer)), h.Load64(reportSequence))
	}
	return host.Verdicts(reports, call)
}

// report is what a rank's kernel left behind when it gave up; calls are counted
// from 0 there.
func report(reason uint32, step Step, peer int, sequence uint64) host.Report {
	why := host.Aborted
	if int(reason) < len(reasons) {
		why = reasons[reason]
	}
	return host.Report{Reason: why, Peer: peer, Call: sequence + 1, At: step.String(), Block: -1, Far: sequence*uint64(steps) + uint64(min(step, StepRetire))}
}
