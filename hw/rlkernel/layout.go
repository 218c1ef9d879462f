package rlkernel

import (
	"encoding/binary"

	"example.com/tandem/api"
)

// The numbers of hw/kernels/src/rlkernel_layout.h; a test reads that file.

// maxRanks is how many ranks the arguments of a launch have room for.
const maxRanks = 8

// The frame of a rank: two counters, then the payload.
const (
	frameStage   = 0
	frameDone    = 8
	framePayload = 32
)

// The control page of a rank.
const (
	controlGeneration = 0
	controlAbort      = 8
	controlOwner      = 12
	controlClaim      = 16
	controlBytes      = 256
)

// The report of a rank in pinned memory.
const (
	reportStop     = 0
	reportReason   = 4
	reportStep     = 8
	reportPeer     = 12
	reportSequence = 16
	reportBytes    = 128
)

// Step is a point of a call.
type Step uint32

// The steps, in order.
const (
	StepEntry Step = iota
	StepReserve
	StepPublish
	StepWait
	StepOwned
	StepCompute
	StepRetire
	steps
)

// Steps lists them.
func Steps() []Step {
	var all []Step
	for s := range steps {
		all = append(all, s)
	}
	return all
}

// String is what errors call the step.
func (s Step) String() string {
	return [...]string{"the entry", "the reservation of the payloads", "the publication", "the wait for the payloads", "the wait for rank 0", "the data", "the retirement"}[min(s, StepRetire)]
}

// What a launch of rl_signal does.
const (
	doReserve = iota + 1
	doPublish
	doWait
	doOwned
	doRetire
)

// Flags of a launch.
const (
	flagFirst = 1 << iota
	flagVectors
	flagPeerwise
	flagPairs
)

// types are the numbers of the element types that reductions take.
var types = map[api.DType]uint32{api.BF16: 0, api.F16: 1, api.F32: 2}

// perRank is one word for each rank.
type perRank [maxRanks]uint64

// arguments are what a launch says, in the order of struct Args.
type arguments struct {
	page, frame, report, src, dst                                 perRank
	generation, arrive, progress, faultCycles                     uint64
	ranks, bytes, count, skip                                     uint64
	each, world, blocks, dtype, flags, what, faultRank, faultStep uint32
}

const argumentBytes = 5*8*maxRanks + 8*8 + 8*4

// encode is struct Args as the kernels read it.
func (a *arguments) encode() []byte {
	out := make([]byte, 0, argumentBytes)
	for _, list := range []*perRank{&a.page, &a.frame, &a.report, &a.src, &a.dst} {
		for _, v := range list {
			out = binary.LittleEndian.AppendUint64(out, v)
		}
	}
	for _, v := range []uint64{a.generation, a.arrive, a.progress, a.faultCycles, a.ranks, a.bytes, a.count, a.skip} {
		out = binary.LittleEndian.AppendUint64(out, v)
	}
	for _, v := range []uint32{a.each, a.world, a.blocks, a.dtype, a.flags, a.what, a.faultRank, a.faultStep} {
		out = binary.LittleEndian.AppendUint32(out, v)
	}
	return out
}
