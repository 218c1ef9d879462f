package nvls

import (
	"context"
	"errors"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
	"example.com/tandem/hw/host"
	"example.com/tandem/hw/inswitch"
	"example.com/tandem/hw/kernels"
	"example.com/tandem/hw/tandem"
)

// Engine is a team's part of host.Team: the kernels of the switch, and a team of
// tandem for all other calls.
type Engine struct {
	*inswitch.Team
	config *config
	tandem *host.Team
}

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
	team := host.NewTeam(host.Config{Spec: spec.String(), Machine: m, GPUs: own.GPUs(), Place: own.Place(), Streams: streams, Engine: e})
	if err := own.Rehearse(ctx, streams); err != nil {
		return nil, errors.Join(err, team.Discard())
	}
	if e.tandem, err = tandem.Open(ctx, m, c.rest(), t); err != nil {
		return nil, errors.Join(err, team.Discard())
	}
	return team, nil
}

// options are what the kernels of the switch need.
func (c *config) options(m *host.Machine, t api.TeamConfig) inswitch.Options {
	return inswitch.Options{
		Spec: c.spec, Machine: m, Team: t, Choice: c.choice, Module: "nvls", Native: kernels.NVLS, Emulated: kernels.NVLSEmulated,
		Kernels: []string{kernelReduce, kernelGather}, StageHalf: uint64(c.stage / 2), StageCast: true,
	}
}

// other is the engine of a call that is tandem's; nil for one of the switch.
func (e *Engine) other(call *api.Call) host.Engine {
	if _, _, ok := inSwitch(call); ok {
		return nil
	}
	return e.tandem.Engine()
}

// Admit takes what tandem takes.
func (e *Engine) Admit(call *api.Call) error { return e.tandem.Engine().Admit(call) }

// TableBytes is what tandem needs for its calls.
func (e *Engine) TableBytes(call *api.Call) int {
	if o := e.other(call); o != nil {
		return o.TableBytes(call)
	}
	return 0
}

// Table is tandem's.
func (e *Engine) Table(call *api.Call, mem []host.Buffers) []byte {
	if o := e.other(call); o != nil {
		return o.Table(call, mem)
	}
	return nil
}

// Bind makes the launch of a call for each GPU.
func (e *Engine) Bind(call *api.Call, mem []host.Buffers, tables []gpu.Ptr) (host.Bound, error) {
	if o := e.other(call); o != nil {
		return o.Bind(call, mem, tables)
	}
	src, dst, err := e.Addresses(call, mem)
	if err != nil {
		return nil, err
	}
	collective, form, _ := inSwitch(call)
	join, _ := inswitch.JoinOf(call.DType, call.Op)
	a := inswitch.Args{Count: call.Count, Src: src, Dst: dst, Hash: host.Hash(call), Collective: collective, Form: form, Join: join, Log: inswitch.Log(call.DType)}
	if call.InPlace != api.OutOfPlace {
		a.Flags |= inswitch.FlagInPlace
	}
	e.config.choice.Fabric.Set(&a, call.DType)
	a.Blocks = e.config.grid(call, e.Most())
	return e.Launches(kernelOf(collective), a, nil), nil
}

// The kernels.
const (
	kernelReduce = "nvls_reduce"
	kernelGather = "nvls_gather"
)

func kernelOf(collective uint32) string {
	if collective == inswitch.AllGather {
		return kernelGather
	}
	return kernelReduce
}

// grid is that of a rank: a line for every thread, of what the rank moves.
func (c *config) grid(call *api.Call, most int) int {
	if c.blocks > 0 {
		return min(c.blocks, most)
	}
	bytes := call.Count * int64(call.DType.Size())
	return int(max(1, min((bytes/16+inswitch.Threads-1)/inswitch.Threads, int64(most))))
}

// Verdicts are those of whoever made the call.
func (e *Engine) Verdicts(call *api.Call) []error {
	if o := e.other(call); o != nil {
		return o.Verdicts(call)
	}
	return e.Team.Verdicts(call)
}

// Stop ends running kernels at their next look at the clock.
func (e *Engine) Stop() {
	e.Team.Stop()
	if e.tandem != nil {
		e.tandem.Engine().Stop()
	}
}

// Release gives up the memory of both teams.
func (e *Engine) Release(poisoned bool) error {
	err := e.Team.Release(poisoned)
	switch {
	case e.tandem == nil:
		return err
	case poisoned:
		return errors.Join(err, e.tandem.Discard())
	}
	return errors.Join(err, e.tandem.Close(context.Background()))
}
