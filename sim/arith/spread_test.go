package arith

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"example.com/tandem/api/num"
	"github.com/stretchr/testify/require"
)

// spreadOptions are the ways in which a result comes to several destinations.
func spreadOptions() []Options {
	return []Options{{}, {Workers: 1, past: true}, {Workers: 3, past: true}, {Portable: true}}
}

// checkAll reduces the first n elements into so many destinations, laid out at
// the given places between guard words.
func (p *problem) checkAll(t *testing.T, o Options, d num.DType, s num.Scheme, n, dsts int, place func(i int) int) {
	t.Helper()
	bytes := n * d.Size()
	rooms := make([]guarded, len(p.srcs)+dsts)
	all := make([][]byte, len(rooms))
	for i := range rooms {
		all[i] = rooms[i].place(bytes, place(i))
		if i < len(p.srcs) {
			copy(all[i], p.srcs[i])
		}
	}
	o.ReduceAll(all[len(p.srcs):], d, s, all[:len(p.srcs)]...)
	for i := range rooms {
		want := p.want
		if i < len(p.srcs) {
			want = p.srcs[i]
		}
		if string(all[i]) != string(want[:bytes]) {
			t.Fatalf("%v %+v %+v of %d at length %d: range %d: %s", d, s, o, len(p.srcs), n, i, explain(d, all[i], want[:bytes], p.srcs))
		}
		if !rooms[i].intact() {
			t.Fatalf("%v %+v %+v at length %d: guard of range %d", d, s, o, n, i)
		}
	}
}

func spreadSchemes() []num.Scheme {
	return []num.Scheme{
		{Op: num.Sum}, {Op: num.Sum, Order: num.Balanced}, {Op: num.Sum, Acc: num.AccF32, Order: num.Balanced},
		{Op: num.Sum, Acc: num.AccExact, Last: num.TowardZero}, {Op: num.Max}, {Op: num.Avg, Order: num.Balanced},
		{Op: num.Avg, Avg: num.AvgPremul, Order: num.Balanced},
	}
}

// TestReduceAllEveryLength compares every destination with the portable kernels at
// every length up to 300 and at random places.
func TestReduceAllEveryLength(t *testing.T) {
	const most = 300
	step := 1
	if testing.Short() {
		step = 31
	}
	r := rand.New(rand.NewPCG(11, 12))
	for _, d := range []num.DType{num.BF16, num.F16, num.F32, num.U8} {
		for _, s := range spreadSchemes() {
			p := newProblem(r, d, s, 9, most)
			for n := 0; n <= most; n += step {
				for _, o := range spreadOptions() {
					p.checkAll(t, o, d, s, n, 1+r.IntN(4), func(int) int { return r.IntN(64) })
				}
			}
		}
	}
}

// TestReduceAllManyTiles has results on their way while the next are computed: to
// fewer and to more destinations than one kernel call takes, at whole lines, at
// whole vectors and anywhere.
func TestReduceAllManyTiles(t *testing.T) {
	n := 2*pastTiles*tileElements + tileElements + 77
	ranks := []int{1, 9, 16}
	if testing.Short() {
		ranks = []int{1, 9}
	}
	r := rand.New(rand.NewPCG(13, 14))
	for _, d := range []num.DType{num.BF16, num.F16, num.F32} {
		for _, s := range spreadSchemes()[1:5] {
			for _, of := range ranks {
				p := newProblem(r, d, s, of, n)
				for i, o := range spreadOptions() {
					dsts := []int{1, 2, of, of + 9}[r.IntN(4)]
					unit := []int{64, 32, d.Size(), 1}[(i+of)%4]
					p.checkAll(t, o, d, s, n-r.IntN(2), dsts, func(int) int { return r.IntN(64/unit) * unit })
				}
			}
		}
	}
}

// TestReduceAllInPlace has every source for a destination.
func TestReduceAllInPlace(t *testing.T) {
	const n = pastTiles*tileElements + 2*tileElements + 5
	r := rand.New(rand.NewPCG(15, 16))
	for _, s := range spreadSchemes() {
		p := newProblem(r, num.BF16, s, 8, n)
		for _, o := range spreadOptions() {
			for _, some := range [][]int{{0, 1, 2, 3, 4, 5, 6, 7}, {7, 2, 5}} {
				srcs := make([][]byte, len(p.srcs))
				for i := range srcs {
					srcs[i] = bytes.Clone(p.srcs[i])
				}
				var dsts [][]byte
				for _, i := range some {
					dsts = append(dsts, srcs[i])
				}
				o.ReduceAll(dsts, num.BF16, s, srcs...)
				for i, dst := range dsts {
					require.True(t, bytes.Equal(p.want, dst), "%+v %+v into %d", s, o, some[i])
				}
			}
		}
	}
}

// A source may be one of the destinations of a copy as well.
func TestSpread(t *testing.T) {
	src := make([]byte, 3*spreadBytes+5)
	r := rand.New(rand.NewPCG(17, 18))
	for i := range src {
		src[i] = byte(r.Uint32())
	}
	for _, o := range spreadOptions() {
		kept := bytes.Clone(src)
		dsts := [][]byte{make([]byte, len(src)), kept, make([]byte, len(src))}
		o.ReduceAll(dsts, num.U8, num.Scheme{Op: num.Sum}, kept)
		for _, dst := range dsts {
			require.True(t, bytes.Equal(src, dst), "%+v", o)
		}
	}
	Spread([][]byte{src[:0]}, nil)
}

// Mistakes of the caller panic before anything is written.
func TestReduceAllPanics(t *testing.T) {
	s := num.Scheme{Op: num.Sum}
	for _, f := range []func(){
		func() { ReduceAll(nil, num.U8, s, make([]byte, 4)) },
		func() { ReduceAll([][]byte{make([]byte, 4), make([]byte, 5)}, num.U8, s, make([]byte, 4)) },
		func() { ReduceAll([][]byte{make([]byte, 4)}, num.F32, num.Scheme{Op: num.Xor}, make([]byte, 4)) },
		func() { ReduceAll([][]byte{make([]byte, 4)}, num.U8, s) },
	} {
		require.Panics(t, f)
	}
}

// BenchmarkReduceAll reduces ranges of 1 Mi bf16 into as many destinations.
func BenchmarkReduceAll(b *testing.B) {
	for _, d := range []num.DType{num.BF16, num.F16} {
		for _, ranks := range []int{8, 72} {
			srcs := benchSources(d, ranks)
			dsts := ranges(ranks, len(srcs[0]))
			for _, c := range benchSchemes[:6] {
				b.Run(fmt.Sprintf("%v/%s/ranks=%d", d, c.name, ranks), func(b *testing.B) {
					for b.Loop() {
						Options{Workers: 1}.ReduceAll(dsts, d, c.s, srcs...)
					}
					b.ReportMetric(float64(ranks*benchElements)*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "Gin/s")
				})
			}
		}
	}
}
