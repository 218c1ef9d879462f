package arith

import (
	"fmt"
	"math/rand/v2"
	"sort"
	"testing"
	"time"

	"example.com/tandem/api/num"
)

const benchElements = 1 << 20

// benchSchemes are the schemes by the names they have in the benchmarks.
var benchSchemes = []struct {
	name string
	s    num.Scheme
}{
	{"element", num.Scheme{Op: num.Sum}},
	{"tree", num.Scheme{Op: num.Sum, Order: num.Balanced}},
	{"f32", num.Scheme{Op: num.Sum, Acc: num.AccF32}},
	{"f32tree", num.Scheme{Op: num.Sum, Acc: num.AccF32, Order: num.Balanced}},
	{"exact", num.Scheme{Op: num.Sum, Acc: num.AccExact}},
	{"exact-rz", num.Scheme{Op: num.Sum, Acc: num.AccExact, Last: num.TowardZero}},
	{"prod", num.Scheme{Op: num.Prod}},
	{"min", num.Scheme{Op: num.Min}},
	{"ternary", num.Scheme{Op: num.Min, MinMax: num.Ternary}},
}

// benchSources are ranks ranges of numbers near 1, as the generator kind normal
// makes them.
func benchSources(d num.DType, ranks int) [][]byte {
	r := rand.New(rand.NewPCG(3, uint64(d)))
	srcs := make([][]byte, ranks)
	for i := range srcs {
		srcs[i] = make([]byte, benchElements*d.Size())
		for j := 0; j < len(srcs[i]); j += d.Size() {
			x := r.Uint64()
			man := x & (1<<d.MantissaBits() - 1)
			exp := uint64(d.Bias()-4) + x>>60&7
			num.Store(d, srcs[i][j:], x>>59&1<<(d.Bits()-1)|exp<<d.MantissaBits()|man)
		}
	}
	return srcs
}

func median(all []time.Duration) float64 {
	sort.Slice(all, func(i, j int) bool { return all[i] < all[j] })
	return float64(all[len(all)/2].Nanoseconds())
}

func ranges(ranks, bytes int) [][]byte {
	all := make([][]byte, ranks)
	for i := range all {
		all[i] = make([]byte, bytes)
	}
	return all
}

// BenchmarkPortable reduces ranges of 1 Mi elements of 8 ranks without assembly.
// What the assembly does is measured in package sim.
func BenchmarkPortable(b *testing.B) {
	for _, d := range []num.DType{num.BF16, num.F16, num.F32, num.F64} {
		for _, c := range benchSchemes {
			b.Run(fmt.Sprintf("%v/%s", d, c.name), func(b *testing.B) {
				benchReduce(b, Options{Workers: 1, Portable: true}, d, c.s, 8)
			})
		}
	}
}

// benchReduce alternates a reduction and a copy, so that what else the machine
// does slows both, and compares the medians.
func benchReduce(b *testing.B, o Options, d num.DType, s num.Scheme, ranks int) {
	srcs := benchSources(d, ranks)
	dst := make([]byte, len(srcs[0]))
	dsts := ranges(ranks, len(srcs[0]))
	var reduces, copies []time.Duration
	for b.Loop() {
		start := time.Now()
		o.Reduce(dst, d, s, srcs...)
		reduces = append(reduces, time.Since(start))
		b.StopTimer()
		start = time.Now()
		for i, src := range srcs {
			copy(dsts[i], src)
		}
		copies = append(copies, time.Since(start))
		b.StartTimer()
	}
	b.ReportMetric(float64(ranks*benchElements)/median(reduces), "Gin/s")
	b.ReportMetric(median(copies)/median(reduces), "ratio")
}
