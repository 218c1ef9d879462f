package rlkernel

import "example.com/tandem/api"

// action is what an item of a program does.
type action uint8

const (
	doMeet    action = iota // host: barrier n
	doLaunch                // host: enqueue the next stream operation
	doSync                  // host: wait for the first n stream operations
	doRaise                 // host: give up
	doExit                  // end with status n
	doDie                   // stream: the context is lost
	doOwe                   // stream: add n to word from
	doBegin                 // stream: wait until operation n is enqueued; go to from if it never is
	doEnd                   // stream: an operation has ended
	doPoll                  // stream: wait until word from of peer reaches the own stage word
	doPublish               // stream: stage = stage + 1
	doRetire                // stream: done = stage
	doStage                 // stream: source to payload
	doGather                // stream: peer's payload to destination
	doReduce                // stream: all payloads to destination
	doTree                  // stream: all payloads to the own one
	doPush                  // stream: own payload to peer's
	doUnstage               // stream: own payload to destination
)

// item is one step in short. from and n are bytes of the lane where they say
// which; shift is where in the payload a rank's shard begins.
type item struct {
	do     action
	width  uint8
	peer   int16
	lane   int32
	onFail int // the step to go to when this one fails
	from   int64
	n      int64
	shift  int64
	op     string
}

// builder makes the two lists of one rank.
type builder struct {
	*Program
	rank     int
	stream   []item
	host     []item
	launches int64
	meet     int64
	op       string
}

func build(p *Program, plan *api.Plan, rank int) [ctas][]item {
	b := &builder{Program: p, rank: rank}
	b.owe()
	if p.cond.Compare {
		b.hostMeet("all_gather_object")
	}
	if p.cond.Refuse != nil && p.cond.Refuse[rank] {
		b.host = append(b.host, item{do: doExit, n: int64(hostRefused), op: "refused"})
		return [ctas][]item{b.host, b.stream}
	}
	for i := range plan.Kernels {
		b.kernel(&plan.Kernels[i])
	}
	b.host = append(b.host, item{do: doExit, onFail: int(b.launches), op: "return"})
	b.handlers()
	return [ctas][]item{b.host, b.stream}
}

// owe brings the words up to date with work that never ran on the machine.
func (b *builder) owe() {
	for _, o := range []struct {
		word int64
		by   []uint64
	}{{wordStage, b.cond.Published}, {wordDone, b.cond.Retired}} {
		if o.by != nil && o.by[b.rank] > 0 {
			b.stream = append(b.stream, item{do: doOwe, from: o.word, n: int64(o.by[b.rank]), op: "earlier calls"})
		}
	}
}

// handlers appends what the host and the stream do when a step of theirs fails.
// The host gives up and says after how many launches, which is what onFail was
// until now; the stream is dead. The handlers themselves try again.
func (b *builder) handlers() {
	first := len(b.host)
	for i := range b.host {
		b.host[i].onFail = first + 2*b.host[i].onFail
	}
	for n := range b.launches + 1 {
		at := len(b.host)
		b.host = append(b.host,
			item{do: doRaise, onFail: at, op: "exception"},
			item{do: doExit, n: int64(hostRaised) + n, onFail: at + 1, op: "exception"})
	}
	b.stream = append(b.stream, item{do: doExit, op: "return"})
	left := len(b.stream)
	die := left + 1
	for i := range b.stream {
		b.stream[i].onFail = die
		if b.stream[i].do == doBegin {
			b.stream[i].from = int64(left)
		}
	}
	b.stream = append(b.stream,
		item{do: doExit, n: int64(streamLeft), onFail: left, op: "never enqueued"},
		item{do: doDie, onFail: die, op: "device fault"},
		item{do: doExit, n: int64(streamDied), onFail: die + 1, op: "device fault"})
}

func (b *builder) hostMeet(op string) {
	b.host = append(b.host, item{do: doMeet, n: b.meet, onFail: int(b.launches), op: op})
	b.meet++
}

// launch enqueues one stream operation that does these items.
func (b *builder) launch(items ...item) {
	b.host = append(b.host, item{do: doLaunch, onFail: int(b.launches), op: "launch " + b.op})
	b.launches++
	b.add(item{do: doBegin, n: b.launches})
	b.add(items...)
	b.add(item{do: doEnd})
}

func (b *builder) add(items ...item) {
	for _, it := range items {
		it.op = b.op
		if it.do == doPoll {
			it.op += map[int64]string{wordStage: ": has it published?", wordDone: ": has it retired?"}[it.from]
		}
		b.stream = append(b.stream, it)
	}
}

// kernel adds one kernel of the plan, if this rank has a part in it.
func (b *builder) kernel(k *api.Kernel) {
	b.op = k.Name
	cta := &k.CTAs[0]
	owned := cta.Algorithm == algOwner
	switch k.Name {
	case opFused.String():
		b.launch(join(b.poll(wordDone), b.stage(k.Lane), single(doPublish), b.poll(wordStage), b.compute(k), single(doRetire))...)
	case opStage.String():
		b.launch(join(b.poll(wordDone), b.stage(k.Lane), single(doPublish))...)
	case opReserve.String():
		b.launch(b.poll(wordDone)...)
	case opCopyIn.String():
		b.launch(b.stage(k.Lane)...)
	case opPublish.String():
		b.launch(single(doPublish)...)
	case opWait.String():
		if !owned || b.rank == 0 {
			b.launch(b.poll(wordStage)...)
		}
	case opCompute.String():
		b.launch(b.compute(k)...)
	case opFinish.String():
		b.launch(join(b.poll(wordStage), b.compute(k), single(doRetire))...)
	case opRetire.String():
		b.launch(single(doRetire)...)
	case opBarrier.String():
		b.host = append(b.host, item{do: doSync, n: b.launches, onFail: int(b.launches), op: "device synchronisation"})
		b.hostMeet("group barrier")
	case opCopyOut.String():
		for _, it := range b.gather(k) {
			b.launch(it)
		}
	default:
		b.ownerKernel(k)
	}
}

// ownerKernel adds the kernels that the owner path has and no other.
func (b *builder) ownerKernel(k *api.Kernel) {
	n := laneBytes(b.call, k.Lane)
	switch k.Name {
	case opTree.String():
		if b.rank == 0 {
			b.launch(item{do: doTree, n: n})
		}
	case opPush.String():
		for peer := 1; peer < b.call.Ranks && b.rank == 0; peer++ {
			b.launch(item{do: doPush, peer: int16(peer), n: n})
		}
	case opOwned.String():
		if b.rank != 0 {
			b.launch(item{do: doPoll, peer: 0, from: wordDone})
		}
	case opUnstage.String():
		b.launch(item{do: doUnstage, n: n})
	}
}

func single(do action) []item { return []item{{do: do}} }

func join(lists ...[]item) []item {
	var out []item
	for _, l := range lists {
		out = append(out, l...)
	}
	return out
}

// poll waits for a word of every rank, in rank order, the own one included.
func (b *builder) poll(word int64) []item {
	out := make([]item, b.call.Ranks)
	for peer := range out {
		out[peer] = item{do: doPoll, peer: int16(peer), from: word}
	}
	return out
}

func (b *builder) stage(lane int) []item {
	return []item{{do: doStage, lane: int32(lane), n: laneBytes(b.call, lane)}}
}

// compute is the part of a kernel that reads the payloads.
func (b *builder) compute(k *api.Kernel) []item {
	if len(k.CTAs[0].Slices) > 0 && !b.call.Collective.Reduces() {
		return b.gather(k)
	}
	return b.reduce(k)
}

// gather is the copies of this rank's slices, or of slices for every rank.
func (b *builder) gather(k *api.Kernel) []item {
	size := int64(b.call.Lane(k.Lane).DType.Size())
	var out []item
	for _, s := range k.CTAs[0].Slices {
		if s.Local && s.Rank != b.rank {
			continue
		}
		n := s.Count * size
		peer := int16(0)
		if s.Count > 0 {
			peer = int16(s.Start / s.Count)
		}
		whole := item{do: doGather, lane: int32(k.Lane), peer: peer, n: n}
		switch s.Algorithm {
		case loopVectors, loopPeerVectors:
			tail := whole
			whole.width, whole.n = vector, n/vector*vector
			tail.from, tail.n = whole.n, n%vector
			out = append(out, whole)
			if tail.n > 0 {
				out = append(out, tail)
			}
		default:
			out = append(out, whole)
		}
	}
	return out
}

// reduce is the reduction of a kernel's range: bf16 of the one-block all_reduce
// in pairs, everything else element by element.
func (b *builder) reduce(k *api.Kernel) []item {
	cta := &k.CTAs[0]
	shape := b.call.Lane(k.Lane)
	size := int64(shape.DType.Size())
	all := item{do: doReduce, lane: int32(k.Lane), from: cta.Start * size, n: cta.Count * size}
	if api.Base(b.call.Collective) == api.ReduceScatter {
		all.shift = int64(b.rank) * shape.Count * size
	}
	if !pairs(b.call, cta.Algorithm) {
		return []item{all}
	}
	even, tail := all, all
	even.width, even.n = pairBytes, cta.Count/2*pairBytes
	tail.from, tail.n = all.from+even.n, all.n-even.n
	if tail.n == 0 {
		return []item{even}
	}
	return []item{even, tail}
}
