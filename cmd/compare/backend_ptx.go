package main

import (
	"context"
	"errors"
	"sync"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
	"example.com/tandem/hw"
	"example.com/tandem/sim/ptx"
	"example.com/tandem/sim/ptx/kernelfile"
)

// ptxDevices is how many GPUs the virtual machine has; more ranks share them.
const ptxDevices = 8

// maxPtxSwitch bounds the GPUs of a machine with a switch, of which every rank
// has one.
const maxPtxSwitch = 72

// ptxBackend is hw's host code and the committed kernels on a virtual GPU. The
// machine is made when the first team is opened.
type ptxBackend struct {
	mu       sync.Mutex
	driver   gpu.Driver
	backend  *hw.Backend
	switches []*ptxSwitch
	edit     func(text []byte) []byte // of modules, for tests; nil leaves them
}

// Name is "ptx".
func (b *ptxBackend) Name() string { return "ptx" }

func (b *ptxBackend) start() *hw.Backend {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.backend == nil {
		b.driver = ptx.Open(ptx.Options{Devices: ptxDevices, Seed: 1, Edit: b.edit})
		b.backend = hw.New(b.Name(), b.driver)
	}
	return b.backend
}

// Implementations lists what there is, kernels from files last.
func (b *ptxBackend) Implementations() []api.Implementation {
	return append(b.start().Implementations(), kernelfile.Implementation())
}

// GPUs are the virtual ones.
func (b *ptxBackend) GPUs() (driver string, gpus []gpu.Info) { return b.start().GPUs() }

// Plan says what a team would do. A kernel from a file decides for itself.
func (b *ptxBackend) Plan(spec api.Spec, call api.Call) (*api.Plan, error) {
	if spec.Path != "" {
		return nil, &api.Unavailable{Spec: spec.String(), Reason: "a kernel from a file decides for itself and shows no plan"}
	}
	var p *api.Plan
	err := b.renewed(func(now *hw.Backend) (err error) {
		p, err = now.Plan(spec, call)
		return err
	})
	return p, err
}

// Exclusive says that calls have the machine to themselves.
func (b *ptxBackend) Exclusive() {}

// Open makes a team. A kernel from a file has a machine of its own, and so has a
// team with multicast.
func (b *ptxBackend) Open(ctx context.Context, spec api.Spec, team api.TeamConfig) (api.Team, error) {
	if spec.Path != "" {
		return kernelfile.Open(ctx, spec, team)
	}
	if spec.Param("multicast", "off") != "on" {
		return b.open(ctx, spec, team)
	}
	s, err := openSwitch(spec, max(ptxDevices, min(team.Ranks, maxPtxSwitch)))
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	b.switches = append(b.switches, s)
	b.mu.Unlock()
	return s.open(ctx, spec, team)
}

// open makes a team on the machine.
func (b *ptxBackend) open(ctx context.Context, spec api.Spec, team api.TeamConfig) (api.Team, error) {
	var t api.Team
	err := b.renewed(func(now *hw.Backend) (err error) {
		t, err = now.Open(ctx, spec, team)
		return err
	})
	return t, err
}

// renewed does something on the machine. One on which a kernel has faulted is of no
// more use, as a GPU's context is: another takes its place.
func (b *ptxBackend) renewed(do func(*hw.Backend) error) error {
	first := b.start()
	err := do(first)
	if !errors.Is(err, gpu.ErrContextLost) {
		return err
	}
	b.mu.Lock()
	if b.backend == first {
		b.backend, b.driver = nil, nil
	}
	b.mu.Unlock()
	return do(b.start())
}

// Close lets go of the machine. It holds nothing of the real one, so that what
// a race left behind in it is no error.
func (b *ptxBackend) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var errs []error
	for _, s := range b.switches {
		errs = append(errs, s.Close())
	}
	if b.backend != nil {
		errs = append(errs, b.backend.Close())
	}
	b.backend, b.driver, b.switches = nil, nil, nil
	return errors.Join(errs...)
}
