package tandem

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

// Open makes a team: memory, tables, kernels loaded and tried with empty calls,
// so that nothing is loaded or allocated while a kernel waits.
func Open(ctx context.Context, m *host.Machine, spec api.Spec, t api.TeamConfig) (*host.Team, error) {
	c, err := read(spec)
	if err != nil {
		return nil, err
	}
	if t.Ranks < 1 || t.Ranks > MaxRanks {
		return nil, c.refuse(fmt.Sprintf("%d ranks", t.Ranks), "a team is one NVLink domain", fmt.Sprintf("1 to %d ranks", MaxRanks))
	}
	e := &Engine{config: c, machine: m}
	if err := e.setDeadlines(t); err != nil {
		return nil, err
	}
	if err := e.spread(t.Ranks); err != nil {
		return nil, err
	}
	row := thresholdsOf(e.gpus[0].Context.Device().Info().Name, t.Ranks)
	c.table = &row
	if err := e.load(); err != nil {
		return nil, err
	}
	streams, err := e.streams()
	if err != nil {
		return nil, err
	}
	team := host.NewTeam(host.Config{Spec: spec.String(), Machine: m, GPUs: e.gpus, Place: e.place, Streams: streams, Engine: e})
	if err := e.start(ctx, streams, t.Ranks); err != nil {
		return nil, errors.Join(err, team.Discard())
	}
	return team, nil
}

func (e *Engine) setDeadlines(t api.TeamConfig) error {
	for _, d := range []struct {
		name string
		set  *time.Duration
		want time.Duration
		def  time.Duration
	}{{"arrive", &e.arrive, t.Arrive, defaultArrive}, {"progress", &e.progress, t.Progress, defaultProgress}} {
		*d.set = d.want
		if d.want == 0 {
			*d.set = d.def
		}
		if *d.set < minDeadline {
			return &api.InvalidError{Field: d.name, Value: d.want.String(), Reason: "too short a deadline", Hint: fmt.Sprintf("%v or more", minDeadline)}
		}
		*d.set *= time.Duration(e.config.deadlines)
	}
	return nil
}

// spread puts the ranks on GPUs.
func (e *Engine) spread(ranks int) error {
	n := e.config.gpus
	if n > ranks {
		return &api.InvalidError{Field: "gpus", Value: fmt.Sprint(n), Reason: fmt.Sprintf("more than the %d ranks", ranks)}
	}
	if n == 0 {
		n = min(ranks, len(e.machine.Driver.Devices()))
	}
	gpus, err := e.machine.Open(e.config.spec.String(), n)
	if err != nil {
		return err
	}
	e.gpus, e.local = gpus, make([][]int, n)
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

// load finds the kernels on every GPU and the largest grid that fits all.
func (e *Engine) load() error {
	e.most = maxBlocks
	for i, g := range e.gpus {
		var k functions
		for j, name := range kernelNames {
			if !kernel(j).serves(len(e.place)) {
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
			fits := per * g.Context.SMs() / len(e.local[i])
			if fits < 1 {
				return e.config.refuse(fmt.Sprintf("%d ranks on one GPU", len(e.local[i])), fmt.Sprintf("it holds %d blocks of %s at a time, and every rank needs one", per*g.Context.SMs(), name), "more GPUs")
			}
			e.most = min(e.most, kernel(j).most(fits, len(e.local[i])))
			k[j] = f
		}
		e.functions = append(e.functions, k)
	}
	return nil
}

func (e *Engine) streams() ([]gpu.Stream, error) {
	var out []gpu.Stream
	for _, g := range e.gpus {
		s, err := g.Context.NewStream(gpu.StreamOptions{})
		if err != nil {
			for _, s := range out {
				err = errors.Join(err, s.Destroy())
			}
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// boxBytes is the size of a rank's box: two halves of a slot for every sender,
// in lines that are half flags.
func (c *config) boxBytes(ranks int) uint64 { return 2 * uint64(ranks) * 2 * uint64(c.slot(ranks)) }

// start allocates, fills in pages and tables, and makes an empty call of every
// kernel there is a use for.
func (e *Engine) start(ctx context.Context, streams []gpu.Stream, ranks int) error {
	e.generation = e.machine.Generation()
	for r := range ranks {
		g := e.gpus[e.place[r]]
		page, err := e.machine.Page(g, pageBytes, reportBytes)
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
			if err := streams[e.place[r]].Set8(p, 0, m.bytes); err != nil {
				return err
			}
		}
	}
	if err := e.write(ctx, streams); err != nil {
		return err
	}
	for _, local := range e.local {
		e.nears = append(e.nears, e.near(local))
		e.teams = append(e.teams, e.team(local))
		e.together = e.together || len(local) > 1
	}
	return e.rehearse(ctx, streams, ranks)
}

// write fills in the pages and reports, by way of pinned memory.
func (e *Engine) write(ctx context.Context, streams []gpu.Stream) error {
	for r, page := range e.pages {
		clear(page.Host.Bytes)
		s := streams[e.place[r]]
		h, err := e.gpus[e.place[r]].Context.AllocHost(pageBytes)
		if err != nil {
			return err
		}
		le := binary.LittleEndian
		le.PutUint64(h.Bytes[pageGeneration:], e.generation)
		le.PutUint64(h.Bytes[pageEpoch:], 1)
		if e.local[e.place[r]][0] == r {
			e.fill(h.Bytes[pageTable:], e.local[e.place[r]])
		}
		err = s.Copy(page.Device, h.Ptr, pageBytes)
		if err == nil {
			err = gpu.Wait(ctx, e.machine.Driver.Clock(), setupLimit, s)
		}
		if err = errors.Join(err, e.machine.Free(e.gpus[e.place[r]], h.Ptr)); err != nil {
			return err
		}
	}
	return nil
}

// setupLimit is more than a copy or an empty call takes.
const setupLimit = 30 * time.Second

// fill writes a team table.
func (e *Engine) fill(b []byte, local []int) {
	le := binary.LittleEndian
	le.PutUint32(b[tableWorld:], uint32(len(e.place)))
	le.PutUint64(b[tableSlot:], uint64(e.config.slot(len(e.place))))
	le.PutUint64(b[tableArrive:], e.cycles(e.arrive))
	le.PutUint64(b[tableProgress:], e.cycles(e.progress))
	le.PutUint64(b[tableStage:], uint64(e.config.stage))
	for r, page := range e.pages {
		le.PutUint64(b[tablePages+8*r:], uint64(page.Device))
		le.PutUint64(b[tableBoxes+8*r:], uint64(e.boxes[r]))
		le.PutUint64(b[tableStages+8*r:], uint64(e.stages[r]))
		le.PutUint64(b[tableReports+8*r:], uint64(page.Host.Ptr))
	}
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
		b := e.bind(&call, mem, make([]gpu.Ptr, len(e.gpus)), p)
		var q []gpu.Queryer
		for i, s := range streams {
			if err := s.Launch(b[i]); err != nil {
				return err
			}
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

// Release gives the boxes and stages back and the pages to the next team.
func (e *Engine) Release(poisoned bool) error {
	var errs []error
	for r, page := range e.pages {
		c := e.gpus[e.place[r]].Context
		for _, list := range [][]gpu.Ptr{e.boxes, e.stages} {
			switch {
			case r >= len(list):
			case poisoned:
				errs = append(errs, c.Quarantine(list[r]))
			default:
				errs = append(errs, e.machine.Free(e.gpus[e.place[r]], list[r]))
			}
		}
		if !poisoned {
			errs = append(errs, e.retire(page, e.place[r]))
		}
	}
	e.pages = nil
	return errors.Join(errs...)
}

// retire ends the generation of a page, so that a kernel launched late exits at
// entry, and gives the page to the next team.
func (e *Engine) retire(p host.Page, g int) error {
	s, err := e.gpus[g].Context.NewStream(gpu.StreamOptions{})
	if err != nil {
		return err
	}
	err = s.Set8(p.Device.Add(pageGeneration), 0, 8)
	if err == nil {
		err = gpu.Wait(context.Background(), e.machine.Driver.Clock(), setupLimit, s)
	}
	if err == nil {
		e.machine.Return(p)
	}
	return errors.Join(err, s.Destroy())
}
