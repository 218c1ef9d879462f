package vm

import (
	"fmt"

	"example.com/tandem/api/gpu"
)

// Agent is a copy or a fill that a stream does.
type Agent struct {
	m *Machine
	agent
}

// Agent makes one, which knows what its stream does.
func (m *Machine) Agent(device int, stream, seq uint32, k Known) *Agent {
	return &Agent{m, agent{ev: event{block: m.number(share{-1, int32(device), -1}), stream: stream, seq: seq}, k: k.k, start: k.k.base, device: int16(device)}}
}

// Read checks that n bytes may be read.
func (g *Agent) Read(r *Region, off, n uint64) *Fault { return g.over(r, off, n, load) }

// Wrote checks and notes that n bytes are written, which the caller does.
func (g *Agent) Wrote(r *Region, off, n uint64) *Fault {
	fault := g.over(r, off, n, store)
	r.Store.wrote(off, n)
	r.Store.forget(off, n)
	g.m.changes++
	return fault
}

// over goes over the cells of a range. Where no kernel runs and nothing is
// remembered, there is nothing to check and nothing to remember.
func (g *Agent) over(r *Region, off, n uint64, w what) *Fault {
	s := r.Store
	busy := g.m.Running()
	for at := off; at < off+n; {
		end := min(at&^(grain-1)+grain, off+n)
		page := s.cells[at/(grain*cellsPerPage)]
		if page == nil && !busy {
			at = min((at/(grain*cellsPerPage)+1)*grain*cellsPerPage, off+n)
			continue
		}
		x := mark{event: g.ev, what: w, off: at, size: uint8(end - at), device: g.device}
		if bad := g.touch(s, x); bad != nil {
			if f := g.raced(x, bad); f != nil {
				return f
			}
		}
		at = end
	}
	return nil
}

// raced is the fault of a race, if it is one.
func (g *Agent) raced(x mark, bad *mark) *Fault {
	describe := func() *Fault {
		who := g.m.names[bad.block]
		return &Fault{Code: gpu.LaunchFailed, Device: int(g.device), Rank: int(who.rank), CTA: int(who.block), Race: true,
			What: fmt.Sprintf("race: %s at byte %d, and %s, are not ordered by causality", g.m.describe(&x), x.off, g.m.describe(bad))}
	}
	if told := g.m.opts.Race; told == nil || told(describe) {
		return describe()
	}
	return nil
}
