package nvshmem_test

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
)

// recorded is one call of the real library, as vector files write it.
type recorded struct {
	Collective, Scope, DType, Op string
	Ranks                        int
	Count                        int64
	SrcOffset                    int64       `json:"src_offset"`
	DstOffset                    int64       `json:"dst_offset"`
	InPlace                      api.InPlace `json:"in_place"`
	Input                        struct {
		Gen  string
		Seed uint64
	}
	Out []string `json:"out_fnv1a64"`
}

func (r *recorded) call(t *testing.T) api.Call {
	coll, err := api.ParseCollective(r.Collective)
	require.NoError(t, err)
	d, err := api.ParseDType(r.DType)
	require.NoError(t, err)
	scope, err := api.ParseScope(r.Scope)
	require.NoError(t, err)
	c := api.Call{
		Collective: coll, DType: d, Ranks: r.Ranks, Count: r.Count, Scope: scope, InPlace: r.InPlace,
		SrcOffset: api.Offsets{r.SrcOffset}, DstOffset: api.Offsets{r.DstOffset},
	}
	if r.Op != "" {
		c.Op, err = api.ParseOp(r.Op)
		require.NoError(t, err)
	}
	return c
}

// A sample of what NVSHMEM 3.4.5 returned on H200s, wrong in-place sums and all;
// the whole of it is replayed by the command.
func TestRecorded(t *testing.T) {
	f, err := os.Open("testdata/recorded-sample.jsonl.gz")
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 1<<20)
	require.True(t, lines.Scan(), "a header")
	n := 0
	for lines.Scan() {
		var row recorded
		require.NoError(t, json.Unmarshal(lines.Bytes(), &row))
		call := row.call(t)
		mem := memory(&call, func(r int, i int64) uint64 { return input(row.Input.Gen, call.DType, row.Input.Seed, r, i) })
		_, err := run(t, "3.4.5?nvls=off", call, mem)
		require.NoError(t, err, "%v", call)
		for r := range mem {
			want, err := strconv.ParseUint(row.Out[r], 16, 64)
			require.NoError(t, err)
			require.Equal(t, want, hashOf(mem[r][0].Dst.Payload()), "%v, rank %d", call, r)
		}
		n++
	}
	require.NoError(t, lines.Err())
	require.Greater(t, n, 450)
}

// The library's own NVLS code leaves unwritten what the model leaves unwritten.
func TestRecordedCoverageIsWhatRunsLeave(t *testing.T) {
	f, err := os.Open("testdata/nvls-coverage-3.4.5.tsv")
	require.NoError(t, err)
	defer f.Close()
	n := 0
	for in := bufio.NewScanner(f); in.Scan(); {
		var call api.Call
		var name string
		var src, dst, want int64
		if _, err := fmt.Sscan(in.Text(), &call.Ranks, &name, &call.Count, &src, &dst, &want); err != nil {
			continue // comments and the header
		}
		call.Collective, err = api.ParseCollective(name)
		require.NoError(t, err)
		if call.Collective.Reduces() {
			call.Op = api.Sum
		}
		call.DType, call.Scope, call.SrcOffset, call.DstOffset = api.BF16, api.Block, api.Offsets{src}, api.Offsets{dst}
		mem := memory(&call, func(int, int64) uint64 { return 0x3F80 })
		out, err := run(t, "3.4.5", call, mem)
		require.NoError(t, err)
		require.Equal(t, same(call.Ranks, want), unwritten(&call, out), in.Text())
		n++
	}
	require.Equal(t, 90, n)
}

// The pull request's table, executed: what no store reaches, before and after, on
// every rank, in bf16 and f16.
func TestPR131Runs(t *testing.T) {
	f, err := os.Open("testdata/pr131.tsv")
	require.NoError(t, err)
	defer f.Close()
	n := 0
	for in := bufio.NewScanner(f); in.Scan(); {
		var ranks int
		var count, off, before, after int64
		var scope string
		if _, err := fmt.Sscan(in.Text(), &ranks, &count, &off, &scope, &before, &after); err != nil {
			continue // comments and the header
		}
		for _, d := range []api.DType{api.BF16, api.F16} {
			call := shifted(allReduce(d, api.Sum, ranks, count), off)
			call.Scope, err = api.ParseScope(scope)
			require.NoError(t, err)
			mem := memory(&call, func(r int, i int64) uint64 { return uint64(r) })
			for version, want := range map[string]int64{"2dca770": before, "pr131": after} {
				out, err := run(t, version, call, mem)
				require.NoError(t, err)
				require.Equal(t, same(ranks, want), unwritten(&call, out), "%s, %v: %s", version, d, in.Text())
			}
			n++
			if testing.Short() {
				break
			}
		}
	}
	require.GreaterOrEqual(t, n, 18)
}
