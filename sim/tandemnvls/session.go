package tandemnvls

import (
	"errors"
	"fmt"
	"time"

	"example.com/tandem/api"
	"example.com/tandem/sim"
	"example.com/tandem/sim/machine"
	"example.com/tandem/sim/tandem"
)

// session is one team. tandem's session holds the rules for who starts what and
// runs the calls that are tandem's; those through the switch run on a machine of
// their own.
type session struct {
	*config
	tandem  tandemSession
	machine *machine.Machine
	ranks   int
	base    uint64
	flag    uint32
	dead    []error
}

// tandemSession is what tandem's session is to the simulator.
type tandemSession interface {
	sim.Session
	sim.Runner
	sim.Poisoner
}

// Open readies a team.
func (Family) Open(spec api.Spec, team api.TeamConfig) (sim.Session, error) {
	c, err := parseConfig(spec)
	if err != nil {
		return nil, err
	}
	opened, err := tandem.Family{}.Open(c.tandem, team)
	if err != nil {
		return nil, err
	}
	scale := func(d, def time.Duration) time.Duration {
		if d == 0 {
			return def
		}
		return d
	}
	return &session{
		config: c, tandem: opened.(tandemSession), ranks: team.Ranks,
		machine: machine.New(machine.Config{Ranks: team.Ranks, Arrive: scale(team.Arrive, tandem.DefaultArrive), Progress: scale(team.Progress, tandem.DefaultProgress)}),
	}, nil
}

// Plan decides what a call does; its addresses do not matter.
func (s *session) Plan(call api.Call, _ sim.Addrs) (*api.Plan, error) { return s.plan(&call) }

// Program gives the steps of a plan.
func (s *session) Program(plan *api.Plan) (machine.Program, error) {
	if s.elsewhere(&plan.Call) != "" {
		return s.tandem.Program(plan)
	}
	return newProgram(s.config, &plan.Call, s.base, s.flag+1)
}

// Patience is tandem's.
func (s *session) Patience() time.Duration { return s.tandem.Patience() }

// Check is what a rank refuses before anything of the call leaves it.
func (s *session) Check(rank int, call *api.Call, mem api.Memory) error {
	if s.dead != nil {
		return s.dead[rank]
	}
	if err := s.tandem.Check(rank, call, mem); err != nil {
		return err
	}
	if s.elsewhere(call) == "" && call.Ranks != s.ranks {
		return &api.InvalidError{Field: "ranks", Value: fmt.Sprint(call.Ranks), Reason: fmt.Sprintf("the team has %d", s.ranks)}
	}
	return nil
}

// Poisoned is what every call returns once one has failed.
func (s *session) Poisoned(rank int) error {
	if s.dead != nil {
		return s.dead[rank]
	}
	return s.tandem.Poisoned(rank)
}

// Close ends the team.
func (s *session) Close(opt machine.Options) error { return s.tandem.Close(opt) }

// Run executes one call. Who has not come, and calls that differ, are found by
// tandem's headers, before anything is touched.
func (s *session) Run(opt machine.Options, calls []*api.Call, mem []api.Memory, why string) ([]api.Outcome, []error) {
	if !s.ours(calls) {
		return s.tandem.Run(opt, calls, mem, why)
	}
	if s.flag++; s.flag == 0 {
		s.flag = 1
	}
	p, err := newProgram(s.config, calls[0], s.base, s.flag)
	if err != nil {
		return s.all(err)
	}
	s.base += p.syncs()
	result, err := s.machine.Run(p, mem, opt)
	if err != nil {
		var race *machine.Race
		if errors.As(err, &race) {
			err = &api.Refused{Spec: s.spec.String(), What: calls[0].String(), Reason: err.Error()}
		}
		return s.all(err)
	}
	outcomes := make([]api.Outcome, s.ranks)
	errs := s.judge(p, result)
	if errs == nil {
		for r := range outcomes {
			outcomes[r].Written = result.Written[r]
		}
		return outcomes, make([]error, s.ranks)
	}
	s.poison(errs)
	return outcomes, errs
}

// ours reports whether every rank has started the same call, and it goes through
// the switch.
func (s *session) ours(calls []*api.Call) bool {
	for _, c := range calls {
		if c == nil || s.elsewhere(c) != "" || !same(calls[0], c) {
			return false
		}
	}
	return true
}

// same compares what headers carry: not the places of buffers.
func same(a, b *api.Call) bool {
	return a.Collective == b.Collective && a.DType == b.DType && a.Op == b.Op && a.Count == b.Count && a.Mode == b.Mode
}

// all ends a call on every rank, and the team with it.
func (s *session) all(err error) ([]api.Outcome, []error) {
	errs := make([]error, s.ranks)
	for r := range errs {
		errs[r] = err
	}
	s.poison(errs)
	return make([]api.Outcome, s.ranks), errs
}

func (s *session) poison(errs []error) {
	s.dead = make([]error, s.ranks)
	for r, err := range errs {
		s.dead[r] = &api.Aborted{Rank: r, Cause: -1, Reason: "an earlier call failed: " + err.Error()}
	}
}

// judge says what each rank returns; nil if all ended well.
func (s *session) judge(p *program, result *machine.Result) []error {
	bad := false
	guilty := -1
	for r := range result.Ends {
		for _, end := range result.Ends[r] {
			bad = bad || end.Status != machine.StatusOK
			if end.Status == machine.StatusStopped || end.Status == machine.StatusFailed {
				guilty = r
			}
		}
	}
	if !bad {
		return nil
	}
	if guilty < 0 {
		guilty = s.missing(p)
	}
	errs := make([]error, s.ranks)
	for r := range errs {
		chain := []int{r}
		if guilty >= 0 && guilty != r {
			chain = append(chain, guilty)
		}
		errs[r] = &api.Aborted{Rank: r, Cause: guilty, Chain: chain, Reason: "a deadline passed while a rank waited in the switch's barriers"}
	}
	return errs
}

// missing is the rank whose flags lie furthest behind.
func (s *session) missing(p *program) int {
	guilty, least := -1, ^uint64(0)
	for rank := range s.ranks {
		for from := range s.ranks {
			for cta := range p.CTAs() {
				if from == rank {
					continue
				}
				if v := s.machine.Word(p.flagOf(rank, cta, from)); v < p.base+p.lastSync(cta) && v < least {
					guilty, least = from, v
				}
			}
		}
	}
	return guilty
}
