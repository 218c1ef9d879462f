package machine

import "math/rand/v2"

// fast runs every CTA up to its next unsatisfied wait, the CTAs that work
// together, those of one index, one after another.
func (m *Machine) fast() error {
	for {
		progress := false
		for c := range m.ctas {
			for {
				moved := false
				for r := range m.cfg.Ranks {
					any, err := m.runOn(m.agent(r, c))
					if err != nil {
						return err
					}
					moved = moved || any
				}
				if !moved {
					break
				}
				progress = true
			}
		}
		if !progress {
			if done, err := m.stuck(); done || err != nil {
				return err
			}
		}
	}
}

// runOn executes steps of one agent until it waits or ends.
func (m *Machine) runOn(a *agent) (any bool, err error) {
	for m.awake(a) {
		moved, err := m.run(a)
		if err != nil || !moved {
			return any, err
		}
		any = true
	}
	return any, nil
}

func (m *Machine) awake(a *agent) bool {
	return !a.done && !a.stopped && a.wakes <= m.now
}

// seeded picks the agent of every step.
func (m *Machine) seeded() error {
	rng := rand.New(rand.NewPCG(m.opt.Seed, 0x7461_6e64_656d))
	ready := make([]*agent, 0, len(m.live()))
	for {
		ready = ready[:0]
		agents := m.live()
		for i := range agents {
			a := &agents[i]
			if m.awake(a) && (!a.blocked || a.seen != m.version) {
				ready = append(ready, a)
			}
		}
		if len(ready) == 0 {
			if done, err := m.stuck(); done || err != nil {
				return err
			}
			continue
		}
		a := ready[rng.IntN(len(ready))]
		moved, err := m.run(a)
		if err != nil {
			return err
		}
		if !moved && a.arrived != nil { // is at a barrier
			a.blocked, a.seen, a.deadline = true, m.version, noDeadline
		}
	}
}

// stuck is called when nothing can move: time jumps to the next deadline or
// waking, the run is over, or it hangs.
func (m *Machine) stuck() (done bool, err error) {
	next, over := noDeadline, true
	agents := m.live()
	for i := range agents {
		a := &agents[i]
		switch {
		case a.done || a.stopped:
		case a.wakes > m.now:
			next, over = min(next, a.wakes), false
		default:
			over = false
			if a.blocked {
				next = min(next, a.deadline)
			}
		}
	}
	if over {
		return true, nil
	}
	if next == noDeadline {
		return false, m.hang()
	}
	m.now = next
	m.version++
	return false, nil
}

// inject harms the agent's rank if its time has come.
func (m *Machine) inject(a *agent) (moved bool, err error) {
	for i := range m.opt.Inject {
		in := &m.opt.Inject[i]
		if in.Rank != a.rank || in.Step != m.steps[a.rank] || m.injected[i] || a.arrived != nil {
			continue
		}
		m.injected[i] = true
		switch in.Harm {
		case Fail:
			s := &m.step
			s.reset()
			m.program.Step(s, a.rank, a.cta, a.pc)
			m.log.step(m, a, s, "failed")
			if s.Fails != 0 {
				s.Else = s.Fails
			}
			m.divert(a, s, StatusFailed)
			return true, m.after(a)
		case Stop, Delay:
			m.halt(a.rank, in)
			return true, nil
		}
	}
	return false, nil
}

// halt stops all CTAs of a rank, for good or for a time.
func (m *Machine) halt(rank int, in *Injection) {
	for c := range m.ctas {
		a := m.agent(rank, c)
		if in.Harm == Delay {
			a.wakes = m.now + int64(in.For)
		} else if !a.done {
			a.stopped, a.status = true, StatusStopped
		}
	}
	m.log.halt(m, rank, in)
}
