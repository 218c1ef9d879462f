package tandem

import (
	"encoding/binary"
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
	// Differ makes the rank announce another call instead.
	Differ bool
}

// Engine is a team's part of host.Team.
type Engine struct {
	config       *config
	machine      *host.Machine
	on           *host.Placement
	functions    []functions
	pages        []host.Page // of each rank
	boxes        []gpu.Ptr
	stages       []gpu.Ptr
	nears, teams [][]byte // what launches of each GPU say of the team
	generation   uint64
	most         int // largest grid of a rank
	deadlines    host.Deadlines
	fault        *Fault
}

type functions [kernelCount]gpu.Function

// Admit says whether tandem takes a call.
func (e *Engine) Admit(call *api.Call) error { return e.config.admit(call) }

// Deadlines are those of the team, scaled.
func (e *Engine) Deadlines() (arrive, progress time.Duration) {
	return e.deadlines.Arrive, e.deadlines.Progress
}

// Inject makes the next calls fail; nil ends that.
func (e *Engine) Inject(f *Fault) { e.fault = f }

// hash is what headers carry of a call: what it is, and by which table its path is
// chosen.
func (e *Engine) hash(call *api.Call) uint64 {
	return host.Hash(call) + e.config.row(call.Ranks).hash()
}

// words is the number of words that describe the lanes.
func words(call *api.Call) int { return call.Lanes() * (2 + 2*call.Ranks) }

// TableBytes is the size of the words where they are too many for parameters.
func (e *Engine) TableBytes(call *api.Call) int {
	if n := words(call); n > inlineWords {
		return 8 * n
	}
	return 0
}

// Table is the words of a call that do not fit the parameters.
func (e *Engine) Table(call *api.Call, mem []host.Buffers) []byte {
	if e.TableBytes(call) == 0 {
		return nil
	}
	return e.words(call, mem)
}

// words are count, type, sources and destinations of each lane.
func (e *Engine) words(call *api.Call, mem []host.Buffers) []byte {
	out := make([]byte, 0, 8*words(call))
	add := func(v uint64) { out = binary.LittleEndian.AppendUint64(out, v) }
	scheme := e.config.scheme(call)
	if call.Ranks == 1 {
		scheme.Op = api.NoOp
	}
	for i := range call.Lanes() {
		l := call.Lane(i)
		add(uint64(l.Count))
		add(typeWord(l.DType, scheme))
		for r := range mem {
			add(uint64(mem[r][i].Src))
		}
		for r := range mem {
			add(uint64(mem[r][i].Dst))
		}
	}
	return out
}

// Bind makes the launch of a call for each GPU.
func (e *Engine) Bind(call *api.Call, mem []host.Buffers, tables []gpu.Ptr) (host.Bound, error) {
	if err := e.checkBuffers(call, mem); err != nil {
		return nil, err
	}
	return host.Bound{e.bind(call, mem, tables, e.config.plan(call, e.most))}, nil
}

// bind makes the launches of a plan.
func (e *Engine) bind(call *api.Call, mem []host.Buffers, tables []gpu.Ptr, p plan) []gpu.Launch {
	inline := make([]byte, 8*inlineWords)
	if e.TableBytes(call) == 0 {
		copy(inline, e.words(call, mem))
	}
	flags := uint32(0)
	if call.InPlace != api.OutOfPlace {
		flags |= flagInPlace
	}
	if p.overlap {
		flags |= flagOverlap
	}
	faultRank, faultStep, faultCycles := ^uint32(0), uint32(0), uint64(0)
	if f := e.fault; f != nil {
		faultRank, faultStep, faultCycles = uint32(f.Rank), uint32(f.Step), e.on.Cycles(f.Delay)
		if f.Differ {
			flags, faultStep = flags|flagDiffers, uint32(steps)
		}
	}
	k := p.kernel
	if faultRank != ^uint32(0) {
		k = k.faulty()
	}
	step := make([]gpu.Launch, len(e.on.GPUs))
	for i := range e.on.GPUs {
		a := new(gpu.Args).Ptr(e.table(i)).Ptr(tables[i]).Uint64(e.generation).Uint64(e.hash(call)).Uint64(faultCycles)
		a.Uint32(p.collective).Uint32(p.path).Uint32(uint32(p.blocks)).Uint32(uint32(call.Lanes())).Uint32(uint32(call.Root)).Uint32(flags)
		a.Uint32(faultRank).Uint32(faultStep).Struct(e.nears[i], 8).Struct(inline, 8).Struct(e.teams[i], 8)
		step[i] = gpu.Launch{Function: e.functions[i][k], Grid: gpu.Dim3{X: uint32(p.blocks * len(e.on.Local[i]))}, Block: gpu.Dim3{X: threads}, Cooperative: true, Overlap: p.overlap, Args: a, Ranks: e.on.Local[i]}
	}
	return step
}

// table is the address of the team table of a GPU.
func (e *Engine) table(i int) gpu.Ptr { return e.pages[e.on.Local[i][0]].Device.Add(pageTable) }

// near is the kernels' Near of a GPU.
func (e *Engine) near(local []int) []byte {
	b := make([]byte, nearBytes)
	le := binary.LittleEndian
	ranks := len(e.on.Place)
	rank := local[0]
	next := (rank + 1) % ranks
	le.PutUint32(b[nearWorld:], uint32(ranks))
	le.PutUint32(b[nearRank:], uint32(rank))
	le.PutUint64(b[nearPage:], uint64(e.pages[rank].Device))
	le.PutUint64(b[nearBox:], uint64(e.boxes[rank]))
	le.PutUint64(b[nearReport:], uint64(e.pages[rank].Host.Ptr))
	le.PutUint64(b[nearNextPage:], uint64(e.pages[next].Device))
	le.PutUint64(b[nearNextBox:], uint64(e.boxes[next]))
	le.PutUint64(b[nearSlot:], uint64(e.config.slot(ranks)))
	return b
}

// team is the kernels' Team of a GPU.
func (e *Engine) team(local []int) []byte {
	b := make([]byte, teamBytes)
	le := binary.LittleEndian
	le.PutUint64(b[teamArrive:], e.on.Cycles(e.deadlines.Arrive))
	le.PutUint64(b[teamProgress:], e.on.Cycles(e.deadlines.Progress))
	le.PutUint64(b[teamStage:], uint64(e.config.stage))
	if len(e.on.Place) > inlineRanks {
		return b
	}
	e.addresses(b, teamPages, teamBoxes, teamStages, teamReports)
	for i, r := range local {
		le.PutUint32(b[teamLocal+4*i:], uint32(r))
	}
	return b
}

// addresses writes lists of what the ranks have, each at an offset.
func (e *Engine) addresses(b []byte, pages, boxes, stages, reports int) {
	le := binary.LittleEndian
	for r, page := range e.pages {
		le.PutUint64(b[pages+8*r:], uint64(page.Device))
		le.PutUint64(b[boxes+8*r:], uint64(e.boxes[r]))
		le.PutUint64(b[stages+8*r:], uint64(e.stages[r]))
		le.PutUint64(b[reports+8*r:], uint64(page.Host.Ptr))
	}
}

// checkBuffers refuses, before anything is launched, addresses that no kernel
// could use: misaligned, freed, of another device or too near the end.
func (e *Engine) checkBuffers(call *api.Call, mem []host.Buffers) error {
	for r, lanes := range mem {
		for i, b := range lanes {
			size := int64(call.Lane(i).DType.Size())
			for _, one := range []struct {
				name  string
				p     gpu.Ptr
				bytes int64
			}{{"source", b.Src, call.SrcElems(i) * size}, {"destination", b.Dst, call.DstElems(i) * size}} {
				if err := e.on.CheckBuffer(r, fmt.Sprintf("lane %d of rank %d", i, r), one.name, one.p, size, one.bytes); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
