package host

import (
	"fmt"
	"slices"

	"example.com/tandem/api"
)

// Reason is why a kernel gave up.
type Reason uint32

// The reasons. Kernels whose headers are compared count them like this.
const (
	Fine     Reason = iota
	Deadline        // it waited too long
	Aborted         // another rank had given up
	Differs         // a peer announced another call
	Claimed         // two calls of one team at once
	Stopped         // by the host
	Killed          // by an injected fault
)

// Report is what a rank's kernel left behind when it gave up.
type Report struct {
	Reason Reason
	Peer   int    // whom it waited for, or who differs
	Call   uint64 // number of the call, as errors give it
	At     string // the step, as errors call it
	Block  int    // -1 where it is not known
	Hash   uint64 // of the other call, where it differs
	// Far is how far the rank got: greater is further, among the ranks of a team.
	Far uint64
}

// Verdicts are how the ranks ended a call, by their reports; nil if all ended
// well. A rank without a report ended well, unless somebody waited for it in
// vain: then it was let down by the first that gave up.
func Verdicts(reports []Report, call *api.Call) []error {
	first := slices.IndexFunc(reports, func(p Report) bool { return p.Reason != Fine })
	if first < 0 {
		return nil
	}
	out := make([]error, len(reports))
	for r := range reports {
		out[r] = verdict(r, first, reports, call)
	}
	return out
}

func verdict(rank, first int, reports []Report, call *api.Call) error {
	for r, p := range reports {
		switch p.Reason {
		case Differs:
			return &api.Mismatch{Rank: r, Other: p.Peer, Call: Same(call), OtherCall: fmt.Sprintf("a call with hash %016x", p.Hash), CallHash: Hash(call), OtherHash: p.Hash}
		case Claimed:
			return &api.Aborted{Rank: rank, Cause: r, Chain: []int{rank, r}, Reason: fmt.Sprintf("two calls of one team ran at once on rank %d, as on two streams", r)}
		case Stopped:
			return &api.Aborted{Rank: rank, Cause: -1, Reason: "the host stopped the call"}
		}
	}
	var chain []int
	from := rank
	if reports[rank].Reason == Fine {
		chain, from = []int{rank}, first
	}
	chain = append(chain, blame(from, reports)...)
	return &api.Aborted{Rank: rank, Cause: chain[len(chain)-1], Chain: chain, Reason: reports[from].words()}
}

// words say how the rank gave up.
func (p *Report) words() string {
	if p.Reason == Killed {
		return fmt.Sprintf("the rank was stopped at %s of call %d", p.At, p.Call)
	}
	s := fmt.Sprintf("the deadline passed at %s of call %d", p.At, p.Call)
	if p.Block >= 0 {
		s += fmt.Sprintf(", in block %d", p.Block)
	}
	return s
}

// blame follows who waits for whom from a rank that gave up, to one that waits
// for nobody, that was met before, or that came after all and then found the team
// poisoned further on.
func blame(rank int, reports []Report) (chain []int) {
	for {
		chain = append(chain, rank)
		p := reports[rank]
		if p.Reason != Deadline && p.Reason != Aborted || p.Peer == rank || p.Peer >= len(reports) {
			return chain
		}
		if q := reports[p.Peer]; slices.Contains(chain, p.Peer) || q.Reason == Aborted && q.Far > p.Far {
			return append(chain, p.Peer)
		}
		rank = p.Peer
	}
}
