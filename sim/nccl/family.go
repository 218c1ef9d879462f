package nccl

import (
	"example.com/tandem/api"
	"example.com/tandem/sim"
	"example.com/tandem/sim/machine"
)

// Family is the model of NCCL as package sim takes it.
type Family struct{}

var _ sim.Family = Family{}

// Name is "nccl".
func (Family) Name() string { return Name }

// Implementations describes the one version.
func (Family) Implementations() []api.Implementation {
	return []api.Implementation{{
		Name: Name, Version: Version,
		Summary:     "NCCL 2.28 on one NVLink node, rings, NVLS off",
		Params:      settings(),
		Collectives: collectives(),
		DTypes:      []api.DType{api.BF16, api.F16, api.F32, api.F64, api.E4M3, api.E5M2, api.I8, api.I32, api.I64, api.U8, api.U32, api.U64},
		Promises:    []api.Check{api.CheckCoverage, api.CheckRankAgreement, api.CheckRunToRun, api.CheckLiveness},
		Contract:    api.Exact,
		Evidence: map[string]api.Evidence{
			algRing: api.FromSource, "ring_ll": api.Recorded, "ring_ll128": api.Assumed, "ring_simple": api.Assumed,
			algCopy: api.FromSource, algOneRank: api.FromSource,
		},
		Thresholds: Thresholds,
	}}
}

// Plan says what the library would do.
func (Family) Plan(spec api.Spec, call api.Call) (*api.Plan, error) { return Plan(spec, call) }

// Open checks the spec.
func (Family) Open(spec api.Spec, _ api.TeamConfig) (sim.Session, error) {
	_, err := parseParams(spec)
	return session{spec}, err
}

// session keeps nothing of a communicator from call to call.
type session struct{ spec api.Spec }

// Plan ignores the addresses: nothing the library decides depends on them.
func (s session) Plan(call api.Call, _ sim.Addrs) (*api.Plan, error) { return Plan(s.spec, call) }

func (session) Program(plan *api.Plan) (machine.Program, error) { return newProgram(plan), nil }
