package rlkernel

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
	"example.com/tandem/hw/host"
	"example.com/tandem/hw/kernels"
)

// Open makes a team: frames and pages, kernels loaded and each tried once, so
// that nothing is loaded or allocated while a kernel waits.
func Open(ctx context.Context, m *host.Machine, spec api.Spec, t api.TeamConfig) (*host.Team, error) {
	c, err := read(spec)
	if err != nil {
		return nil, err
	}
	if t.Ranks != 1 && t.Ranks != 2 && t.Ranks != 4 && t.Ranks != 8 {
		return nil, c.refuseRanks(t.Ranks)
	}
	e := &Engine{config: c, machine: m}
	if e.deadlines, err = host.ReadDeadlines(t, c.scale); err != nil {
		return nil, err
	}
	if err := e.ready(t.Ranks); err != nil {
		return nil, err
	}
	streams, err := e.on.NewStreams()
	if err != nil {
		return nil, err
	}
	team := host.NewTeam(host.Config{Spec: spec.String(), Machine: m, GPUs: e.on.GPUs, Place: e.on.Place, Streams: streams, Engine: e})
	if err := e.start(ctx, streams); err != nil {
		return nil, errors.Join(err, team.Discard())
	}
	return team, nil
}

// ready puts the ranks on GPUs and loads the kernels.
func (e *Engine) ready(ranks int) error {
	spec := e.config.spec.String()
	n, err := e.machine.Share(spec, ranks, e.config.gpus)
	if err != nil {
		return err
	}
	if e.on, err = e.machine.Spread(spec, ranks, n, e.config.cyclic); err != nil {
		return err
	}
	return e.load()
}

// load finds the kernels on every GPU. Of those that wait for each other a rank
// has one block, and all blocks of a GPU must fit at a time.
func (e *Engine) load() error {
	for i, g := range e.on.GPUs {
		found := make(map[string]gpu.Function)
		for _, name := range kernelNames {
			f, err := g.Function("rlkernel.ptx", kernels.RLKernel, name)
			if err != nil {
				return err
			}
			fits, err := f.BlocksPerSM(threads, 0)
			if err != nil {
				return err
			}
			if fits*g.Context.SMs() < len(e.on.Local[i]) {
				return e.config.refuse(fmt.Sprintf("%d ranks on one GPU", len(e.on.Local[i])), fmt.Sprintf("it holds %d blocks of %s at a time, and every rank needs one", fits*g.Context.SMs(), name), "more GPUs")
			}
			found[name] = f
		}
		e.functions = append(e.functions, found)
	}
	return nil
}

// start allocates, fills in the pages, and launches every kernel once.
func (e *Engine) start(ctx context.Context, streams []gpu.Stream) error {
	e.generation = e.machine.Generation()
	for r := range e.on.Place {
		g, s := e.on.GPU(r), streams[e.on.Place[r]]
		page, err := e.machine.Page(g, controlBytes, reportBytes)
		if err != nil {
			return err
		}
		e.pages = append(e.pages, page)
		clear(page.Host.Bytes)
		frame, err := g.Context.Alloc(framePayload + uint64(e.config.room))
		if err != nil {
			return fmt.Errorf("the staging of rank %d, max_size_bytes=%d: %w", r, e.config.room, err)
		}
		e.frames = append(e.frames, frame)
		if err := errors.Join(s.Set8(frame, 0, framePayload), s.Set8(page.Device, 0, controlBytes)); err != nil {
			return err
		}
		if err := e.machine.Write(ctx, g, s, page.Device.Add(controlGeneration), binary.LittleEndian.AppendUint64(nil, e.generation)); err != nil {
			return err
		}
	}
	return e.rehearse(ctx, streams)
}

// rehearse makes empty calls that have every kernel between them, in blocks of a
// warp.
func (e *Engine) rehearse(ctx context.Context, streams []gpu.Stream) error {
	call := api.Call{Collective: api.AllReduce, DType: api.F32, Op: api.Sum, Ranks: len(e.on.Place)}
	mem := make([]host.Buffers, call.Ranks)
	for r := range mem {
		mem[r] = host.Buffers{{}}
	}
	for _, ls := range [][]launch{
		{one(kernelFusedGather, 0)},
		{one(kernelFusedReduce, 0)},
		{one(kernelStage, 0), one(kernelFinish, 0)},
		between([]launch{one(kernelStage, 0), one(kernelCopy, 0), one(kernelGather, 0)}, one(kernelReduce, 0)),
	} {
		b := e.bound(&call, mem, ls)
		for _, step := range b {
			for i := range step {
				step[i].Block.X = min(step[i].Block.X, 32)
			}
		}
		if err := host.Rehearse(ctx, e.machine.Driver.Clock(), e, &call, b, streams); err != nil {
			return err
		}
	}
	return nil
}

// Release gives the frames back and the pages to the next team. Pages of a
// poisoned team are not used again.
func (e *Engine) Release(poisoned bool) error {
	var errs []error
	for r, page := range e.pages {
		g := e.on.GPU(r)
		if poisoned {
			if r < len(e.frames) {
				errs = append(errs, g.Context.Quarantine(e.frames[r]))
			}
			continue
		}
		errs = append(errs, e.machine.Free(g, e.frames[r]), e.machine.Retire(g, page, controlGeneration))
	}
	e.pages = nil
	return errors.Join(errs...)
}
