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
	reduce     bool // which kernel
}

// slotBytes is what a sender has in a peer's box, and so the largest message
// that is pushed.
func slotBytes(ranks int) int64 {
	switch {
	case ranks <= 2:
		return 256 << 10
	case ranks <= 4:
		return 128 << 10
	case ranks <= 8:
		return 64 << 10
	case ranks <= 16:
		return 32 << 10
	}
	return 8 << 10
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
	p.reduce = p.collective <= kernelReduceScatter
	total := units(call)
	p.path = c.choose(call, p.collective, total)
	work := total
	if p.path == pathPush && (p.collective == kernelAllGather || p.collective == kernelAllToAll) || p.path == pathDirect && !p.reduce {
		work *= int64(call.Ranks)
	}
	blocks := max((work+threads-1)/threads, min(int64(call.Lanes()), total))
	p.blocks = int(max(1, min(blocks, int64(most))))
	if c.blocks > 0 {
		p.blocks = min(c.blocks, most)
	}
	return p
}

// choose is the path of a call. In place, a rank's output may lie where peers
// still read: all_reduce then goes in two shots, where nobody reads a slice but
// the rank that writes it; reduce_scatter to the start of its source is staged.
func (c *config) choose(call *api.Call, collective uint32, total int64) uint32 {
	inPlace := call.InPlace != api.OutOfPlace
	slices := collective == kernelAllReduce || collective == kernelBroadcast
	pushable := total*16 <= slotBytes(call.Ranks)
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
	case slices && direct == pathDirect && call.Ranks > 2:
		return pathTwoShot
	}
	return direct
}
