package machine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
)

// placeFolder writes, into every byte, the place it was told of plus the number
// of sources.
type placeFolder struct{}

func (placeFolder) Fold(dst []byte, at int64, srcs ...[]byte) {
	for i := range dst {
		dst[i] = byte(at + int64(i) + int64(len(srcs)))
	}
}

// foldProgram has each of two ranks reduce a part of the sources of both into
// both destinations, in steps of that many bytes.
type foldProgram struct{ bytes, step int64 }

func (foldProgram) CTAs() int    { return 1 }
func (foldProgram) Needs() Needs { return Needs{} }
func (p foldProgram) Len(int, int) int {
	return int(p.bytes / p.step)
}

func (p foldProgram) Step(s *Step, rank, _, i int) {
	at := int64(rank)*p.bytes + int64(i)*p.step
	s.Kind, s.DType, s.Bytes, s.Fold, s.At = Reduce, api.U8, p.step, placeFolder{}, at+100
	s.Dst = User(All, Dst, 0, at)
	s.Srcs = append(s.Srcs, User(All, Src, 0, at))
}

// TestFold: a step's own arithmetic takes the place of its scheme and is told
// the right place, whatever is done at once, and all destinations get the result.
func TestFold(t *testing.T) {
	for _, step := range []int64{1, 16, 1 << 18} {
		n := max(step, 4096)
		mem := make([]api.Memory, 2)
		for r := range mem {
			mem[r] = api.MemoryOf(make([]byte, 2*n), make([]byte, 2*n))
		}
		_, err := New(Config{Ranks: 2}).Run(foldProgram{n, step}, mem, Options{})
		require.NoError(t, err)
		for r := range mem {
			for i, b := range mem[r][0].Dst.Bytes {
				require.Equal(t, byte(i+100+2), b, "rank %d byte %d in steps of %d", r, i, step)
			}
		}
	}
}
