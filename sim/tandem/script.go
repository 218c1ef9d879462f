package tandem

import "example.com/tandem/sim/machine"

// script is a run: what every rank launches, on one or more streams, and who
// closes the team meanwhile. It is the machine.Program of a team.
type script struct {
	ranks   int
	grid    int        // of the largest launch
	streams []stream   // CTAs 0..grid-1 of each are the kernel, CTA grid the host
	closers [][]closer // by rank; the last CTAs
	needs   machine.Needs
	agents  [][]agent // by rank and CTA
}

// stream is, for every rank, the launches that follow one another.
type stream [][]*launch

// agent is the steps of one CTA: those of its launches, one after another.
type agent struct {
	parts []part
	size  int
	hint  int
}

type part struct {
	start int
	step  func(s *machine.Step, i int)
}

func (a *agent) add(size int, step func(*machine.Step, int)) {
	a.parts = append(a.parts, part{a.size, step})
	a.size += size
}

// newScript lays out a run.
func newScript(ranks int, streams []stream, closers [][]closer) *script {
	p := &script{ranks: ranks, streams: streams, closers: closers}
	for _, st := range streams {
		for _, launches := range st {
			for _, l := range launches {
				p.grid = max(p.grid, l.grid)
				p.fit(l)
			}
		}
	}
	p.needs.Words = words(ranks, p.grid)
	p.place()
	p.agents = make([][]agent, ranks)
	for r := range p.agents {
		p.agents[r] = make([]agent, p.CTAs())
		for i, st := range streams {
			p.schedule(p.agents[r][i*(p.grid+1):], st[r])
		}
		for i := range p.closersOf(r) {
			c := &closers[r][i]
			p.agents[r][len(streams)*(p.grid+1)+i].add(c.size(), c.step)
		}
	}
	return p
}

// place gives every launch and closer its temps.
func (p *script) place() {
	used := make([]int, p.ranks)
	for _, st := range p.streams {
		for r, launches := range st {
			for _, l := range launches {
				l.temps = int64(used[r])
				used[r] += temps(p.ranks, l.grid)
			}
		}
	}
	for r := range p.ranks {
		for i := range p.closersOf(r) {
			p.closers[r][i].temps = int64(used[r])
			used[r] += closerTemps(p.ranks)
		}
		p.needs.Temps = max(p.needs.Temps, used[r])
	}
}

func (p *script) closersOf(rank int) []closer {
	if rank < len(p.closers) {
		return p.closers[rank]
	}
	return nil
}

// fit makes room for a launch.
func (p *script) fit(l *launch) {
	if l.path == pathPush {
		p.needs.Line = max(p.needs.Line, lineBytes(p.ranks, l.bytes()))
	}
	if l.path == pathDirect || l.path == pathTwoShot {
		p.needs.Box = max(p.needs.Box, l.stageBytes())
	}
}

// stamps makes room for stamps, which cover whole boxes.
func (p *script) stamps() { p.needs.Line = lineBytes(p.ranks, boxBytes(p.ranks)) }

func (p *script) schedule(agents []agent, launches []*launch) {
	for _, l := range launches {
		for b := range l.grid {
			k := l.kernel(b)
			agents[b].add(k.size, k.step)
		}
		h := newHost(l)
		agents[p.grid].add(h.size(), h.step)
	}
}

// CTAs is the number of agents of a rank.
func (p *script) CTAs() int {
	n := 0
	for r := range p.ranks {
		n = max(n, len(p.closersOf(r)))
	}
	return len(p.streams)*(p.grid+1) + n
}

// Needs is what the run needs of the memory of each rank.
func (p *script) Needs() machine.Needs { return p.needs }

// Len is the number of steps of an agent.
func (p *script) Len(rank, cta int) int { return p.agents[rank][cta].size }

// Name says what an agent is.
func (p *script) Name(cta int) string {
	switch i := cta % (p.grid + 1); {
	case cta >= len(p.streams)*(p.grid+1):
		return "closer"
	case i == p.grid:
		return "host"
	}
	return "kernel"
}

// Step is one step of an agent.
func (p *script) Step(s *machine.Step, rank, cta, i int) {
	a := &p.agents[rank][cta]
	for a.hint+1 < len(a.parts) && a.parts[a.hint+1].start <= i {
		a.hint++
	}
	for a.parts[a.hint].start > i {
		a.hint--
	}
	at := a.parts[a.hint].start
	a.parts[a.hint].step(s, i-at)
	if s.Else > 0 {
		s.Else += at
	}
	if s.Fails > 0 {
		s.Fails += at
	}
}
