package host

import "example.com/tandem/api/gpu"

// The report that a kernel of tandem or of the switch leaves in a rank's pinned
// memory, in bytes; tests hold it to their headers.
const (
	ReportStop  = 0 // a Reason; Stopped ends the kernel
	ReportFault = 8 // its Reason
	ReportStep  = 12
	ReportEpoch = 16
	ReportPeer  = 24
	ReportBlock = 28
	ReportHash  = 32
	ReportBytes = 64
)

// ReadReport reads one. what names a step, and says how far a rank is there; a
// barrier is the number of one in the call.
func ReadReport(h gpu.HostMemory, what func(step, barrier uint32) (at string, far uint64)) Report {
	step := h.Load32(ReportStep)
	at, far := what(step&0xff, step>>8)
	return Report{Reason: Reason(h.Load32(ReportFault)), Peer: int(h.Load32(ReportPeer)), Call: h.Load64(ReportEpoch),
		At: at, Block: int(h.Load32(ReportBlock)), Hash: h.Load64(ReportHash), Far: far}
}

// StopKernels ends running kernels at their next look at the clock.
func StopKernels(pages []Page) {
	for _, p := range pages {
		p.Host.Store32(ReportStop, uint32(Stopped))
	}
}
