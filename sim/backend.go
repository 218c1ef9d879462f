package sim

import (
	"context"
	"fmt"
	"slices"

	"example.com/tandem/api"
)

// Name is the backend's name in a spec.
const Name = "sim"

// Backend is the api.Backend and api.Planner of the simulator.
type Backend struct{ families []Family }

var (
	_ api.Backend = (*Backend)(nil)
	_ api.Planner = (*Backend)(nil)
)

// New returns the simulator of these families, which must have different names.
func New(families ...Family) *Backend {
	for i, f := range families {
		for _, g := range families[:i] {
			if f.Name() == g.Name() {
				panic("sim: two families of one name")
			}
		}
	}
	return &Backend{families: slices.Clone(families)}
}

// Name is "sim".
func (b *Backend) Name() string { return Name }

// Implementations lists every version of every family.
func (b *Backend) Implementations() []api.Implementation {
	var all []api.Implementation
	for _, f := range b.families {
		all = append(all, f.Implementations()...)
	}
	return all
}

// Plan says what a call would do, without memory.
func (b *Backend) Plan(spec api.Spec, call api.Call) (*api.Plan, error) {
	f, err := b.family(spec)
	if err != nil {
		return nil, err
	}
	if err := call.Validate(); err != nil {
		return nil, err
	}
	return f.Plan(spec, call)
}

// Open readies a team of which this process holds every rank.
func (b *Backend) Open(ctx context.Context, spec api.Spec, cfg api.TeamConfig) (api.Team, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f, err := b.family(spec)
	if err != nil {
		return nil, err
	}
	if cfg.Ranks < 1 || cfg.Ranks > api.MaxRanks {
		return nil, &api.InvalidError{Field: "ranks", Value: fmt.Sprint(cfg.Ranks), Reason: "out of range", Hint: fmt.Sprintf("1 to %d", api.MaxRanks)}
	}
	for _, d := range []struct {
		name string
		neg  bool
	}{{"arrive", cfg.Arrive < 0}, {"progress", cfg.Progress < 0}} {
		if d.neg {
			return nil, &api.InvalidError{Field: d.name, Value: "negative", Reason: "a deadline is a length of time", Hint: "0 is the implementation's default"}
		}
	}
	s, err := f.Open(spec, cfg)
	if err != nil {
		return nil, err
	}
	return newTeam(spec, cfg, s), nil
}

func (b *Backend) family(spec api.Spec) (Family, error) {
	if spec.Backend != "" && spec.Backend != Name {
		return nil, &api.InvalidError{Field: "backend", Value: spec.Backend, Reason: "this is the backend " + Name}
	}
	names := make([]string, len(b.families))
	for i, f := range b.families {
		names[i] = f.Name()
		if f.Name() == spec.Implementation {
			return f, nil
		}
	}
	return nil, &api.InvalidError{Field: "implementation", Value: spec.Implementation, Reason: "unknown to " + Name, Hint: fmt.Sprintf("known are %v", names)}
}
