package rlkernel

import (
	"fmt"
	"slices"

	"example.com/tandem/api"
)

// Algorithms of a plan. The tree and the copies give the same bytes on each.
const (
	algSingle = "single_block" // reserve, stage, publish, wait, compute and retire in one block
	algSplit  = "stage_block"  // one block stages, another one waits, reduces and retires
	algMulti  = "multi_block"  // a launch or copy for every phase; the computation on a grid
	algOwner  = "owner"        // rank 0 computes in its payload and copies the bytes to all
	algCopies = "copies"       // a copy engine command for every lane and peer
)

// kind is what a stream operation does.
type kind uint8

const (
	opFused   kind = iota // one block: the whole call
	opStage               // one block: reserve, copy in, publish
	opReserve             // wait for every rank's done
	opCopyIn              // device-to-device copies of the lanes into the payload
	opPublish             // release stage
	opWait                // wait for every rank's stage
	opCompute             // grid: gather or reduce
	opFinish              // one block: wait, reduce, retire
	opRetire              // release done
	opBarrier             // the host: device synchronisation and group barrier
	opCopyOut             // copies of every lane of every payload to the output
	opTree                // rank 0, grid: reduce into its own payload
	opPush                // rank 0: copies of its payload into each other one
	opOwned               // ranks but 0: wait for rank 0's done
	opUnstage             // copy of the own payload to the output
)

var kindNames = [...]string{
	"fused", "stage", "reserve", "memcpy_in", "publish", "wait", "compute", "finish", "retire",
	"host_barrier", "memcpy_out", "tree", "memcpy_push", "wait_owner", "memcpy_own",
}

func (k kind) String() string { return kindNames[k] }

// op is one or several stream operations of the same kind that follow one
// another. Count of them are enqueued one by one.
type op struct {
	kind   kind
	blocks int64 // of each
	count  int64
	by     party
}

// party says which ranks do an operation.
type party uint8

const (
	everybody party = iota
	owner           // rank 0
	followers       // all but rank 0
)

// does reports whether rank takes part in o.
func (o op) does(rank int) bool { return o.by == everybody || (o.by == owner) == (rank == 0) }

// unit is a call as the device sees it: one turn of the handshake.
type unit struct {
	base  api.Collective // what is done with each lane
	lanes []int          // of the call
	at    []int64        // bytes into the payload at which each lane is staged
	path  string
	// The path was chosen by these bytes, of the output for all_gather and of
	// the input otherwise, held against this limit.
	bytes, limit int64
	ops          []op
	// late is the number of launches after which the host finds out that it
	// cannot go on; 0 if it can.
	late int64
}

// schedule is every decision of a call that is the same on all ranks. What
// depends on a rank's own addresses is in [copying] and [staging].
type schedule struct {
	config
	call  api.Call
	units []unit
}

// decide plans a call that admit has accepted.
func decide(c config, call api.Call) *schedule {
	s := &schedule{config: c, call: call}
	switch call.Collective {
	case api.AllReduce:
		s.units = []unit{c.allReduce(&call)}
	case api.AllGather:
		s.units = []unit{c.allGather(&call)}
	case api.AllGatherMany:
		s.units = []unit{c.gatherMany(&call)}
	default: // the many form is a loop over the lanes
		for lane := range call.Lanes() {
			s.units = append(s.units, c.reduceScatter(&call, lane))
		}
	}
	return s
}

func oneBlock(k kind) op { return op{kind: k, blocks: 1, count: 1} }

func one(kinds ...kind) []op {
	ops := make([]op, len(kinds))
	for i, k := range kinds {
		ops[i] = oneBlock(k)
	}
	return ops
}

func grid(k kind, work int64) op {
	return op{kind: k, blocks: min(maxBlocks, max(1, ceil(work, threads))), count: 1}
}

// staged are the operations of stage(): one block, or copies above the limit.
func staged(bytes int64) []op {
	if bytes <= singleBlock {
		return one(opStage)
	}
	return one(opReserve, opCopyIn, opPublish)
}

func (c *config) allReduce(call *api.Call) unit {
	n := laneBytes(call, 0)
	u := unit{base: api.AllReduce, lanes: []int{0}, at: []int64{0}, bytes: n, limit: singleBlock}
	switch {
	case c.extension && n <= ownerLimit:
		u.path, u.limit = algOwner, ownerLimit
		u.ops = append(staged(n), ownerOps(call)...)
	case !c.extension && n <= singleBlock:
		u.path, u.ops = algSingle, one(opFused)
	default:
		u.path, u.ops = algMulti, append(one(opReserve, opCopyIn, opPublish, opWait), grid(opCompute, call.Count), oneBlock(opRetire))
	}
	return u
}

// ownerOps are the operations of all_reduce() after stage(): rank 0 computes in
// its payload and stores into the others', which wait for its done.
func ownerOps(call *api.Call) []op {
	ops := []op{
		{kind: opWait, blocks: 1, count: 1, by: owner},
		grid(opTree, call.Count),
		{kind: opPush, blocks: 1, count: int64(call.Ranks - 1), by: owner},
		{kind: opOwned, blocks: 1, count: 1, by: followers},
	}
	ops[1].by = owner
	return append(ops, one(opUnstage, opRetire)...)
}

func (c *config) allGather(call *api.Call) unit {
	in, out := laneBytes(call, 0), outBytes(call, 0)
	u := unit{base: api.AllGather, lanes: []int{0}, at: []int64{0}, bytes: out, limit: c.gatherBlock}
	if !c.extension && out <= c.gatherBlock {
		u.path, u.ops = algSingle, one(opFused)
		return u
	}
	// The grid is sized by bytes also where it moves vectors.
	u.path, u.ops = algMulti, append(staged(in), oneBlock(opWait), grid(opCompute, out), oneBlock(opRetire))
	return u
}

func (c *config) gatherMany(call *api.Call) unit {
	u := unit{base: api.AllGather, path: algCopies}
	u.at, _ = layout(call)
	for lane := range u.at {
		u.lanes = append(u.lanes, lane)
	}
	n := int64(len(u.lanes))
	u.ops = one(opReserve, opCopyIn, opPublish, opWait, opCopyOut, opRetire)
	u.ops[1].count, u.ops[4].count = n, n*int64(call.Ranks)
	return u
}

func (c *config) reduceScatter(call *api.Call, lane int) unit {
	n, shape := laneBytes(call, lane), call.Lane(lane)
	u := unit{base: api.ReduceScatter, lanes: []int{lane}, at: []int64{0}, bytes: n, limit: singleBlock, ops: staged(n)}
	if !c.extension {
		u.ops = append(u.ops, one(opBarrier)...)
	}
	if !slices.Contains(reduced, shape.DType) {
		u.late = launches(u.ops, 0)
	}
	if n <= singleBlock {
		u.path = algSplit
		u.ops = append(u.ops, one(opFinish)...)
	} else {
		u.path = algMulti
		u.ops = append(u.ops, oneBlock(opWait), grid(opCompute, shape.Count), oneBlock(opRetire))
	}
	if !c.extension {
		u.ops = append(u.ops, one(opBarrier)...)
	}
	return u
}

// why says what chose the path.
func (u *unit) why() string {
	what, each := "input", ", an element a thread and trip"
	if u.base == api.AllGather {
		what, each = "output", ""
	}
	small := fmt.Sprintf("%s of %d bytes, at most %d: ", what, u.bytes, u.limit)
	switch u.path {
	case algOwner:
		return small + "rank 0 reduces for all"
	case algSingle:
		return small + fmt.Sprintf("one block of %d threads", threads)
	case algSplit:
		return small + fmt.Sprintf("one block of %d threads stages, one reduces", threads) + each
	case algCopies:
		return fmt.Sprintf("copies of %d lanes, whatever their size", len(u.lanes))
	}
	return fmt.Sprintf("%s of %d bytes, above %d: %d blocks of %d threads", what, u.bytes, u.limit, u.width()/threads, threads) + each
}

// launches counts the stream operations of one rank, host barriers apart.
func launches(ops []op, rank int) int64 {
	n := int64(0)
	for _, o := range ops {
		if o.kind != opBarrier && o.does(rank) {
			n += o.count
		}
	}
	return n
}

func ceil(a, b int64) int64 { return (a + b - 1) / b }
