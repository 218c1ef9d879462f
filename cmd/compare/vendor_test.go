package main

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/conformance/vectors"
)

const goldenP2P = "testdata/golden/nvshmem-3.4.5-h200-p2p.jsonl.gz"

// vendorName is the library's function for a call of block scope.
func vendorName(c *api.Call) string {
	kind := "reduce"
	if c.Collective == api.ReduceScatter {
		kind = "reducescatter"
	}
	dtype := map[api.DType]string{api.BF16: "bfloat16", api.F16: "half", api.F32: "float"}[c.DType]
	return fmt.Sprintf("nvshmemx_%s_%s_%s_block", dtype, c.Op, kind)
}

// vendorRows are the recorded calls of block scope of the teams that the virtual
// GPU runs: all of them, or of every kind the smallest and a larger one.
func vendorRows(t *testing.T) map[int][]*vectors.Row {
	r, err := vectors.Open(goldenP2P)
	require.NoError(t, err)
	defer r.Close()
	all := os.Getenv("TANDEM_EXHAUSTIVE") != ""
	seen := map[string]int{}
	rows := map[int][]*vectors.Row{}
	for {
		row, err := r.Next()
		if row == nil {
			require.ErrorContains(t, err, "EOF")
			return rows
		}
		c := &row.Call
		if c.Scope != api.Block || c.Ranks > 8 || c.Count > 65537 {
			continue
		}
		large := c.Count > 3500
		key := fmt.Sprint(vendorName(c), c.Ranks, c.InPlace, large)
		if !all && (seen[key] > 0 || c.Count < 7 || large && (c.Count > 8200 || c.Op != api.Sum)) {
			continue
		}
		seen[key]++
		rows[c.Ranks] = append(rows[c.Ranks], row)
	}
}

// TestVendorP2P executes NVSHMEM 3.4.5's own device code, as PTX made of its
// bitcode, and compares the bits with those that the library gave on H200s.
func TestVendorP2P(t *testing.T) {
	vendor(t)
	rows := vendorRows(t)
	for _, pes := range []int{2, 4, 5, 6, 7, 8} {
		t.Run(fmt.Sprintf("%d PEs", pes), func(t *testing.T) {
			t.Parallel()
			var names []string
			for _, row := range rows[pes] {
				if name := vendorName(&row.Call); !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
			w := newWorld(t, pes, fromBitcode(t, names...), false)
			for _, name := range names { // a line each, so that a run that is cut short says what it had
				calls := 0
				for _, row := range rows[pes] {
					if vendorName(&row.Call) == name {
						require.Equal(t, row.Hash, w.recorded(row), "%s", row.Call)
						calls++
					}
				}
				t.Logf("%s: %d calls give the recorded bits", name, calls)
			}
			t.Logf("%d calls of %d functions give the recorded bits; %d accesses rely on more order than PTX promises", len(rows[pes]), len(names), w.races)
		})
	}
}

// places are the offsets of a call's buffers among the data.
func places(c *api.Call) (dst, src uint64) {
	size := uint64(c.DType.Size())
	src = size * uint64(c.SrcOffset.At(0))
	if c.InPlace != api.OutOfPlace {
		return src, src
	}
	return heapData/2 + size*uint64(c.DstOffset.At(0)), src
}

// recorded executes a call and gives the hash of each PE's output.
func (w *world) recorded(row *vectors.Row) (hashes []uint64) {
	out := w.outputs(row, 0xFF)
	for _, b := range out {
		hashes = append(hashes, vectors.HashAll([][]byte{b})...)
	}
	return hashes
}

// outputs executes a call over a poison and gives each PE's output.
func (w *world) outputs(row *vectors.Row, poison byte) (out [][]byte) {
	c := &row.Call
	gen, err := row.Input.Open(c)
	require.NoError(w, err)
	dst, src := places(c)
	size := int64(c.DType.Size())
	for pe := range w.contexts {
		if c.InPlace == api.OutOfPlace {
			require.NoError(w, w.streams[pe].Set8(w.heap[pe].Add(w.data+dst), poison, uint64(c.DstElems(0)*size)))
		}
		b := make([]byte, c.SrcElems(0)*size)
		require.NoError(w, gen.Fill(b, 0, pe, 0))
		w.fill(pe, w.heap[pe].Add(w.data+src), b)
	}
	require.NoError(w, w.call("run_"+vendorName(c), dst, src, c.Count))
	for pe := range w.contexts {
		out = append(out, w.read(pe, w.heap[pe].Add(w.data+dst), int(c.DstElems(0)*size)))
	}
	return out
}
