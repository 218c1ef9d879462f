package tandemnvls

import "example.com/tandem/api"

const (
	// word is the widest access of the switch, in bytes.
	word = 16
	// ctaBytes is the work that is worth a CTA.
	ctaBytes = 16 << 10
	maxCTAs  = 16
	// defaultStage is the team memory of a rank, in bytes.
	defaultStage = 16 << 20
)

// shape is what of a call goes through the switch and how it is cut. Units are
// what every rank has an equal part of; counts of bytes are of one block of the
// call, or of all of it where there is one.
type shape struct {
	call  *api.Call
	size  int64 // of an element
	unit  int64 // bytes: of a block, 16; of an all-reduce, 16 a rank
	units int64
	main  int64 // bytes that go through the switch, of a block
	rest  int64 // bytes that do not
	grid  int64 // CTAs
	room  int64 // units of a CTA's chunk
}

func (c *config) shapeOf(call *api.Call) *shape {
	s := &shape{call: call, size: int64(call.DType.Size()), unit: word}
	bytes := call.Count * s.size
	if call.Collective == api.AllReduce {
		s.unit *= int64(call.Ranks)
	}
	s.units = bytes / s.unit
	s.main = s.units * s.unit
	s.rest = bytes - s.main
	if call.Collective == api.AllGather && s.rest > 0 {
		s.units++ // padded in team memory
		s.main, s.rest = bytes, 0
	}
	s.grid = min(max(ceil(s.units*s.unit, ctaBytes), 1), maxCTAs)
	if c.ctas > 0 {
		s.grid = int64(c.ctas)
	}
	s.room = max(1, min(ceil(s.units, s.grid), c.stage/(s.grid*s.staged())))
	return s
}

func ceil(n, by int64) int64 { return (n + by - 1) / by }

// staged is the team memory that one unit takes: source and result.
func (s *shape) staged() int64 {
	if s.call.Collective == api.AllReduce {
		return 2 * s.unit
	}
	return s.unit * int64(s.call.Ranks+1)
}

// span is a range of units.
type span struct{ lo, hi int64 }

// share is the part of a CTA.
func (s *shape) share(cta int) span {
	at := func(i int64) int64 { return s.units/s.grid*i + s.units%s.grid*i/s.grid }
	return span{at(int64(cta)), at(int64(cta) + 1)}
}

// chunks is the number of chunks of a CTA.
func (s *shape) chunks(cta int) int {
	sh := s.share(cta)
	return int(ceil(sh.hi-sh.lo, s.room))
}

// chunk is one of them.
func (s *shape) chunk(cta, i int) span {
	sh := s.share(cta)
	lo := sh.lo + int64(i)*s.room
	return span{lo, min(lo+s.room, sh.hi)}
}

// bytes is the range of bytes of a block that a span has, without padding.
func (s *shape) bytes(in span) (lo, n int64) {
	lo = in.lo * s.unit
	return lo, min(in.hi*s.unit, s.main) - lo
}

// ctas is the CTAs of the kernel: one more where something is left for lines.
func (s *shape) ctas() int {
	if s.rest > 0 {
		return int(s.grid) + 1
	}
	return int(s.grid)
}

// off is the bytes off the switch on one rank.
func (s *shape) off() int64 { return s.rest }

// source is where, in team memory of a rank, a CTA's chunk of a block of its
// source lies; result likewise of its destination. The blocks of a chunk follow
// each other.
func (s *shape) source(cta int, block int64) int64 {
	return int64(cta)*s.room*s.staged() + block*s.room*s.unit
}

func (s *shape) result(cta int, block int64) int64 {
	blocks := int64(1)
	if s.call.Collective == api.ReduceScatter {
		blocks = int64(s.call.Ranks)
	}
	return s.source(cta, blocks+block)
}

// box is the team memory of a rank.
func (s *shape) box() int64 { return s.grid * s.room * s.staged() }
