package tandemnvls

import (
	"example.com/tandem/api"
	"example.com/tandem/api/num"
	"example.com/tandem/sim/machine"
	"example.com/tandem/sim/nvls"
)

// program is the steps of a call through the switch. A CTA does its chunks one
// after another; the last one, where there is a rest, sends it as lines. All end
// with a synchronisation, after which boxes and lines may be used again.
type program struct {
	*shape
	base  uint64 // barrier flags of the call are above
	flag  uint32 // of its lines
	fold  *nvls.Reducer
	width int // bytes of a load-reduce
}

func newProgram(c *config, call *api.Call, base uint64, flag uint32) (*program, error) {
	p := &program{shape: c.shapeOf(call), base: base, flag: flag, width: word}
	if !call.Collective.Reduces() {
		return p, nil
	}
	m, err := c.arith.Model(call.DType, call.Op, true)
	if err != nil {
		return nil, err
	}
	p.width = nvls.Widths(call.DType, call.Op)[0]
	p.fold, err = nvls.NewReducer(m, call.DType, call.Op, call.Ranks)
	return p, err
}

// syncs is more than the synchronisations of any CTA of the call.
func (p *program) syncs() uint64 { return uint64(2*p.chunks(0) + 4) }

func (p *program) CTAs() int { return p.ctas() }

func (p *program) ranks() int { return p.call.Ranks }

// Needs: a word for every peer and CTA, an abort word, the boxes and the lines.
func (p *program) Needs() machine.Needs {
	return machine.Needs{Words: 1 + p.ctas()*p.ranks(), Box: p.box(), Line: int64(p.ranks()) * lineRoom(p.ranks())}
}

// abortWord is the word that ends every wait of a rank.
const abortWord = 0

// lineRoom is the lines that a rank has for one peer, in bytes.
func lineRoom(ranks int) int64 { return int64(word * ranks) }

func (p *program) flagOf(rank, cta, from int) machine.Ref {
	return machine.At(rank, machine.Word, int64(1+cta*p.ranks()+from))
}

// A synchronisation is four steps: what was written through one kind of address
// is made visible to the other, the peers are told, everybody is waited for, and
// what they wrote is made visible here.
const syncSteps = 4

// The steps of a chunk are its phases; a phase is copies, or one access of the
// switch, or a synchronisation.
type phase uint8

const (
	copyIn phase = iota
	together
	through
	copyOut
)

var phases = map[api.Collective][]phase{
	api.AllReduce:     {copyIn, together, through, together, copyOut},
	api.ReduceScatter: {copyIn, together, through, copyOut, together},
	api.AllGather:     {copyIn, together, through, together, copyOut},
}

func (p *program) phaseLen(ph phase) int {
	switch {
	case ph == together:
		return syncSteps
	case ph == copyIn && p.call.Collective == api.ReduceScatter, ph == copyOut && p.call.Collective == api.AllGather:
		return p.ranks()
	}
	return 1
}

func (p *program) chunkLen() int {
	n := 0
	for _, ph := range phases[p.call.Collective] {
		n += p.phaseLen(ph)
	}
	return n
}

// work is the number of steps of a CTA before the last synchronisation.
func (p *program) work(cta int) int {
	if cta == int(p.grid) {
		return p.ranks() // a line to each peer, and the reduction
	}
	return p.chunks(cta) * p.chunkLen()
}

// Behind the last synchronisation come a good end and a bad one.
const ends = 3

func (p *program) Len(_, cta int) int { return p.work(cta) + syncSteps + ends }

// bad is the step to which waits go that end without what they waited for.
func (p *program) bad(cta int) int { return p.work(cta) + syncSteps + 1 }

func (p *program) Step(s *machine.Step, rank, cta, i int) {
	work := p.work(cta)
	switch n := i - work; {
	case n < 0 && cta == int(p.grid):
		p.tailStep(s, rank, cta, i)
	case n < 0:
		p.chunkStep(s, rank, cta, i/p.chunkLen(), i%p.chunkLen())
	case n < syncSteps:
		p.syncStep(s, rank, cta, n, p.lastSync(cta))
	case n == syncSteps:
		s.Kind = machine.Exit
	case n == syncSteps+1:
		s.Kind, s.Word, s.Value, s.Order = machine.Store, machine.At(rank, machine.Word, abortWord), 1, machine.Release
		for k := 1; k < p.ranks(); k++ {
			s.More = append(s.More, machine.At((rank+k)%p.ranks(), machine.Word, abortWord))
		}
		s.Note = "everybody stops"
	default:
		s.Kind, s.Value = machine.Exit, machine.StatusAborted
	}
}

// lastSync numbers the synchronisation at the end of a CTA.
func (p *program) lastSync(cta int) uint64 {
	if cta == int(p.grid) {
		return 1
	}
	return uint64(2*p.chunks(cta) + 1)
}

// syncStep is one step of synchronisation number of a CTA, counted from 1.
func (p *program) syncStep(s *machine.Step, rank, cta, i int, number uint64) {
	switch i {
	case 0, 3:
		s.Kind, s.Order, s.Alias = machine.Fence, machine.AcqRel, true
	case 1:
		s.Kind, s.Value, s.Order = machine.Store, p.base+number, machine.Release
		for k := 1; k < p.ranks(); k++ {
			to := p.flagOf((rank+k)%p.ranks(), cta, rank)
			if k == 1 {
				s.Word = to
			} else {
				s.More = append(s.More, to)
			}
		}
	case 2:
		s.Kind, s.Value, s.Cmp, s.Order = machine.Wait, p.base+number, machine.AtLeast, machine.Acquire
		for k := 1; k < p.ranks(); k++ {
			from := p.flagOf(rank, cta, (rank+k)%p.ranks())
			if k == 1 {
				s.Word = from
			} else {
				s.More = append(s.More, from)
			}
		}
		p.bounded(s, rank, cta, number == 1)
	}
}

// bounded gives a step that waits its deadline.
func (p *program) bounded(s *machine.Step, rank, cta int, first bool) {
	s.Deadline = machine.Progress
	if first {
		s.Deadline = machine.Arrive
	}
	s.Aborts[0] = machine.At(rank, machine.Word, abortWord)
	s.Else = p.bad(cta)
}

func (p *program) user(rank int, space machine.Space, block, at int64) machine.Ref {
	return machine.User(rank, space, 0, block*p.call.Count*p.size+at)
}

func box(rank int, at int64) machine.Ref { return machine.At(rank, machine.Box, at) }

func (p *program) chunkStep(s *machine.Step, rank, cta, chunk, i int) {
	in := p.chunk(cta, chunk)
	syncs := uint64(2 * chunk)
	for _, ph := range phases[p.call.Collective] {
		n := p.phaseLen(ph)
		if ph == together {
			syncs++
		}
		if i >= n {
			i -= n
			continue
		}
		lo, bytes := p.bytes(in)
		switch ph {
		case together:
			p.syncStep(s, rank, cta, i, syncs)
		case copyIn:
			s.Kind, s.Bytes = machine.Copy, bytes
			s.Dst = box(rank, p.source(cta, int64(i)))
			s.Srcs = append(s.Srcs, p.user(rank, machine.Src, int64(i), lo))
		case through:
			p.throughStep(s, rank, cta, in)
		case copyOut:
			s.Kind, s.Bytes = machine.Copy, bytes
			s.Dst = p.user(rank, machine.Dst, int64(i), lo)
			s.Srcs = append(s.Srcs, box(rank, p.result(cta, int64(i))))
		}
		return
	}
}

// throughStep is a rank's access of the switch in a chunk.
func (p *program) throughStep(s *machine.Step, rank, cta int, in span) {
	bytes := (in.hi - in.lo) * p.unit
	s.Width = p.width
	if p.fold == nil {
		s.Kind, s.Bytes = machine.Copy, bytes
		s.Dst = box(machine.All, p.result(cta, int64(rank)))
		s.Srcs = append(s.Srcs, box(rank, p.source(cta, 0)))
		return
	}
	s.Kind, s.DType, s.Scheme, s.Fold = machine.Reduce, p.call.DType, num.Scheme{Op: p.call.Op}, p.fold
	if p.call.Collective == api.ReduceScatter {
		s.Bytes, s.At = bytes, int64(rank)*p.call.Count*p.size+in.lo*p.unit
		s.Dst = box(rank, p.result(cta, 0))
		s.Srcs = append(s.Srcs, box(machine.All, p.source(cta, int64(rank))))
		return
	}
	s.Bytes = bytes / int64(p.ranks())
	part := int64(rank) * s.Bytes
	s.At = in.lo*p.unit + part
	s.Dst = box(machine.All, p.result(cta, 0)+part)
	s.Srcs = append(s.Srcs, box(machine.All, p.source(cta, 0)+part))
}

// tailStep sends the rest to a peer, or reduces what the peers have sent.
func (p *program) tailStep(s *machine.Step, rank, cta, i int) {
	block := func(of int) int64 {
		if p.call.Collective == api.ReduceScatter {
			return int64(of)
		}
		return 0
	}
	lines := func(at, from int) machine.Ref {
		return machine.Lines(at, from, int64(from)*lineRoom(p.ranks()))
	}
	s.Bytes, s.Value = p.rest, uint64(p.flag)
	if i < p.ranks()-1 {
		to := (rank + 1 + i) % p.ranks()
		s.Kind = machine.Copy
		s.Dst = lines(to, rank)
		s.Srcs = append(s.Srcs, p.user(rank, machine.Src, block(to), p.main))
		return
	}
	s.Kind, s.DType, s.Scheme = machine.Reduce, p.call.DType, num.Scheme{Op: p.call.Op, Order: num.Balanced}
	s.Dst = p.user(rank, machine.Dst, 0, p.main)
	for from := range p.ranks() {
		src := lines(rank, from)
		if from == rank {
			src = p.user(rank, machine.Src, block(rank), p.main)
		}
		s.Srcs = append(s.Srcs, src)
	}
	p.bounded(s, rank, cta, true)
}
