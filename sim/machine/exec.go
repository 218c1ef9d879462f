package machine

import (
	"fmt"
	"math/bits"
)

// run executes the agent's next step, unless it has to wait.
func (m *Machine) run(a *agent) (moved bool, err error) {
	if a.arrived != nil && a.arrived.round == a.arrival {
		return false, nil
	}
	m.cur = a
	if m.opt.Inject != nil {
		if harmed, err := m.inject(a); harmed || err != nil {
			return harmed, err
		}
	}
	s := &m.step
	s.reset()
	m.program.Step(s, a.rank, a.cta, a.pc)
	ready, err := m.take(a, s)
	if err != nil {
		return false, err
	}
	if ready {
		return true, m.after(a)
	}
	return m.wait(a, s)
}

// after accounts for a step taken.
func (m *Machine) after(a *agent) error {
	m.steps[a.rank]++
	a.blocked = false
	if !a.done && a.pc >= a.len {
		if a.pc > a.len {
			return m.bad(a, "it jumps beyond the end")
		}
		a.done = true
	}
	return nil
}

// wait handles a step that cannot be taken: abort, expiry, or patience.
func (m *Machine) wait(a *agent, s *Step) (moved bool, err error) {
	for _, w := range s.Aborts {
		if w.Space == Nothing {
			continue
		}
		if err := m.checkWord(a, w); err != nil {
			return false, err
		}
		if m.mem[w.Rank].wordAt(w).value != 0 {
			m.log.step(m, a, s, "aborted")
			m.divert(a, s, StatusAborted)
			return true, m.after(a)
		}
	}
	if !a.blocked {
		a.deadline = m.deadlineOf(a, s.Deadline)
	}
	if a.deadline <= m.now {
		m.log.step(m, a, s, "expired")
		m.divert(a, s, StatusExpired)
		return true, m.after(a)
	}
	a.blocked, a.seen = true, m.version
	return false, nil
}

func (m *Machine) deadlineOf(a *agent, d Deadline) int64 {
	switch d {
	case Arrive:
		return a.start + int64(m.cfg.Arrive)
	case Progress:
		return a.progress + int64(m.cfg.Progress)
	}
	return noDeadline
}

// divert sends an agent to the step's Else, or ends it.
func (m *Machine) divert(a *agent, s *Step, status uint64) {
	a.arrived = nil
	if s.Else != 0 {
		a.pc = s.Else
		return
	}
	a.done, a.status = true, status
}

// take executes a step if it is ready.
func (m *Machine) take(a *agent, s *Step) (ready bool, err error) {
	switch s.Kind {
	case Copy, Reduce, Stamp:
		ready, err = m.data(a, s)
	case Wait:
		if len(s.Srcs) > 0 {
			ready, err = m.arrival(a, s)
			break
		}
		ready, err = m.control(a, s)
	case Store, Add, Swap, Test, Record, Await:
		ready, err = m.control(a, s)
	case Fence:
		m.fence(a, s.Order, s.Scope, s.Alias)
		m.advance(a, s, "")
		ready = true
	case Barrier:
		ready, err = m.meet(a, s)
	case Goto:
		m.log.step(m, a, s, "")
		if s.Else < 0 || s.Else == a.pc {
			return false, m.bad(a, "it jumps to itself")
		}
		a.pc = s.Else
		return true, nil
	case Exit:
		m.log.step(m, a, s, "")
		a.done, a.status = true, s.Value
		return true, nil
	case Begin, Nop:
		if s.Kind == Begin {
			a.start, a.progress = m.now, m.now
		}
		m.advance(a, s, "")
		ready = true
	default:
		return false, m.bad(a, fmt.Sprintf("unknown %v", s.Kind))
	}
	if ready && err == nil {
		if s.Deadline == Arrive {
			a.progress = m.now
		}
	}
	return ready, err
}

func (m *Machine) bad(a *agent, reason string) error {
	return &BadStep{a.rank, a.cta, a.pc, reason}
}

// advance goes on to the next step.
func (m *Machine) advance(a *agent, s *Step, note string) {
	m.log.step(m, a, s, note)
	a.pc++
}

func (m *Machine) checkWord(a *agent, w Ref) error {
	if w.isWord() && w.Rank >= 0 && int(w.Rank) < m.cfg.Ranks && w.Off >= 0 {
		if mem := &m.mem[w.Rank]; w.Space == Word && w.Off < int64(len(mem.words)) || w.Space == Temp && w.Off < int64(len(mem.temps)) {
			return nil
		}
	}
	return m.bad(a, fmt.Sprintf("%v is no word", w))
}

// checkWords checks the word of a step and what it has More of.
func (m *Machine) checkWords(a *agent, s *Step) error {
	if err := m.checkWord(a, s.Word); err != nil {
		return err
	}
	if len(s.More) > 0 && s.Kind != Store && s.Kind != Wait && s.Kind != Test {
		return m.bad(a, fmt.Sprintf("%v takes one word", s.Kind))
	}
	for _, r := range s.More {
		if err := m.checkWord(a, r); err != nil {
			return err
		}
	}
	return nil
}

// compareAll compares the words of a Wait or a Test.
func (m *Machine) compareAll(s *Step, v uint64) bool {
	ok := compare(s.Cmp, s.Mask, m.mem[s.Word.Rank].wordAt(s.Word).value, v)
	for i := 0; ok && i < len(s.More); i++ {
		ok = compare(s.Cmp, s.Mask, m.mem[s.More[i].Rank].wordAt(s.More[i]).value, v)
	}
	return ok
}

// value is the step's operand.
func (m *Machine) value(a *agent, s *Step) (uint64, error) {
	if s.Base.Space == Nothing {
		return s.Value, nil
	}
	if err := m.checkWord(a, s.Base); err != nil {
		return 0, err
	}
	return s.Value + m.mem[s.Base.Rank].wordAt(s.Base).value<<s.Shift, nil
}

// control executes the kinds that work on words.
func (m *Machine) control(a *agent, s *Step) (ready bool, err error) {
	if err := m.checkWords(a, s); err != nil {
		return false, err
	}
	v, err := m.value(a, s)
	if err != nil {
		return false, err
	}
	w := m.mem[s.Word.Rank].wordAt(s.Word)
	switch s.Kind {
	case Store:
		w.value, w.from = v, m.published(a, s.Order, s.Scope)
		for _, r := range s.More {
			*m.mem[r.Rank].wordAt(r) = *w
		}
		m.version++
	case Add:
		m.update(a, s, w, w.value+v)
	case Record:
		s.Order, s.Scope = AcqRel, System
		m.update(a, s, w, w.value+1)
	case Swap:
		if w.value != s.Expect {
			m.observe(a, w.from, s.Order, s.Scope)
			return true, m.branch(a, s, "lost")
		}
		m.update(a, s, w, v)
	case Wait, Test:
		ok := m.compareAll(s, v)
		if s.Kind == Wait && !ok {
			return false, nil
		}
		m.observeAll(a, s, w)
		if !ok {
			return true, m.branch(a, s, "false")
		}
	case Await:
		if w.value < v {
			return false, nil
		}
		m.observe(a, w.from, AcqRel, System)
	}
	m.advance(a, s, "")
	return true, nil
}

// branch goes to Else, which must be given.
func (m *Machine) branch(a *agent, s *Step, note string) error {
	if s.Else <= 0 {
		return m.bad(a, "it has nowhere to go to")
	}
	m.log.step(m, a, s, note)
	a.pc = s.Else
	return nil
}

// update is an atomic read-modify-write: it goes on with the releases before it.
func (m *Machine) update(a *agent, s *Step, w *word, value uint64) {
	old := w.from
	m.observe(a, old, s.Order, s.Scope)
	w.value, w.from = value, m.published(a, s.Order, s.Scope)
	if old != nil && !old.rel.zero() {
		from := stamp{agent: a.id, scope: s.Scope}
		if w.from != nil {
			from = *w.from
			from.rel.share()
			from.alias.share()
		}
		m.clocks.join(&from.rel, old.rel)
		m.clocks.join(&from.alias, old.alias)
		from.scope = max(from.scope, old.scope)
		w.from = m.stamp(from)
	}
	m.version++
}

func compare(c Compare, mask, word, value uint64) bool {
	if mask == 0 {
		mask = ^uint64(0)
	}
	word, value = word&mask, value&mask
	switch c {
	case Equal:
		return word == value
	case NotEqual:
		return word != value
	case AtLeast:
		return word >= value
	case Reached:
		return int64((word-value)<<bits.LeadingZeros64(mask)) >= 0
	case NonZero:
		return word != 0
	}
	return word == 0
}

// meet comes to a barrier and, the last to come, opens it.
func (m *Machine) meet(a *agent, s *Step) (ready bool, err error) {
	if a.arrived != nil { // and let through
		a.arrived = nil
		m.advance(a, s, "")
		return true, nil
	}
	if s.Value >= uint64(m.needs.Barriers) || s.Count < 1 {
		return false, m.bad(a, fmt.Sprintf("no barrier %d for %d", s.Value, s.Count))
	}
	b := &m.barriers[s.Value]
	b.members = append(b.members, a.id)
	if len(b.members) < s.Count {
		a.arrived, a.arrival = b, b.round
		return false, nil
	}
	m.open(b)
	m.advance(a, s, "last")
	return true, nil
}

// open lets everybody through and orders all before it ahead of all after it.
func (m *Machine) open(b *barrier) {
	agents := m.live()
	m.meeting, m.meetingA, m.self = m.meeting[:0], m.meetingA[:0], m.self[:0]
	aliased := false
	for _, id := range b.members {
		a := &agents[id]
		m.meeting = append(m.meeting, a.clock)
		m.meetingA = append(m.meetingA, a.alias)
		m.self = append(m.self, tick{id, a.time})
		aliased = aliased || !a.alias.zero()
	}
	all := m.clocks.meet(m.meeting, m.self)
	var alias clock
	if aliased {
		alias = m.clocks.meet(m.meetingA, nil)
	}
	for _, id := range b.members {
		a := &agents[id]
		a.clock, a.alias = all, alias
		a.time++
	}
	b.members = b.members[:0]
	b.round++
	m.version++
}
