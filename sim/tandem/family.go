package tandem

import (
	"example.com/tandem/api"
	"example.com/tandem/sim"
	"example.com/tandem/sim/machine"
)

// Family is the sim.Family of tandem.
type Family struct{}

var (
	_ sim.Family = Family{}
	_ sim.Runner = (*Session)(nil)
)

// Name is "tandem".
func (Family) Name() string { return Name }

// Implementations describes the one version there is.
func (Family) Implementations() []api.Implementation {
	return []api.Implementation{{
		Name:        Name,
		Summary:     "fixed-tree collectives: the same bits on every rank, size, path, alignment and placement",
		Params:      Params(),
		Collectives: api.Collectives(),
		DTypes:      api.DTypes(),
		Promises:    api.Checks(),
		Contract:    api.Exact,
		Evidence: map[string]api.Evidence{
			pathLocal: api.FromSource, pathEmpty: api.FromSource, pathPush: api.FromSource,
			pathDirect: api.FromSource, pathTwoShot: api.FromSource,
		},
		Thresholds: thresholds,
	}}
}

// Plan decides what a call does; its addresses do not matter.
func (Family) Plan(spec api.Spec, call api.Call) (*api.Plan, error) {
	c, err := parseConfig(spec)
	if err != nil {
		return nil, err
	}
	return c.plan(&call)
}

// Open readies a team.
func (Family) Open(spec api.Spec, team api.TeamConfig) (sim.Session, error) {
	return openSession(spec, team)
}

// Plan decides what a call does; its addresses do not matter.
func (s *Session) Plan(call api.Call, _ sim.Addrs) (*api.Plan, error) { return s.plan(&call) }

// Program is the run of one call that every rank starts.
func (s *Session) Program(plan *api.Plan) (machine.Program, error) {
	launches := make(stream, s.ranks)
	for r := range launches {
		launches[r] = []*launch{s.launch(r, &plan.Call)}
	}
	return newScript(s.ranks, []stream{launches}, nil), nil
}
