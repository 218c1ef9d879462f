package tandem

import (
	"errors"
	"fmt"
	"time"

	"example.com/tandem/api"
	"example.com/tandem/sim/machine"
)

// Default deadlines of a team.
const (
	DefaultArrive   = 60 * time.Second
	DefaultProgress = 5 * time.Second
)

// Session is one team: its memory, which no other team ever uses, and what its
// hosts remember from call to call.
type Session struct {
	config
	ranks   int
	arrive  time.Duration
	machine *machine.Machine
	tickets uint64
	dead    []error // by rank, once a call has failed
	closed  bool
	known   *known // of the last call

	// For the tests: what the caller does before a call and after it, a change
	// to the program, and what the last run did.
	filler func(*launch) []machine.Step
	caller func(*launch) []machine.Step
	change func(machine.Program) machine.Program
	last   *machine.Result
}

// firstEpoch is the epoch of a team's first call.
const firstEpoch = 1

func openSession(spec api.Spec, team api.TeamConfig) (*Session, error) {
	c, err := parseConfig(spec)
	if err != nil {
		return nil, err
	}
	if err := c.admitTeam(team); err != nil {
		return nil, err
	}
	scale := func(d, def time.Duration) time.Duration {
		if d == 0 {
			d = def
		}
		return d * time.Duration(c.deadlines)
	}
	s := &Session{config: c, ranks: team.Ranks, arrive: scale(team.Arrive, DefaultArrive)}
	s.machine = machine.New(machine.Config{
		Ranks: team.Ranks, GPUs: c.placement(team.Ranks),
		Arrive: s.arrive, Progress: scale(team.Progress, DefaultProgress),
	})
	s.setEpoch(firstEpoch)
	return s, nil
}

// setEpoch makes the next call that of an epoch, as if all before it had been.
func (s *Session) setEpoch(epoch uint64) {
	for r := range s.ranks {
		s.machine.SetWord(ref(r, wEpoch), epoch)
		s.machine.SetWord(ref(r, wEntered), epoch-1)
		s.machine.SetWord(ref(r, wLeft), epoch-1)
	}
}

// Patience is how long, in real time, a rank waits for the others to start a
// call: the arrive deadline.
func (s *Session) Patience() time.Duration { return s.arrive }

// Check is what a rank refuses before anything of the call leaves it.
func (s *Session) Check(rank int, call *api.Call, mem api.Memory) error {
	if err := s.admit(call); err != nil {
		return err
	}
	if call.Ranks != s.ranks {
		return &api.InvalidError{Field: "ranks", Value: fmt.Sprint(call.Ranks), Reason: fmt.Sprintf("the team has %d", s.ranks)}
	}
	if d := s.decide(call); d.chunks > maxChunks {
		return s.refuse(fmt.Sprintf("a call in %d chunks", d.chunks), fmt.Sprintf("the stage holds %d bytes", s.stage), fmt.Sprintf("stage=%d or more", s.stage*ceil(d.chunks, maxChunks)))
	}
	return checkMemory(call, rank, mem)
}

// Poisoned is what every call returns once one has failed.
func (s *Session) Poisoned(rank int) error {
	if s.dead == nil {
		return nil
	}
	return s.dead[rank]
}

// Run executes one call that has passed Check on the ranks that started it. A
// rank whose call is nil has not come; why says what made the others stop
// waiting for it. Either every rank returns nil or every rank returns an error.
func (s *Session) Run(opt machine.Options, calls []*api.Call, mem []api.Memory, why string) ([]api.Outcome, []error) {
	launches := make(stream, s.ranks)
	for r, call := range calls {
		if call != nil {
			launches[r] = []*launch{s.launch(r, call)}
		}
	}
	p := newScript(s.ranks, []stream{launches}, nil)
	if s.stamping() {
		p.stamps()
	}
	result, err := s.execute(p, padded(mem), opt)
	outcomes := make([]api.Outcome, s.ranks)
	if err != nil {
		s.kill(failure(err))
		return outcomes, s.errors(failure(err))
	}
	v := verdict{Session: s, launches: launches, mem: mem, why: why}
	errs := v.errors()
	for r := range outcomes {
		if errs == nil {
			outcomes[r].Written = result.Written[r]
		}
	}
	if errs == nil {
		return outcomes, make([]error, s.ranks)
	}
	s.dead = make([]error, s.ranks)
	for r, e := range errs {
		s.dead[r] = poisoned(r, e)
	}
	return outcomes, errs
}

// launch readies a call on one rank.
func (s *Session) launch(rank int, call *api.Call) *launch {
	s.tickets++
	k := s.of(call)
	d := *k.decision
	d.call = *call
	return &launch{
		decision: &d, known: k, rank: rank, hash: k.hash, ticket: s.tickets,
		generation: s.machine.Word(ref(rank, wGeneration)), inPlace: call.InPlace,
		before: s.filler, after: s.caller,
	}
}

func (s *Session) execute(p machine.Program, mem []api.Memory, opt machine.Options) (*machine.Result, error) {
	if s.change != nil {
		p = s.change(p)
	}
	result, err := s.machine.Run(p, mem, opt)
	s.last = result
	return result, err
}

// stamping reports whether a rank is in an epoch in which boxes are stamped.
func (s *Session) stamping() bool {
	for r := range s.ranks {
		if e := s.machine.Word(ref(r, wEpoch)); e >= stampEvery && e&stampMask == 0 {
			return true
		}
	}
	return false
}

// padded gives every rank the same number of lanes, so that calls that do not
// match, and ranks that have not come, can be run.
func padded(mem []api.Memory) []api.Memory {
	lanes := 0
	for _, m := range mem {
		lanes = max(lanes, len(m))
	}
	out := make([]api.Memory, len(mem))
	for r, m := range mem {
		if out[r] = m; len(m) < lanes {
			out[r] = append(append(api.Memory(nil), m...), make(api.Memory, lanes-len(m))...)
		}
	}
	return out
}

// failure is an error of the machine as a caller may see it. None of them is
// the caller's doing: the protocol itself would be at fault.
func failure(err error) error {
	var race *machine.Race
	if errors.As(err, &race) {
		return &api.Fault{Kind: api.FaultRace, Rank: race.Second.Rank, CTA: race.Second.CTA, Detail: race.Error()}
	}
	return err
}

func (s *Session) errors(err error) []error {
	errs := make([]error, s.ranks)
	for r := range errs {
		errs[r] = err
	}
	return errs
}

func (s *Session) kill(err error) {
	s.dead = make([]error, s.ranks)
	for r := range s.dead {
		s.dead[r] = poisoned(r, err)
	}
}

// poisoned is what later calls return after err.
func poisoned(rank int, err error) error {
	out := &api.Aborted{Rank: rank, Cause: -1, Reason: "the team was aborted in an earlier call: " + err.Error()}
	var first *api.Aborted
	if errors.As(err, &first) {
		out.Cause, out.Chain = first.Cause, first.Chain
		out.Reason = "the team was aborted in an earlier call: " + first.Reason
	}
	return out
}

// Close ends the team: on every rank, with the handshake of closer.go. What a
// rank that cannot be reached may still touch is named as leaked.
func (s *Session) Close(opt machine.Options) error {
	if s.closed {
		return nil
	}
	s.closed = true
	closers := make([][]closer, s.ranks)
	for r := range closers {
		closers[r] = []closer{{ranks: s.ranks, rank: r}}
	}
	if s.dead == nil {
		s.dead = make([]error, s.ranks)
		for r := range s.dead {
			s.dead[r] = &api.Aborted{Rank: r, Cause: -1, Reason: "the team is closed"}
		}
	}
	p := newScript(s.ranks, nil, closers)
	mem := make([]api.Memory, s.ranks)
	if _, err := s.execute(p, mem, opt); err != nil {
		return failure(err)
	}
	return leaks(s, closers)
}

// leaks is what closers could not free.
func leaks(s *Session, closers [][]closer) error {
	for r := range closers {
		var names []string
		first := -1
		for p := range s.ranks {
			if s.machine.Word(closers[r][0].temp(cLeaked(p))) != 0 {
				names = append(names, fmt.Sprintf("team memory of rank %d, which rank %d may still touch", r, p))
				if first < 0 {
					first = p
				}
			}
		}
		if first >= 0 {
			return &api.Aborted{Rank: r, Cause: first, Chain: []int{r, first}, Reason: fmt.Sprintf("rank %d did not leave before the team was closed", first), Leaked: names}
		}
	}
	return nil
}
