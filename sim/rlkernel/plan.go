package rlkernel

import (
	"fmt"

	"example.com/tandem/api"
)

// Plan is what the class does with a call whose buffers lie at their standard
// addresses. The error is *api.InvalidError or *api.Refused.
func Plan(spec api.Spec, call api.Call) (*api.Plan, error) {
	s, err := newSchedule(spec, call)
	if err != nil {
		return nil, err
	}
	where := standardPlaces(&call)
	p := s.plan(where)
	p.Notes = s.notes(where)
	return p, nil
}

func newSchedule(spec api.Spec, call api.Call) (*schedule, error) {
	c, err := parseConfig(spec)
	if err != nil {
		return nil, err
	}
	if err := c.admit(&call); err != nil {
		return nil, err
	}
	return decide(c, call), nil
}

// plan leaves the notes out, which only a reader needs.
func (s *schedule) plan(where places) *api.Plan {
	p := &api.Plan{
		Spec:       s.spec.String(),
		Call:       s.call,
		Cost:       s.cost(where),
		Algorithms: map[string]api.Algorithm{},
		Unwritten:  make([]int64, s.call.Ranks),
		Fault:      s.fault(where),
	}
	for i := range s.units {
		u := &s.units[i]
		p.Algorithms[u.path] = api.Algorithm{Evidence: u.evidence()}
		for _, o := range u.ops {
			p.Kernels = append(p.Kernels, s.kernels(u, o, where)...)
		}
	}
	return p
}

// evidence of a path. Where the bits go was read in source for each; the grid
// of the owner's reduction and the parts of its tail were not.
func (u *unit) evidence() api.Evidence {
	if u.path == algOwner {
		return api.Reconstructed
	}
	return api.FromSource
}

// kernels are the stream operations of o. Blocks of a grid share nothing, so a
// grid is listed as one CTA; a run of copies as one kernel.
func (s *schedule) kernels(u *unit, o op, where places) []api.Kernel {
	switch o.kind {
	case opCopyIn, opCopyOut:
		out := make([]api.Kernel, len(u.lanes))
		for i, lane := range u.lanes {
			out[i] = s.copies(u, o, i, lane)
		}
		return out
	case opFused, opCompute, opFinish, opUnstage:
		return []api.Kernel{s.writer(u, o, where)}
	}
	cta := api.CTA{Algorithm: u.path, Why: s.controlWhy(u, o)}
	return []api.Kernel{{Name: o.kind.String(), Lane: u.lanes[0], CTAs: []api.CTA{cta}}}
}

// controlWhy describes an operation that writes no output.
func (s *schedule) controlWhy(u *unit, o op) string {
	switch o.kind {
	case opStage:
		return "one block waits until every rank has retired the call before, copies the input into its payload and publishes it"
	case opReserve:
		return "waits until every rank has retired the call before"
	case opPublish:
		return "publishes the payload"
	case opWait:
		return "waits until every rank has published its payload"
	case opRetire:
		return "lets every rank overwrite its payload"
	case opBarrier:
		return "the host synchronises its device and meets the other hosts"
	case opTree:
		return fmt.Sprintf("rank 0 reduces into its own payload, blocks of %d threads: %d", threads, o.blocks)
	case opPush:
		return fmt.Sprintf("rank 0 copies its payload into %d others", o.count)
	case opOwned:
		return "the other ranks wait until rank 0 has retired"
	}
	return u.why()
}

// writer is an operation that writes the output.
func (s *schedule) writer(u *unit, o op, where places) api.Kernel {
	lane := u.lanes[0]
	cta := api.CTA{Count: s.call.Lane(lane).Count, Algorithm: u.path, Why: u.why()}
	if s.fault(where) != nil && pairs(&s.call, u.path) {
		for rank := range s.call.Ranks {
			cta.Slices = append(cta.Slices, s.pairSlice(u, rank, where[rank][lane]))
		}
	}
	if u.base == api.AllGather {
		for rank := range s.call.Ranks {
			cta.Slices = append(cta.Slices, s.gatherSlices(rank, where[rank][lane])...)
		}
	}
	return api.Kernel{Name: o.kind.String(), Lane: lane, CTAs: []api.CTA{cta}}
}

func (s *schedule) gatherSlices(rank int, p place) []api.Slice {
	g := s.gather(s.call.Ranks, rank, p, laneBytes(&s.call, 0))
	out := make([]api.Slice, s.call.Ranks)
	for peer := range out {
		out[peer] = api.Slice{
			Rank: rank, Local: true, Start: int64(peer) * s.call.Count, Count: s.call.Count,
			Algorithm: g.loop(peer), Why: g.why(peer),
		}
	}
	return out
}

// copies are those of one lane, in or out: the same on every rank.
func (s *schedule) copies(u *unit, o op, i, lane int) api.Kernel {
	cta := api.CTA{Algorithm: u.path, Why: fmt.Sprintf("device copy of the input, to %d bytes into the payload", u.at[i])}
	if o.kind == opCopyOut {
		n := s.call.Lane(lane).Count
		cta.Count, cta.Why = n, fmt.Sprintf("%d device copies, from %d bytes into each payload; %s", s.call.Ranks, u.at[i], u.why())
		for peer := range s.call.Ranks {
			cta.Slices = append(cta.Slices, api.Slice{Rank: peer, Start: int64(peer) * n, Count: n})
		}
	}
	return api.Kernel{Name: o.kind.String(), Lane: lane, CTAs: []api.CTA{cta}}
}

// fault is what the call ends in whatever the ranks' timing; nil if it ends
// well.
func (s *schedule) fault(where places) *api.Fault {
	for i := range s.units {
		u := &s.units[i]
		if u.late > 0 {
			return s.lateFault(u, 0)
		}
		for rank := range s.call.Ranks {
			if f := s.pairFault(u, rank, where[rank][0]); f != nil {
				return f
			}
		}
	}
	return nil
}

// Loops of the one-block all-reduce of bf16, named where a rank faults.
const (
	loopPairs      = "pairs"
	loopMisaligned = "misaligned_pairs"
)

func (s *schedule) pairSlice(u *unit, rank int, p place) api.Slice {
	out := api.Slice{Rank: rank, Local: true, Count: s.call.Count, Algorithm: loopPairs, Why: "the output is a multiple of 4"}
	if s.pairFault(u, rank, p) != nil {
		out.Algorithm, out.Why = loopMisaligned, "the output is no multiple of 4: the context is lost"
	}
	return out
}

// pairFault is the fault of the kernel that stores two bf16 through a 4-byte
// pointer without a look at the output's address.
func (s *schedule) pairFault(u *unit, rank int, p place) *api.Fault {
	if !pairs(&s.call, u.path) || s.call.Count < 2 || p.dst%pairBytes == 0 {
		return nil
	}
	return &api.Fault{Kind: api.FaultMisaligned, Rank: rank, Detail: fmt.Sprintf("bf16 pairs are stored as 4-byte words, and the output at 0x%x is no multiple of 4; the context is lost", p.dst)}
}

func (s *schedule) lateFault(u *unit, rank int) *api.Fault {
	return &api.Fault{Kind: api.FaultAborted, Rank: rank, Detail: fmt.Sprintf("the extension checks the element type after staging: reduce_scatter of %s ends in an exception, and the staged input stays pending", s.call.Lane(u.lanes[0]).DType)}
}
