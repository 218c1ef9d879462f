package nvshmem

import (
	"example.com/tandem/api"
	"example.com/tandem/api/num"
	"example.com/tandem/sim/machine"
)

// wordsPart is a CTA that moves slices through the switch: on each rank the words of
// its slice, widest first, then the team's barrier.
type wordsPart struct {
	g    *program
	cta  *api.CTA
	move func(g *program, s *machine.Step, slice *api.Slice, elem int64, width int)
}

func (g *program) inSwitch(cta *api.CTA) part { return wordsPart{g, cta, reduceWords} }

func (g *program) gatherWords(cta *api.CTA) part { return wordsPart{g, cta, spreadWords(cta)} }

// wordRun is a run of words of one width, as a slice begins with.
type wordRun struct {
	width int
	count int64
}

func runsOf(w api.WordCount) [3]wordRun {
	return [3]wordRun{{16, w.W16}, {8, w.W8}, {4, w.W4}}
}

func (w wordsPart) len(rank int) int {
	n := 1
	for _, r := range runsOf(w.cta.Slices[rank].Words) {
		if r.count > 0 {
			n++
		}
	}
	return n
}

func (w wordsPart) step(s *machine.Step, rank, i int) {
	slice := &w.cta.Slices[rank]
	var done int64
	for _, r := range runsOf(slice.Words) {
		if r.count == 0 {
			continue
		}
		if i == 0 {
			s.Bytes = r.count * int64(r.width)
			s.Width = r.width
			w.move(w.g, s, slice, done, r.width)
			return
		}
		i--
		done += r.count * int64(r.width)
	}
	w.g.barrierStep(s, w.cta.CTA)
}

// headTail is a CTA of two parts, one after the other.
type headTail struct{ head, tail part }

// headAndTail makes the parts of a CTA whose last slice is a tail.
func (g *program) headAndTail(cta *api.CTA) (part, error) {
	last := cta.Slices[g.ranks]
	head, tail := *cta, *cta
	head.Count, head.Slices = last.Start-cta.Start, cta.Slices[:g.ranks]
	tail.Start, tail.Count, tail.Algorithm, tail.Slices = last.Start, last.Count, last.Algorithm, nil
	after, err := g.part(&tail)
	if err != nil {
		return nil, err
	}
	return headTail{g.inSwitch(&head), after}, nil
}

func (h headTail) len(rank int) int { return h.head.len(rank) + h.tail.len(rank) }

func (h headTail) step(s *machine.Step, rank, i int) {
	if n := h.head.len(rank); i >= n {
		h.tail.step(s, rank, i-n)
		return
	}
	h.head.step(s, rank, i)
}

// at is the place done bytes behind an element.
func behind(r machine.Ref, done int64) machine.Ref {
	r.Off += done
	return r
}

// reduceWords load-reduces words of all sources, into every destination, or into
// the rank's own where the slice is local.
func reduceWords(g *program, s *machine.Step, slice *api.Slice, done int64, _ int) {
	to := machine.All
	if slice.Local {
		to = slice.Rank
	}
	s.Kind = machine.Reduce
	g.switchStep(s, slice.Start)
	s.At += done
	s.Dst = behind(g.dst(to, slice.Start), done)
	s.Srcs = append(s.Srcs, behind(g.src(machine.All, slice.Start), done))
}

// spreadWords multicasts words of the rank's own source.
func spreadWords(cta *api.CTA) func(*program, *machine.Step, *api.Slice, int64, int) {
	return func(g *program, s *machine.Step, slice *api.Slice, done int64, _ int) {
		s.Kind = machine.Copy
		s.Dst = behind(g.dst(machine.All, slice.Start), done)
		s.Srcs = append(s.Srcs, behind(g.src(slice.Rank, cta.Start), done))
	}
}

// scatterWords load-reduces words of the rank's block of all sources into its
// own destination.
func scatterWords(g *program, s *machine.Step, slice *api.Slice, done int64, width int) {
	s.Kind = machine.Reduce
	s.Dst = behind(g.dst(slice.Rank, slice.Start), done)
	s.Srcs = append(s.Srcs, behind(g.src(machine.All, int64(slice.Rank)*g.call.Count+slice.Start), done))
	g.scatterArithmetic(s, width)
	if s.Fold != nil {
		s.At += (int64(slice.Rank)*g.call.Count+slice.Start)*g.size + done
	}
}

// whyFloatAdd is why an integer sum of 16-byte words may be unknown.
const whyFloatAdd = "reduce-scatter adds 16-byte words of integers as four f32 patterns, which is the integer sum only below 2^24, and what the switch makes of other patterns is not known"

// scatterArithmetic is what the local-reduce helper of reduce-scatter does with
// words of a width: floats in their type; integers as f32 patterns at 16 bytes,
// as one 64-bit number at 8 (32-bit types too), and as themselves at 4.
func (g *program) scatterArithmetic(s *machine.Step, width int) {
	if g.call.DType.Float() {
		g.switchStep(s, 0)
		return
	}
	s.Scheme = num.Scheme{Op: g.call.Op}
	switch width {
	case 16:
		s.DType, s.SumBelow, s.Unless = num.U32, 1<<24, whyFloatAdd
	case 8:
		s.DType = num.U64
		if g.call.DType.Signed() {
			s.DType = num.I64
		}
	default:
		s.DType = num.U32
		if g.call.DType.Signed() {
			s.DType = num.I32
		}
	}
}
