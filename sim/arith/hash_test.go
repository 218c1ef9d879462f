package arith

import (
	"flag"
	"fmt"
	"hash/fnv"
	"os"
	"strings"
	"testing"

	"example.com/tandem/api/num"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite testdata/hashes.txt")

// TestHashes compares what every scheme makes of fixed inputs with hashes of what
// it made when they were committed: machines of any kind must agree.
func TestHashes(t *testing.T) {
	const file = "testdata/hashes.txt"
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	for _, o := range implementations() {
		var got strings.Builder
		for _, d := range num.DTypes() {
			for _, op := range num.Ops() {
				if op.ValidFor(d) {
					fmt.Fprintf(&got, "%v %v %016x\n", d, op, hashAll(o, d, op))
				}
			}
		}
		if *update {
			require.NoError(t, os.WriteFile(file, []byte(got.String()), 0o644))
			continue
		}
		require.Equal(t, string(want), got.String(), "%+v", o)
	}
}

// hashAll hashes the results of all schemes.
func hashAll(o Options, d num.DType, op num.Op) uint64 {
	const n = 37
	h := fnv.New64a()
	for i, s := range schemes(d, op) {
		srcs := make([][]byte, 2+i%11)
		for rank := range srcs {
			srcs[rank] = make([]byte, n*d.Size())
			for j := range n {
				x := mix(mix(uint64(i)*256+uint64(rank)) + uint64(j))
				num.Store(d, srcs[rank][j*d.Size():], generated(d, x, j%3 == 0))
			}
		}
		dst := make([]byte, n*d.Size())
		o.Reduce(dst, d, s, srcs...)
		h.Write(dst)
	}
	return h.Sum64()
}

// generated is any pattern, or a number near 1.
func generated(d num.DType, x uint64, any bool) uint64 {
	if any || !d.Float() {
		return x & d.Mask()
	}
	near := uint64(d.Bias()) - 2 + x>>61&3
	field := uint64(1)<<d.ExponentBits() - 1
	return x&d.Mask()&^(field<<d.MantissaBits()) | near<<d.MantissaBits()
}

// mix is the finaliser of splitmix64.
func mix(z uint64) uint64 {
	z += 0x9E3779B97F4A7C15
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}
