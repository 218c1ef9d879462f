package machine

import (
	"fmt"
	"strings"

	"example.com/tandem/api"
)

// hang says who waits for whom: from the first CTA that waits along the chain to
// one that waits for nobody, or to a cycle.
func (m *Machine) hang() error {
	var chain []string
	seen := make(map[*agent]bool)
	agents := m.live()
	var first, a *agent
	for i := range agents {
		if !agents[i].done && !agents[i].stopped {
			first = &agents[i]
			break
		}
	}
	for a = first; ; {
		if seen[a] {
			chain = append(chain, fmt.Sprintf("rank %d again: a cycle", a.rank))
			break
		}
		seen[a] = true
		text, next := m.waitsFor(a)
		chain = append(chain, text)
		if next == nil {
			break
		}
		a = next
	}
	return &api.Fault{Kind: api.FaultHang, Rank: first.rank, CTA: first.cta, Detail: strings.Join(chain, "; ")}
}

// waitsFor describes an agent's wait and finds the one it waits for.
func (m *Machine) waitsFor(a *agent) (string, *agent) {
	who := fmt.Sprintf("rank %d, CTA %d", a.rank, a.cta)
	switch {
	case a.stopped:
		return fmt.Sprintf("%s stopped at step %d", who, a.pc), nil
	case a.done:
		return fmt.Sprintf("%s has ended", who), nil
	}
	s := &m.step
	s.reset()
	m.program.Step(s, a.rank, a.cta, a.pc)
	at := fmt.Sprintf("%s waits at step %d (%s)", who, a.pc, describe(s))
	peer := s.Peer
	if s.Kind == Barrier {
		if absent := m.absent(a, s); absent != nil {
			return fmt.Sprintf("%s for rank %d", at, absent.rank), absent
		}
		return at + " for more ranks than there are", nil
	}
	if peer == Nobody {
		peer = m.missingLine(a, s)
	}
	if peer == Nobody {
		return at, nil
	}
	return fmt.Sprintf("%s for rank %d", at, peer), m.agent(peer, min(max(0, a.cta+s.PeerBy), m.ctas-1))
}

// absent is an agent that has not come to the barrier: one of the same CTA index
// if there is one, of the lowest rank, and one that may still come before one that
// has ended.
func (m *Machine) absent(a *agent, s *Step) *agent {
	here := make(map[uint32]bool)
	for _, id := range m.barriers[s.Value].members {
		here[id] = true
	}
	for r := range m.cfg.Ranks {
		if b := m.agent(r, a.cta); !here[b.id] {
			return b
		}
	}
	var ended *agent
	agents := m.live()
	for i := range agents {
		switch b := &agents[i]; {
		case here[b.id] || b.len == 0:
		case !b.done:
			return b
		case ended == nil:
			ended = b
		}
	}
	return ended
}

// missingLine is the rank whose lines a step waits for, Nobody if it does not
// wait for lines.
func (m *Machine) missingLine(a *agent, s *Step) int {
	v, err := m.value(a, s)
	if err != nil || s.Kind != Copy && s.Kind != Reduce && s.Kind != Wait {
		return Nobody
	}
	for _, r := range s.Srcs {
		if r.Space == Line && !m.mem[r.Rank].flags.all(r.Off, r.Off+s.Bytes, uint32(v), nil) {
			return int(r.Lane)
		}
	}
	return Nobody
}
