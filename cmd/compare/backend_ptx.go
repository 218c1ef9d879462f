package main

import (
	"context"
	"sync"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
	"example.com/tandem/hw"
	"example.com/tandem/sim/ptx"
	"example.com/tandem/sim/ptx/kernelfile"
)

// ptxDevices is how many GPUs the virtual machine has; more ranks share them.
const ptxDevices = 8

// ptxBackend is hw's host code and the committed kernels on a virtual GPU. The
// machine is made when the first team is opened.
type ptxBackend struct {
	mu      sync.Mutex
	driver  gpu.Driver
	backend *hw.Backend
}

// Name is "ptx".
func (b *ptxBackend) Name() string { return "ptx" }

func (b *ptxBackend) start() *hw.Backend {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.backend == nil {
		b.driver = ptx.Open(ptx.Options{Devices: ptxDevices, Seed: 1})
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

// Open makes a team. A kernel from a file has a machine of its own.
func (b *ptxBackend) Open(ctx context.Context, spec api.Spec, team api.TeamConfig) (api.Team, error) {
	if spec.Path != "" {
		return kernelfile.Open(ctx, spec, team)
	}
	return b.start().Open(ctx, spec, team)
}

// Close lets go of the machine. It holds nothing of the real one, so that what
// a race left behind in it is no error.
func (b *ptxBackend) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.backend == nil {
		return nil
	}
	err := b.backend.Close()
	b.backend, b.driver = nil, nil
	return err
}
