package kernels

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// span is access.h's, in Go.
type span struct{ n, head, lines, tail uint64 }

func cut(dst, n uint64, apart bool) span {
	head := -dst & 15
	if apart && head < 15 {
		head += 16
	}
	head = min(head, n)
	rest := n - head
	s := span{n: n, head: head, lines: rest / 16}
	if apart {
		s.lines = 0
		if rest >= 31 {
			s.lines = (rest-31)/16 + 1
		}
	}
	s.tail = head + 16*s.lines
	return s
}

func (s span) edges(log uint64) uint64 { return (s.head + s.n - s.tail) >> log }

func (s span) edge(i, log uint64) uint64 {
	at := i << log
	if at < s.head {
		return at
	}
	return s.tail + at - s.head
}

// TestSpans: for every place of source and destination and every length, each
// byte is stored once, lines are aligned, and no load leaves the source.
func TestSpans(t *testing.T) {
	const base, edgeSlots = 1 << 20, 80
	for log := uint64(0); log < 4; log++ {
		size := uint64(1) << log
		for dst := uint64(base); dst < base+16; dst += size {
			for src := uint64(base); src < base+16; src += size {
				for n := uint64(0); n <= 160; n += size {
					apart := (src^dst)&15 != 0
					s := cut(dst, n, apart)
					stored := make([]int, n)
					require.LessOrEqual(t, s.edges(log), uint64(edgeSlots)>>log, "the slots that gather has for edges")
					for i := range s.edges(log) {
						for k := range size {
							stored[s.edge(i, log)+k]++
						}
					}
					for i := range s.lines {
						x := s.head + 16*i
						require.Zero(t, (dst+x)%16)
						for k := range uint64(16) {
							stored[x+k]++
						}
						lo, hi := (src+x)&^15, (src+x)&^15+16
						if apart {
							hi += 16
						}
						require.GreaterOrEqual(t, lo, src, "dst %d src %d n %d", dst-base, src-base, n)
						require.LessOrEqual(t, hi, src+n, "dst %d src %d n %d", dst-base, src-base, n)
					}
					for at, c := range stored {
						require.Equal(t, 1, c, "byte %d of %d", at, n)
					}
				}
			}
		}
	}
}

// TestShares: the parts of blocks, and of slices cut into blocks, tile what they
// divide, in order.
func TestShares(t *testing.T) {
	share := func(n, i, parts uint64) uint64 { return n * i / parts }
	for _, n := range []uint64{0, 1, 2, 15, 16, 17, 1000, 4097, 1 << 39} {
		for _, world := range []uint64{1, 2, 3, 8, 72} {
			for _, blocks := range []uint64{1, 2, 7, 64} {
				next := uint64(0)
				for r := range world {
					lo, hi := share(n, r, world), share(n, r+1, world)
					for b := range blocks {
						from, to := lo+share(hi-lo, b, blocks), lo+share(hi-lo, b+1, blocks)
						require.Equal(t, next, from)
						require.LessOrEqual(t, to-from, n/world/blocks+2, "what gather is told is the most")
						next = to
					}
				}
				require.Equal(t, n, next)
			}
		}
	}
}
