package rlkernel

import (
	"fmt"
	"hash/fnv"

	"example.com/tandem/api"
	"example.com/tandem/sim"
	"example.com/tandem/sim/machine"
)

// session is what the class keeps from call to call on all ranks of a team:
// the signatures it has compared, the staged input it believes to be pending,
// contexts lost to a device fault, and streams that a hang blocks for good.
// The sequence numbers are words of the machine.
type session struct {
	cfg     config
	ranks   int
	seen    map[string]bool
	pending []bool
	lost    []*api.Fault
	stuck   *api.Fault
	// Work of calls that ended in a planned fault and never ran.
	published, retired []uint64
}

// newSession readies a team. The error is an *api.InvalidError or, for a world
// size that the constructor rejects, an *api.Refused.
func newSession(spec api.Spec, ranks int) (*session, error) {
	cfg, err := parseConfig(spec)
	if err != nil {
		return nil, err
	}
	if err := cfg.admitRanks(ranks); err != nil {
		return nil, err
	}
	return &session{
		cfg: cfg, ranks: ranks, seen: map[string]bool{},
		pending: make([]bool, ranks), lost: make([]*api.Fault, ranks),
		published: make([]uint64, ranks), retired: make([]uint64, ranks),
	}, nil
}

// Plan decides what a call with its buffers at these addresses does. A fault
// of the computation is left out where an earlier call keeps the ranks from
// coming that far.
func (s *session) Plan(call api.Call, addrs sim.Addrs) (*api.Plan, error) {
	if err := s.cfg.admit(&call); err != nil {
		return nil, err
	}
	where := make(places, call.Ranks)
	for r := range where {
		where[r] = make([]place, call.Lanes())
		for lane := range where[r] {
			where[r][lane].src, where[r][lane].dst = addrs(lane, r)
		}
	}
	plan := decide(s.cfg, call).plan(where)
	if !s.fit() {
		plan.Fault = nil
	}
	return plan, nil
}

// fit reports whether every rank can take part in every call.
func (s *session) fit() bool {
	for r := range s.ranks {
		if s.pending[r] || s.lost[r] != nil {
			return false
		}
	}
	return s.stuck == nil
}

// Program gives the steps of a plan, for the ranks that can still take part.
func (s *session) Program(plan *api.Plan) (machine.Program, error) {
	if s.stuck != nil {
		return nil, s.stuck
	}
	cond := Conditions{
		Compare: s.compares() && !s.known(&plan.Call),
		Absent:  make([]bool, s.ranks), Refuse: make([]bool, s.ranks),
		Published: s.published, Retired: s.retired,
	}
	for r := range s.ranks {
		cond.Absent[r] = s.lost[r] != nil
		cond.Refuse[r] = s.pending[r] && s.cfg.checksPending(&plan.Call)
	}
	s.published, s.retired = make([]uint64, s.ranks), make([]uint64, s.ranks)
	return NewProgram(plan, cond), nil
}

// checksPending reports whether the entry point looks at the flag that stage()
// sets. stage() itself does not, and reduce_scatter begins with it.
func (c *config) checksPending(call *api.Call) bool {
	switch call.Collective {
	case api.AllGatherMany:
		return true
	case api.AllReduce, api.AllGather:
		return !c.extension
	}
	return false
}

// Judge says what each rank returns after a run without an error of its own.
func (s *session) Judge(plan *api.Plan, result *machine.Result) []error {
	s.learn(&plan.Call)
	return s.verdicts(plan, result, nil)
}

// Failed says what each rank returns when the call ended in a planned fault,
// could not run (result is nil then), or hung.
func (s *session) Failed(plan *api.Plan, result *machine.Result, err error) []error {
	fault, ok := err.(*api.Fault)
	switch {
	case !ok:
		return s.all(err)
	case fault == plan.Fault:
		return s.planned(plan)
	case fault.Kind == api.FaultHang && fault != s.stuck:
		s.stuck = &api.Fault{Kind: api.FaultHang, Rank: fault.Rank, CTA: fault.CTA, Detail: "a kernel of an earlier call still waits, and nothing ends it: " + fault.Detail}
	}
	return s.verdicts(plan, result, fault)
}

func (s *session) all(err error) []error {
	errs := make([]error, s.ranks)
	for r := range errs {
		errs[r] = err
	}
	return errs
}

// planned is a fault that the plan foresaw. The input had been staged and
// published; who faults never retires it.
func (s *session) planned(plan *api.Plan) []error {
	errs := s.all(plan.Fault)
	for r := range errs {
		s.published[r]++
		own := *plan.Fault
		own.Rank = r
		switch {
		case plan.Fault.Kind == api.FaultAborted:
			s.pending[r] = true
			errs[r] = &own
		case misaligned(plan, r):
			own.Detail = "the context was lost in an earlier call: " + own.Detail
			s.lost[r] = &own
		default:
			s.retired[r]++
		}
	}
	return errs
}

func misaligned(plan *api.Plan, rank int) bool {
	for _, sl := range plan.Kernels[0].CTAs[0].Slices {
		if sl.Rank == rank && sl.Algorithm == loopMisaligned {
			return true
		}
	}
	return false
}

// verdicts go by how the host and the stream of each rank ended; hang is what
// those return that did not end.
func (s *session) verdicts(plan *api.Plan, result *machine.Result, hang *api.Fault) []error {
	errs := make([]error, s.ranks)
	for r := range errs {
		switch {
		case s.lost[r] != nil:
			errs[r] = s.lost[r]
		case s.pending[r] && s.cfg.checksPending(&plan.Call):
			errs[r] = s.cfg.refuse(plan.Call.Collective.Name(), fmt.Sprintf("rank %d has a staged input pending from an interrupted call (RuntimeError)", r), "close the collective and make a new one on all ranks")
		case result == nil:
			errs[r] = hang
		default:
			errs[r] = s.verdict(plan, r, result.Ends[r], hang)
		}
	}
	return errs
}

func (s *session) verdict(plan *api.Plan, rank int, ends []machine.End, hang *api.Fault) error {
	host, stream := ends[ctaHost].Status, ends[ctaStream].Status
	lost := func(what string) error {
		f := &api.Fault{Kind: api.FaultAborted, Rank: rank, CTA: ctaStream, Detail: what}
		s.lost[rank] = f
		return f
	}
	switch {
	case host == machine.StatusStopped || stream == machine.StatusStopped:
		return lost("the rank stopped; its peers are not told")
	case stream == streamDied:
		return lost("a kernel faulted; the context is lost and the rank can never retire the call")
	case host >= hostRaised && host < machine.StatusStopped:
		return s.raised(plan, rank, int64(host-hostRaised))
	case hang != nil:
		return hang
	}
	return nil
}

// raised is an exception on the host of one rank after a number of launches.
func (s *session) raised(plan *api.Plan, rank int, launched int64) error {
	after, pending := interrupted(plan, rank, launched)
	s.pending[rank] = pending
	detail := fmt.Sprintf("an exception after %d of %d launches (%s)", launched, plan.Cost.Launches, after)
	if pending {
		detail += "; the staged input stays pending"
	} else {
		detail += "; nothing is pending on the host"
	}
	return &api.Fault{Kind: api.FaultAborted, Rank: rank, CTA: ctaHost, Detail: detail}
}

// compares reports whether ranks compare signatures at all.
func (s *session) compares() bool { return s.cfg.signatures && !s.cfg.extension }

// signature is what the ranks compare: the op, the shape and the type.
func signature(call *api.Call) string {
	text := call.Collective.Name()
	for lane := range call.Lanes() {
		l := call.Lane(lane)
		text += fmt.Sprintf(" %s:%d", l.DType, l.Count)
	}
	return text
}

func (s *session) known(call *api.Call) bool { return s.seen[signature(call)] }

func (s *session) learn(call *api.Call) {
	if s.compares() {
		s.seen[signature(call)] = true
	}
}

// Match says what becomes of calls that the ranks of a team have started
// together. Buffers and in-place forms are each rank's own affair.
func (s *session) Match(calls []api.Call) error {
	for r := 1; r < len(calls); r++ {
		a, b := &calls[0], &calls[r]
		if a.Op == b.Op && a.Scope == b.Scope && a.Mode == b.Mode && signature(a) == signature(b) {
			continue
		}
		return s.differ(calls, r)
	}
	return nil
}

// differ is what happens when rank other brings another call than rank 0.
func (s *session) differ(calls []api.Call, other int) error {
	if s.stuck != nil {
		return s.stuck
	}
	first, second := calls[0].String(), calls[other].String()
	if !s.compares() {
		return s.cfg.refuse(fmt.Sprintf("%s on rank 0 and %s on rank %d", first, second, other), "signatures are not compared, so the ranks read payloads of another call: what they return is not known", "validate_signature=on and entry=class")
	}
	fresh, known := -1, -1
	for r := range calls {
		if s.known(&calls[r]) {
			known = r
		} else {
			fresh = r
		}
	}
	switch {
	case known < 0:
		return &api.Mismatch{Rank: 0, Other: other, Call: first, OtherCall: second, CallHash: hash(signature(&calls[0])), OtherHash: hash(signature(&calls[other]))}
	case fresh < 0:
		return s.cfg.refuse(fmt.Sprintf("%s on rank 0 and %s on rank %d", first, second, other), "both signatures were compared before and are not compared again, so the ranks read payloads of another call: what they return is not known", "the same call on all ranks")
	}
	s.stuck = &api.Fault{Kind: api.FaultHang, Rank: fresh, Detail: fmt.Sprintf("rank %d compares its signature in an all_gather_object that rank %d, which has seen its own before, never enters; rank %d waits in its kernel for rank %d to publish", fresh, known, known, fresh)}
	return s.stuck
}

func hash(text string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text))
	return h.Sum64()
}
