package tandem

import "example.com/tandem/sim/machine"

// closer closes the team on one rank, as another thread of its host. The own
// kernel is told to end and the peers to abort; then the own call has to be over,
// and every peer that has come in has to leave, before anything may be freed. The
// generation is counted up last: a kernel launched later exits at entry. Closing
// again does nothing new.
type closer struct {
	ranks, rank int
	temps       int64          // of the closer, as many as there are ranks and one
	pause       int            // steps before it begins
	after       []machine.Step // what is freed
}

// The temps of a closer: its outcome, and for every rank whether it is leaked.
const cOutcome = 0

func cLeaked(rank int) int64 { return int64(1 + rank) }

func closerTemps(ranks int) int { return 1 + ranks }

const (
	closeHead = 4 // before the peers' abort words, which ranks-1 steps write
	closeWait = 3 // for every rank
	closeTail = 2
)

func (c *closer) size() int {
	return c.pause + closeHead + c.ranks - 1 + closeWait*c.ranks + closeTail + len(c.after)
}

func (c *closer) temp(off int64) machine.Ref { return machine.At(c.rank, machine.Temp, c.temps+off) }

func (c *closer) peer(i int) int { return (c.rank + 1 + i) % c.ranks }

func (c *closer) step(s *machine.Step, i int) {
	s.Fails = i + 1 // closing goes on
	if i < c.pause {
		return
	}
	waits := c.pause + closeHead + c.ranks - 1
	tail := waits + closeWait*c.ranks
	switch {
	case i == c.pause:
		store(s, ref(c.rank, wPoison), 1, machine.Release, machine.System)
	case i == c.pause+1:
		store(s, ref(c.rank, wHostAbort), state(causeClosed, c.rank), machine.Release, machine.System)
	case i < waits-2:
		store(s, ref(c.peer(i-c.pause-2), wAbort), state(causeClosed, c.rank), machine.Release, machine.System)
		s.Note = noteClose
	case i == waits-2:
		fence(s)
	case i == waits-1:
		s.Kind = machine.Begin
	case i < tail:
		c.wait(s, waits, i-waits)
	case i == tail:
		s.Kind, s.Word, s.Value, s.Order = machine.Add, ref(c.rank, wGeneration), 1, machine.AcqRel
	case i == tail+1:
		store(s, c.temp(cOutcome), outcomeGood, machine.Release, machine.System)
	default:
		given(s, &c.after[i-tail-closeTail], c.size())
	}
}

// wait is for the own call first, then for each peer to have left.
func (c *closer) wait(s *machine.Step, base, i int) {
	rank := c.peer(i/closeWait + c.ranks - 1)
	next := base + (i/closeWait+1)*closeWait
	switch i % closeWait {
	case 0:
		s.Kind, s.Order, s.Deadline, s.Peer, s.Else = machine.Wait, machine.Acquire, machine.Progress, rank, next-1
		s.Fails, s.Note = next-1, noteLeft
		if rank == c.rank {
			s.Word, s.Cmp = ref(rank, wBusy), machine.ZeroValue
			return
		}
		s.Word, s.Base = ref(rank, wLeft), ref(rank, wEntered)
	case 1:
		jump(s, next)
	case 2:
		store(s, c.temp(cLeaked(rank)), 1, machine.Release, machine.System)
	}
}
