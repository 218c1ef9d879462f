package vm

import (
	"math/bits"

	"example.com/tandem/sim/ptx/asm"
)

// special is a special register.
type special uint8

const (
	sTidX special = iota
	sTidY
	sTidZ
	sNtidX
	sNtidY
	sNtidZ
	sCtaidX
	sCtaidY
	sCtaidZ
	sNctaidX
	sNctaidY
	sNctaidZ
	sLane
	sWarp
	sWarps
	sWarpSize
	sClock
	sClock64
	sClockHi
	sGlobalTimer
	sGlobalTimerLo
	sGlobalTimerHi
	sLaneEq
	sLaneLt
	sLaneLe
	sLaneGt
	sLaneGe
	sDynamicShared
	sSM
)

var specials = map[string]special{
	"%tid.x": sTidX, "%tid.y": sTidY, "%tid.z": sTidZ, "%ntid.x": sNtidX, "%ntid.y": sNtidY, "%ntid.z": sNtidZ,
	"%ctaid.x": sCtaidX, "%ctaid.y": sCtaidY, "%ctaid.z": sCtaidZ, "%nctaid.x": sNctaidX, "%nctaid.y": sNctaidY, "%nctaid.z": sNctaidZ,
	"%laneid": sLane, "%warpid": sWarp, "%nwarpid": sWarps, "WARP_SZ": sWarpSize,
	"%clock": sClock, "%clock64": sClock64, "%clock_hi": sClockHi, "%globaltimer": sGlobalTimer, "%globaltimer_lo": sGlobalTimerLo, "%globaltimer_hi": sGlobalTimerHi,
	"%lanemask_eq": sLaneEq, "%lanemask_lt": sLaneLt, "%lanemask_le": sLaneLe, "%lanemask_gt": sLaneGt, "%lanemask_ge": sLaneGe,
	"%dynamic_smem_size": sDynamicShared, "%smid": sSM,
}

// sync is an instruction at which threads meet.
type sync struct {
	arrive bool // goes on without waiting
	counts bool // says how many threads, in operand b
	warp   bool
	// join makes the results, one a thread that came; nil if there are none.
	join func(came []*thread)
}

// synchronise compiles fences, barriers and what warps do together.
func (c *compiler) synchronise(in *instr) bool {
	switch c.in.Op {
	case "fence":
		if c.mod("proxy") != "" {
			c.one("alias")
			c.end(0)
			in.kind = kProxy
			return true
		}
		in.kind, in.sc = kFence, c.one("acq_rel", "sc") == "sc"
		in.scope = scopes[c.one("cta", "cluster", "gpu", "sys")]
		c.end(0)
	case "membar":
		in.kind, in.sc = kFence, true
		in.scope = map[string]scope{"cta": ofBlock, "gl": ofDevice, "sys": ofSystem}[c.one("cta", "gl", "sys")]
		c.end(0)
	case "bar", "barrier":
		c.barrier(in)
	case "vote":
		c.vote(in)
	case "shfl":
		c.shuffle(in)
	case "redux":
		c.redux(in)
	case "match":
		c.match(in)
	case "activemask":
		c.typed(asm.B32)
		c.end(1)
		in.kind, in.special = kSpecial, sLaneEq // of threads that run one by one
		in.dst, in.mask = c.dest(c.args[0], 4)
	default:
		return false
	}
	return true
}

func (c *compiler) barrier(in *instr) {
	in.kind, in.sync = kBarrier, &sync{}
	if c.mod("warp") != "" {
		c.one("sync")
		c.end(1)
		in.kind, in.sync.warp = kWarp, true
		in.b = c.value(c.args[0], asm.B32)
		return
	}
	c.mod("cta")
	how := c.one("sync", "arrive", "red")
	c.mod("aligned")
	in.sync.arrive = how == "arrive"
	args := c.args
	if how == "red" {
		op := c.one("and", "or", "popc")
		c.mod("aligned")
		t := c.typed(asm.Pred, asm.U32)
		c.mod("aligned")
		if (t == asm.Pred) == (op == "popc") || len(args) < 3 {
			c.bad("the result, the barrier and a predicate are needed")
		}
		size := 4
		if t == asm.Pred {
			size = 0
		}
		in.dst, in.mask = c.dest(args[0], size)
		p := args[len(args)-1]
		flip := uint64(0)
		if p.Not {
			flip, p.Not = 1, false
		}
		in.c = c.value(p, asm.Pred)
		in.sync.join = func(came []*thread) { reduceVotes(came, op, flip) }
		args = args[1 : len(args)-1]
	}
	if len(c.mods) > 0 {
		c.bad("modifier .%s is not known here", c.mods[0])
	}
	if len(args) < 1 || len(args) > 2 || in.sync.arrive && len(args) != 2 {
		c.bad("%d operands", len(c.args))
	}
	in.a = c.value(args[0], asm.U32)
	if len(args) == 2 {
		in.sync.counts, in.b = true, c.value(args[1], asm.U32)
	}
}

func reduceVotes(came []*thread, op string, flip uint64) {
	n := uint64(0)
	for _, t := range came {
		n += t.value(&t.at().c)&1 ^ flip
	}
	for _, t := range came {
		v := n
		switch op {
		case "and":
			v = flag(n == uint64(len(came)))
		case "or":
			v = flag(n > 0)
		}
		t.write(t.at().dst, v)
	}
}

func flag(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

func (c *compiler) vote(in *instr) {
	c.one("sync")
	op := c.one("all", "any", "uni", "ballot")
	in.kind, in.sync = kWarp, &sync{warp: true}
	size := 0
	if c.typed(asm.Pred, asm.B32) == asm.B32 {
		size = 4
	}
	c.end(3)
	if (op == "ballot") != (size == 4) {
		c.bad("a result of the wrong type")
	}
	in.dst, in.mask = c.dest(c.args[0], size)
	p := c.args[1]
	flip := flag(p.Not)
	p.Not = false
	in.a, in.b = c.value(p, asm.Pred), c.value(c.args[2], asm.B32)
	in.sync.join = func(came []*thread) {
		ballot := uint64(0)
		for _, t := range came {
			ballot |= (t.value(&t.at().a)&1 ^ flip) << t.lane()
		}
		n := bits.OnesCount64(ballot)
		v := map[string]uint64{"all": flag(n == len(came)), "any": flag(n > 0), "uni": flag(n == 0 || n == len(came)), "ballot": ballot}[op]
		for _, t := range came {
			t.write(t.at().dst, v)
		}
	}
}

func (c *compiler) shuffle(in *instr) {
	c.one("sync")
	mode := c.one("up", "down", "bfly", "idx")
	c.typed(asm.B32)
	c.end(5)
	in.kind, in.sync = kWarp, &sync{warp: true}
	d := c.args[0]
	if d.Kind == asm.Pair {
		in.dst2, _ = c.dest(d.List[1], 0)
		d = d.List[0]
	}
	in.dst, in.mask = c.dest(d, 4)
	in.a = c.value(c.args[1], asm.B32)
	in.vec = []operand{c.value(c.args[2], asm.B32), c.value(c.args[3], asm.B32)}
	in.b = c.value(c.args[4], asm.B32)
	in.sync.join = func(came []*thread) { exchange(came, mode) }
}

// exchange is shfl.sync: every lane gets the value of another in its segment.
func exchange(came []*thread, mode string) {
	values := map[int]uint64{}
	for _, t := range came {
		values[t.lane()] = t.value(&t.at().a)
	}
	for _, t := range came {
		in, lane := t.at(), t.lane()
		b, x := int(t.value(&in.vec[0])&31), int(t.value(&in.vec[1]))
		clamp, seg := x&31, x>>8&31
		low, high := lane&seg, lane&seg|clamp&^seg
		from := map[string]int{"up": lane - b, "down": lane + b, "bfly": lane ^ b, "idx": low | b&^seg}[mode]
		ok := from <= high
		if mode == "up" {
			ok = from >= high
		}
		if !ok {
			from = lane
		}
		v, here := values[from]
		if !here {
			v = 0 // of a lane that did not come: undefined
		}
		t.write(in.dst, v)
		if in.dst2 >= 0 {
			t.regs[in.dst2] = flag(ok)
		}
	}
}
