package host

import (
	"context"
	"errors"

	"example.com/tandem/api/gpu"
)

type pageKey struct {
	gpu    *GPU
	device uint64 // bytes
	host   int
}

// Page is control memory of a rank: words in device memory that peers write,
// and pinned words for the host. Neither is ever freed, since a graph may be
// launched after its team was closed; clean ones serve the next team, under a
// new generation.
type Page struct {
	Device gpu.Ptr
	Host   gpu.HostMemory
	key    pageKey
}

// Page gives control memory on a GPU. Its contents are those of its last use.
func (m *Machine) Page(g *GPU, device uint64, host int) (Page, error) {
	key := pageKey{g, device, host}
	m.mu.Lock()
	if n := len(m.pool[key]); n > 0 {
		p := m.pool[key][n-1]
		m.pool[key] = m.pool[key][:n-1]
		m.mu.Unlock()
		return p, nil
	}
	m.mu.Unlock()
	d, err := g.Context.Alloc(device)
	if err != nil {
		return Page{}, err
	}
	h, err := g.Context.AllocHost(host)
	if err != nil {
		return Page{}, errors.Join(err, g.Context.Free(d))
	}
	if err := errors.Join(g.Context.Quarantine(d), g.Context.Quarantine(h.Ptr)); err != nil {
		return Page{}, err
	}
	return Page{d, h, key}, nil
}

// Return gives a page back for the next team: only one that no kernel can reach
// but through a generation check.
func (m *Machine) Return(p Page) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pool[p.key] = append(m.pool[p.key], p)
}

// Retire ends the generation of a page, whose word lies at a byte offset in device
// memory, so that a kernel launched late exits at entry; and returns the page.
func (m *Machine) Retire(g *GPU, p Page, generation uint64) error {
	s, err := g.Context.NewStream(gpu.StreamOptions{})
	if err != nil {
		return err
	}
	err = s.Set8(p.Device.Add(generation), 0, 8)
	if err == nil {
		err = gpu.Wait(context.Background(), m.Driver.Clock(), SetupLimit, s)
	}
	if err == nil {
		m.Return(p)
	}
	return errors.Join(err, s.Destroy())
}

// Write copies bytes to a GPU by way of pinned memory, behind what the stream
// holds, and waits.
func (m *Machine) Write(ctx context.Context, g *GPU, s gpu.Stream, to gpu.Ptr, b []byte) error {
	h, err := g.Context.AllocHost(len(b))
	if err != nil {
		return err
	}
	copy(h.Bytes, b)
	if err = s.Copy(to, h.Ptr, uint64(len(b))); err == nil {
		err = gpu.Wait(ctx, m.Driver.Clock(), SetupLimit, s)
	}
	return errors.Join(err, m.Free(g, h.Ptr))
}
