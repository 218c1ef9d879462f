package rlkernel

import (
	"errors"
	"fmt"
	"time"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
	"example.com/tandem/hw/host"
)

// Fault stops a rank for a while at a step of its next calls, or for good, for
// tests of deadlines and blame.
type Fault struct {
	Rank  int
	Step  Step
	Delay time.Duration // 0 stops it for good
}

// Engine is a team's part of host.Team.
type Engine struct {
	config     *config
	machine    *host.Machine
	on         *host.Placement
	functions  []map[string]gpu.Function // of each GPU
	pages      []host.Page               // of each rank
	frames     []gpu.Ptr
	generation uint64
	deadlines  host.Deadlines
	fault      *Fault
	doomed     *api.Fault // that the last call bound ends in
}

// Admit says whether the class takes a call.
func (e *Engine) Admit(call *api.Call) error { return e.config.admit(call) }

// Deadlines are those of the team, scaled.
func (e *Engine) Deadlines() (arrive, progress time.Duration) {
	return e.deadlines.Arrive, e.deadlines.Progress
}

// Inject makes the next calls fail; nil ends that.
func (e *Engine) Inject(f *Fault) { e.fault = f }

// TableBytes is 0: all that a launch says travels with it.
func (e *Engine) TableBytes(*api.Call) int { return 0 }

// Table is nothing.
func (e *Engine) Table(*api.Call, []host.Buffers) []byte { return nil }

// Bind makes the launches of a call. Those that one rank would not survive are
// refused before any.
func (e *Engine) Bind(call *api.Call, mem []host.Buffers, _ []gpu.Ptr) (host.Bound, error) {
	e.doomed = nil
	for rank, lanes := range mem {
		for lane, b := range lanes {
			if err := e.checkBuffers(call, rank, lane, b); err != nil {
				return nil, err
			}
		}
		dst := uint64(lanes[0].Dst)
		if dst%4 == 0 || !e.config.storesPairs(call) {
			continue
		}
		if !e.config.allowFault {
			return nil, e.config.refusePairs(rank, dst)
		}
		if e.doomed == nil {
			e.doomed = pairFault(rank, dst)
		}
	}
	return e.bound(call, mem, e.config.schedule(call)), nil
}

// Explain names the rank whose store was misaligned, where the driver does not.
func (e *Engine) Explain(err error) error {
	var known *api.Fault
	var failed *gpu.Error
	if e.doomed == nil || errors.As(err, &known) || !errors.As(err, &failed) || failed.Code != gpu.MisalignedAddress {
		return err
	}
	return e.doomed
}

func (e *Engine) bound(call *api.Call, mem []host.Buffers, ls []launch) host.Bound {
	base := e.base(call)
	var steps host.Bound
	for i := range ls {
		a := *base
		if i == 0 {
			a.flags |= flagFirst
		}
		e.say(&a, call, mem, &ls[i])
		steps = append(steps, e.step(&a, &ls[i]))
	}
	return steps
}

// base is what all launches of a call say.
func (e *Engine) base(call *api.Call) *arguments {
	a := &arguments{generation: e.generation, arrive: e.on.Cycles(e.deadlines.Arrive), progress: e.on.Cycles(e.deadlines.Progress), world: uint32(call.Ranks), faultRank: ^uint32(0)}
	for r, page := range e.pages {
		a.page[r], a.report[r], a.frame[r] = uint64(page.Device), uint64(page.Host.Ptr), uint64(e.frames[r])
	}
	if e.config.vectors() {
		a.flags |= flagVectors
	}
	if e.config.peerwise {
		a.flags |= flagPeerwise
	}
	if f := e.fault; f != nil {
		a.faultRank, a.faultStep, a.faultCycles = uint32(f.Rank), uint32(f.Step), e.on.Cycles(f.Delay)
	}
	return a
}

// say adds what one launch says.
func (e *Engine) say(a *arguments, call *api.Call, mem []host.Buffers, l *launch) {
	shape := call.Lane(l.lane)
	a.bytes, a.count = uint64(inputBytes(call, l.lane)), uint64(shape.Count)
	a.blocks, a.what, a.dtype = uint32(l.blocks), l.what, types[shape.DType]
	if api.Base(call.Collective) == api.ReduceScatter {
		a.each = 1
	}
	if l.pairs {
		a.flags |= flagPairs
	}
	payload := func(rank int) uint64 { return uint64(e.frames[rank]) + framePayload + uint64(l.at) }
	for r := range mem {
		a.src[r], a.dst[r] = uint64(mem[r][l.lane].Src), uint64(mem[r][l.lane].Dst)
		switch {
		case l.move == in:
			a.dst[r] = payload(r)
		case l.move == out:
			a.src[r] = payload(l.peer)
			a.dst[r] += uint64(l.peer) * a.bytes
		case l.move == push:
			a.src[r], a.dst[r] = payload(r), payload(l.peer)
		case l.move == mine:
			a.src[r] = payload(r)
		case l.tree:
			a.dst[r] = payload(r)
		}
	}
}

// step is one launch for each GPU that holds ranks of its party.
func (e *Engine) step(a *arguments, l *launch) []gpu.Launch {
	step := make([]gpu.Launch, len(e.on.GPUs))
	for i := range e.on.GPUs {
		var ranks []int
		a.ranks = 0
		for _, r := range e.on.Local[i] {
			if l.party.has(r) {
				a.ranks |= uint64(r) << (8 * len(ranks))
				ranks = append(ranks, r)
			}
		}
		if len(ranks) == 0 {
			continue
		}
		block := uint32(threads)
		if l.kernel == kernelSignal {
			block = 1
		}
		step[i] = gpu.Launch{Function: e.functions[i][l.kernel], Grid: gpu.Dim3{X: a.blocks * uint32(len(ranks))}, Block: gpu.Dim3{X: block},
			Cooperative: l.waits() && len(ranks) > 1, Args: new(gpu.Args).Struct(a.encode(), 8), Ranks: ranks}
	}
	return step
}

// checkBuffers refuses addresses that no kernel could use.
func (e *Engine) checkBuffers(call *api.Call, rank, lane int, b host.Pair) error {
	for _, x := range []struct {
		name  string
		p     gpu.Ptr
		bytes int64
	}{{"source", b.Src, inputBytes(call, lane)}, {"destination", b.Dst, outputBytes(call, lane)}} {
		size := int64(call.Lane(lane).DType.Size())
		if err := e.on.CheckBuffer(rank, fmt.Sprintf("lane %d of rank %d", lane, rank), x.name, x.p, size, x.bytes); err != nil {
			return err
		}
	}
	return nil
}
