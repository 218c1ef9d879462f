package sim_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
	"example.com/tandem/sim/arith"
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

// benchSources are ranges of 1 Mi numbers of like size.
func benchSources(d api.DType, ranks int) [][]byte {
	srcs := benchRanges(ranks, benchElements*d.Size())
	for r, src := range srcs {
		fillNormal(d, src, uint64(r))
	}
	return srcs
}

func benchRanges(ranks, bytes int) [][]byte {
	all := make([][]byte, ranks)
	for i := range all {
		all[i] = make([]byte, bytes)
	}
	return all
}

func copyRanges(dsts, srcs [][]byte) {
	for i, src := range srcs {
		copy(dsts[i], src)
	}
}

// gin reports input elements, in thousands of millions a second.
func gin(b *testing.B, elements int64, took time.Duration) {
	b.ReportMetric(float64(elements)/float64(took.Nanoseconds()), "Gin/s")
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

// BenchmarkCopy copies ranges of 1 Mi bf16 to as many other ones.
func BenchmarkCopy(b *testing.B) {
	for _, ranks := range []int{8, 72} {
		b.Run(fmt.Sprintf("bf16/ranks=%d", ranks), func(b *testing.B) {
			srcs := benchSources(num.BF16, ranks)
			dsts := benchRanges(ranks, len(srcs[0]))
			b.SetBytes(int64(ranks * len(srcs[0])))
			for b.Loop() {
				copyRanges(dsts, srcs)
			}
			gin(b, int64(ranks*benchElements), b.Elapsed()/time.Duration(b.N))
		})
	}
}

// BenchmarkArith reduces ranges of 1 Mi elements on one core. The ratio is its
// speed over that of a copy of the same bytes, all sources to as many other ranges,
// in the same run: they alternate, so that what else the machine does slows both.
func BenchmarkArith(b *testing.B) {
	for _, d := range []api.DType{num.BF16, num.F16, num.F32, num.F64} {
		for _, c := range benchSchemes {
			for _, ranks := range []int{2, 8, 72} {
				b.Run(fmt.Sprintf("%v/%s/ranks=%d", d, c.name, ranks), func(b *testing.B) {
					benchmarkReduce(b, d, c.s, ranks)
				})
			}
		}
	}
}

func benchmarkReduce(b *testing.B, d api.DType, s num.Scheme, ranks int) {
	srcs := benchSources(d, ranks)
	dst := make([]byte, len(srcs[0]))
	dsts := benchRanges(ranks, len(srcs[0]))
	var reduces, copies []time.Duration
	for b.Loop() {
		start := time.Now()
		arith.Options{Workers: 1}.Reduce(dst, d, s, srcs...)
		reduces = append(reduces, time.Since(start))
		b.StopTimer()
		start = time.Now()
		copyRanges(dsts, srcs)
		copies = append(copies, time.Since(start))
		b.StartTimer()
	}
	gin(b, int64(ranks*benchElements), median(reduces))
	b.ReportMetric(float64(median(copies))/float64(median(reduces)), "ratio")
}
