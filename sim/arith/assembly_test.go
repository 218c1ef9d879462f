package arith

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"example.com/tandem/api/num"
	"github.com/stretchr/testify/require"
)

// guard surrounds every range: no kernel may write it, and no register reaches
// over it.
var guard = bytes.Repeat([]byte{0xA5}, 64)

// guarded is a range at an odd place, with guard words around it.
type guarded struct{ all, p []byte }

// place lays out a range of n bytes at a place modulo 64, in the same memory as
// the last one.
func (g *guarded) place(n, at int) []byte {
	need := len(guard) + at + n + len(guard)
	if cap(g.all) < need {
		g.all = make([]byte, need)
	}
	g.all = g.all[:need]
	for i := range at {
		g.all[i] = guard[0]
	}
	copy(g.all[at:], guard)
	copy(g.all[need-len(guard):], guard)
	g.p = g.all[len(guard)+at:][:n:n]
	return g.p
}

func (g *guarded) intact() bool {
	at := len(g.all) - len(g.p) - 2*len(guard)
	return bytes.Equal(g.all[at:][:len(guard)], guard) && bytes.Equal(g.all[len(g.all)-len(guard):], guard)
}

// kernelSchemes are the schemes that may have kernels of their own; all other
// ones are computed by Eval whatever the implementation.
func kernelSchemes(d num.DType, op num.Op) []num.Scheme {
	var some []num.Scheme
	for _, s := range schemes(d, op) {
		switch {
		case d.Size() == 1 && d.Float() && op != num.Min && op != num.Max,
			s.Step != num.NearestEven,
			s.Acc == num.AccExact && (op != num.Sum || s.Order != num.Linear),
			s.Acc == num.AccElement && op != num.Avg && s.Last != num.NearestEven,
			op == num.Avg && s.Last != num.NearestEven && s.Last != num.TowardZero:
			continue
		}
		some = append(some, s)
	}
	return some
}

// forKernels calls f for every type, operation and scheme with kernels.
func forKernels(t *testing.T, f func(t *testing.T, r *rand.Rand, d num.DType, s num.Scheme)) {
	for _, d := range num.DTypes() {
		for _, op := range num.Ops() {
			if !op.ValidFor(d) {
				continue
			}
			t.Run(fmt.Sprintf("%v/%v", d, op), func(t *testing.T) {
				r := rand.New(rand.NewPCG(uint64(d), uint64(op)))
				for _, s := range kernelSchemes(d, op) {
					f(t, r, d, s)
				}
			})
		}
	}
}

// problem is sources of one length and what the portable kernels make of them.
type problem struct {
	srcs   [][]byte
	want   []byte
	ranges []guarded // where check lays out the sources and the result
	laid   [][]byte
}

func newProblem(r *rand.Rand, d num.DType, s num.Scheme, ranks, n int) *problem {
	p := &problem{srcs: make([][]byte, ranks), want: make([]byte, n*d.Size()), ranges: make([]guarded, ranks+1)}
	for i := range p.srcs {
		p.srcs[i] = make([]byte, n*d.Size())
		fill(r, d, p.srcs[i])
	}
	Options{Portable: true}.Reduce(p.want, d, s, p.srcs...)
	return p
}

// check reduces the first n elements, laid out at the given places modulo 33
// between guard words.
func (p *problem) check(t *testing.T, d num.DType, s num.Scheme, n int, place func(i int) int) {
	bytes := n * d.Size()
	p.laid = p.laid[:0]
	for i, src := range p.srcs {
		p.laid = append(p.laid, p.ranges[i].place(bytes, place(i)%33))
		copy(p.laid[i], src)
	}
	got := p.ranges[len(p.srcs)].place(bytes, place(len(p.srcs))%33)
	Reduce(got, d, s, p.laid...)
	if diff := explain(d, got, p.want[:bytes], p.laid); diff != "" {
		t.Fatalf("%v %+v of %d at length %d: %s", d, s, len(p.srcs), n, diff)
	}
	for i := range p.ranges {
		if !p.ranges[i].intact() {
			t.Fatalf("%v %+v at length %d: guard of range %d", d, s, n, i)
		}
	}
}

// TestEveryLength compares assembly with portable code at every length up to 300,
// for several numbers of sources at random places.
func TestEveryLength(t *testing.T) {
	const most = 300
	step := 1
	if testing.Short() || assembly() == "none" {
		step = 71 // nothing to compare but guard words
	}
	forKernels(t, func(t *testing.T, r *rand.Rand, d num.DType, s num.Scheme) {
		var problems []*problem
		for _, ranks := range []int{2, 3, 4, 7, 8, 9, 11, 17} {
			problems = append(problems, newProblem(r, d, s, ranks, most))
		}
		for n := 0; n <= most; n += step {
			problems[r.IntN(len(problems))].check(t, d, s, n, func(int) int { return r.IntN(33) })
		}
	})
}

// TestEveryAlignment compares them at every place of the destination and of the
// sources.
func TestEveryAlignment(t *testing.T) {
	forKernels(t, func(t *testing.T, r *rand.Rand, d num.DType, s num.Scheme) {
		p := newProblem(r, d, s, 3, 67)
		for at := 0; at < 33; at++ {
			p.check(t, d, s, 67, func(i int) int { return at * (i + 1) })
			if testing.Short() {
				at += 15
			}
		}
	})
}

// TestSpecialValues compares them on every pair of special values, and with every
// special value of a source in every lane of a block.
func TestSpecialValues(t *testing.T) {
	const lanes = 32
	forKernels(t, func(t *testing.T, r *rand.Rand, d num.DType, s num.Scheme) {
		all := specials(d)
		n := len(all) * max(len(all), lanes)
		for _, ranks := range []int{2, 9} {
			p := newProblem(r, d, s, ranks, n)
			for j := range n {
				a, b := all[j/len(all)%len(all)], all[j%len(all)]
				if ranks > 2 {
					a, b = all[j/lanes%len(all)], ordinary(r, d)
				}
				num.Store(d, p.srcs[0][j*d.Size():], a)
				num.Store(d, p.srcs[1][j*d.Size():], b)
			}
			Options{Portable: true}.Reduce(p.want, d, s, p.srcs...)
			p.check(t, d, s, n, func(int) int { return 0 })
		}
	})
}

// ordinary is a number of moderate size.
func ordinary(r *rand.Rand, d num.DType) uint64 {
	if !d.Float() {
		return r.Uint64() & d.Mask()
	}
	return num.Encode(d, (r.Float64()-0.5)*8, num.NearestEven)
}

// TestInPlace reduces into each of the sources.
func TestInPlace(t *testing.T) {
	forKernels(t, func(t *testing.T, r *rand.Rand, d num.DType, s num.Scheme) {
		stock := make([]byte, 17*53*d.Size())
		fill(r, d, stock)
		for _, o := range implementations() {
			for _, ranks := range []int{1, 2, 3, 4, 5, 8, 9, 17} {
				const n = 53
				srcs, want := make([][]byte, ranks), make([]byte, n*d.Size())
				fresh := func() {
					for i := range srcs {
						srcs[i] = bytes.Clone(stock[i*n*d.Size():][:n*d.Size()])
					}
				}
				fresh()
				o.Reduce(want, d, s, srcs...)
				for i := range srcs {
					if testing.Short() && i != ranks/2 {
						continue
					}
					fresh()
					o.Reduce(srcs[i], d, s, srcs...)
					require.Equal(t, want, srcs[i], "%v %+v %+v into %d of %d", d, s, o, i, ranks)
				}
			}
		}
	})
}
