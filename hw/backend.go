package hw

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
	"example.com/tandem/hw/cascade"
	"example.com/tandem/hw/host"
	"example.com/tandem/hw/nvls"
	"example.com/tandem/hw/rlkernel"
	"example.com/tandem/hw/tandem"
)

// Implementation is one entry of the backend. Describe may say why it cannot run
// here where the backend itself finds nothing.
type Implementation struct {
	Describe func() api.Implementation
	Open     func(context.Context, *host.Machine, api.Spec, api.TeamConfig) (*host.Team, error)
	// Plan says what a team would do with a call; the machine is nil where there
	// is none. nil for a library that shows no plans.
	Plan func(*host.Machine, api.Spec, api.Call) (*api.Plan, error)
}

// implementations are those that every backend has, in the order they are
// listed in.
var implementations = []Implementation{
	{tandem.Describe, tandem.Open, tandem.Plan},
	{func() api.Implementation { return rlkernel.Describe(rlkernel.Before) }, rlkernel.Open, rlkernel.Plan},
	{func() api.Implementation { return rlkernel.Describe(rlkernel.After) }, rlkernel.Open, rlkernel.Plan},
	{nvls.Describe, nvls.Open, nvls.Plan},
	{func() api.Implementation { return cascade.Describe(cascade.Before) }, cascade.Open, cascade.Plan},
	{func() api.Implementation { return cascade.Describe(cascade.After) }, cascade.Open, cascade.Plan},
	{func() api.Implementation { return cascade.Describe(cascade.AfterTeam) }, cascade.Open, cascade.Plan},
	{func() api.Implementation { return cascade.Describe(cascade.AfterTail) }, cascade.Open, cascade.Plan},
}

var (
	_ api.Planner   = (*Backend)(nil)
	_ api.Exclusive = (*Backend)(nil)
)

// Backend is an api.Backend over a GPU driver.
type Backend struct {
	name    string
	machine *host.Machine
	missing error
	list    []Implementation
}

// New is the backend of that name, "hw" or "ptx", over a driver. The extra
// implementations are those that need more than a driver.
func New(name string, d gpu.Driver, extra ...Implementation) *Backend {
	return &Backend{name: name, machine: host.NewMachine(d), list: slices.Concat(implementations, extra)}
}

// Missing is the backend where there is no driver: it lists what there would
// be, and why it cannot run.
func Missing(name string, why error, extra ...Implementation) *Backend {
	return &Backend{name: name, missing: why, list: slices.Concat(implementations, extra)}
}

// Name is the first part of its specs.
func (b *Backend) Name() string { return b.name }

// unavailable says why nothing runs here; "" if something may.
func (b *Backend) unavailable() string {
	if b.missing != nil {
		return b.missing.Error()
	}
	for _, d := range b.machine.Driver.Devices() {
		if why := host.Unusable(d); why != "" {
			return why
		}
	}
	return ""
}

// Implementations lists what the backend knows, and why it cannot run here.
func (b *Backend) Implementations() []api.Implementation {
	var out []api.Implementation
	for _, i := range b.list {
		d := i.Describe()
		d.Unavailable = cmp.Or(b.unavailable(), d.Unavailable)
		out = append(out, d)
	}
	return out
}

// Open makes a team.
func (b *Backend) Open(ctx context.Context, spec api.Spec, t api.TeamConfig) (api.Team, error) {
	if b.missing != nil {
		return nil, &api.Unavailable{Spec: spec.String(), Reason: b.missing.Error()}
	}
	i, err := b.find(spec)
	if err != nil {
		return nil, err
	}
	team, err := i.Open(ctx, b.machine, spec, t)
	if err != nil {
		return nil, err
	}
	return team, nil
}

// Plan says what a team of the spec would do with a call; what it takes of GPUs is
// that they be there. Where they are not, an implementation may say what it needs
// to know of them.
func (b *Backend) Plan(spec api.Spec, call api.Call) (*api.Plan, error) {
	i, err := b.find(spec)
	if err != nil {
		return nil, err
	}
	if i.Plan == nil {
		return nil, &api.Unavailable{Spec: spec.String(), Reason: "the library decides for itself and shows no plan"}
	}
	p, err := i.Plan(b.machine, spec, call)
	var gone *api.Unavailable
	if b.missing != nil && errors.As(err, &gone) {
		return nil, &api.Unavailable{Spec: gone.Spec, Reason: gone.Reason + ": " + b.missing.Error(), Hint: gone.Hint}
	}
	return p, err
}

// Exclusive says that calls have the GPUs to themselves, one at a time.
func (b *Backend) Exclusive() {}

func (b *Backend) find(spec api.Spec) (*Implementation, error) {
	var names []string
	for k, i := range b.list {
		name := i.Describe().Name
		if name == spec.Implementation && spec.Path == "" {
			return &b.list[k], nil
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return nil, &api.InvalidError{Field: "spec", Value: spec.String(), Reason: "no such implementation on " + b.name, Hint: fmt.Sprintf("known are %v", names)}
}

// GPUs are what the driver says of itself and its devices; nothing where there is
// no driver.
func (b *Backend) GPUs() (driver string, gpus []gpu.Info) {
	if b.missing != nil {
		return "", nil
	}
	for _, d := range b.machine.Driver.Devices() {
		gpus = append(gpus, d.Info())
	}
	return b.machine.Driver.Name(), gpus
}

// Close releases what teams share. Teams are closed before.
func (b *Backend) Close() error {
	if b.missing != nil {
		return nil
	}
	return b.machine.Close()
}
