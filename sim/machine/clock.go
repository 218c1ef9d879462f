package machine

import "slices"

// A clock says, for every CTA, up to which of its times everything it did is
// ordered before a point. After a barrier all who took part share one base, so
// that the clocks of 1024 ranks cost one array and not 1024.
type clock struct {
	base *base
	over []tick // sorted by agent; each greater than the base's
	// frozen says that over is shared with a copy of this clock.
	frozen bool
}

type tick struct{ agent, time uint32 }

// base is immutable once a clock refers to it.
type base struct {
	first uint32 // agent
	times []uint32
}

func (b *base) at(agent uint32) uint32 {
	if b == nil || agent < b.first || agent-b.first >= uint32(len(b.times)) {
		return 0
	}
	return b.times[agent-b.first]
}

// covers reports whether no time of another base is later than its.
func (b *base) covers(other *base) bool {
	for i, t := range other.times {
		if t > b.at(other.first+uint32(i)) {
			return false
		}
	}
	return true
}

func (c *clock) zero() bool { return c.base == nil && len(c.over) == 0 }

func (c *clock) at(agent uint32) uint32 {
	over := c.over
	lo, hi := 0, len(over)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if over[mid].agent < agent {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo < len(over) && over[lo].agent == agent {
		return over[lo].time
	}
	return c.base.at(agent)
}

// share returns a copy that later changes of c leave alone.
func (c *clock) share() clock {
	c.frozen = true
	return *c
}

// clocks allocates and combines clocks. What it hands out is valid until reset.
type clocks struct {
	ticks slab[tick]
	times slab[uint32]
	tmp   []tick
	met   *base // of the last meeting
}

func (k *clocks) reset() {
	k.met = nil
	k.ticks.reset()
	k.times.reset()
}

// set raises one entry.
func (k *clocks) set(c *clock, agent, time uint32) {
	if c.at(agent) >= time {
		return
	}
	i, found := slices.BinarySearchFunc(c.over, agent, func(t tick, a uint32) int { return int(t.agent) - int(a) })
	if c.frozen || (!found && len(c.over) == cap(c.over)) {
		grown := k.ticks.take(2*len(c.over) + 4)[:len(c.over)]
		copy(grown, c.over)
		c.over, c.frozen = grown, false
	}
	if found {
		c.over[i].time = time
		return
	}
	c.over = slices.Insert(c.over, i, tick{agent, time})
}

// join raises every entry of c to at least d's.
func (k *clocks) join(c *clock, d clock) {
	switch {
	case d.zero():
	case c.zero():
		*c = d
		c.frozen = true
	case c.base == d.base:
		k.merge(c, d.over)
	case d.base == nil:
		k.merge(c, d.over)
	default:
		if c.base == nil || d.base.covers(c.base) {
			over := c.over
			*c = clock{base: d.base, over: d.over, frozen: true}
			k.merge(c, over)
			return
		}
		if c.base.covers(d.base) {
			k.merge(c, d.over)
			return
		}
		k.tmp = k.tmp[:0]
		for i, t := range d.base.times {
			k.tmp = append(k.tmp, tick{d.base.first + uint32(i), t})
		}
		k.merge(c, k.tmp)
		k.merge(c, d.over)
	}
}

// merge raises c by sorted entries.
func (k *clocks) merge(c *clock, more []tick) {
	if len(more) == 1 {
		k.set(c, more[0].agent, more[0].time)
		return
	}
	news, room := c.compare(more)
	switch {
	case news == 0:
	case room && !c.frozen:
		raiseInPlace(c.over, more)
	default:
		k.rebuild(c, more, news)
	}
}

// compare counts the entries of more that are news to c; room says that c has an
// entry of its own for each of them.
func (c *clock) compare(more []tick) (news int, room bool) {
	over := c.over
	room = true
	for _, t := range more {
		for len(over) > 0 && over[0].agent < t.agent {
			over = over[1:]
		}
		if len(over) > 0 && over[0].agent == t.agent {
			if over[0].time < t.time {
				news++
			}
		} else if c.base.at(t.agent) < t.time {
			news++
			room = false
		}
	}
	return news, room
}

// raiseInPlace raises entries that are all there.
func raiseInPlace(over, more []tick) {
	i := 0
	for _, t := range more {
		for i < len(over) && over[i].agent < t.agent {
			i++
		}
		if i < len(over) && over[i].agent == t.agent {
			over[i].time = max(over[i].time, t.time)
		}
	}
}

// rebuild merges two sorted lists into a new one.
func (k *clocks) rebuild(c *clock, more []tick, news int) {
	out := k.ticks.take(len(c.over) + news + 4)[:0]
	a := c.over
	for len(a) > 0 || len(more) > 0 {
		switch {
		case len(more) == 0 || len(a) > 0 && a[0].agent < more[0].agent:
			out = append(out, a[0])
			a = a[1:]
		case len(a) == 0 || more[0].agent < a[0].agent:
			if c.base.at(more[0].agent) < more[0].time {
				out = append(out, more[0])
			}
			more = more[1:]
		default:
			out = append(out, tick{a[0].agent, max(a[0].time, more[0].time)})
			a, more = a[1:], more[1:]
		}
	}
	c.over, c.frozen = out, false
}

// meet is the clock of everybody after a barrier: the join of all.
func (k *clocks) meet(all []clock, self []tick) clock {
	lo, hi := ^uint32(0), uint32(0)
	span := func(first, end uint32) { lo, hi = min(lo, first), max(hi, end) }
	var last *base
	for i := range all {
		if b := all[i].base; b != nil && b != last {
			span(b.first, b.first+uint32(len(b.times)))
			last = b
		}
		if n := len(all[i].over); n > 0 {
			span(all[i].over[0].agent, all[i].over[n-1].agent+1)
		}
	}
	for _, t := range self {
		span(t.agent, t.agent+1)
	}
	if lo > hi {
		return clock{}
	}
	times := k.times.take(int(hi - lo))
	clear(times)
	last = nil
	for i := range all {
		if b := all[i].base; b != nil && b != last {
			to := times[b.first-lo:][:len(b.times)]
			for j, t := range b.times {
				to[j] = max(to[j], t)
			}
			last = b
		}
		for _, t := range all[i].over {
			times[t.agent-lo] = max(times[t.agent-lo], t.time)
		}
	}
	for _, t := range self {
		times[t.agent-lo] = max(times[t.agent-lo], t.time)
	}
	return clock{base: k.known(lo, times)}
}

// known is a base of these times: that of the last meeting if it was of the
// same. Those who wait for each other without a barrier meet one by one.
func (k *clocks) known(first uint32, times []uint32) *base {
	if b := k.met; b != nil && b.first == first && slices.Equal(b.times, times) {
		k.times.used -= len(times)
		return b
	}
	k.met = &base{first: first, times: times}
	return k.met
}

// slab hands out slices of one growing block and takes them all back at once.
type slab[T any] struct {
	block []T
	used  int
}

func (s *slab[T]) take(n int) []T {
	if s.used+n > len(s.block) {
		s.block = make([]T, max(2*len(s.block), n, 256))
		s.used = 0
	}
	out := s.block[s.used : s.used+n : s.used+n]
	s.used += n
	return out
}

func (s *slab[T]) reset() { s.used = 0 }
