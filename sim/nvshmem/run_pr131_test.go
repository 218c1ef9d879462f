package nvshmem_test

import (
	"bufio"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
)

// After the pull request a call differs from the same call without NVLS only
// where the switch sums, and there every element is a neighbour of the exact sum.
func TestPR131AgainstNVLSOff(t *testing.T) {
	f, err := os.Open("testdata/pr131.tsv")
	require.NoError(t, err)
	defer f.Close()
	rows, inSwitch, outside := 0, 0, 0
	for in := bufio.NewScanner(f); in.Scan(); {
		var ranks int
		var count, off int64
		var scope string
		if _, err := fmt.Sscan(in.Text(), &ranks, &count, &off, &scope); err != nil {
			continue // comments and the header
		}
		call := shifted(allReduce(api.BF16, api.Sum, ranks, count), off)
		call.Scope, err = api.ParseScope(scope)
		require.NoError(t, err)
		with, without := normal(&call, 1), normal(&call, 1)
		src := sources(&call, with)
		_, err := run(t, "pr131", call, with)
		require.NoError(t, err)
		_, err = run(t, "pr131?nvls=off", call, without)
		require.NoError(t, err)
		a, b := judge(t, &call, src, with, without, in.Text())
		inSwitch, outside, rows = inSwitch+a, outside+b, rows+1
		if testing.Short() && rows == 4 {
			return
		}
	}
	require.Equal(t, 22, rows)
	require.Positive(t, inSwitch)
	require.Positive(t, outside)
}

// judge counts the elements summed in the switch and the others.
func judge(t *testing.T, call *api.Call, src [][]uint64, with, without []api.Memory, row string) (inSwitch, outside int) {
	t.Helper()
	in := make([]uint64, call.Ranks)
	ctas := planOf(t, "pr131", *call).Kernels[0].CTAs
	for r := range with {
		got, want := elems(call.DType, with[r][0].Dst), elems(call.DType, without[r][0].Dst)
		for _, cta := range ctas {
			multicast := cta.Words > 0
			for i := cta.Start; i < cta.Start+cta.Count; i++ {
				if !multicast {
					outside++
					if got[i] != want[i] {
						require.Equal(t, want[i], got[i], "rank %d, element %d: %s", r, i, row)
					}
					continue
				}
				if inSwitch++; i%31 != 0 {
					continue // the reference of faithful sums is slow
				}
				for k := range in {
					in[k] = src[k][i]
				}
				if !num.Faithful(call.DType, num.Sum, in, got[i]) {
					require.Failf(t, "not a neighbour", "rank %d, element %d: %s", r, i, row)
				}
			}
		}
	}
	return inSwitch, outside
}
