package vm

import (
	"cmp"
	"slices"
)

// event is a point in the life of one thread of one launch, or of a copy.
type event struct {
	block  uint32 // unique over all launches
	thread int32
	stream uint32
	seq    uint32 // of the launch in its stream
	phase  uint32 // barriers of the whole block before it
	n      uint32 // accesses of the thread before it
}

// clock is what is known: which work of each stream is done, which phases of
// blocks are over, and single threads up to an event. It is never changed, so
// threads share it.
type clock struct {
	done []uint32 // by stream: work up to this sequence number
	ev   []event  // by block and thread; thread -1 means all phases before phase
}

func order(a, b event) int {
	return cmp.Or(cmp.Compare(a.block, b.block), cmp.Compare(a.thread, b.thread))
}

// covers reports whether e happened before what the clock stands for.
func (c *clock) covers(e *event) bool {
	if c == nil {
		return false
	}
	if int(e.stream) < len(c.done) && c.done[e.stream] >= e.seq {
		return true
	}
	lo, hi := 0, len(c.ev)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if c.ev[mid].block < e.block {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	for ; lo < len(c.ev) && c.ev[lo].block == e.block; lo++ {
		switch x := &c.ev[lo]; {
		case x.thread == -1:
			if e.phase < x.phase {
				return true
			}
		case x.thread == e.thread:
			return e.n <= x.n
		case x.thread > e.thread:
			return false
		}
	}
	return false
}

// over reports whether everything that e stands for is known from done alone.
func over(done []uint32, e *event) bool {
	return int(e.stream) < len(done) && done[e.stream] >= e.seq
}

// holds reports whether a knows all that b knows.
func (c *clock) holds(b *clock) bool {
	for s, n := range b.done {
		if n > 0 && (s >= len(c.done) || c.done[s] < n) {
			return false
		}
	}
	i := 0
	for k := range b.ev {
		e := &b.ev[k]
		for i < len(c.ev) && order(c.ev[i], *e) < 0 {
			i++
		}
		if i < len(c.ev) && order(c.ev[i], *e) == 0 && c.ev[i].phase >= e.phase && c.ev[i].n >= e.n {
			continue
		}
		if e.thread == -1 && !over(c.done, e) || e.thread != -1 && !c.covers(e) {
			return false
		}
	}
	return true
}

// join is what is known to a or b. Either may be nil.
func join(a, b *clock) *clock {
	switch {
	case b == nil || a == b:
		return a
	case a == nil:
		return b
	case a.holds(b):
		return a
	}
	c := &clock{done: slices.Clone(a.done)}
	for s, n := range b.done {
		if s >= len(c.done) {
			c.done = append(c.done, n)
		}
		c.done[s] = max(c.done[s], n)
	}
	c.ev = make([]event, 0, len(a.ev)+len(b.ev))
	x, y := a.ev, b.ev
	for len(x) > 0 || len(y) > 0 {
		var e event
		switch o := 0; {
		case len(y) == 0 || len(x) > 0 && order(x[0], y[0]) < 0:
			e, x = x[0], x[1:]
		case len(x) == 0 || order(x[0], y[0]) > 0:
			e, y = y[0], y[1:]
		default:
			e = x[0]
			e.phase, e.n = max(e.phase, y[0].phase), max(e.n, y[0].n)
			x, y = x[1:], y[1:]
			_ = o
		}
		c.push(e)
	}
	return c
}

// push appends an event that comes last in order, unless it is known already.
func (c *clock) push(e event) {
	if over(c.done, &e) {
		return
	}
	if e.thread != -1 {
		for i := len(c.ev) - 1; i >= 0 && c.ev[i].block == e.block; i-- {
			if c.ev[i].thread == -1 && e.phase < c.ev[i].phase {
				return
			}
		}
	}
	c.ev = append(c.ev, e)
}

// with is the clock after one more event.
func (c *clock) with(e event) *clock { return join(c, &clock{ev: []event{e}}) }

// finished is the clock once the work seq of a stream is done.
func (c *clock) finished(stream, seq uint32) *clock {
	d := make([]uint32, stream+1)
	d[stream] = seq
	return join(c, &clock{done: d})
}

// know is what is known; what of it the side that made it has fenced for other
// addresses of the same bytes; and what of that a fence on this side has made
// visible through them.
type know struct{ base, fenced, alias *clock }

func (k know) join(o know) know {
	return know{join(k.base, o.base), join(k.fenced, o.fenced), join(k.alias, o.alias)}
}

// of is the part of a clock that is of one block, and of work that is done.
func (c *clock) of(block uint32) *clock {
	if c == nil {
		return nil
	}
	out := &clock{done: c.done}
	for _, e := range c.ev {
		if e.block == block {
			out.ev = append(out.ev, e)
		}
	}
	return out
}

// proxy is what an alias fence makes of it: the block's own accesses are fenced
// for other addresses, and what was fenced is visible through them. Others'
// accesses that they have not fenced themselves are neither.
func (k know) proxy(e event) know {
	k.fenced = join(k.fenced, k.base.of(e.block)).with(e)
	k.alias = join(k.alias, k.fenced)
	return k
}

// message travels with a strong write: what its reader learns if it lies within
// a distance (block, device, system); nil is nothing.
type message [3]know

func joinMessages(m, o *message) *message {
	switch {
	case m == nil:
		return o
	case o == nil || m == o:
		return m
	}
	both := *m
	for i := range both {
		both[i] = both[i].join(o[i])
	}
	return &both
}
