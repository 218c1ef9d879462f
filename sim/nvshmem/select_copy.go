package nvshmem

import (
	"fmt"

	"example.com/tandem/api"
)

// allGather is nvshmemi_fcollect_threadgroup's decision for m elements a rank.
func (s *selector) allGather(m int64) choice {
	if s.gatherLL8(m) {
		return choice{algLL8, fmt.Sprintf("%d bytes a rank, no more than %d", m*s.size, s.p.LLThreshold)}
	}
	if why := s.noMulticast(); why != "" {
		return choice{algCopy, why}
	}
	if m*s.size%4 != 0 {
		return choice{algCopy, whyOddBytes}
	}
	return choice{algNVLS, fmt.Sprintf("%d bytes a rank, a multiple of 4", m*s.size)}
}

func (s *selector) gatherLL8(m int64) bool {
	wide := s.size >= 4 && m%2 == 0
	narrow := s.size == 2 && m%4 == 0 && s.ranks%2 == 0
	return s.call.Scope != api.Thread && (wide || narrow) && m*s.size <= s.p.LLThreshold
}

// The size up to which a broadcast goes down the LL tree, in bytes.
const broadcastLLBytes = 16384

// broadcast is nvshmemi_broadcast_threadgroup's decision.
func (s *selector) broadcast() choice {
	bytes := s.count * s.size
	switch {
	case s.size < 4:
		return choice{algPutSignal, "elements narrower than the 4-byte words of the LL tree"}
	case s.count%2 != 0:
		return choice{algPutSignal, "odd count, which the LL tree cannot pack"}
	case bytes > broadcastLLBytes:
		return choice{algPutSignal, fmt.Sprintf("%d bytes, more than %d", bytes, broadcastLLBytes)}
	}
	return choice{algTree, fmt.Sprintf("%d bytes, no more than %d", bytes, broadcastLLBytes)}
}
