package tandem

import (
	"example.com/tandem/api"
	"example.com/tandem/hw/host"
)

// Stop ends running kernels at their next look at the clock.
func (e *Engine) Stop() { host.StopKernels(e.pages) }

// Verdicts reads the reports; nil if all ranks ended well.
func (e *Engine) Verdicts(call *api.Call) []error {
	reports := make([]host.Report, len(e.pages))
	for r, p := range e.pages {
		reports[r] = host.ReadReport(p.Host, where)
		reports[r].Hash -= e.config.row(call.Ranks).hash()
	}
	return host.Verdicts(reports, call)
}

// where names a step. A rank is further than another only once it waits for data
// or at a barrier: all steps before are the headers'.
func where(step, barrier uint32) (at string, far uint64) {
	switch s := Step(step); s {
	case StepBarrier:
		return s.String(), 2 + uint64(barrier)
	case StepData:
		return s.String(), 1
	default:
		return s.String(), 0
	}
}
