package inswitch

import (
	"example.com/tandem/api"
	"example.com/tandem/hw/host"
)

// Stop ends running kernels at their next look at the clock.
func (t *Team) Stop() { host.StopKernels(t.pages) }

// Verdicts reads the reports; nil if all ranks ended well.
func (t *Team) Verdicts(call *api.Call) []error {
	reports := make([]host.Report, len(t.pages))
	for r, p := range t.pages {
		reports[r] = host.ReadReport(p.Host, where)
	}
	return host.Verdicts(reports, call)
}

// where names a step, and says how far a rank is there.
func where(step, barrier uint32) (at string, far uint64) {
	return Step(step).String(), uint64(step)<<32 | uint64(barrier)
}
