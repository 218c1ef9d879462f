package machine

import "math"

// agent is one CTA of one rank. What it does next is one integer, pc; the rest
// is what the machine knows about it.
type agent struct {
	id        uint32
	rank, cta int
	pc, len   int
	done      bool
	stopped   bool
	status    uint64

	time    uint32 // advanced at every release
	clock   clock
	alias   clock  // what a proxy fence has ordered across proxies
	fenced  *stamp // what a relaxed store makes visible: the last release fence
	loaded  clock  // what the next acquire fence orders: relaxed loads so far
	loadedA clock

	blocked  bool
	seen     uint64 // version at which it found itself blocked
	arrived  *barrier
	arrival  int
	deadline int64 // of the wait it is blocked in
	wakes    int64 // asleep until then
	start    int64 // of the call
	progress int64 // when its last wait of class Arrive was satisfied
}

const noDeadline int64 = math.MaxInt64

// barrier gathers agents.
type barrier struct {
	members []uint32
	round   int
}

// release takes the snapshot that a release publishes and advances the time, so
// that what comes after it is not covered.
func (m *Machine) release(a *agent, scope Scope) *stamp {
	s := m.stamp(stamp{agent: a.id, scope: scope})
	m.clocks.set(&a.clock, a.id, a.time)
	s.rel = a.clock.share()
	s.alias = a.alias.share()
	a.time++
	return s
}

// stamp is a stamp that stays for the run.
func (m *Machine) stamp(s stamp) *stamp {
	at := &m.stamps.take(1)[0]
	*at = s
	return at
}

// visible reports whether what was published at scope by one agent reaches
// another.
func (m *Machine) visible(from uint32, scope Scope, to *agent) bool {
	if from == to.id {
		return true
	}
	switch scope {
	case System:
		return true
	case GPU:
		return m.gpu(int(from)%m.cfg.Ranks) == m.gpu(to.rank)
	}
	return false
}

func (m *Machine) gpu(rank int) int {
	if m.cfg.GPUs == nil {
		return rank
	}
	return m.cfg.GPUs[rank]
}

// published is what a store of that order carries, nil if it makes nothing visible.
func (m *Machine) published(a *agent, o Order, scope Scope) *stamp {
	if o.releases() {
		return m.release(a, scope)
	}
	if a.fenced == nil || a.fenced.scope >= scope {
		return a.fenced
	}
	s := m.stamp(*a.fenced)
	s.scope = scope
	return s
}

// observe is what a load of that order does with what it found.
func (m *Machine) observe(a *agent, s *stamp, o Order, scope Scope) {
	if s == nil || s.rel.zero() || s.agent == nobody || !m.visible(s.agent, max(s.scope, scope), a) {
		return
	}
	if o.acquires() {
		m.clocks.join(&a.clock, s.rel)
		m.clocks.join(&a.alias, s.alias)
		return
	}
	m.clocks.join(&a.loaded, s.rel)
	m.clocks.join(&a.loadedA, s.alias)
}

// manyWords is from how many on words are observed together.
const manyWords = 3

// observeAll is what a step does with the words it found.
func (m *Machine) observeAll(a *agent, s *Step, w *word) {
	if len(s.More) < manyWords || !s.Order.acquires() {
		m.observe(a, w.from, s.Order, s.Scope)
		for _, r := range s.More {
			m.observe(a, m.mem[r.Rank].wordAt(r).from, s.Order, s.Scope)
		}
		return
	}
	m.meeting = append(m.meeting[:0], a.clock)
	m.gatherClock(a, w.from, s.Scope)
	for _, r := range s.More {
		m.gatherClock(a, m.mem[r.Rank].wordAt(r).from, s.Scope)
	}
	a.clock = m.clocks.meet(m.meeting, nil)
}

// gatherClock is what observe does for an acquire, but that the clock is left to
// the meeting.
func (m *Machine) gatherClock(a *agent, from *stamp, scope Scope) {
	if from == nil || from.rel.zero() || from.agent == nobody || !m.visible(from.agent, max(from.scope, scope), a) {
		return
	}
	m.meeting = append(m.meeting, from.rel)
	m.clocks.join(&a.alias, from.alias)
}

// fence is a memory fence, and a proxy fence if alias is set.
func (m *Machine) fence(a *agent, o Order, scope Scope, alias bool) {
	if o.acquires() {
		m.clocks.join(&a.clock, a.loaded)
		m.clocks.join(&a.alias, a.loadedA)
	}
	if alias {
		m.clocks.set(&a.clock, a.id, a.time)
		a.time++
		m.clocks.join(&a.alias, a.clock.share())
	}
	if o.releases() {
		a.fenced = m.release(a, scope)
	}
}

// ordered reports whether an earlier touch is ordered before what the current
// agent does now.
func (m *Machine) ordered(t touch) bool {
	if t.agent >= initial {
		return true
	}
	if t.agent == m.cur.id && (t.multicast == m.multicast || int(t.step) == m.cur.pc) {
		return true // also where a step stores by one proxy what it loaded by the other
	}
	if t.multicast != m.multicast {
		return m.cur.alias.at(t.agent) >= t.time
	}
	return m.cur.clock.at(t.agent) >= t.time
}
