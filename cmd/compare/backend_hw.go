package main

import (
	"context"
	"errors"
	"sync"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
	"example.com/tandem/hw"
	"example.com/tandem/hw/cuda"
	"example.com/tandem/hw/nccl"
)

// hwBackend is the GPUs of this machine. It starts the driver when somebody asks
// for more than its name, and takes the GPUs for itself when a team is opened:
// kernels that wait for each other must not share one with another process's.
type hwBackend struct {
	open func() (gpu.Driver, error)
	nccl *nccl.Library

	mu      sync.Mutex
	driver  gpu.Driver
	backend *hw.Backend
	unlock  func() error
}

func newHW() *hwBackend {
	return &hwBackend{open: func() (gpu.Driver, error) { return cuda.Open(cuda.Options{}) }, nccl: nccl.New(nccl.Options{})}
}

// Name is "hw".
func (b *hwBackend) Name() string { return "hw" }

// start opens the driver once; where there is none the backend says why.
func (b *hwBackend) start() *hw.Backend {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.backend == nil {
		library := hw.Implementation{Describe: b.nccl.Describe, Open: b.nccl.Open}
		d, err := b.open()
		if err != nil {
			b.backend = hw.Missing(b.Name(), err, library)
		} else {
			b.driver, b.backend = d, hw.New(b.Name(), d, library)
		}
	}
	return b.backend
}

// Implementations lists what there is, and why it cannot run here.
func (b *hwBackend) Implementations() []api.Implementation { return b.start().Implementations() }

// Open makes a team.
func (b *hwBackend) Open(ctx context.Context, spec api.Spec, team api.TeamConfig) (api.Team, error) {
	backend := b.start()
	if err := b.lock(ctx); err != nil {
		return nil, err
	}
	return backend.Open(ctx, spec, team)
}

// lock waits for the other processes that use the GPUs.
func (b *hwBackend) lock(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.driver == nil || b.unlock != nil {
		return nil
	}
	unlock, err := gpu.LockAll(ctx, b.driver.Devices()...)
	if err != nil {
		return err
	}
	b.unlock = unlock
	return nil
}

// Close lets go of the GPUs. Teams are closed before.
func (b *hwBackend) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.driver == nil {
		return nil
	}
	errs := []error{b.nccl.Close(), b.backend.Close()}
	if b.unlock != nil {
		errs = append(errs, b.unlock())
	}
	errs = append(errs, b.driver.Close())
	b.driver, b.backend, b.unlock = nil, nil, nil
	return errors.Join(errs...)
}
