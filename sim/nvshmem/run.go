package nvshmem

import (
	"example.com/tandem/api"
	"example.com/tandem/sim"
	"example.com/tandem/sim/machine"
)

var _ sim.Family = Family{}

// Open checks the spec and readies a team; NVSHMEM takes teams of every size.
func (Family) Open(spec api.Spec, _ api.TeamConfig) (sim.Session, error) {
	p, err := ParseParams(spec)
	if err != nil {
		return nil, err
	}
	return &session{spec: spec, params: p}, nil
}

// session counts the LL flags of a team.
type session struct {
	spec   api.Spec
	params Params
	flag   uint32
}

// Plan decides what the library does with buffers at these addresses.
func (s *session) Plan(call api.Call, addrs sim.Addrs) (*api.Plan, error) {
	return Plan(s.spec, call, addrs)
}

// Program gives the steps of a plan.
func (s *session) Program(plan *api.Plan) (machine.Program, error) {
	if s.flag++; s.flag == 0 {
		s.flag = 1 // 0 is what lines hold that nobody wrote
	}
	return newProgram(s.params, plan, s.flag)
}
