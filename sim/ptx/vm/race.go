package vm

import (
	"fmt"
	"slices"
)

// mark is an access as a cell remembers it.
type mark struct {
	event
	bytes  uint16 // of the cell
	what   what
	strong bool
	scope  scope
	alias  int16  // which address of the bytes; -1 is constant memory
	device int16  // of the thread
	off    uint64 // the access's first byte
	size   uint8
	line   int32 // in the code of the kernel
	kernel *Kernel
	// reads of many threads of one block in one phase, by thread: n+1.
	many *readers
}

// readers are the reads of many threads.
type readers struct{ n []uint32 }

// cell is what is known of accesses to 16 bytes.
type cell struct {
	writes, reads []mark
	locs          []*location // of strong accesses that begin here
}

// location is a place that is written by strong accesses: its last values.
type location struct {
	off      uint64
	size     int
	first    int       // number of versions[0]
	versions []version // in room
	room     [keepVersions]version
	seen     []seen
}

type version struct {
	value uint64
	ev    event
	old   bool // was there before all that is remembered
	from  int16
	msg   *message // nil tells nothing
}

// seen is the newest version that a thread has read.
type seen struct {
	ev event
	at int
}

const keepVersions = 4

// distance is how far apart two threads are.
func distance(a, b *mark) scope {
	switch {
	case a.block == b.block:
		return ofBlock
	case a.device == b.device && a.device >= 0:
		return ofDevice
	}
	return ofSystem
}

// excused reports whether two unordered accesses are no race: morally strong.
func excused(a, b *mark) bool {
	return a.strong && b.strong && a.alias == b.alias && a.off == b.off && a.size == b.size &&
		min(a.scope, b.scope) >= distance(a, b)
}

// subsumes reports whether a race with old, which happened before x, is a race
// with x too, so that old can be forgotten.
func (x *mark) subsumes(old *mark) bool {
	return old.bytes&^x.bytes == 0 && old.alias == x.alias &&
		(!x.strong || old.strong && old.off == x.off && old.size == x.size &&
			(old.scope == ofSystem || old.scope >= x.scope && old.device == x.device && old.block == x.block))
}

// before reports whether old happened before the access x of an agent.
func (g *agent) before(old, x *mark) bool {
	if old.alias != x.alias {
		if x.alias == -1 || old.alias == -1 {
			if x.alias == -1 {
				return g.start.covers(&old.event)
			}
		} else {
			return g.k.alias.covers(&old.event)
		}
	}
	if old.block == g.ev.block && (old.thread == g.ev.thread || old.phase < g.ev.phase) && old.many == nil {
		return true
	}
	if old.many == nil {
		return g.k.base.covers(&old.event)
	}
	if old.block == g.ev.block && old.phase < g.ev.phase {
		return true
	}
	e := old.event
	for t, n := range old.many.n {
		if n == 0 || old.block == g.ev.block && int32(t) == g.ev.thread {
			continue
		}
		if e.thread, e.n = int32(t), n-1; !g.k.base.covers(&e) {
			return false
		}
	}
	return true
}

// agent is what makes accesses: a thread, or a copy.
type agent struct {
	ev     event
	k      know
	start  *clock // of the launch
	device int16
	kernel *Kernel
}

// touch checks an access of at most 16 bytes against all others and remembers
// it. It gives the first access that it races with.
func (g *agent) touch(s *Store, x mark) (bad *mark) {
	x.event = g.ev
	x.device, x.kernel = g.device, g.kernel
	end := x.off + uint64(x.size)
	for off := x.off &^ (grain - 1); off < end; off += grain {
		c := s.cell(off)
		lo, hi := max(x.off, off)-off, min(end, off+grain)-off
		x.bytes = uint16(1<<hi-1) &^ uint16(1<<lo-1)
		if first := g.meet(c, &x); bad == nil {
			bad = first
		}
	}
	return bad
}

// meet checks one cell.
func (g *agent) meet(c *cell, x *mark) *mark {
	writes := x.what != load && x.what != multiLoad
	bad := g.against(&c.writes, x, writes)
	if !writes {
		g.remember(c, x)
		return bad
	}
	if read := g.against(&c.reads, x, true); bad == nil {
		bad = read
	}
	c.writes = append(c.writes, *x)
	return bad
}

// against looks for races and, for a write, forgets what it subsumes.
func (g *agent) against(list *[]mark, x *mark, forget bool) *mark {
	var bad *mark
	keep := (*list)[:0]
	for i := range *list {
		old := &(*list)[i]
		if old.bytes&x.bytes == 0 {
			keep = append(keep, *old)
			continue
		}
		ordered := g.before(old, x)
		if !ordered && !excused(old, x) {
			if bad == nil {
				bad = new(*old)
			}
			ordered = true // once told, it is as good as in order
		}
		if forget && ordered && x.subsumes(old) {
			continue
		}
		keep = append(keep, *old)
	}
	*list = keep
	return bad
}

// remember adds a read.
func (g *agent) remember(c *cell, x *mark) {
	for i := range c.reads {
		old := &c.reads[i]
		if old.block != x.block || old.strong != x.strong || old.scope != x.scope || old.alias != x.alias || old.off != x.off || old.size != x.size || old.phase != x.phase {
			continue
		}
		if old.many == nil {
			if old.thread == x.thread {
				old.n = x.n
				return
			}
			old.many = &readers{make([]uint32, max(old.thread, x.thread)+1)}
			old.many.n[old.thread] = old.n + 1
		}
		if n := len(old.many.n); int(x.thread) >= n {
			old.many.n = append(old.many.n, make([]uint32, int(x.thread)+1-n)...)
		}
		old.many.n[x.thread] = x.n + 1
		return
	}
	if len(c.reads) > 8 {
		c.reads = slices.DeleteFunc(c.reads, func(old mark) bool { return g.before(&old, x) && x.subsumes(&old) })
	}
	c.reads = append(c.reads, *x)
}

var whatNames = []string{"load", "store", "atomic", "multimem.ld_reduce", "multimem.st", "multimem.red"}

// describe is the access in words.
func (m *Machine) describe(x *mark) string {
	s := "weak "
	if x.strong {
		s = [...]string{"cta-scope ", "gpu-scope ", "system-scope "}[x.scope]
	}
	s += whatNames[x.what]
	if x.kernel == nil {
		return fmt.Sprintf("%s of %d bytes by a copy on device %d", s, x.size, x.device)
	}
	who := fmt.Sprintf("%v thread %d", m.names[x.block], x.thread)
	if x.many != nil {
		who = fmt.Sprintf("threads of %v", m.names[x.block])
	}
	return fmt.Sprintf("%s of %d bytes by %s at %s", s, x.size, who, x.kernel.where(x.line))
}

// where is a line of the kernel: PTX, source, and the instruction.
func (k *Kernel) where(at int32) string {
	in := k.code[at].src
	s := fmt.Sprintf("%s:%d (%s)", k.module.File, in.Line, in.Text())
	if src := k.module.Source(in.Place); src != "" {
		s += " from " + src
	}
	return s
}
