package machine

// Needs is what a program uses of the memory of each rank.
type Needs struct {
	Scratch  int64 // bytes
	Box      int64 // bytes
	Line     int64 // bytes of data
	Words    int
	Temps    int
	Barriers int
}

// Program is the steps of every CTA of every rank. All ranks have the same
// number of CTAs; one whose Len is 0 has nothing to do. CTAs of several kernels
// and the host's part of a rank are CTAs of their own, ordered by Record and
// Await.
type Program interface {
	CTAs() int
	Needs() Needs
	Len(rank, cta int) int
	// Step overwrites *dst, which is cleared but for the capacity of Srcs and More and
	// for Peer, which is Nobody. The same arguments always give the same step.
	Step(dst *Step, rank, cta, i int)
}

// Namer is implemented by programs that name their CTAs in reports.
type Namer interface{ Name(cta int) string }

// Edit is a program with one step replaced. With the zero Step the step is as
// good as deleted.
type Edit struct {
	Program
	Rank, CTA, Index int
	With             Step
}

// Step is Program's, but for the one replaced.
func (e Edit) Step(dst *Step, rank, cta, i int) {
	if rank == e.Rank && cta == e.CTA && i == e.Index {
		srcs, more := append(dst.Srcs[:0], e.With.Srcs...), append(dst.More[:0], e.With.More...)
		*dst = e.With
		dst.Srcs, dst.More = srcs, more
		return
	}
	e.Program.Step(dst, rank, cta, i)
}

// Without is the program with one step left out.
func Without(p Program, rank, cta, index int) Program {
	return Edit{Program: p, Rank: rank, CTA: cta, Index: index, With: Step{Peer: Nobody}}
}
