package machine

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// A step that loads from every rank is in a race with a store on any of them
// exactly where it loads there, whether its sources are one address or not, and
// whatever comes first.
func TestLoadsFromEveryRank(t *testing.T) {
	const ranks, n = 3, 16
	for name, shape := range map[string]struct {
		offs  [ranks]int64
		order [ranks]int
		moved bool // rank 1 has its buffers elsewhere
		space Space
	}{
		"one address":            {offs: [ranks]int64{16, 16, 16}, order: [ranks]int{0, 1, 2}},
		"another offset":         {offs: [ranks]int64{16, 32, 16}, order: [ranks]int{0, 1, 2}},
		"another order":          {offs: [ranks]int64{16, 16, 16}, order: [ranks]int{2, 0, 1}},
		"one rank twice":         {offs: [ranks]int64{16, 16, 16}, order: [ranks]int{0, 1, 1}},
		"addresses of their own": {offs: [ranks]int64{16, 16, 16}, order: [ranks]int{0, 1, 2}, moved: true},
		"another space":          {offs: [ranks]int64{16, 16, 16}, order: [ranks]int{0, 1, 2}, space: Dst},
		"a rank left out":        {offs: [ranks]int64{16, 16, 16}, order: [ranks]int{0, 2, 2}},
	} {
		for victim := range ranks {
			for at := int64(0); at < 64; at += 8 {
				for _, first := range []int{0, 1} {
					t.Run(fmt.Sprintf("%s/%d/%d/%d", name, victim, at, first), func(t *testing.T) {
						var srcs []Ref
						loaded := false
						for _, r := range shape.order {
							from := User(r, Src, 0, shape.offs[r])
							if r == 1 && shape.space == Dst {
								from.Space = Dst
							}
							srcs = append(srcs, from)
							loaded = loaded || from.Space == Src && r == victim && at < shape.offs[r]+n && shape.offs[r] < at+8
						}
						p := each(Needs{}, ranks, func(int) []Step { return nil })
						p.steps[0][0] = nil
						for r := range ranks {
							p.steps[r] = append(p.steps[r], nil)
						}
						p.steps[0][first] = []Step{sum(User(0, Dst, 0, 0), n, srcs...)}
						p.steps[0][1-first] = []Step{cp(User(victim, Src, 0, at), User(0, Dst, 0, 48), 8)}
						mem := batchMemories(ranks, false)
						if shape.moved {
							mem[1][0].Src.Addr += 4096
							mem[1][0].Dst.Addr += 4096
						}
						_, err := newTest(ranks).Run(p, mem, Options{})
						var race *Race
						require.Equal(t, loaded, errors.As(err, &race), "%v", err)
						if !loaded {
							require.NoError(t, err)
							return
						}
						require.Equal(t, victim, race.Rank)
						require.Equal(t, max(at, shape.offs[victim]), race.Start)
						require.Equal(t, min(at+8, shape.offs[victim]+n), race.End)
					})
				}
			}
		}
	}
}
