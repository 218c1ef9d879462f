package vm

import (
	"slices"
	"time"

	"example.com/tandem/api/gpu"
)

type state uint8

const (
	running state = iota
	parked        // polls in vain
	sleeping
	waiting // at a barrier
	ended
)

type thread struct {
	agent
	b     *block
	regs  []uint64
	code  []instr
	pc    int32
	state state
	tid   [3]uint32
	// spin counts what a thread does that only looks: strong loads and clock
	// reads 64, weak loads 1. Changes is what Machine.changes then was.
	spin    int
	changes uint64
	outside uint8 // what else it has looked at since then
	tries   int   // how often time has woken it since then
	stale   int
	wake    time.Duration
	local   *Store
	fences  [3]*message // what writes of that scope tell since the last fences
	pending [3]know     // read by strong loads, by distance, for a fence to acquire
	polled  uint64      // address of the last strong load
	last    *Region
	listed  bool // in Machine.ready
}

// patience is the spin at which a thread is taken to poll.
const patience = 64 * 64

type block struct {
	m       *Machine
	l       *Launch
	id      uint32
	index   uint64
	ctaid   [3]uint32
	threads []thread
	live    int
	shared  *Store
	barrier [16]meeting
	warps   map[int]*meeting
}

// meeting is a barrier being waited at.
type meeting struct {
	came  []*thread // waiting
	extra int       // arrived and gone on
	need  int       // 0: all threads that live
	know  know
}

func (t *thread) lane() int  { return int(t.ev.thread) & 31 }
func (t *thread) at() *instr { return &t.code[t.pc] }

func (t *thread) value(o *operand) uint64 {
	switch {
	case o.reg >= 0:
		return t.regs[o.reg]
	case o.reg == -2:
		return t.b.l.Globals[o.imm&(1<<20-1)] + o.imm>>20
	}
	return o.imm
}

func (t *thread) write(r int32, v uint64) {
	if r >= 0 {
		t.regs[r] = v
	}
}

// run executes up to n instructions, as long as the thread can go on.
func (t *thread) run(n int) int {
	regs, code, pc := t.regs, t.code, t.pc
	for i := range n {
		in := &code[pc]
		if in.guard >= 0 && (regs[in.guard] != 0) == in.not {
			pc++
			continue
		}
		switch in.kind {
		case kFn:
			v := in.fn(t.value(&in.a), t.value(&in.b), t.value(&in.c)) & in.mask
			if in.dst >= 0 {
				regs[in.dst] = v
			}
			pc++
		case kBoth:
			v := in.fn(t.value(&in.a), t.value(&in.b), t.value(&in.c))
			t.write(in.dst, v&in.mask)
			t.write(in.dst2, v>>32&in.mask)
			pc++
		case kBra:
			pc = in.target
		case kNop:
			pc++
		case kUnpack:
			v := t.value(&in.a)
			for k := range in.vec {
				t.write(in.vec[k].reg, v>>(uint(k)*uint(in.width))&(1<<in.width-1))
			}
			pc++
		case kPack:
			v := uint64(0)
			for k := range in.vec {
				v |= t.value(&in.vec[k]) & (1<<in.width - 1) << (uint(k) * uint(in.width))
			}
			t.write(in.dst, v&in.mask)
			pc++
		default:
			t.pc = pc
			t.rare(in)
			pc = t.pc
			if t.state != running {
				return i + 1
			}
		}
	}
	t.pc = pc
	return n
}

// rare executes what is not arithmetic.
func (t *thread) rare(in *instr) {
	m := t.b.m
	switch in.kind {
	case kMem:
		if t.memory(in, in.mem) {
			t.pc++
		}
	case kSpecial:
		t.write(in.dst, t.special(in.special)&in.mask)
		t.pc++
	case kTable:
		i := t.value(&in.a)
		if i >= uint64(len(in.table)) {
			t.fault(gpu.IllegalInstruction, "branch %d of %d", i, len(in.table))
			return
		}
		t.pc = in.table[i]
	case kFence:
		if f := m.opts.Fenced; f != nil {
			f(t.kernel.module.File, in.src.Line)
		}
		t.fence(in.scope, in.sc)
		t.pc++
	case kProxy:
		t.ev.n++
		t.k = t.k.proxy(t.ev)
		t.pc++
	case kBarrier, kWarp:
		t.meet(in)
	case kSleep:
		d := time.Duration(t.value(&in.a))
		t.state, t.wake = sleeping, m.now+max(d, 1)
		m.clocked = true
		t.pc++
	case kExit:
		t.exit()
	case kTrap:
		t.fault(gpu.IllegalInstruction, "trap")
	case kAssert:
		t.fault(gpu.Assert, "an assertion of the kernel failed")
	case kInsert:
		t.write(in.dst, insert(t.value(&in.a), t.value(&in.b), t.value(&in.c), t.value(&in.vec[0]), in.width)&in.mask)
		t.pc++
	}
}

func (t *thread) special(s special) uint64 {
	b := t.b
	l := b.l
	switch s {
	case sTidX, sTidY, sTidZ:
		return uint64(t.tid[s-sTidX])
	case sCtaidX, sCtaidY, sCtaidZ:
		return uint64(b.ctaid[s-sCtaidX])
	case sNtidX, sNtidY, sNtidZ:
		return uint64([]uint32{l.Block.X, l.Block.Y, l.Block.Z}[s-sNtidX])
	case sNctaidX, sNctaidY, sNctaidZ:
		return uint64([]uint32{l.Grid.X, l.Grid.Y, l.Grid.Z}[s-sNctaidX])
	case sLane:
		return uint64(t.lane())
	case sWarp:
		return uint64(t.ev.thread) / 32
	case sWarps:
		return uint64(len(b.threads)+31) / 32
	case sWarpSize:
		return 32
	case sLaneEq:
		return 1 << t.lane()
	case sLaneLt:
		return 1<<t.lane() - 1
	case sLaneLe:
		return 2<<t.lane() - 1
	case sLaneGt:
		return 0xFFFFFFFF &^ (2<<t.lane() - 1)
	case sLaneGe:
		return 0xFFFFFFFF &^ (1<<t.lane() - 1)
	case sDynamicShared:
		return uint64(l.Shared)
	case sSM:
		return b.index
	}
	b.m.clocked = true
	t.look(64)
	t.outside |= looksAtClock
	switch s {
	case sGlobalTimer:
		return uint64(b.m.now)
	case sGlobalTimerLo:
		return uint64(b.m.now) & 0xFFFFFFFF
	case sGlobalTimerHi:
		return uint64(b.m.now) >> 32
	case sClockHi:
		return b.m.cycles() >> 32
	}
	return b.m.cycles()
}

// look counts a poll; a thread that has polled long enough while nothing
// changed is set aside.
func (t *thread) look(weight int) {
	if t.changes != t.b.m.changes {
		t.changes, t.spin, t.outside, t.tries = t.b.m.changes, 0, 0, 0
	}
	if t.spin += weight; t.spin >= patience {
		t.state = parked
	}
}

// acted says that the thread has changed something.
func (t *thread) acted() {
	t.spin = 0
	t.b.m.changes++
	t.b.m.acts++
}

// exit ends the thread, and what waited for it.
func (t *thread) exit() {
	b := t.b
	t.state = ended
	t.acted()
	b.live--
	l := b.l
	if b.live == 0 {
		for i := range b.threads {
			l.end = l.end.join(b.threads[i].k)
		}
		l.live--
		b.threads = nil
		l.blocks = slices.DeleteFunc(l.blocks, func(x *block) bool { return x == b })
		b.m.fill(l)
		return
	}
	for i := range b.barrier {
		b.open(&b.barrier[i])
	}
	if w := b.warps[int(t.ev.thread)/32]; w != nil {
		b.openWarp(w)
	}
}

// meet is a barrier of the block or of threads of a warp.
func (t *thread) meet(in *instr) {
	b := t.b
	t.acted()
	if in.kind == kWarp {
		if b.warps == nil {
			b.warps = map[int]*meeting{}
		}
		w := b.warps[int(t.ev.thread)/32]
		if w == nil {
			w = &meeting{}
			b.warps[int(t.ev.thread)/32] = w
		}
		t.state = waiting
		w.came = append(w.came, t)
		b.openWarp(w)
		return
	}
	n := t.value(&in.a)
	if n >= uint64(len(b.barrier)) {
		t.fault(gpu.IllegalInstruction, "barrier %d, there are 16", n)
		return
	}
	g := &b.barrier[n]
	if in.sync.counts {
		g.need = int(t.value(&in.b))
		if g.need%32 != 0 || g.need == 0 {
			t.fault(gpu.IllegalInstruction, "a barrier of %d threads, no multiple of 32", g.need)
			return
		}
	}
	if in.sync.arrive {
		g.know = g.know.join(t.released())
		g.extra++
		t.pc++
	} else {
		t.state = waiting
		g.came = append(g.came, t)
	}
	b.open(g)
}

// open lets all go who wait, if enough came.
func (b *block) open(g *meeting) {
	need := g.need
	if need == 0 {
		need = b.live
	}
	if n := len(g.came) + g.extra; n == 0 || n < need {
		return
	}
	k := g.know
	whole := g.extra == 0 && len(g.came) == len(b.threads)
	if whole {
		for _, t := range g.came {
			k = k.join(t.k)
		}
		e := g.came[0].ev
		e.thread, e.n, e.phase = -1, 0, e.phase+1
		k.base = k.base.with(e)
	} else {
		for _, t := range g.came {
			k = k.join(t.released())
		}
	}
	b.release(g, k, whole)
}

// openWarp lets go those threads of a warp whose mask has come in full.
func (b *block) openWarp(w *meeting) {
	if len(w.came) == 0 {
		return
	}
	first := w.came[0]
	mask := first.value(&first.at().b)
	have := uint64(0)
	for _, t := range w.came {
		have |= 1 << t.lane()
	}
	base := int(first.ev.thread) / 32 * 32
	for i := range 32 {
		if base+i >= len(b.threads) || b.threads[base+i].state == ended {
			mask &^= 1 << i
		}
	}
	if mask&^have != 0 {
		return
	}
	var k know
	for _, t := range w.came {
		k = k.join(t.released())
	}
	b.release(w, k, false)
}

func (b *block) release(g *meeting, k know, whole bool) {
	came := g.came
	*g = meeting{}
	if in := came0(came); in != nil && in.sync.join != nil {
		in.sync.join(came)
	}
	for _, t := range came {
		if whole {
			t.ev.phase++
			t.k = k
		} else {
			t.k = t.k.join(k)
		}
		t.pc++
		t.state = running
		b.m.enqueue(t)
	}
}

func came0(came []*thread) *instr {
	if len(came) == 0 {
		return nil
	}
	return came[0].at()
}
