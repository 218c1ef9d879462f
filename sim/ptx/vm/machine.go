package vm

import (
	"fmt"
	"math/rand/v2"
	"time"

	"example.com/tandem/api/gpu"
)

// Options of a machine; the zero value is a good one.
type Options struct {
	Seed     uint64
	ClockKHz int // of clock64; 0 is 1 GHz
	// Stale is how many of 256 strong reads that may return an older value do.
	// 0 is 32; negative is none.
	Stale int
	// Sum is the arithmetic of multimem.ld_reduce.add; nil is one rounding, to
	// nearest even, of the exact sum.
	Sum Sum
	// Race, if given, is told of every race, with a way to describe it, and says
	// whether it is a fault; else all are. Code that relies on more order than
	// PTX promises runs so.
	Race func(describe func() *Fault) bool
	// Trace, if given, is told of every turn: which thread it was, where it is
	// now, and how many instructions it has executed.
	Trace func(block uint32, thread int32, pc int32, executed int)
	// Fenced, if given, is told the line of every fence that a thread executes.
	Fenced func(module string, line int)
}

// Machine is what runs.
type Machine struct {
	opts    Options
	rng     *rand.PCG
	space   space
	now     time.Duration
	ready   []*thread
	parked  []*thread // polled in vain
	asleep  []*thread
	started []*Launch
	blocks  uint32  // that ever were
	names   []share // of blocks and copies, by their number
	acts    uint64
	changes uint64 // of memory and of anything else that may end a wait
	seenAt  uint64 // changes at the time when all were last woken
	clocked bool   // a thread has read a clock since then
	outside uint8  // what has changed of what only some threads look at
	sc      map[scKey]know
	Steps   uint64 // instructions executed
}

// scKey names the fence.sc of a block, a device, or the system.
type scKey struct {
	s  scope
	id uint32
}

// New makes a machine.
func New(o Options) *Machine {
	if o.ClockKHz == 0 {
		o.ClockKHz = 1_000_000
	}
	if o.Stale == 0 {
		o.Stale = 32
	}
	return &Machine{opts: o, rng: rand.NewPCG(o.Seed, 0x7074780a), sc: map[scKey]know{}}
}

// Now is the virtual time.
func (m *Machine) Now() time.Duration { return m.now }

// Work is a launch, before it starts.
type Work struct {
	Kernel      *Kernel
	Globals     []uint64 // addresses of Module.Globals
	Grid, Block gpu.Dim3
	Shared      int // dynamic, bytes
	Args        []byte
	Device      int
	Resident    int // blocks at a time; 0 is all
	Stream, Seq uint32
	Known       Known
	// Ranks are those whose blocks these are, an equal share each, in order;
	// nil where they are nobody's. Errors name them.
	Ranks []int
}

// Launch is a launch under way.
type Launch struct {
	Work
	live   int // blocks
	blocks []*block
	next   uint64
	start  know
	end    know
	done   bool
	fault  *Fault
}

// Done reports whether all threads have ended, and how.
func (l *Launch) Done() (bool, *Fault) { return l.done || l.fault != nil, l.fault }

// Known is what an agent outside the GPU, the host or a stream, knows.
type Known struct{ k know }

// Join is what is known to either.
func (k Known) Join(o Known) Known { return Known{k.k.join(o.k)} }

// Finished is k once the work seq of a stream is done. That makes all its own
// accesses visible through every address of the bytes; what it had learned of
// others' needs their alias fences still.
func (k Known) Finished(stream, seq uint32) Known {
	return Known{know{k.k.base.finished(stream, seq), k.k.fenced.finished(stream, seq), k.k.alias.finished(stream, seq)}}
}

// Known is what is known after the launch.
func (l *Launch) Known() Known {
	return Known{l.end}.Finished(l.Stream, l.Seq)
}

// share says whose a block or a copy is.
type share struct {
	rank   int32 // -1 is nobody's
	device int32
	block  int32 // among the rank's, or the launch's; -1 of a copy
}

// String is rank 1 block 2, or device 1 block 2 where it is no rank's.
func (s share) String() string {
	who := fmt.Sprintf("device %d", s.device)
	if s.rank >= 0 {
		who = fmt.Sprintf("rank %d", s.rank)
	}
	if s.block < 0 {
		return who
	}
	return fmt.Sprintf("%s block %d", who, s.block)
}

// number gives a block or a copy its number.
func (m *Machine) number(s share) uint32 {
	if len(m.names) == 0 {
		m.names = append(m.names, share{rank: -1}) // 0 is nobody
	}
	m.names = append(m.names, s)
	m.blocks++
	return m.blocks
}

// share is whose a block of a launch is.
func (l *Launch) share(index uint64) share {
	s := share{-1, int32(l.Device), int32(index)}
	if n := uint64(len(l.Ranks)); n > 0 {
		per := max(l.Grid.Count()/n, 1)
		s.rank, s.block = int32(l.Ranks[min(index/per, n-1)]), int32(index%per)
	}
	return s
}

// Start begins a launch.
func (m *Machine) Start(w Work) *Launch {
	w.Grid, w.Block = w.Grid.Dims(), w.Block.Dims()
	l := &Launch{Work: w, start: w.Known.k}
	l.end = l.start
	m.started = append(m.started, l)
	m.changes++
	m.acts++
	m.fill(l)
	return l
}

// fill starts blocks until as many run as may.
func (m *Machine) fill(l *Launch) {
	for l.next < l.Grid.Count() && (l.Resident == 0 || l.live < l.Resident) {
		m.startBlock(l, l.next)
		l.next++
	}
	if l.live == 0 && l.next == l.Grid.Count() && !l.done {
		l.done = true
		m.forget(l)
	}
}

func (m *Machine) forget(l *Launch) {
	for i, x := range m.started {
		if x == l {
			m.started = append(m.started[:i], m.started[i+1:]...)
			return
		}
	}
}

func (m *Machine) startBlock(l *Launch, index uint64) {
	threads := int(l.Block.Count())
	b := &block{m: m, l: l, id: m.number(l.share(index)), threads: make([]thread, threads), live: threads, index: index}
	b.ctaid = [3]uint32{uint32(index % uint64(l.Grid.X)), uint32(index / uint64(l.Grid.X) % uint64(l.Grid.Y)), uint32(index / uint64(l.Grid.X) / uint64(l.Grid.Y))}
	if n := int(l.Kernel.dynamic) + l.Shared; n > 0 {
		b.shared = NewStore(uint64(n), l.Device, false)
	}
	regs := make([]uint64, threads*l.Kernel.regs)
	n := l.Kernel.regs
	for i := range b.threads {
		t := &b.threads[i]
		*t = thread{b: b, regs: regs[i*n : (i+1)*n : (i+1)*n], code: l.Kernel.code}
		t.agent = agent{ev: event{block: b.id, thread: int32(i), stream: l.Stream, seq: l.Seq}, k: l.start, start: l.start.base, device: int16(l.Device), kernel: l.Kernel}
		t.tid = [3]uint32{uint32(i) % l.Block.X, uint32(i) / l.Block.X % l.Block.Y, uint32(i) / l.Block.X / l.Block.Y}
		m.enqueue(t)
	}
	l.live++
	l.blocks = append(l.blocks, b)
}

// Kill ends all launches of a device, as a fault there does.
func (m *Machine) Kill(device int, why *Fault) {
	gone := func(list []*thread) []*thread {
		keep := list[:0]
		for _, t := range list {
			if t.b.l.Device != device {
				keep = append(keep, t)
			}
		}
		return keep
	}
	m.ready, m.parked, m.asleep = gone(m.ready), gone(m.parked), gone(m.asleep)
	var left []*Launch
	for _, l := range m.started {
		if l.Device == device {
			l.fault, l.done = why, true
		} else {
			left = append(left, l)
		}
	}
	m.started = left
	m.changes++
}

// Running reports whether any launch is under way.
func (m *Machine) Running() bool { return len(m.started) > 0 }

// What a thread looks at that changes without any thread's doing.
const (
	looksAtHost  uint8 = 1 << iota // pinned memory
	looksAtClock                   // the time
)

// maxTries is how often a thread that polls, and has not looked at the clock, is
// woken as time passes: kernels look at it every some hundred polls only.
const maxTries = 64

// Touched says that pinned memory may have changed from outside.
func (m *Machine) Touched() { m.outside |= looksAtHost }

// Run executes up to n instructions. It returns early where all threads wait:
// for memory that nobody changes, for a time, or for each other.
func (m *Machine) Run(n int) (waiting bool) {
	for n > 0 {
		if len(m.ready) == 0 && !m.wake() {
			return true
		}
		r := m.rng.Uint64()
		if r>>40&0xFF == 0 && len(m.parked) > 0 {
			m.unpark(int(r >> 48 % uint64(len(m.parked))))
		}
		i := int(r & 0xFFFFFFFF % uint64(len(m.ready)))
		t := m.ready[i]
		slice := 1 + int(r>>32&3)
		if r>>34&3 == 0 {
			slice = 1 + int(r>>32&0x7F)
		}
		used := t.run(slice)
		if m.opts.Trace != nil {
			m.opts.Trace(t.ev.block, t.ev.thread, t.pc, used)
		}
		n -= used
		m.Steps += uint64(used)
		if t.state != running && i < len(m.ready) && m.ready[i] == t {
			last := len(m.ready) - 1
			m.ready[i] = m.ready[last]
			m.ready, t.listed = m.ready[:last], false
			switch t.state {
			case parked:
				m.parked = append(m.parked, t)
			case sleeping:
				m.asleep = append(m.asleep, t)
			}
		}
	}
	return false
}

// enqueue makes a thread ready, which may be running just now.
func (m *Machine) enqueue(t *thread) {
	if !t.listed {
		t.listed = true
		m.ready = append(m.ready, t)
	}
}

func (m *Machine) unpark(i int) {
	t := m.parked[i]
	m.parked[i] = m.parked[len(m.parked)-1]
	m.parked = m.parked[:len(m.parked)-1]
	t.state, t.spin = running, 0
	m.enqueue(t)
}

// wake gives all that polled another turn if anything has changed since.
func (m *Machine) wake() bool {
	keep := m.asleep[:0]
	for _, t := range m.asleep {
		if t.wake > m.now {
			keep = append(keep, t)
			continue
		}
		t.state = running
		m.enqueue(t)
	}
	m.asleep = keep
	if m.changes != m.seenAt {
		m.seenAt, m.clocked = m.changes, false
		for len(m.parked) > 0 {
			m.unpark(len(m.parked) - 1)
		}
	}
	for i := len(m.parked) - 1; i >= 0 && m.outside != 0; i-- {
		t := m.parked[i]
		if t.outside&m.outside != 0 || m.outside&looksAtClock != 0 && t.tries < maxTries {
			t.tries++
			m.unpark(i)
		}
	}
	m.outside = 0
	return len(m.ready) > 0
}

// Deadline is when the next sleeping thread wakes.
func (m *Machine) Deadline() (at time.Duration, ok bool) {
	for _, t := range m.asleep {
		if !ok || t.wake < at {
			at, ok = t.wake, true
		}
	}
	return at, ok
}

// Jump moves the time.
func (m *Machine) Jump(to time.Duration) {
	if to > m.now {
		m.now = to
		m.outside |= looksAtClock
	}
}

// cycles is the time on the SM clock.
func (m *Machine) cycles() uint64 {
	return uint64(m.now) / 1000 * uint64(m.opts.ClockKHz) / 1000
}
