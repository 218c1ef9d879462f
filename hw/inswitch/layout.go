package inswitch

import "encoding/binary"

// The numbers of hw/kernels/src/nvls_layout.h; a test reads that file.

// Limits.
const (
	MaxRanks  = 72
	MaxBlocks = 64
	Threads   = 256 // a block, at most
	peerSlots = 128
)

// The control page of a rank.
const (
	pageGeneration = 0
	pageEpoch      = 8
	pageHeaders    = 256
	pageFlags      = pageHeaders + 2*peerSlots*16
	pageBytes      = pageFlags + MaxBlocks*peerSlots*8
)

// Step is a point of a call in a kernel.
type Step uint32

// The steps, in order.
const (
	StepEntry Step = iota
	StepHeader
	StepAgreed
	StepData
	StepBarrier
	StepLeave
)

// String is what errors call the step.
func (s Step) String() string {
	return [...]string{"entry", "the headers", "the agreement", "the data", "a barrier", "the end"}[min(s, StepLeave)]
}

// Objects that have a multicast address.
const (
	ObjectStage = iota
	ObjectSource
	ObjectTarget
	objects
)

// ObjectAlign is what objects begin at multiples of: the caller's buffers lie at
// their address modulo it.
const ObjectAlign = 256

const (
	objectShift = 44
	objectTag   = 0x4D43000000000000
)

// Collectives as the kernels number them.
const (
	AllReduce = iota
	ReduceScatter
	AllGather
)

// Flags of a launch.
const (
	FlagInPlace = 1 << iota
	flagDiffers
	FlagSwitch
	FlagWorld
	FlagTernary
	FlagHalf
)

// RestBytes are those of a half of a stage that hold what is too short for words.
const RestBytes = 2048

// Args are the arguments of a launch; what a Team knows is filled in by it.
type Args struct {
	Count                int64
	Src, Dst             []uint64 // of every rank
	Cast                 [objects]uint64
	Room                 [objects]uint64
	Hash                 uint64
	Seed                 uint64
	Threshold            int64
	Blocks               int
	Collective           uint32
	Form                 Form
	Join                 uint32
	Log                  uint32 // of the element size
	Dir                  Direction
	ResultBits, TermBits uint32
	Flags                uint32
	Version, Algo        uint32
}

// pack writes the struct Args of the kernels.
func (t *Team) pack(a *Args, gpu int) []byte {
	le := binary.LittleEndian
	out := make([]byte, 0, (5*MaxRanks+2*objects+9)*8+15*4)
	list := func(at func(rank int) uint64) {
		for r := range MaxRanks {
			v := uint64(0)
			if r < len(t.on.Place) {
				v = at(r)
			}
			out = le.AppendUint64(out, v)
		}
	}
	list(func(r int) uint64 { return uint64(t.pages[r].Device) })
	list(func(r int) uint64 { return uint64(t.pages[r].Host.Ptr) })
	list(func(r int) uint64 { return uint64(t.stages[r]) })
	list(func(r int) uint64 { return a.Src[r] })
	list(func(r int) uint64 { return a.Dst[r] })
	cast, room := a.Cast, a.Room
	if cast[ObjectStage] == 0 {
		cast[ObjectStage], room[ObjectStage] = t.stageCast(gpu), 2*t.stageHalf
	}
	for _, v := range cast {
		out = le.AppendUint64(out, v)
	}
	for _, v := range room {
		out = le.AppendUint64(out, v)
	}
	flags, faultRank, faultStep, faultCycles := a.Flags, ^uint32(0), uint32(0), uint64(0)
	if f := t.fault; f != nil {
		faultRank, faultStep, faultCycles = uint32(f.Rank), uint32(f.Step), t.on.Cycles(f.Delay)
		if f.Differ {
			flags, faultStep = flags|flagDiffers, ^uint32(0)
		}
	}
	for _, v := range []uint64{t.generation, a.Hash, t.on.Cycles(t.deadlines.Arrive), t.on.Cycles(t.deadlines.Progress), faultCycles, uint64(a.Count), t.stageHalf, a.Seed, uint64(a.Threshold)} {
		out = le.AppendUint64(out, v)
	}
	for _, v := range []uint32{uint32(t.on.Local[gpu][0]), uint32(len(t.on.Place)), uint32(a.Blocks), a.Collective, uint32(a.Form), a.Join, a.Log, uint32(a.Dir),
		a.ResultBits, a.TermBits, flags, a.Version, a.Algo, faultRank, faultStep} {
		out = le.AppendUint32(out, v)
	}
	for len(out)%8 != 0 {
		out = append(out, 0)
	}
	return out
}
