package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
)

// MinMajor is the least compute capability, MinMajor.0, that the committed PTX
// runs on.
const MinMajor = 9

// Machine is the GPUs of a driver, opened as teams need them and kept until
// Close, with the modules loaded into them. It is safe for concurrent use.
type Machine struct {
	Driver gpu.Driver
	mu     sync.Mutex
	gpus   map[int]*GPU
	pool   map[pageKey][]Page
	next   uint64 // generation
	closed bool
}

// GPU is one device in use.
type GPU struct {
	Context gpu.Context
	Index   int
	mu      sync.Mutex
	modules map[string]gpu.Module
	lost    atomic.Bool
}

// NewMachine is the machine of a driver, which stays the caller's.
func NewMachine(d gpu.Driver) *Machine {
	return &Machine{Driver: d, gpus: make(map[int]*GPU), pool: make(map[pageKey][]Page)}
}

// Unusable says why a device cannot run the kernels; "" if it can.
func Unusable(d gpu.Device) string {
	info := d.Info()
	switch {
	case !info.AtLeast(MinMajor, 0):
		return fmt.Sprintf("%s has compute capability %d.%d, the kernels need %d.0", info.Name, info.Major, info.Minor, MinMajor)
	case !info.CooperativeLaunch:
		return info.Name + " has no cooperative launch"
	case !info.HostMapping || !info.UnifiedAddresses:
		return info.Name + " cannot reach pinned host memory"
	case info.Prohibited:
		return info.Name + " is closed to all processes"
	}
	return ""
}

// Open gives the first n devices, each able to reach the memory of the others.
func (m *Machine) Open(spec string, n int) ([]*GPU, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	devices := m.Driver.Devices()
	if m.closed {
		return nil, &api.Unavailable{Spec: spec, Reason: "the backend was closed"}
	}
	if n > len(devices) {
		return nil, &api.Unavailable{Spec: spec, Reason: fmt.Sprintf("%d GPUs were asked for, there are %d", n, len(devices)), Hint: "let ranks share GPUs: gpus=1"}
	}
	var out []*GPU
	for i := range n {
		if why := Unusable(devices[i]); why != "" {
			return nil, &api.Unavailable{Spec: spec, Reason: why}
		}
		g, err := m.open(devices[i])
		if err != nil {
			return nil, fmt.Errorf("opening GPU %d: %w", i, err)
		}
		out = append(out, g)
	}
	return out, m.connect(spec, out)
}

func (m *Machine) open(d gpu.Device) (*GPU, error) {
	i := d.Ordinal()
	if g := m.gpus[i]; g != nil && !g.lost.Load() {
		return g, nil
	}
	c, err := d.Open()
	if err != nil {
		return nil, err
	}
	g := &GPU{Context: c, Index: i, modules: make(map[string]gpu.Module)}
	m.gpus[i] = g
	return g, nil
}

func (m *Machine) connect(spec string, gpus []*GPU) error {
	for _, a := range gpus {
		for _, b := range gpus {
			if a == b {
				continue
			}
			from, to := a.Context.Device(), b.Context.Device()
			info, err := from.Peer(to)
			if err != nil {
				return err
			}
			if !info.Access {
				return &api.Unavailable{Spec: spec, Reason: fmt.Sprintf("GPU %d cannot reach the memory of GPU %d", a.Index, b.Index), Hint: "let ranks share a GPU: gpus=1"}
			}
			if err := a.Context.EnablePeer(b.Context); err != nil {
				return err
			}
		}
	}
	return nil
}

// Function gives a kernel of a module, which is loaded once for all teams.
func (g *GPU) Function(module string, ptx []byte, name string) (gpu.Function, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	m := g.modules[module]
	if m == nil {
		var err error
		if m, err = g.Context.LoadModule(module, ptx); err != nil {
			return nil, err
		}
		g.modules[module] = m
	}
	return m.Function(name)
}

// abandon gives a GPU up whose context is lost or holds a kernel that does not
// end: nothing in it can be released.
func (m *Machine) abandon(g *GPU) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if g.lost.Load() {
		return
	}
	g.lost.Store(true)
	g.Context.Abandon()
	for k := range m.pool {
		if k.gpu == g {
			delete(m.pool, k)
		}
	}
}

// Close unloads the modules and closes the contexts; teams are closed before.
func (m *Machine) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil
	}
	m.closed = true
	var errs []error
	gpus := make([]*GPU, 0, len(m.gpus))
	for _, g := range m.gpus {
		gpus = append(gpus, g)
	}
	slices.SortFunc(gpus, func(a, b *GPU) int { return cmp.Compare(a.Index, b.Index) })
	for _, g := range gpus {
		if !g.lost.Load() {
			for _, mod := range g.modules {
				errs = append(errs, mod.Unload())
			}
		}
		errs = append(errs, g.Context.Close())
	}
	return errors.Join(errs...)
}

// Free gives memory back. The driver refuses while any team's work is on the
// GPU, so it is tried until there is a gap.
func (m *Machine) Free(g *GPU, p gpu.Ptr) error {
	var err error
	late := gpu.Poll(context.Background(), m.Driver.Clock(), stopLimit, func() (bool, error) {
		err = g.Context.Free(p)
		return !errors.Is(err, gpu.ErrBusy), nil
	})
	return errors.Join(err, late)
}

// Generation is a number that no team of this machine had before.
func (m *Machine) Generation() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.next++
	return m.next
}
