package cascade

import (
	"context"
	"errors"
	"fmt"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
	"example.com/tandem/hw/host"
	"example.com/tandem/hw/inswitch"
	"example.com/tandem/hw/kernels"
)

// Scratch of a block on every rank: a segment, what recursive exchange may take
// for all its phases, or a short message of every rank.
const (
	scratchBytes = 96 << 10
	lineBytes    = 2048 + 16
)

// Engine is a team's part of host.Team.
type Engine struct {
	*inswitch.Team
	config *config
}

// native is an Engine whose buffers have a multicast address.
type native struct{ *Engine }

// Alloc gives memory with a multicast address.
func (e native) Alloc(bytes uint64) ([]gpu.Ptr, error) { return e.AllocCast(bytes) }

// Free takes it back.
func (e native) Free(p []gpu.Ptr, poisoned bool) error { return e.FreeCast(p, poisoned) }

// Open makes a team.
func Open(ctx context.Context, m *host.Machine, spec api.Spec, t api.TeamConfig) (*host.Team, error) {
	c, err := read(spec)
	if err != nil {
		return nil, err
	}
	own, streams, err := inswitch.Open(ctx, c.options(m, t))
	if err != nil {
		return nil, err
	}
	e := &Engine{Team: own, config: c}
	var engine host.Engine = e
	if own.Native() {
		engine = native{e}
	}
	team := host.NewTeam(host.Config{Spec: spec.String(), Machine: m, GPUs: own.GPUs(), Place: own.Place(), Streams: streams, Engine: engine})
	if err := own.Rehearse(ctx, streams); err != nil {
		return nil, errors.Join(err, team.Discard())
	}
	return team, nil
}

const kernelName = "cascade_reduce"

// options are what the kernel needs.
func (c *config) options(m *host.Machine, t api.TeamConfig) inswitch.Options {
	part := max(scratchBytes, lineBytes*t.Ranks)
	return inswitch.Options{
		Spec: c.spec, Machine: m, Team: t, Choice: c.choice, Module: "cascade", Native: kernels.Cascade, Emulated: kernels.CascadeEmulated,
		Kernels: []string{kernelName}, StageHalf: uint64(part * c.blocks),
	}
}

// Admit says whether the implementation takes a call.
func (e *Engine) Admit(call *api.Call) error {
	return e.config.admitGrid(call, e.Most())
}

// admitGrid also says whether all blocks of a call run at a time.
func (c *config) admitGrid(call *api.Call, most int) error {
	if err := c.admit(call); err != nil {
		return err
	}
	if n := c.ctas(call); n > most {
		return &api.Refused{Spec: c.spec.String(), What: call.String(), Reason: fmt.Sprintf("it is split over %d blocks, and the GPUs hold %d of a rank at a time", n, most), Hint: "more GPUs, or max_ctas, which splits otherwise"}
	}
	return nil
}

// TableBytes is 0: all fits the parameters.
func (e *Engine) TableBytes(*api.Call) int { return 0 }

// Table is empty.
func (e *Engine) Table(*api.Call, []host.Buffers) []byte { return nil }

// Bind makes the launch of a call for each GPU.
func (e *Engine) Bind(call *api.Call, mem []host.Buffers, _ []gpu.Ptr) (host.Bound, error) {
	a := e.config.args(call)
	src, dst, err := e.Addresses(call, mem)
	if err != nil {
		return nil, err
	}
	a.Src, a.Dst, a.Hash = src, dst, host.Hash(call)
	bytes := uint64(call.Count) * uint64(call.DType.Size())
	a.Room[inswitch.ObjectSource] = src[0]%inswitch.ObjectAlign + bytes
	a.Room[inswitch.ObjectTarget] = dst[0]%inswitch.ObjectAlign + bytes
	cast, err := e.Casts(src, dst)
	if err != nil {
		return nil, &api.InvalidError{Field: "memory", Value: call.String(), Reason: err.Error(), Hint: "bring buffers at the same place on every rank"}
	}
	return e.Launches(kernelName, a, cast), nil
}
