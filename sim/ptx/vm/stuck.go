package vm

import (
	"fmt"
	"slices"
	"strings"

	"example.com/tandem/api/gpu"
)

// Acts counts what threads did that another may wait for.
func (m *Machine) Acts() uint64 { return m.acts }

// Barred is a deadlock that nothing from outside can end: every thread that
// lives waits at a barrier. Nil if there is none.
func (m *Machine) Barred() *Fault {
	if !m.Running() || len(m.ready)+len(m.parked)+len(m.asleep) > 0 {
		return nil
	}
	return m.stuck("deadlock at barriers")
}

// Quiet reports whether all threads wait for memory or each other, and none
// reads a clock or sleeps: only a change from outside can make them go on.
func (m *Machine) Quiet() bool {
	return m.Running() && len(m.ready)+len(m.asleep) == 0 && !m.clocked
}

// Stuck describes who waits for whom, on every device.
func (m *Machine) Stuck() *Fault { return m.stuck("deadlock") }

// Endless is the fault of kernels that run on and on, or longer than anybody
// waits, at an instruction of one of them.
func (m *Machine) Endless(what string) *Fault {
	for _, list := range [][]*thread{m.ready, m.parked, m.asleep} {
		if len(list) > 0 {
			return list[0].blame(gpu.LaunchTimeout, what)
		}
	}
	return &Fault{Code: gpu.LaunchTimeout, Rank: -1, What: what}
}

// wait is why one thread does not go on.
type wait struct {
	t    *thread
	text string
	on   uint32 // the block that it waits for; 0 is not known
}

func (m *Machine) stuck(what string) *Fault {
	var all []wait
	for _, t := range m.parked {
		all = append(all, m.polls(t))
	}
	seen := map[uint32]bool{}
	for _, l := range m.started {
		for _, b := range l.blocks {
			if at := b.waiting(); len(at) > 0 {
				t := at[0]
				all = append(all, wait{t: t, on: b.id, text: fmt.Sprintf("and %d more wait at %s, %d threads of the block do not", len(at)-1, t.kernel.where(t.pc), b.live-len(at))})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b wait) int { return order(a.t.ev, b.t.ev) })
	var lines []string
	on := map[uint32]uint32{}
	for _, w := range all {
		if !seen[w.t.b.id] || w.on != w.t.b.id {
			if w.on != w.t.b.id {
				on[w.t.b.id] = w.on
			}
			if len(lines) < 12 && (!seen[w.t.b.id] || w.on != 0) {
				lines = append(lines, fmt.Sprintf("%s %s", w.t.name(), w.text))
			}
		}
		seen[w.t.b.id] = true
	}
	f := &Fault{Code: gpu.LaunchTimeout, Rank: -1, What: what + ": " + strings.Join(lines, "; ")}
	if c := m.cycle(on); len(c) > 0 {
		f.What += "; the cycle is " + strings.Join(c, " -> ")
	}
	if len(all) > 0 {
		t := all[0].t
		what := f.What
		*f = *t.blame(f.Code, what)
	}
	return f
}

// name is a thread in words.
func (t *thread) name() string {
	return fmt.Sprintf("%v thread %d", t.b.m.names[t.b.id], t.ev.thread)
}

// polls says what a thread that was set aside looks at, and who wrote there
// last.
func (m *Machine) polls(t *thread) wait {
	w := wait{t: t, text: "polls at " + t.kernel.where(t.pc)}
	r := m.Find(t.polled, 1)
	if r == nil || r.Store == nil {
		return w
	}
	where := "pinned memory"
	if r.Store.Device >= 0 {
		where = fmt.Sprintf("memory of device %d", r.Store.Device)
	}
	w.text = fmt.Sprintf("polls %#x, %s, near %s", t.polled, where, t.kernel.where(t.pc))
	for _, size := range []int{4, 8} {
		l := r.Store.location(t.polled-r.Base, size)
		if l == nil {
			continue
		}
		if v := l.versions[len(l.versions)-1]; !v.old {
			w.on = v.ev.block
			w.text += fmt.Sprintf(", last written by %v", m.names[v.ev.block])
		}
	}
	return w
}

// cycle finds blocks that wait for each other in a ring.
func (m *Machine) cycle(on map[uint32]uint32) []string {
	for start := range sorted(on) {
		path := []string{m.names[start].String()}
		for at := on[start]; at != 0 && len(path) <= len(on); at = on[at] {
			path = append(path, m.names[at].String())
			if at == start {
				return path
			}
		}
	}
	return nil
}

// sorted gives the keys in order.
func sorted(on map[uint32]uint32) func(func(uint32) bool) {
	keys := make([]uint32, 0, len(on))
	for k := range on {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return slices.Values(keys)
}

// waiting are the block's threads at barriers.
func (b *block) waiting() (list []*thread) {
	for i := range b.threads {
		if b.threads[i].state == waiting {
			list = append(list, &b.threads[i])
		}
	}
	return list
}
