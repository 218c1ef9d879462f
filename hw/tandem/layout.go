package tandem

// The numbers of hw/kernels/src/layout.h; a test reads that file.

// Limits.
const (
	MaxRanks  = 72
	maxBlocks = 128
	peers     = 128
	threads   = 256 // a block
	// generalBlocks is the most blocks of the general kernels, and so of those
	// that share a stage.
	generalBlocks = 64
	// boxGrain is what slots are multiples of: the payload of the lines that lie
	// interleaved.
	boxGrain = 512
	// inlineRanks is the largest team whose lists go with every launch.
	inlineRanks = 8
)

// The control page of a rank.
const (
	pageGeneration = 0
	pageEpoch      = 8
	pageOwner      = 16
	pageLeave      = 20
	pageAbort      = 24
	pageClaim      = 28
	pageHeaders    = 256
	pageFlags      = pageHeaders + 2*peers*16
	pageTable      = pageFlags + maxBlocks*peers*8
	pageBytes      = pageTable + 4096
)

// The team table, from pageTable on in the page of a GPU's first rank.
const (
	tableWorld    = 0
	tableSlot     = 8
	tableArrive   = 16
	tableProgress = 24
	tableStage    = 32
	tablePages    = 64
	tableBoxes    = tablePages + MaxRanks*8
	tableStages   = tableBoxes + MaxRanks*8
	tableReports  = tableStages + MaxRanks*8
	tableLocal    = tableReports + MaxRanks*8
)

// Step is a point of a call in a kernel.
type Step uint32

// The steps, in order.
const (
	StepEntry Step = iota
	StepHeader
	StepAgreed
	StepPushed
	StepData
	StepBarrier
	StepLeave
	steps
)

// Steps lists them.
func Steps() []Step {
	var all []Step
	for s := StepEntry; s < steps; s++ {
		all = append(all, s)
	}
	return all
}

// String is what errors call the step.
func (s Step) String() string {
	return [...]string{"entry", "the headers", "the agreement", "the pushed data", "the data", "a barrier", "the end"}[min(s, StepLeave)]
}

// Collectives as the kernels number them.
const (
	kernelAllReduce = iota
	kernelReduceScatter
	kernelAllGather
	kernelBroadcast
	kernelAllToAll
)

// Paths as the kernels number them.
const (
	pathPush = iota
	pathDirect
	pathTwoShot
	pathStaged
)

const inlineWords = 148

// Fields of the kernels' Near and Team, in bytes.
const (
	nearWorld    = 0
	nearRank     = 4
	nearPage     = 8
	nearBox      = 16
	nearReport   = 24
	nearNextPage = 32
	nearNextBox  = 40
	nearSlot     = 48
	nearBytes    = 56

	teamPages    = 0
	teamBoxes    = teamPages + inlineRanks*8
	teamStages   = teamBoxes + inlineRanks*8
	teamReports  = teamStages + inlineRanks*8
	teamArrive   = teamReports + inlineRanks*8
	teamProgress = teamArrive + 8
	teamStage    = teamProgress + 8
	teamLocal    = teamStage + 8
	teamBytes    = teamLocal + inlineRanks*4
)

const (
	flagInPlace = 1
	flagDiffers = 2
	flagOverlap = 4
)
