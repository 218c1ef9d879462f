package nvshmem

import "example.com/tandem/api"

// The sizes from which an on-stream call of a team with a multicast base is
// spread over several CTAs, in bytes. The reduce threshold looks at a rank's
// buffer, the others at the buffers of all ranks.
const (
	reduceCTABytes        = 262144
	reduceScatterCTABytes = 1 << 20
	fcollectCTABytes      = 1 << 20
)

const (
	reduceCTAs        = 16 // reduce and reduce-scatter
	fcollectTotalCTAs = 32 // fcollect, divided by the ranks
)

// span is a range of elements of the call's Count.
type span struct{ start, count int64 }

// split is how one launch divides a call.
type split struct {
	blocks int64
	per    int64 // elements of every CTA but the last
	spans  []span
}

// splitCall is the division of an on-stream call over CTAs; a device-side call
// is one CTA.
func (s *selector) splitCall() split {
	blocks := int64(1)
	if s.call.Scope == api.OnStream && s.multicast {
		blocks = s.onStreamCTAs()
	}
	per := s.count / blocks
	if s.p.after() && s.call.Collective == api.AllReduce {
		// PR #131: every CTA but the last a multiple of 16 bytes; its follow-up,
		// a multiple of that for every rank.
		unit := 16 / s.size
		if s.p.Version == versionTeam {
			unit *= s.ranks
		}
		per = per / unit * unit
	}
	out := split{blocks: blocks, per: per, spans: make([]span, blocks)}
	for b := range blocks {
		out.spans[b] = span{per * b, per}
	}
	last := &out.spans[blocks-1]
	last.count = s.count - last.start
	return out
}

func (s *selector) onStreamCTAs() int64 {
	total, threshold, unset := s.count*s.size, int64(0), int64(reduceCTAs)
	switch s.call.Collective {
	case api.AllReduce:
		threshold = reduceCTABytes
	case api.ReduceScatter:
		total, threshold = total*s.ranks, reduceScatterCTABytes
	case api.AllGather:
		total, threshold = total*s.ranks, fcollectCTABytes
		unset = max(1, fcollectTotalCTAs/s.ranks)
	default:
		return 1
	}
	if total < threshold {
		return 1
	}
	if s.p.MaxCTAs > 0 {
		return s.p.MaxCTAs
	}
	return unset
}

// slicesOf is the division of n elements over the ranks in two-shot: the last
// rank takes the remainder.
func slicesOf(n, ranks, rank int64) span {
	per := n / ranks
	out := span{per * rank, per}
	if rank == ranks-1 {
		out.count += n % ranks
	}
	return out
}
