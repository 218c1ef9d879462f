package tandem

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

// Open makes a team: memory, tables, kernels loaded and tried with empty calls,
// so that nothing is loaded or allocated while a kernel waits.
func Open(ctx context.Context, m *host.Machine, spec api.Spec, t api.TeamConfig) (*host.Team, error) {
	c, err := read(spec)
	if err != nil {
		return nil, err
	}
	if err := c.admitRanks(t.Ranks); err != nil {
		return nil, err
	}
	e := &Engine{config: c, machine: m}
	if e.deadlines, err = host.ReadDeadlines(t, c.deadlines); err != nil {
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
	if err := e.start(ctx, streams, t.Ranks); err != nil {
		return nil, errors.Join(err, team.Discard())
	}
	return team, nil
}

// ready puts the ranks on GPUs, loads the kernels and looks the thresholds up.
func (e *Engine) ready(ranks int) error {
	n, err := e.machine.Share(e.config.spec.String(), ranks, e.config.gpus)
	if err != nil {
		return err
	}
	if e.on, err = e.machine.Spread(e.config.spec.String(), ranks, n, e.config.cyclic); err != nil {
		return err
	}
	e.config.look(e.on.GPUs[0].Context.Device().Info().Name, ranks)
	return e.load()
}

// load finds the kernels on every GPU and the largest grid that fits all.
func (e *Engine) load() error {
	e.most = maxBlocks
	for i, g := range e.on.GPUs {
		var k functions
		for j, name := range kernelNames {
			if !kernel(j).serves(len(e.on.Place)) {
				continue
			}
			f, err := g.Function("tandem.ptx", kernels.Tandem, name)
			if err != nil {
				return err
			}
			per, err := f.BlocksPerSM(threads, 0)
			if err != nil {
				return err
			}
			fits := per * g.Context.SMs() / len(e.on.Local[i])
			if fits < 1 {
				return e.config.refuse(fmt.Sprintf("%d ranks on one GPU", len(e.on.Local[i])), fmt.Sprintf("it holds %d blocks of %s at a time, and every rank needs one", per*g.Context.SMs(), name), "more GPUs")
			}
			e.most = min(e.most, kernel(j).most(fits, len(e.on.Local[i])))
			k[j] = f
		}
		e.functions = append(e.functions, k)
	}
	return nil
}

// boxBytes is the size of a rank's box: two halves of a slot for every sender,
// in lines that are half flags.
func (c *config) boxBytes(ranks int) uint64 { return 2 * uint64(ranks) * 2 * uint64(c.slot(ranks)) }

// start allocates, fills in pages and tables, and makes an empty call of every
// kernel there is a use for.
func (e *Engine) start(ctx context.Context, streams []gpu.Stream, ranks int) error {
	e.generation = e.machine.Generation()
	for r := range ranks {
		g := e.on.GPU(r)
		page, err := e.machine.Page(g, pageBytes, host.ReportBytes)
		if err != nil {
			return err
		}
		e.pages = append(e.pages, page)
		for _, m := range []struct {
			list  *[]gpu.Ptr
			bytes uint64
		}{{&e.boxes, e.config.boxBytes(ranks)}, {&e.stages, 2 * uint64(e.config.stage)}} {
			p, err := g.Context.Alloc(m.bytes)
			if err != nil {
				return err
			}
			*m.list = append(*m.list, p)
			if err := streams[e.on.Place[r]].Set8(p, 0, m.bytes); err != nil {
				return err
			}
		}
	}
	if err := e.write(ctx, streams); err != nil {
		return err
	}
	for _, local := range e.on.Local {
		e.nears = append(e.nears, e.near(local))
		e.teams = append(e.teams, e.team(local))
	}
	return e.rehearse(ctx, streams, ranks)
}

// write fills in the pages and reports, by way of pinned memory.
func (e *Engine) write(ctx context.Context, streams []gpu.Stream) error {
	for r, page := range e.pages {
		clear(page.Host.Bytes)
		b := make([]byte, pageBytes)
		le := binary.LittleEndian
		le.PutUint64(b[pageGeneration:], e.generation)
		le.PutUint64(b[pageEpoch:], 1)
		if local := e.on.Local[e.on.Place[r]]; local[0] == r {
			e.fill(b[pageTable:], local)
		}
		if err := e.machine.Write(ctx, e.on.GPU(r), streams[e.on.Place[r]], page.Device, b); err != nil {
			return err
		}
	}
	return nil
}

// fill writes a team table.
func (e *Engine) fill(b []byte, local []int) {
	le := binary.LittleEndian
	le.PutUint32(b[tableWorld:], uint32(len(e.on.Place)))
	le.PutUint64(b[tableSlot:], uint64(e.config.slot(len(e.on.Place))))
	le.PutUint64(b[tableArrive:], e.on.Cycles(e.deadlines.Arrive))
	le.PutUint64(b[tableProgress:], e.on.Cycles(e.deadlines.Progress))
	le.PutUint64(b[tableStage:], uint64(e.config.stage))
	e.addresses(b, tablePages, tableBoxes, tableStages, tableReports)
	for i, r := range local {
		le.PutUint32(b[tableLocal+4*i:], uint32(r))
	}
}

// rehearse makes an empty call with each kernel.
func (e *Engine) rehearse(ctx context.Context, streams []gpu.Stream, ranks int) error {
	for k := range kernelCount {
		if !k.serves(ranks) {
			continue
		}
		call := api.Call{Collective: api.AllReduce, DType: api.U8, Op: api.Sum, Ranks: ranks}
		p := plan{collective: kernelCollective(&call), kernel: k, blocks: 1}
		mem := make([]host.Buffers, ranks)
		for r := range mem {
			mem[r] = host.Buffers{{}}
		}
		b := host.Bound{e.bind(&call, mem, make([]gpu.Ptr, len(e.on.GPUs)), p)}
		if err := host.Rehearse(ctx, e.machine.Driver.Clock(), e, &call, b, streams); err != nil {
			return err
		}
	}
	return nil
}

// Release gives the boxes and stages back and the pages to the next team.
func (e *Engine) Release(poisoned bool) error {
	var errs []error
	for r, page := range e.pages {
		c := e.on.GPU(r).Context
		for _, list := range [][]gpu.Ptr{e.boxes, e.stages} {
			switch {
			case r >= len(list):
			case poisoned:
				errs = append(errs, c.Quarantine(list[r]))
			default:
				errs = append(errs, e.machine.Free(e.on.GPU(r), list[r]))
			}
		}
		if !poisoned {
			errs = append(errs, e.machine.Retire(e.on.GPU(r), page, pageGeneration))
		}
	}
	e.pages = nil
	return errors.Join(errs...)
}
