package rlkernel

import (
	"fmt"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
	"example.com/tandem/sim/machine"
)

// CTAs of a program: the host thread and the stream of a rank. The blocks of a
// kernel share nothing but the handshake, so a kernel is one run of steps of
// the stream.
const (
	ctaHost = iota
	ctaStream
	ctas
)

// Words of a rank, the header of its frame: they persist.
const (
	wordStage = iota // sequence published
	wordDone         // sequence retired
	words
)

// Temporary words of a rank.
const (
	tempLaunched  = iota // stream operations enqueued
	tempCompleted        // stream operations ended
	tempRaised           // the host has given up
	tempDead             // the device has faulted
	temps
)

// Statuses of the host CTA besides those of package machine: refused, and
// hostRaised plus the number of launches made before the exception.
const (
	hostRefused uint64 = 1
	hostRaised  uint64 = 2
)

// Statuses of the stream CTA: it was never told to go on, or it faulted.
const (
	streamLeft uint64 = 1
	streamDied uint64 = 2
)

// tree is the reduction of every path.
var tree = num.Scheme{Op: num.Sum, Order: num.Balanced}

// Conditions are what earlier calls left behind and a program has to begin
// with.
type Conditions struct {
	// Compare says that the ranks meet on their hosts to compare signatures.
	Compare bool
	// Absent are ranks that cannot take part at all: a lost context.
	Absent []bool
	// Refuse are ranks whose extension raises before anything is enqueued.
	Refuse []bool
	// Published and Retired are sequence numbers to advance first, for work
	// that was planned but never run on a machine.
	Published, Retired []uint64
}

func (c *Conditions) absent(rank int) bool { return c.Absent != nil && c.Absent[rank] }

// Program is the steps of a plan: the host enqueues one stream operation after
// another and the stream executes them. It takes every decision from the plan.
type Program struct {
	call    *api.Call
	cond    Conditions
	at      []int64 // offset of each lane in the payload
	payload int64   // bytes staged at most
	meets   int     // barriers used
	list    [][ctas][]item
}

var (
	_ machine.Program = (*Program)(nil)
	_ machine.Namer   = (*Program)(nil)
)

// NewProgram turns a plan of this package into steps.
func NewProgram(plan *api.Plan, cond Conditions) *Program {
	p := &Program{call: &plan.Call, cond: cond, list: make([][ctas][]item, plan.Call.Ranks)}
	p.at, p.payload = layout(&plan.Call)
	if cond.Compare {
		p.meets = 1
	}
	for i := range plan.Kernels {
		if plan.Kernels[i].Name == opBarrier.String() {
			p.meets++
		}
	}
	for rank := range p.list {
		if !cond.absent(rank) {
			p.list[rank] = build(p, plan, rank)
		}
	}
	return p
}

// layout says where in the payload each lane is staged, and how much of it is
// used. Only all_gather_many stages more than one lane at a time.
func layout(call *api.Call) (at []int64, end int64) {
	at = make([]int64, call.Lanes())
	for lane := range at {
		n := laneBytes(call, lane)
		if call.Collective == api.AllGatherMany {
			at[lane] = pad(end)
		}
		end = max(end, at[lane]+n)
	}
	return at, end
}

// CTAs is 2: host and stream.
func (p *Program) CTAs() int { return ctas }

// Name names the two.
func (p *Program) Name(cta int) string { return [...]string{"host", "stream"}[cta] }

// Needs is the payload and the header words.
func (p *Program) Needs() machine.Needs {
	return machine.Needs{Box: p.payload, Words: words, Temps: temps, Barriers: p.meets}
}

// Len is the number of steps.
func (p *Program) Len(rank, cta int) int { return len(p.list[rank][cta]) }

// Step is one step.
func (p *Program) Step(dst *machine.Step, rank, cta, i int) {
	it := &p.list[rank][cta][i]
	dst.Note = it.op
	if cta == ctaHost {
		p.hostStep(dst, rank, it)
		return
	}
	p.streamStep(dst, rank, it)
}

func (p *Program) hostStep(dst *machine.Step, rank int, it *item) {
	dst.Else = it.onFail
	switch it.do {
	case doMeet:
		dst.Kind, dst.Value, dst.Count = machine.Barrier, uint64(it.n), p.call.Ranks
	case doLaunch:
		dst.Kind, dst.Word = machine.Record, machine.At(rank, machine.Temp, tempLaunched)
	case doSync:
		dst.Kind, dst.Word, dst.Value = machine.Await, machine.At(rank, machine.Temp, tempCompleted), uint64(it.n)
		dst.Peer, dst.PeerBy, dst.Aborts[0] = rank, ctaStream-ctaHost, machine.At(rank, machine.Temp, tempDead)
	case doRaise:
		dst.Kind, dst.Word, dst.Value = machine.Store, machine.At(rank, machine.Temp, tempRaised), 1
		dst.Order = machine.Release
	case doExit:
		dst.Kind, dst.Value = machine.Exit, uint64(it.n)
	}
}

func (p *Program) streamStep(dst *machine.Step, rank int, it *item) {
	dst.Else = it.onFail
	own := func(word int64) machine.Ref { return machine.At(rank, machine.Word, word) }
	switch it.do {
	case doOwe:
		dst.Kind, dst.Word, dst.Value = machine.Add, own(it.from), uint64(it.n)
	case doBegin:
		dst.Kind, dst.Word, dst.Value = machine.Await, machine.At(rank, machine.Temp, tempLaunched), uint64(it.n)
		dst.Aborts[0], dst.Else, dst.Fails = machine.At(rank, machine.Temp, tempRaised), int(it.from), it.onFail
		dst.Peer, dst.PeerBy = rank, ctaHost-ctaStream
	case doDie:
		dst.Kind, dst.Word, dst.Value = machine.Store, machine.At(rank, machine.Temp, tempDead), 1
		dst.Order = machine.Release
	case doExit:
		dst.Kind, dst.Value = machine.Exit, uint64(it.n)
	case doEnd:
		dst.Kind, dst.Word = machine.Record, machine.At(rank, machine.Temp, tempCompleted)
	case doPoll:
		dst.Kind, dst.Word, dst.Base = machine.Wait, machine.At(int(it.peer), machine.Word, it.from), own(wordStage)
		dst.Cmp, dst.Order, dst.Peer = machine.AtLeast, machine.Acquire, int(it.peer)
	case doPublish:
		dst.Kind, dst.Word, dst.Base, dst.Value = machine.Store, own(wordStage), own(wordStage), 1
		dst.Order = machine.Release
	case doRetire:
		dst.Kind, dst.Word, dst.Base = machine.Store, own(wordDone), own(wordStage)
		dst.Order = machine.Release
	default:
		p.dataStep(dst, rank, it)
	}
}

// dataStep moves bytes; from and n are of the lane, in bytes.
func (p *Program) dataStep(dst *machine.Step, rank int, it *item) {
	lane := int(it.lane)
	payload := func(rank int, off int64) machine.Ref { return machine.At(rank, machine.Box, p.at[lane]+off) }
	dst.Kind, dst.Bytes, dst.Width = machine.Copy, it.n, int(it.width)
	switch it.do {
	case doStage:
		dst.Dst = payload(rank, it.from)
		dst.Srcs = append(dst.Srcs, machine.User(rank, machine.Src, lane, it.from))
	case doGather:
		size := int64(p.call.Lane(lane).DType.Size())
		dst.Dst = machine.User(rank, machine.Dst, lane, int64(it.peer)*p.call.Lane(lane).Count*size+it.from)
		dst.Srcs = append(dst.Srcs, payload(int(it.peer), it.from))
	case doReduce, doTree:
		dst.Kind, dst.DType, dst.Scheme = machine.Reduce, p.call.Lane(lane).DType, tree
		dst.Dst = machine.User(rank, machine.Dst, lane, it.from)
		if it.do == doTree {
			dst.Dst = payload(rank, it.from)
		}
		for peer := range p.call.Ranks {
			dst.Srcs = append(dst.Srcs, payload(peer, it.shift+it.from))
		}
	case doPush:
		dst.Dst = payload(int(it.peer), it.from)
		dst.Srcs = append(dst.Srcs, payload(rank, it.from))
	case doUnstage:
		dst.Dst = machine.User(rank, machine.Dst, lane, it.from)
		dst.Srcs = append(dst.Srcs, payload(rank, it.from))
	default:
		panic(fmt.Sprintf("rlkernel: unknown item %d", it.do))
	}
}
