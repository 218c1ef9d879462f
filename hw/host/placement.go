package host

import (
	"errors"
	"fmt"
	"time"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
)

// Placement is where the ranks of a team are.
type Placement struct {
	GPUs  []*GPU
	Place []int   // GPU, by index into GPUs, of each rank
	Local [][]int // ranks of each GPU
}

// Share is the number of GPUs that ranks share where a spec asks for some; 0 asks
// for as many as there are, at most one a rank.
func (m *Machine) Share(spec string, ranks, gpus int) (int, error) {
	there := len(m.Driver.Devices())
	switch {
	case there == 0:
		return 0, &api.Unavailable{Spec: spec, Reason: "the driver has no GPU"}
	case gpus > ranks:
		return 0, &api.InvalidError{Field: "gpus", Value: fmt.Sprint(gpus), Reason: fmt.Sprintf("more than the %d ranks", ranks)}
	case gpus == 0:
		return min(ranks, there), nil
	}
	return gpus, nil
}

// Spread opens so many GPUs and puts ranks on them: neighbours together, or
// cyclic every gpus-th.
func (m *Machine) Spread(spec string, ranks, gpus int, cyclic bool) (*Placement, error) {
	open, err := m.Open(spec, gpus)
	if err != nil {
		return nil, err
	}
	p := &Placement{GPUs: open, Local: make([][]int, gpus)}
	for r := range ranks {
		g := r * gpus / ranks
		if cyclic {
			g = r % gpus
		}
		p.Place = append(p.Place, g)
		p.Local[g] = append(p.Local[g], r)
	}
	return p, nil
}

// GPU is that of a rank.
func (p *Placement) GPU(rank int) *GPU { return p.GPUs[p.Place[rank]] }

// Cycles is a time on the fastest clock of the GPUs.
func (p *Placement) Cycles(d time.Duration) uint64 {
	most := 0
	for _, g := range p.GPUs {
		most = max(most, g.Context.Device().Info().ClockKHz)
	}
	return uint64(most) * uint64(d/time.Microsecond) / 1000
}

// NewStreams makes one for each GPU, or none; they are the caller's.
func (p *Placement) NewStreams() ([]gpu.Stream, error) {
	var out []gpu.Stream
	for _, g := range p.GPUs {
		s, err := g.Context.NewStream(gpu.StreamOptions{})
		if err != nil {
			return nil, errors.Join(err, DestroyStreams(out))
		}
		out = append(out, s)
	}
	return out, nil
}

// DestroyStreams gives streams back.
func DestroyStreams(streams []gpu.Stream) error {
	var errs []error
	for _, s := range streams {
		errs = append(errs, s.Destroy())
	}
	return errors.Join(errs...)
}

// CheckBuffer refuses an address that no kernel of a rank could use: misaligned,
// freed, of another device or too near the end. who is whose buffer it is, name
// which one; size is that of an element, in bytes.
func (p *Placement) CheckBuffer(rank int, who, name string, at gpu.Ptr, size, bytes int64) error {
	refuse := func(reason, hint string) error {
		return &api.InvalidError{Field: name, Value: fmt.Sprintf("0x%x", uint64(at)), Reason: who + ": " + reason, Hint: hint}
	}
	if uint64(at)%uint64(size) != 0 {
		return refuse(fmt.Sprintf("the address is no multiple of the element size %d", size), "align buffers to their elements")
	}
	if bytes == 0 {
		return nil
	}
	g := p.GPU(rank)
	r, err := g.Context.Range(at)
	switch {
	case err != nil:
		return refuse("no allocation holds it: "+err.Error(), "it was freed, or is not device memory")
	case !r.Holds(at, uint64(bytes)):
		return refuse(fmt.Sprintf("%d bytes reach beyond its allocation of %d bytes at 0x%x", bytes, r.Bytes, uint64(r.Base)), "allocate more")
	case r.Device != g.Index:
		return refuse(fmt.Sprintf("it is memory of device %d, the rank runs on GPU %d", r.Device, g.Index), "allocate it on the rank's GPU")
	}
	return nil
}
