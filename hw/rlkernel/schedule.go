package rlkernel

import (
	"example.com/tandem/api"
)

// Kernels of the module.
const (
	kernelFusedGather = "rl_fused_gather"
	kernelFusedReduce = "rl_fused_reduce"
	kernelStage       = "rl_stage"
	kernelFinish      = "rl_finish"
	kernelSignal      = "rl_signal"
	kernelCopy        = "rl_copy"
	kernelGather      = "rl_gather"
	kernelReduce      = "rl_reduce"
)

// kernelNames lists them.
var kernelNames = []string{kernelFusedGather, kernelFusedReduce, kernelStage, kernelFinish, kernelSignal, kernelCopy, kernelGather, kernelReduce}

// party says which ranks a launch is for.
type party uint8

const (
	all party = iota
	owner
	followers
)

func (p party) has(rank int) bool { return p == all || (p == owner) == (rank == 0) }

// move says what a copy moves.
type move uint8

const (
	none move = iota
	in        // the source into the own payload
	out       // the payload of peer to its place in the destination
	push      // rank 0's payload into that of peer
	mine      // the own payload to the destination
)

// launch is one launch of a call, the same on every rank of its party.
type launch struct {
	kernel string
	lane   int
	blocks int64 // of a rank
	what   uint32
	party  party
	move   move
	peer   int
	at     int64 // bytes into the payload where the lane lies
	tree   bool  // a reduction into the own payload
	pairs  bool
}

// waits reports whether blocks of the launch wait for other ranks.
func (l *launch) waits() bool {
	switch l.kernel {
	case kernelFusedGather, kernelFusedReduce, kernelStage, kernelFinish:
		return true
	}
	return l.what == doReserve || l.what == doWait || l.what == doOwned
}

// single decides between one block and a grid.
func (c *config) single(bytes, limit int64) bool {
	if c.path != pathAuto {
		return c.path == pathSingle
	}
	return bytes <= limit
}

// storesPairs reports whether a call stores two bf16 at once.
func (c *config) storesPairs(call *api.Call) bool {
	return call.Collective == api.AllReduce && call.DType == api.BF16 && call.Count > 1 && !c.extension && c.single(inputBytes(call, 0), oneBlock)
}

// schedule lists the launches of a call that admit has taken.
func (c *config) schedule(call *api.Call) []launch {
	switch call.Collective {
	case api.AllReduce:
		return c.allReduce(call)
	case api.AllGather:
		return c.allGather(call)
	case api.AllGatherMany:
		return gatherMany(call)
	}
	var ls []launch
	for lane := range call.Lanes() { // the many form is a loop in the class
		ls = append(ls, c.reduceScatter(call, lane)...)
	}
	return ls
}

func one(kernel string, lane int) launch { return launch{kernel: kernel, lane: lane, blocks: 1} }

func signal(lane int, what uint32, p party) launch {
	return launch{kernel: kernelSignal, lane: lane, blocks: 1, what: what, party: p}
}

// grid has a thread for every unit of work, up to a number of blocks.
func grid(kernel string, lane int, work int64) launch {
	return launch{kernel: kernel, lane: lane, blocks: min(maxBlocks, max(1, (work+threads-1)/threads))}
}

// copied is a copy of the bytes of a lane's input; nothing, where there are none.
func copied(call *api.Call, l launch) []launch {
	n := inputBytes(call, l.lane)
	if n == 0 {
		return nil
	}
	l.kernel, l.blocks = kernelCopy, min(copyBlocks, (n+threads*16-1)/(threads*16))
	return []launch{l}
}

// copyBlocks bounds the grid of a copy.
const copyBlocks = 1024

// staging is stage() with copies: for an input that one block would be slow at.
func staging(call *api.Call, lane int) []launch {
	ls := []launch{signal(lane, doReserve, all)}
	ls = append(ls, copied(call, launch{lane: lane, move: in})...)
	return append(ls, signal(lane, doPublish, all))
}

// stage is stage(): in one block, or with copies.
func stage(call *api.Call, lane int) []launch {
	if inputBytes(call, lane) <= oneBlock {
		return []launch{one(kernelStage, lane)}
	}
	return staging(call, lane)
}

// between puts a computation between the wait and the retirement.
func between(ls []launch, compute launch) []launch {
	return append(ls, signal(compute.lane, doWait, all), compute, signal(compute.lane, doRetire, all))
}

func (c *config) allReduce(call *api.Call) []launch {
	n := inputBytes(call, 0)
	switch {
	case c.extension && n <= ownerBytes:
		return owned(call)
	case !c.extension && c.single(n, oneBlock):
		l := one(kernelFusedReduce, 0)
		l.pairs = call.DType == api.BF16
		return []launch{l}
	}
	return between(staging(call, 0), grid(kernelReduce, 0, call.Count))
}

// owned is the reduction of the extension: rank 0 reduces into its payload,
// copies it into those of the others, and retires, for which the others wait.
// Rank 0 is launched to its end first, since the others may share its GPU.
func owned(call *api.Call) []launch {
	tree := grid(kernelReduce, 0, call.Count)
	tree.party, tree.tree = owner, true
	ls := append(stage(call, 0), signal(0, doWait, owner), tree)
	for peer := 1; peer < call.Ranks; peer++ {
		ls = append(ls, copied(call, launch{move: push, party: owner, peer: peer})...)
	}
	for _, p := range []party{owner, followers} {
		if p == followers {
			ls = append(ls, signal(0, doOwned, p))
		}
		ls = append(ls, copied(call, launch{move: mine, party: p})...)
		ls = append(ls, signal(0, doRetire, p))
	}
	return ls
}

func (c *config) allGather(call *api.Call) []launch {
	n := outputBytes(call, 0)
	if !c.extension && c.single(n, gatherLimit(c.spec.Version)) {
		return []launch{one(kernelFusedGather, 0)}
	}
	// A thread for every byte, also where it moves vectors.
	return between(stage(call, 0), grid(kernelGather, 0, n))
}

// gatherMany copies every lane in, at a place of its own, and out of every rank.
func gatherMany(call *api.Call) []launch {
	ls := []launch{signal(0, doReserve, all)}
	var back []launch
	at := int64(0)
	for lane := range call.Lanes() {
		ls = append(ls, copied(call, launch{lane: lane, move: in, at: at})...)
		for peer := range call.Ranks {
			back = append(back, copied(call, launch{lane: lane, move: out, peer: peer, at: at})...)
		}
		at = padded(at + inputBytes(call, lane))
	}
	ls = append(ls, signal(0, doPublish, all), signal(0, doWait, all))
	return append(append(ls, back...), signal(0, doRetire, all))
}

func (c *config) reduceScatter(call *api.Call, lane int) []launch {
	ls := stage(call, lane)
	if c.single(inputBytes(call, lane), oneBlock) {
		return append(ls, one(kernelFinish, lane))
	}
	return between(ls, grid(kernelReduce, lane, call.Lane(lane).Count))
}
