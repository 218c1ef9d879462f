package kernelfile

import (
	"context"
	"errors"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
)

// memory is that of one call: of each rank on its GPU, and pinned.
type memory struct {
	own, multi []gpu.Ptr
	pinned     []gpu.HostMemory
	release    []func() error // in order
}

// multicast reports whether the kernel takes a multicast address.
func (d *Description) multicast() bool {
	for _, p := range d.Params {
		if p.Source == Multicast {
			return true
		}
	}
	return false
}

// allocate gives every rank n bytes that were never written, which one
// multicast address reaches if the kernel takes one.
func (t *team) allocate(ctx context.Context, n uint64) (*memory, error) {
	m := &memory{}
	for _, c := range t.contexts {
		h, err := c.AllocHost(int(n))
		if err != nil {
			return nil, err
		}
		m.pinned = append(m.pinned, h)
		m.release = append(m.release, func() error { return c.Free(h.Ptr) })
	}
	if t.d.multicast() {
		return m, t.cast(ctx, m, n)
	}
	for _, c := range t.contexts {
		p, err := c.Alloc(n)
		if err != nil {
			return nil, err
		}
		m.own = append(m.own, p)
		m.release = append(m.release, func() error { return c.Free(p) })
	}
	return m, nil
}

// cast makes memory and a multicast object over all of it.
func (t *team) cast(ctx context.Context, m *memory, n uint64) error {
	caster, err := t.contexts[0].Multicast()
	if err != nil {
		return &api.Unavailable{Spec: t.spec.String(), Reason: err.Error(), Hint: "the object is simulated, but the switches are obeyed: unset the variable"}
	}
	options := gpu.MulticastOptions{Devices: len(t.contexts)}
	_, best, err := caster.Granularity(gpu.MulticastOptions{Devices: len(t.contexts), Bytes: n})
	if err != nil {
		return err
	}
	options.Bytes = (n + best - 1) / best * best
	object, err := caster.Create(options)
	if err != nil {
		return err
	}
	devices := t.driver.Devices()
	for _, d := range devices {
		if err := object.AddDevice(d); err != nil {
			return err
		}
	}
	for i, c := range t.contexts {
		p, err := c.Create(options.Bytes, gpu.NotShared)
		if err != nil {
			return err
		}
		at, err := c.Map(p, devices...)
		if err != nil {
			return err
		}
		if err := object.Bind(ctx, 0, p, 0, options.Bytes); err != nil {
			return err
		}
		m.own = append(m.own, at)
		m.release = append(m.release, func() error {
			return errors.Join(object.Unbind(devices[i], 0, options.Bytes), c.Unmap(at), p.Release())
		})
	}
	var unmap []func() error
	for _, c := range t.contexts {
		at, err := object.Map(ctx, c)
		if err != nil {
			return err
		}
		m.multi = append(m.multi, at)
		unmap = append(unmap, func() error { return c.Unmap(at) })
	}
	m.release = append(append(unmap, m.release...), object.Release)
	return nil
}

// free gives all of it back.
func (m *memory) free() error {
	var errs []error
	for _, f := range m.release {
		errs = append(errs, f())
	}
	return errors.Join(errs...)
}
