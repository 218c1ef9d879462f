package nccl

import (
	"context"
	"errors"
	"fmt"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
	"example.com/tandem/hw/host"
)

// Describe is the entry of the implementation in a backend's list; it loads the
// library, to say which version there is, or why there is none.
func (l *Library) Describe() api.Implementation {
	out := api.Implementation{
		Name:        Name,
		Summary:     "the NCCL that is installed, one rank to a GPU, NVLS off",
		Params:      Params(),
		Collectives: collectives(),
		Promises:    []api.Check{api.CheckCoverage, api.CheckRankAgreement, api.CheckRunToRun, api.CheckLiveness},
		Contract:    api.Exact,
		Evidence:    map[string]api.Evidence{Name: api.Recorded},
	}
	for _, d := range api.DTypes() {
		if _, ok := dtypes[d]; ok {
			out.DTypes = append(out.DTypes, d)
		}
	}
	v, err := l.Version()
	var why *api.Unavailable
	switch {
	case err == nil:
		out.Summary = "NCCL " + Version(v) + " as installed, one rank to a GPU, NVLS off"
	case errors.As(err, &why):
		out.Unavailable = why.Reason
	default:
		out.Unavailable = err.Error()
	}
	return out
}

// Open makes a team: a communicator for each rank on a GPU of its own.
func (l *Library) Open(ctx context.Context, m *host.Machine, spec api.Spec, t api.TeamConfig) (*host.Team, error) {
	c, err := read(spec)
	if err != nil {
		return nil, err
	}
	lib, version, err := l.load()
	if err != nil {
		var why *api.Unavailable
		if errors.As(err, &why) {
			err = &api.Unavailable{Spec: spec.String(), Reason: why.Reason, Hint: why.Hint}
		}
		return nil, err
	}
	if err := c.allowed(version); err != nil {
		return nil, err
	}
	if n := len(m.Driver.Devices()); t.Ranks < 1 || t.Ranks > n {
		return nil, &api.Refused{Spec: spec.String(), What: fmt.Sprintf("%d ranks", t.Ranks), Reason: fmt.Sprintf("NCCL has one rank to a GPU, and there are %d GPUs", n), Hint: fmt.Sprintf("1 to %d ranks", n)}
	}
	e := &engine{config: c, owner: l, lib: lib, version: version, machine: m}
	if e.deadlines, err = host.ReadDeadlines(t, 1); err != nil {
		return nil, err
	}
	on, err := m.Spread(spec.String(), t.Ranks, t.Ranks, false)
	if err != nil {
		return nil, err
	}
	e.gpus = on.GPUs
	if e.streams, err = on.NewStreams(); err != nil {
		return nil, err
	}
	if err := e.handles(); err != nil {
		return nil, errors.Join(err, host.DestroyStreams(e.streams))
	}
	var devices []int32
	for _, g := range e.gpus {
		devices = append(devices, int32(g.Index))
	}
	comms, err := l.communicators(c, lib, devices)
	if err != nil {
		return nil, errors.Join(err, host.DestroyStreams(e.streams))
	}
	for i, comm := range comms {
		e.ranks[i].comm = comm
	}
	cfg := host.Config{Spec: spec.String(), Machine: m, GPUs: e.gpus, Place: on.Place, Streams: e.streams, Engine: e}
	if c.buffers != plain {
		cfg.Engine = &lender{engine: e}
	}
	team := host.NewTeam(cfg)
	if err := e.rehearse(ctx); err != nil {
		return nil, errors.Join(err, team.Discard())
	}
	return team, nil
}

// handles notes the library's names of the streams.
func (e *engine) handles() error {
	for _, s := range e.streams {
		n, ok := s.(gpu.NativeStream)
		if !ok {
			return &api.Unavailable{Spec: e.config.spec.String(), Reason: "NCCL runs on a real CUDA driver only"}
		}
		var t task
		var err error
		if t.stream, t.context, err = n.Native(); err != nil {
			return err
		}
		e.ranks = append(e.ranks, t)
	}
	return nil
}

// rehearse makes a group of empty calls, which shows a library that cannot work
// here, and waits for whatever it queued.
func (e *engine) rehearse(ctx context.Context) error {
	var list []task
	for _, t := range e.ranks {
		t.kind, t.dtype = doAllReduce, dtypes[api.U8]
		list = append(list, t)
	}
	if err := e.lib.Group(list); err != nil {
		return err
	}
	var q []gpu.Queryer
	for _, s := range e.streams {
		q = append(q, s)
	}
	return gpu.Wait(ctx, e.machine.Driver.Clock(), e.deadlines.Arrive+e.deadlines.Progress, q...)
}
