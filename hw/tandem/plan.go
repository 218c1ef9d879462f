package tandem

import (
	"example.com/tandem/api"
)

// plan is what the host decides for a call; all of it follows from the call and
// the team, never from an address or one GPU.
type plan struct {
	collective uint32
	path       uint32
	blocks     int
	kernel     kernel
	overlap    bool // the next call may begin while this one runs
}

// kernel is an entry of the module.
type kernel int

const (
	reduceKernel kernel = iota
	copyKernel
	push2Kernel
	pushKernel
	pull2Kernel
	pullKernel
	spreadKernel
	push2Faulty
	pushFaulty
	kernelCount
)

var kernelNames = [kernelCount]string{"tandem_reduce", "tandem_copy", "tandem_push2", "tandem_push", "tandem_pull2", "tandem_pull", "tandem_spread", "tandem_push2_faults", "tandem_push_faults"}

// overlaps reports whether a kernel may begin before the one before it has ended.
func (k kernel) overlaps() bool { return k == push2Kernel || k == pushKernel }

// general reports whether a kernel takes calls of all kinds. These need so many
// registers that they are launched with fewer blocks.
func (k kernel) general() bool { return k <= copyKernel }

// serves reports whether a kernel is of use to a team.
func (k kernel) serves(ranks int) bool {
	switch k {
	case push2Kernel, pull2Kernel, push2Faulty:
		return ranks == 2
	case pushKernel, pullKernel, pushFaulty:
		return ranks > 2 && ranks <= inlineRanks
	case spreadKernel:
		return ranks > 1
	}
	return true
}

// faulty is the kernel in whose place a fault can be injected.
func (k kernel) faulty() kernel {
	switch k {
	case push2Kernel:
		return push2Faulty
	case pushKernel:
		return pushFaulty
	}
	return k
}

// most is the largest grid of a rank, of the blocks that fit for each of so many
// ranks of a GPU. Calls of two teams fit side by side, each alone on its GPUs:
// neither can keep a part of the other from running.
func (k kernel) most(fits, ranks int) int {
	if k.general() && fits >= generalBlocks {
		return maxBlocks
	}
	if !k.general() && ranks == 1 && fits >= 2 {
		return min(fits/2, maxBlocks)
	}
	return min(fits, maxBlocks)
}

// kernelFor is the kernel of a call. The general ones are for teams of more than
// eight and of one, for staged sources, and for arithmetic that is long or goes
// element by element.
func (c *config) kernelFor(call *api.Call, collective, path uint32) kernel {
	reduces := collective <= kernelReduceScatter
	general := copyKernel
	if reduces {
		general = reduceKernel
	}
	pull, push := pullKernel, pushKernel
	if call.Ranks == 2 {
		pull, push = pull2Kernel, push2Kernel
	}
	plain := call.Ranks <= inlineRanks && (!reduces || c.plain(call))
	switch {
	case call.Ranks == 1 || path == pathStaged:
	case path == pathPush && plain && words(call) <= inlineWords:
		return push
	case path == pathDirect && !reduces:
		return spreadKernel
	case (path == pathDirect || path == pathTwoShot) && reduces && plain:
		return pull
	}
	return general
}

// plain reports whether the arithmetic of all lanes is whole lines', unscaled,
// and one of PLAIN in plain.h.
func (c *config) plain(call *api.Call) bool {
	scheme := c.scheme(call)
	for i := range call.Lanes() {
		w := typeWord(call.Lane(i).DType, scheme)
		if w>>16 != 0 || !plainJoin(w>>8) {
			return false
		}
	}
	return true
}

// slotBytes is what a sender has in a peer's box, and so the largest message
// that is pushed, where nothing was measured.
func slotBytes(ranks int) int64 { return thresholdsOf("", ranks).Push }

// row is the thresholds of a team of this config.
func (c *config) row(ranks int) thresholds {
	if c.table == nil {
		return thresholdsOf("", ranks)
	}
	return *c.table
}

// slot is the largest message that is pushed, or what the Spec has instead.
func (c *config) slot(ranks int) int64 {
	if c.box > 0 {
		return c.box
	}
	return c.row(ranks).Push
}

// units is the number of 16-byte units of a block of every lane.
func units(call *api.Call) (total int64) {
	for i := range call.Lanes() {
		l := call.Lane(i)
		total += (l.Count*int64(l.DType.Size()) + 15) / 16
	}
	return total
}

// kernelCollective is the number of a collective in the kernels. A team of one
// copies, whatever it is called.
func kernelCollective(call *api.Call) uint32 {
	if call.Ranks == 1 {
		return kernelAllGather
	}
	switch api.Base(call.Collective) {
	case api.AllReduce:
		return kernelAllReduce
	case api.ReduceScatter:
		return kernelReduceScatter
	case api.Broadcast:
		return kernelBroadcast
	case api.AllToAll:
		return kernelAllToAll
	}
	return kernelAllGather
}

// plan decides. most is the largest grid of a rank.
func (c *config) plan(call *api.Call, most int) plan {
	p := plan{collective: kernelCollective(call)}
	reduces := p.collective <= kernelReduceScatter
	total := units(call)
	p.path = c.choose(call, p.collective, total)
	p.kernel = c.kernelFor(call, p.collective, p.path)
	work := total
	if p.kernel.general() {
		most = min(most, generalBlocks)
	}
	switch {
	case !p.kernel.general():
	case p.path == pathPush && (p.collective == kernelAllGather || p.collective == kernelAllToAll), p.path == pathDirect && !reduces:
		work *= int64(call.Ranks)
	}
	each := int64(threads) // units of a block
	if p.kernel == pull2Kernel || p.kernel == pullKernel || p.kernel == spreadKernel {
		each = max(each, c.row(call.Ranks).Block/16)
	}
	blocks := max((work+each-1)/each, min(int64(call.Lanes()), total))
	p.blocks = int(max(1, min(blocks, int64(most))))
	if c.blocks > 0 {
		p.blocks = min(c.blocks, most)
	}
	// Two calls of a team at once take no more room than one may.
	p.overlap = p.kernel.overlaps() && 2*p.blocks <= most
	return p
}

// choose is the path of a call. In place, a rank's output may lie where peers
// still read: all_reduce then goes in two shots, where nobody reads a slice but
// the rank that writes it; reduce_scatter to the start of its source is staged.
func (c *config) choose(call *api.Call, collective uint32, total int64) uint32 {
	inPlace := call.InPlace != api.OutOfPlace
	slices := collective == kernelAllReduce || collective == kernelBroadcast
	pushable := total*16 <= c.slot(call.Ranks)
	direct := uint32(pathDirect)
	switch {
	case call.Ranks == 1:
		return pathDirect
	case c.staged, call.InPlace == api.InPlaceStart:
		direct = pathStaged
	case collective == kernelAllReduce && inPlace:
		direct = pathTwoShot
	}
	switch c.path {
	case "push":
		if pushable {
			return pathPush
		}
		return direct
	case "direct":
		return direct
	case "staged":
		return pathStaged
	case "two_shot":
		if slices && direct != pathStaged {
			return pathTwoShot
		}
		return direct
	}
	switch {
	case pushable:
		return pathPush
	case slices && direct == pathDirect && total*16 >= c.row(call.Ranks).TwoShot && (call.Ranks > 2 || collective == kernelAllReduce):
		return pathTwoShot
	}
	return direct
}
