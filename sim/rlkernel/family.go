package rlkernel

import (
	"example.com/tandem/api"
	"example.com/tandem/sim"
)

// Family is the model of the class as package sim takes it.
type Family struct{}

var (
	_ sim.Family  = Family{}
	_ sim.Session = (*session)(nil)
	_ sim.Judge   = (*session)(nil)
	_ sim.Matcher = (*session)(nil)
	_ sim.Failer  = (*session)(nil)
)

// Name is "rlkernel".
func (Family) Name() string { return Name }

// Implementations describes both versions.
func (Family) Implementations() []api.Implementation {
	var out []api.Implementation
	for _, version := range Versions() {
		out = append(out, implementation(version))
	}
	return out
}

func implementation(version string) api.Implementation {
	summary := "RL-Kernel's DeterministicCollective with a gather by vectors from 64 KiB of output on a grid"
	if version == Before {
		summary = "RL-Kernel's DeterministicCollective with a gather by bytes, in one block up to 256 KiB of output"
	}
	return api.Implementation{
		Name: Name, Version: version, Summary: summary,
		Params:      Params(version),
		Collectives: collectives(),
		DTypes:      api.DTypes(),
		Promises: []api.Check{
			api.CheckCoverage, api.CheckValue, api.CheckRankAgreement, api.CheckRunToRun, api.CheckSizeInvariance, api.CheckPlacementInvariance,
		},
		Contract: api.Exact,
		Evidence: map[string]api.Evidence{
			algSingle: api.FromSource, algSplit: api.FromSource, algMulti: api.FromSource, algCopies: api.FromSource, algOwner: api.Reconstructed,
		},
		Thresholds: func(call api.Call) []int64 {
			c, err := parseConfig(api.Spec{Implementation: Name, Version: version})
			if err != nil {
				return nil
			}
			return c.thresholds(call)
		},
	}
}

// Plan says what the class does with a call at its own addresses.
func (Family) Plan(spec api.Spec, call api.Call) (*api.Plan, error) { return Plan(spec, call) }

// Open makes the class on every rank of a team.
func (Family) Open(spec api.Spec, team api.TeamConfig) (sim.Session, error) {
	s, err := newSession(spec, team.Ranks)
	if err != nil {
		return nil, err
	}
	return s, nil
}
