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
	on         *host.Placement
	functions  []map[string]gpu.Function
	pages      []host.Page
	stages     []gpu.Ptr
	stageHeap  *heap
	heaps      []*heap // of buffers
	stageHalf  uint64
	generation uint64
	most       int
	deadlines  host.Deadlines
	fault      *Fault
}

// Native reports whether kernels use multimem instructions.
func (o *Options) native() bool { return o.Choice.Native }

// newTeam puts the ranks on GPUs and loads the kernels.
func newTeam(o Options) (*Team, error) {
	ranks := o.Team.Ranks
	if ranks < 1 || ranks > MaxRanks {
		return nil, &api.Refused{Spec: o.Spec.String(), What: fmt.Sprintf("%d ranks", ranks), Reason: "a team is one NVLink domain", Hint: fmt.Sprintf("1 to %d ranks", MaxRanks)}
	}
	t := &Team{o: o, stageHalf: o.StageHalf}
	var err error
	if t.deadlines, err = host.ReadDeadlines(o.Team, o.Choice.Scale); err != nil {
		return nil, err
	}
	if o.Machine == nil {
		t.most = MaxBlocks
		return t, nil
	}
	if err := t.spread(ranks); err != nil {
		return nil, err
	}
	return t, t.load()
}

// Fit is the largest grid of a rank, in blocks, of a team that would be opened, and
// where its ranks would be. Without a machine it is the most there can be, and nil.
func Fit(o Options) (most int, on *host.Placement, err error) {
	t, err := newTeam(o)
	if err != nil {
		return 0, nil, err
	}
	return t.most, t.on, nil
}

// Open makes everything ready but the rehearsal: kernels loaded, memory cleared.
// The streams are one for each GPU; the caller owns them.
func Open(ctx context.Context, o Options) (*Team, []gpu.Stream, error) {
	t, err := newTeam(o)
	if err != nil {
		return nil, nil, err
	}
	streams, err := t.on.NewStreams()
	if err != nil {
		return nil, nil, err
	}
	if err := t.start(ctx, streams); err != nil {
		return nil, nil, errors.Join(err, t.Release(false), host.DestroyStreams(streams))
	}
	return t, streams, nil
}

// spread puts neighbouring ranks on GPUs.
func (t *Team) spread(ranks int) error {
	n, err := t.o.Machine.Share(t.o.Spec.String(), ranks, t.o.Choice.GPUs)
	if err != nil {
		return err
	}
	if t.o.native() && n != ranks {
		return &api.Unavailable{Spec: t.o.Spec.String(), Reason: fmt.Sprintf("multicast takes a GPU for each rank: %d ranks, %d GPUs", ranks, n), Hint: "fewer ranks, or multicast=off, which emulates it"}
	}
	t.on, err = t.o.Machine.Spread(t.o.Spec.String(), ranks, n, false)
	return err
}

// load finds the kernels on every GPU and the largest grid that fits all.
func (t *Team) load() error {
	name, text := t.o.Module+"_emulated.ptx", t.o.Emulated
	if t.o.native() {
		if _, err := multicasters(t.o.Spec.String(), t.on.GPUs); err != nil {
			return err
		}
		name, text = t.o.Module+".ptx", t.o.Native
	}
	t.most = MaxBlocks
	for i, g := range t.on.GPUs {
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
			fits := per * g.Context.SMs() / len(t.on.Local[i])
			if fits < 1 {
				return &api.Refused{Spec: t.o.Spec.String(), What: fmt.Sprintf("%d ranks on one GPU", len(t.on.Local[i])), Reason: fmt.Sprintf("it holds %d blocks of %s at a time, and every rank needs one", per*g.Context.SMs(), k), Hint: "more GPUs"}
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
		h, err := newHeap(ctx, t.o.Spec.String(), t.on.GPUs, bytes)
		if err != nil {
			return err
		}
		t.stageHeap, t.stages = h, h.unicast
	}
	for r := range t.on.Place {
		g := t.on.GPU(r)
		page, err := t.o.Machine.Page(g, pageBytes, host.ReportBytes)
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
		if err := t.clear(ctx, streams[t.on.Place[r]], r, bytes); err != nil {
			return err
		}
	}
	return nil
}

// clear fills in a page and clears a stage, and waits for both.
func (t *Team) clear(ctx context.Context, s gpu.Stream, rank int, stage uint64) error {
	page := t.pages[rank]
	clear(page.Host.Bytes)
	if err := s.Set8(t.stages[rank], 0, stage); err != nil {
		return err
	}
	b := make([]byte, pageBytes)
	binary.LittleEndian.PutUint64(b[pageGeneration:], t.generation)
	binary.LittleEndian.PutUint64(b[pageEpoch:], 1)
	return t.o.Machine.Write(ctx, t.on.GPU(rank), s, page.Device, b)
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
		g := t.on.GPU(r)
		switch {
		case r >= len(t.stages):
		case poisoned:
			errs = append(errs, g.Context.Quarantine(t.stages[r]))
		default:
			errs = append(errs, t.o.Machine.Free(g, t.stages[r]))
		}
		if !poisoned {
			errs = append(errs, t.o.Machine.Retire(g, page, pageGeneration))
		}
	}
	for _, h := range t.heaps {
		errs = append(errs, h.release(poisoned))
	}
	t.pages, t.stages, t.stageHeap, t.heaps = nil, nil, nil, nil
	return errors.Join(errs...)
}
