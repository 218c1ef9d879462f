package vm

import "slices"

// released is what a thread would tell another now: all it knows, and itself.
func (t *thread) released() know {
	t.ev.n++
	return know{t.k.base.with(t.ev), t.k.fenced, t.k.alias}
}

// learn adds to what a thread knows.
func (t *thread) learn(k know) { t.k = t.k.join(k) }

// fence orders what the thread did and read before it against what follows.
func (t *thread) fence(s scope, sc bool) {
	for d := ofBlock; d <= s; d++ {
		t.learn(t.pending[d])
		t.pending[d] = know{}
	}
	if sc {
		t.consistent(s)
	}
	// What is fenced at a distance is told by writes of that scope and of wider
	// ones, each to readers as far as both reach.
	k := t.released()
	told := new([3]message)
	for of := ofBlock; of <= ofSystem; of++ {
		msg := &told[of]
		if old := t.fences[of]; old != nil {
			*msg = *old
		}
		for d := ofBlock; d <= min(s, of); d++ {
			msg[d] = k
		}
		t.fences[of] = msg
	}
}

// consistent orders a fence.sc after all others that include each other.
func (t *thread) consistent(s scope) {
	m := t.b.m
	keys := []scKey{{ofBlock, t.b.id}, {ofDevice, uint32(t.device)}, {ofSystem, 0}}[:s+1]
	for _, k := range keys {
		k := m.sc[k]
		k.alias = nil
		t.learn(k)
	}
	mine := t.released()
	for _, k := range keys {
		m.sc[k] = m.sc[k].join(mine)
	}
}

// message is what a strong write of that scope carries.
func (t *thread) message(a *access) *message {
	if !a.release {
		return t.fences[a.scope]
	}
	msg := new(message)
	k := t.released()
	for d := ofBlock; d <= a.scope; d++ {
		msg[d] = k
	}
	return msg
}

// receive takes what a strong read has read.
func (t *thread) receive(a *access, v *version) {
	if v.old {
		return
	}
	x, y := mark{event: t.ev, device: t.device}, mark{event: v.ev, device: v.from}
	d := distance(&x, &y)
	if d > a.scope || v.msg == nil {
		return
	}
	msg := v.msg[d]
	if d > ofBlock {
		msg.alias = nil // what others have made visible, they have for themselves
	}
	if a.acquire {
		t.learn(msg)
		return
	}
	t.pending[d] = t.pending[d].join(msg)
}

// location gives what is remembered of the values of a place, if it is of that
// size.
func (s *Store) location(off uint64, size int) *location {
	p := s.cells[off/(grain*cellsPerPage)]
	if p == nil {
		return nil
	}
	for _, l := range p[off/grain%cellsPerPage].locs {
		if l.off == off && l.size == size {
			return l
		}
	}
	return nil
}

// forget drops what is remembered of values of bytes that are written weakly.
func (s *Store) forget(off, n uint64) {
	for at := off &^ (grain - 1); at < off+n; at += grain {
		p := s.cells[at/(grain*cellsPerPage)]
		if p == nil {
			continue
		}
		c := &p[at/grain%cellsPerPage]
		if len(c.locs) > 0 {
			c.locs = slices.DeleteFunc(c.locs, func(l *location) bool { return l.off < off+n && off < l.off+uint64(l.size) })
		}
	}
}

// append adds a version.
func (l *location) append(v version) {
	n := len(l.versions)
	if n == keepVersions {
		copy(l.room[:], l.room[1:])
		l.first++
		n--
	}
	l.room[n] = v
	l.versions = l.room[:n+1]
}

// strongWrite writes and remembers the value.
func (t *thread) strongWrite(s *Store, off uint64, a *access, v uint64) {
	l := s.location(off, a.size)
	if l == nil {
		s.forget(off, uint64(a.size)) // of other sizes
		l = &location{off: off, size: a.size}
		l.append(version{value: s.load(off, a.size), old: true})
		c := s.cell(off)
		c.locs = append(c.locs, l)
	}
	msg := t.message(a)
	if a.what == rmw { // goes on with the release sequence that it reads
		msg = joinMessages(msg, l.versions[len(l.versions)-1].msg)
	}
	l.append(version{value: v, ev: t.ev, from: t.device, msg: msg})
	s.store(off, a.size, v)
}

// strongRead gives the value of a strong load: the last one, or one that is not
// yet overwritten for this thread.
func (t *thread) strongRead(s *Store, off uint64, a *access) uint64 {
	now := s.load(off, a.size)
	l := s.location(off, a.size)
	if l == nil {
		return now
	}
	last := len(l.versions) - 1
	if l.versions[last].value != now { // the host wrote it
		if s.Device >= 0 {
			s.forget(off, uint64(a.size))
		}
		return now
	}
	at := last
	if a.what == load && s.Device >= 0 && t.b.m.opts.Stale > 0 {
		at = t.choose(l)
	}
	v := &l.versions[at]
	t.receive(a, v)
	if a.what == load {
		l.note(t, l.first+at)
	}
	return v.value
}

// choose picks a version that the thread may still read.
func (t *thread) choose(l *location) int {
	last := len(l.versions) - 1
	low := last
	for low > 0 {
		if v := &l.versions[low]; !v.old && t.knows(&v.ev) {
			break
		}
		low--
	}
	if low == last {
		return last
	}
	for i := range l.seen {
		if x := &l.seen[i]; x.at-l.first > low && t.knows(&x.ev) {
			low = x.at - l.first
		}
	}
	if low >= last || t.stale >= 4 {
		t.stale = 0
		return last
	}
	r := t.b.m.rng.Uint64()
	if int(r&0xFF) >= t.b.m.opts.Stale {
		t.stale = 0
		return last
	}
	t.stale++
	return low + int(r>>8%uint64(last-low))
}

// knows reports whether an event happened before.
func (t *thread) knows(e *event) bool {
	return e.block == t.ev.block && (e.thread == t.ev.thread || e.phase < t.ev.phase) || t.k.base.covers(e)
}

// note remembers what a thread has read.
func (l *location) note(t *thread, at int) {
	for i := range l.seen {
		if x := &l.seen[i]; x.ev.block == t.ev.block && x.ev.thread == t.ev.thread {
			x.ev, x.at = t.ev, max(x.at, at)
			return
		}
	}
	keep := l.seen[:0]
	for _, x := range l.seen {
		if x.at > l.first {
			keep = append(keep, x)
		}
	}
	l.seen = append(keep, seen{t.ev, at})
}
