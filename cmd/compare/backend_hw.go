package main

import (
	"context"
	"errors"
	"os"
	"sync"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
	"example.com/tandem/cmd/compare/internal/child"
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
	lost    bool // the process may lose its context
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

// GPUs are those of the machine.
func (b *hwBackend) GPUs() (driver string, gpus []gpu.Info) { return b.start().GPUs() }

// Plan says what a team would do.
func (b *hwBackend) Plan(spec api.Spec, call api.Call) (*api.Plan, error) {
	return b.start().Plan(spec, call)
}

// Exclusive says that calls have the GPUs to themselves.
func (b *hwBackend) Exclusive() {}

// Open makes a team. One whose calls may fault lives in a child process, since
// the context they run in is lost.
func (b *hwBackend) Open(ctx context.Context, spec api.Spec, team api.TeamConfig) (api.Team, error) {
	backend := b.start()
	if err := b.lock(ctx); err != nil {
		return nil, err
	}
	if b.driver != nil && !b.lost && spec.Param("allow_fault", "0") == "1" {
		return inChild(ctx, spec, team)
	}
	return backend.Open(ctx, spec, team)
}

// expendable makes this the backend of a child process: its parent holds the
// locks, and nothing else runs here.
func (b *hwBackend) expendable() {
	b.lost = true
	b.open = func() (gpu.Driver, error) { return cuda.Open(cuda.Options{NoLocks: true}) }
	b.unlock = func() error { return nil }
}

// inChild opens a team in a process of its own.
func inChild(ctx context.Context, spec api.Spec, team api.TeamConfig) (api.Team, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return child.Open(ctx, exe, []string{"compare", "child"}, spec, team)
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
