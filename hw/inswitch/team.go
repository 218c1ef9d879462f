package inswitch

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
	"example.com/tandem/hw/host"
)

// Deadlines where a team names none.
const (
	defaultArrive   = 60 * time.Second
	defaultProgress = 5 * time.Second
	minDeadline     = 10 * time.Millisecond
	// setupLimit is more than a copy or an empty call takes.
	setupLimit = 30 * time.Second
)

// Options are what Open needs.
type Options struct {
	Spec     api.Spec
	Machine  *host.Machine
	Team     api.TeamConfig
	Choice   Choice
	Module   string // the name of the native module; the emulated one has _emulated before .ptx
	Native   []byte
	Emulated []byte
	Kernels  []string
	// StageHalf is half the team memory of a rank, bytes; a multiple of 16.
	StageHalf uint64
	// StageCast asks for a multicast address of the stages.
	StageCast bool
}

// Fault stops a rank for a while at a step of its next calls, or for good, for
// tests of deadlines and blame.
type Fault struct {
	Rank  int
	Step  Step
	Delay time.Duration // 0 stops it for good
	// Differ makes the rank announce another call instead.
	Differ bool
}

// Team is pages, stages and kernels of the ranks of one process.
type Team struct {
	o          Options
	gpus       []*host.GPU
	place      []int   // GPU of each rank
	local      [][]int // ranks of each GPU
	functions  []map[string]gpu.Function
	pages      []host.Page
	stages     []gpu.Ptr
	stageHeap  *heap
	heaps      []*heap // of buffers
	stageHalf  uint64
	generation uint64
	most       int
	arrive     time.Duration
	progress   time.Duration
	fault      *Fault
}

// Native reports whether kernels use multimem instructions.
func (o *Options) native() bool { return o.Choice.Native }

// Open makes everything ready but the rehearsal: kernels loaded, memory cleared.
// The streams are one for each GPU; the caller owns them.
func Open(ctx context.Context, o Options) (*Team, []gpu.Stream, error) {
	ranks := o.Team.Ranks
	if ranks < 1 || ranks > MaxRanks {
		return nil, nil, &api.Refused{Spec: o.Spec.String(), What: fmt.Sprintf("%d ranks", ranks), Reason: "a team is one NVLink domain", Hint: fmt.Sprintf("1 to %d ranks", MaxRanks)}
	}
	t := &Team{o: o, stageHalf: o.StageHalf}
	if err := t.setDeadlines(); err != nil {
		return nil, nil, err
	}
	if err := t.spread(ranks); err != nil {
		return nil, nil, err
	}
	if err := t.load(); err != nil {
		return nil, nil, err
	}
	var streams []gpu.Stream
	for _, g := range t.gpus {
		s, err := g.Context.NewStream(gpu.StreamOptions{})
		if err != nil {
			return nil, nil, errors.Join(err, destroy(streams))
		}
		streams = append(streams, s)
	}
	if err := t.start(ctx, streams); err != nil {
		return nil, nil, errors.Join(err, t.Release(false), destroy(streams))
	}
	return t, streams, nil
}

func destroy(streams []gpu.Stream) error {
	var errs []error
	for _, s := range streams {
		errs = append(errs, s.Destroy())
	}
	return errors.Join(errs...)
}

func (t *Team) setDeadlines() error {
	for _, d := range []struct {
		name      string
		set       *time.Duration
		want, def time.Duration
	}{{"arrive", &t.arrive, t.o.Team.Arrive, defaultArrive}, {"progress", &t.progress, t.o.Team.Progress, defaultProgress}} {
		*d.set = d.want
		if d.want == 0 {
			*d.set = d.def
		}
		if *d.set < minDeadline {
			return &api.InvalidError{Field: d.name, Value: d.want.String(), Reason: "too short a deadline", Hint: fmt.Sprintf("%v or more", minDeadline)}
		}
		*d.set *= time.Duration(t.o.Choice.Scale)
	}
	return nil
}

// spread puts neighbouring ranks on GPUs.
func (t *Team) spread(ranks int) error {
	n := t.o.Choice.GPUs
	if n > ranks {
		return &api.InvalidError{Field: "gpus", Value: fmt.Sprint(n), Reason: fmt.Sprintf("more than the %d ranks", ranks)}
	}
	if n == 0 {
		n = min(ranks, len(t.o.Machine.Driver.Devices()))
	}
	if t.o.native() && n != ranks {
		return &api.Unavailable{Spec: t.o.Spec.String(), Reason: fmt.Sprintf("multicast takes a GPU for each rank: %d ranks, %d GPUs", ranks, n), Hint: "fewer ranks, or multicast=off, which emulates it"}
	}
	gpus, err := t.o.Machine.Open(t.o.Spec.String(), n)
	if err != nil {
		return err
	}
	t.gpus, t.local = gpus, make([][]int, n)
	for r := range ranks {
		g := r * n / ranks
		t.place = append(t.place, g)
		t.local[g] = append(t.local[g], r)
	}
	return nil
}

// load finds the kernels on every GPU and the largest grid that fits all.
func (t *Team) load() error {
	name, text := t.o.Module+"_emulated.ptx", t.o.Emulated
	if t.o.native() {
		if _, err := multicasters(t.o.Spec.String(), t.gpus); err != nil {
			return err
		}
		name, text = t.o.Module+".ptx", t.o.Native
	}
	t.most = MaxBlocks
	for i, g := range t.gpus {
		all := map[string]gpu.Function{}
		for _, k := range t.o.Kernels {
			f, err := g.Function(name, text, k)
			if err != nil {
				return err
			}
			per, err := f.BlocksPerSM(t.o.Choice.Threads, 0)
			if err != nil {
				return err
			}
			fits := per * g.Context.SMs() / len(t.local[i])
			if fits < 1 {
				return &api.Refused{Spec: t.o.Spec.String(), What: fmt.Sprintf("%d ranks on one GPU", len(t.local[i])), Reason: fmt.Sprintf("it holds %d blocks of %s at a time, and every rank needs one", per*g.Context.SMs(), k), Hint: "more GPUs"}
			}
			t.most = min(t.most, fits)
			all[k] = f
		}
		t.functions = append(t.functions, all)
	}
	return nil
}

// start allocates, and fills in pages.
func (t *Team) start(ctx context.Context, streams []gpu.Stream) error {
	t.generation = t.o.Machine.Generation()
	bytes := 2 * t.stageHalf
	if t.o.native() && t.o.StageCast {
		h, err := newHeap(ctx, t.o.Spec.String(), t.gpus, bytes)
		if err != nil {
			return err
		}
		t.stageHeap, t.stages = h, h.unicast
	}
	for r := range t.place {
		g := t.gpus[t.place[r]]
		page, err := t.o.Machine.Page(g, pageBytes, reportBytes)
		if err != nil {
			return err
		}
		t.pages = append(t.pages, page)
		if t.stageHeap == nil {
			p, err := g.Context.Alloc(bytes)
			if err != nil {
				return err
			}
			t.stages = append(t.stages, p)
		}
		if err := t.clear(ctx, streams[t.place[r]], r, bytes); err != nil {
			return err
		}
	}
	return nil
}

// clear fills in a page and clears a stage, and waits for both.
func (t *Team) clear(ctx context.Context, s gpu.Stream, rank int, stage uint64) error {
	page := t.pages[rank]
	clear(page.Host.Bytes)
	g := t.gpus[t.place[rank]]
	h, err := g.Context.AllocHost(pageBytes)
	if err != nil {
		return err
	}
	binary.LittleEndian.PutUint64(h.Bytes[pageGeneration:], t.generation)
	binary.LittleEndian.PutUint64(h.Bytes[pageEpoch:], 1)
	err = s.Copy(page.Device, h.Ptr, pageBytes)
	if err == nil {
		err = s.Set8(t.stages[rank], 0, stage)
	}
	if err == nil {
		err = gpu.Wait(ctx, t.o.Machine.Driver.Clock(), setupLimit, s)
	}
	return errors.Join(err, t.o.Machine.Free(g, h.Ptr))
}

// stageCast is the multicast address of the stages on a GPU.
func (t *Team) stageCast(g int) uint64 {
	if t.stageHeap != nil {
		return uint64(t.stageHeap.cast[g])
	}
	return opaque(ObjectStage)
}

// opaque is the address of an object in the emulated form.
func opaque(object uint64) uint64 { return objectTag + object<<objectShift }

// Release gives memory back, or sets it aside, and the pages to the next team.
func (t *Team) Release(poisoned bool) error {
	var errs []error
	if t.stageHeap != nil {
		errs = append(errs, t.stageHeap.release(poisoned))
		t.stages = nil
	}
	for r, page := range t.pages {
		g := t.gpus[t.place[r]]
		switch {
		case r >= len(t.stages):
		case poisoned:
			errs = append(errs, g.Context.Quarantine(t.stages[r]))
		default:
			errs = append(errs, t.o.Machine.Free(g, t.stages[r]))
		}
		if !poisoned {
			errs = append(errs, t.retire(page, g))
		}
	}
	for _, h := range t.heaps {
		errs = append(errs, h.release(poisoned))
	}
	t.pages, t.stages, t.stageHeap, t.heaps = nil, nil, nil, nil
	return errors.Join(errs...)
}

// retire ends the generation of a page, so that a kernel launched late exits at
// entry, and gives the page to the next team.
func (t *Team) retire(p host.Page, g *host.GPU) error {
	s, err := g.Context.NewStream(gpu.StreamOptions{})
	if err != nil {
		return err
	}
	err = s.Set8(p.Device.Add(pageGeneration), 0, 8)
	if err == nil {
		err = gpu.Wait(context.Background(), t.o.Machine.Driver.Clock(), setupLimit, s)
	}
	if err == nil {
		t.o.Machine.Return(p)
	}
	return errors.Join(err, s.Destroy())
}
