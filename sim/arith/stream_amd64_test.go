//go:build amd64 && !noasm

package arith

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"example.com/tandem/api/num"
)

// aligned is a range of n bytes at a multiple of 32, with guard words around it.
func aligned(n int) (g guarded, p []byte) {
	for at := 0; at < vector; at++ {
		if p = g.place(n, at); address(p)%vector == 0 {
			break
		}
	}
	return g, p
}

// TestStreamKernels compares the kernels that copy meanwhile with those that do
// not, at every number of units up to 300 elements and with sources anywhere.
func TestStreamKernels(t *testing.T) {
	if !hasAssembly {
		t.Skip("the processor has no AVX2")
	}
	r := rand.New(rand.NewPCG(21, 22))
	for key, k := range floatKernels {
		if k.stream8 == nil {
			continue
		}
		for n := 0; n <= 300; n += unit {
			srcs := make([][]byte, 8)
			rooms := make([]guarded, 8)
			for i := range srcs {
				srcs[i] = rooms[i].place(n*key.d.Size(), r.IntN(64))
				fill(r, key.d, srcs[i])
			}
			want := make([]byte, n*key.acc.Size())
			k.tree8(want, srcs)
			var dst, src guarded
			got, from := dst.place(len(want), r.IntN(64)), src.place(8*n*key.d.Size(), r.IntN(64))
			fill(r, num.U8, from)
			room, to := aligned(len(from))
			k.stream8(got, srcs, to, from)
			if !bytes.Equal(want, got) || !dst.intact() {
				t.Fatalf("%v: sums of %d elements", key, n)
			}
			if !bytes.Equal(from, to) || !room.intact() || !src.intact() {
				t.Fatalf("%v: copy beside %d elements", key, n)
			}
		}
	}
}

// TestStream copies every length up to 300 bytes from and to every place.
func TestStream(t *testing.T) {
	r := rand.New(rand.NewPCG(23, 24))
	for n := range 301 {
		for at := range 64 {
			var a, b guarded
			from, to := a.place(n, r.IntN(64)), b.place(n, at)
			fill(r, num.U8, from)
			streamTo(to, from)
			if !bytes.Equal(from, to) || !a.intact() || !b.intact() {
				t.Fatalf("%d bytes to %d", n, at)
			}
		}
	}
	settle()
}
