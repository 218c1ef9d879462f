package rlkernel

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
	"example.com/tandem/hw/host"
	"example.com/tandem/hw/kernels"
)

// setupLimit is more than a copy or an empty call takes.
const setupLimit = 30 * time.Second

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
	if e.arrive, err = c.deadline("arrive", t.Arrive, defaultArrive); err != nil {
		return nil, err
	}
	if e.progress, err = c.deadline("progress", t.Progress, defaultProgress); err != nil {
		return nil, err
	}
	if err := e.spread(t.Ranks); err != nil {
		return nil, err
	}
	if err := e.load(); err != nil {
		return nil, err
	}
	var streams []gpu.Stream
	for _, g := range e.gpus {
		s, err := g.Context.NewStream(gpu.StreamOptions{})
		if err != nil {
			for _, s := range streams {
				err = errors.Join(err, s.Destroy())
			}
			return nil, err
		}
		streams = append(streams, s)
	}
	team := host.NewTeam(host.Config{Spec: spec.String(), Machine: m, GPUs: e.gpus, Place: e.place, Streams: streams, Engine: e})
	if err := e.start(ctx, streams); err != nil {
		return nil, errors.Join(err, team.Discard())
	}
	return team, nil
}

func (c *config) deadline(name string, want, def time.Duration) (time.Duration, error) {
	if want == 0 {
		want = def
	}
	if want < minDeadline {
		return 0, &api.InvalidError{Field: name, Value: want.String(), Reason: "too short a deadline", Hint: fmt.Sprintf("%v or more", minDeadline)}
	}
	return want * time.Duration(c.scale), nil
}

// spread puts the ranks on GPUs.
func (e *Engine) spread(ranks int) error {
	n := e.config.gpus
	switch {
	case n > ranks:
		return &api.InvalidError{Field: "gpus", Value: fmt.Sprint(n), Reason: fmt.Sprintf("more than the %d ranks", ranks)}
	case n == 0:
		n = min(ranks, len(e.machine.Driver.Devices()))
	}
	var err error
	if e.gpus, err = e.machine.Open(e.config.spec.String(), n); err != nil {
		return err
	}
	e.local = make([][]int, n)
	for r := range ranks {
		g := r * n / ranks
		if e.config.cyclic {
			g = r % n
		}
		e.place = append(e.place, g)
		e.local[g] = append(e.local[g], r)
	}
	return nil
}

// load finds the kernels on every GPU. Of those that wait for each other a rank
// has one block, and all blocks of a GPU must fit at a time.
func (e *Engine) load() error {
	for i, g := range e.gpus {
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
			if fits*g.Context.SMs() < len(e.local[i]) {
				return e.config.refuse(fmt.Sprintf("%d ranks on one GPU", len(e.local[i])), fmt.Sprintf("it holds %d blocks of %s at a time, and every rank needs one", fits*g.Context.SMs(), name), "more GPUs")
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
	for r := range e.place {
		g, s := e.gpus[e.place[r]], streams[e.place[r]]
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
		if err := e.write(ctx, g, s, page.Device.Add(controlGeneration)); err != nil {
			return err
		}
	}
	return e.rehearse(ctx, streams)
}

// write puts the generation into a page, by way of pinned memory.
func (e *Engine) write(ctx context.Context, g *host.GPU, s gpu.Stream, at gpu.Ptr) error {
	h, err := g.Context.AllocHost(8)
	if err != nil {
		return err
	}
	binary.LittleEndian.PutUint64(h.Bytes, e.generation)
	err = s.Copy(at, h.Ptr, 8)
	if err == nil {
		err = gpu.Wait(ctx, e.machine.Driver.Clock(), setupLimit, s)
	}
	return errors.Join(err, e.machine.Free(g, h.Ptr))
}

// rehearse makes empty calls that have every kernel between them, in blocks of a
// warp.
func (e *Engine) rehearse(ctx context.Context, streams []gpu.Stream) error {
	call := api.Call{Collective: api.AllReduce, DType: api.F32, Op: api.Sum, Ranks: len(e.place)}
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
		for _, step := range e.bound(&call, mem, ls) {
			for i, s := range streams {
				step[i].Block.X = min(step[i].Block.X, 32)
				if err := s.Launch(step[i]); err != nil {
					return err
				}
			}
		}
		var q []gpu.Queryer
		for _, s := range streams {
			q = append(q, s)
		}
		if err := gpu.Wait(ctx, e.machine.Driver.Clock(), e.arrive+setupLimit, q...); err != nil {
			e.Stop()
			return err
		}
		if errs := e.Verdicts(&call); errs != nil {
			return errors.Join(errs...)
		}
	}
	return nil
}

// Release gives the frames back and the pages to the next team. Pages of a
// poisoned team are not used again.
func (e *Engine) Release(poisoned bool) error {
	var errs []error
	for r, page := range e.pages {
		g := e.gpus[e.place[r]]
		if poisoned {
			if r < len(e.frames) {
				errs = append(errs, g.Context.Quarantine(e.frames[r]))
			}
			continue
		}
		errs = append(errs, e.machine.Free(g, e.frames[r]), e.retire(g, page))
	}
	e.pages = nil
	return errors.Join(errs...)
}

// retire ends the generation of a page, so that a kernel launched late exits at
// entry, and gives the page to the next team.
func (e *Engine) retire(g *host.GPU, p host.Page) error {
	s, err := g.Context.NewStream(gpu.StreamOptions{})
	if err != nil {
		return err
	}
	err = s.Set8(p.Device.Add(controlGeneration), 0, 8)
	if err == nil {
		err = gpu.Wait(context.Background(), e.machine.Driver.Clock(), setupLimit, s)
	}
	if err == nil {
		e.machine.Return(p)
	}
	return errors.Join(err, s.Destroy())
}
