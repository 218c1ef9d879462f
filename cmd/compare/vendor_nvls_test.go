package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
	"example.com/tandem/conformance/inputs"
	"example.com/tandem/sim"
	"example.com/tandem/sim/nvshmem"
)

// nvlsCall is a call of block scope, and how many elements of its destination no
// store reaches, on each PE.
type nvlsCall struct {
	call      api.Call
	unwritten int64
	from      string
}

// table reads lines of fields between tabs.
func table(t *testing.T, file string) (rows [][]string) {
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		if f := strings.Split(strings.TrimSpace(line), "\t"); len(f) >= 5 && f[0] != "pes" && f[0] != "ranks" && f[0][0] != '#' {
			rows = append(rows, f)
		}
	}
	return rows
}

// nvlsCalls are the calls whose holes are known: what the library's code left on
// an H200, the block rows of pull request 131 before it, and calls in place.
func nvlsCalls(t *testing.T) (out []nvlsCall) {
	number := func(s string) int64 {
		v, err := strconv.ParseInt(s, 10, 64)
		require.NoError(t, err)
		return v
	}
	add := func(from string, c api.Collective, ranks, count, src, dst, unwritten int64, form api.InPlace) {
		call := api.Call{Collective: c, DType: api.BF16, Ranks: int(ranks), Count: count, SrcOffset: api.Offsets{src}, DstOffset: api.Offsets{dst}, InPlace: form, Scope: api.Block}
		if c.Reduces() {
			call.Op = api.Sum
		}
		out = append(out, nvlsCall{call, unwritten, from})
	}
	for _, f := range table(t, "../../sim/nvshmem/testdata/nvls-coverage-3.4.5.tsv") {
		c, err := api.ParseCollective(f[1])
		require.NoError(t, err)
		add("recorded", c, number(f[0]), number(f[2]), number(f[3]), number(f[4]), number(f[5]), api.OutOfPlace)
	}
	for _, f := range table(t, "testdata/pr131.tsv") {
		if f[3] == "block" {
			add("pull request 131", api.AllReduce, number(f[0]), number(f[1]), number(f[2]), number(f[2]), number(f[4]), api.OutOfPlace)
		}
	}
	for _, c := range [][3]int64{{2, 6, 4}, {2, 1026, 514}, {4, 12, 8}} {
		add("in place", api.AllReduce, c[0], c[1], 0, 0, c[2], api.InPlaceOwn)
	}
	return out
}

// TestVendorNVLS executes the multicast branch of NVSHMEM 3.4.5's headers, with
// multicast objects that are simulated, and looks for exactly the holes that are
// known: their number, and where the model of the library has them.
func TestVendorNVLS(t *testing.T) {
	vendor(t)
	for _, name := range []string{"NCCL_NVLS_ENABLE", "NVSHMEM_DISABLE_NVLS", "TORCH_SYMM_MEM_DISABLE_MULTICAST"} {
		t.Setenv(name, "") // the objects are simulated
	}
	text := fromHeaders(t, "testdata/kernel/nvls.cu")
	require.Contains(t, text, "multimem.ld_reduce")
	calls := nvlsCalls(t)
	require.Len(t, calls, 90+7+3)
	for _, pes := range []int{2, 4, 8} {
		t.Run(fmt.Sprintf("%d PEs", pes), func(t *testing.T) {
			w := newWorld(t, pes, text, true)
			n, left, overruns := 0, 0, 0
			for _, c := range calls {
				switch {
				case c.call.Ranks != pes:
				case c.call.Count > 1<<17 && c.unwritten == 0 && os.Getenv("TANDEM_EXHAUSTIVE") == "":
					left++ // the long way, through scratch memory
				default:
					overruns += w.holes(&c)
					n++
					if c.call.Count > 1<<17 {
						t.Logf("%s: exactly the known holes", c.call)
					}
				}
			}
			t.Logf("%d calls leave exactly the known holes; %d large ones without holes left out; %d elements of all-gathers were stored behind a block", n, left, overruns)
		})
	}
}

// What lies behind sources, and how much of what lies behind destinations is
// looked at, in elements.
const (
	behind     = 0x1234
	guardElems = 16
)

// overrun is how many elements from i on, where a block of an all-gather ends,
// the PE of that block stores in error: the loop over words of 16 bytes of its
// multicast copy runs to the bytes that there are, not to the last whole word.
// What it stores there is what lies behind its source.
func overrun(call *api.Call, i int64) int64 {
	n := call.Count
	k := i/n - 1 // the block before
	bytes := 2 * n
	if call.Collective != api.AllGather || k < 0 || bytes%16 == 0 || bytes < 16 || bytes%4 != 0 ||
		2*call.SrcOffset.At(0)%16 != 0 || 2*(call.DstOffset.At(0)+k*n)%16 != 0 {
		return 0
	}
	return max((16-bytes%16)/2-i%n, 0)
}

// holes runs a call over two poisons and holds what it left to what is known. It
// counts elements that a PE has stored behind its block.
func (w *world) holes(c *nvlsCall) (overruns int) {
	call := &c.call
	in := inputs.Input{Kind: inputs.Normal, Seed: 3}
	kernel := map[string]string{"all_reduce": "reduce_bf16", "reduce_scatter": "reducescatter_bf16", "all_gather": "fcollect_bf16"}[call.Collective.Name()]
	first, own := w.poisoned(call, in, kernel, 0xFF)
	second, _ := w.poisoned(call, in, kernel, 0x5A)
	plan, err := sim.New(nvshmem.Family{}).Plan(api.Spec{Backend: "sim", Implementation: "nvshmem", Version: "3.4.5"}, *call)
	require.NoError(w, err)
	nvls := strings.Contains(fmt.Sprint(plan.Algorithms), "shot") || call.Collective == api.ReduceScatter && plan.Contract() == api.Faithful
	for pe := range first {
		var want []int64
		for _, h := range plan.Holes(0, pe) {
			for i := range h.Count {
				want = append(want, h.Start+i)
			}
		}
		slices.Sort(want)
		var got []int64
		for i := range call.DstElems(0) {
			a, b := binary.LittleEndian.Uint16(first[pe][2*i:]), binary.LittleEndian.Uint16(second[pe][2*i:])
			sum := w.exact(call, own, pe, i)
			switch {
			case call.InPlace == api.OutOfPlace && a == 0xFFFF && b == 0x5A5A,
				call.InPlace != api.OutOfPlace && a == binary.LittleEndian.Uint16(own[pe][2*i:]) && a != sum:
				got = append(got, i)
			case a == sum:
			case overrun(call, i) > 0 && a == behind:
				overruns++
			case nvls || !call.Collective.Reduces():
				require.Equal(w, sum, a, "%s: PE %d, element %d", call, pe, i)
			}
		}
		for i := range int64(guardElems) {
			b := binary.LittleEndian.Uint16(first[pe][2*(call.DstElems(0)+i):])
			if i < overrun(call, call.DstElems(0)) {
				require.Equal(w, uint16(behind), b, "%s: PE %d, %d behind the destination", call, pe, i)
				overruns++
			} else if call.InPlace == api.OutOfPlace {
				require.Equal(w, uint16(0xFFFF), b, "%s: PE %d, %d behind the destination", call, pe, i)
			}
		}
		require.Len(w, got, int(c.unwritten), "%s: PE %d (%s)", call, pe, c.from)
		if call.InPlace == api.OutOfPlace {
			require.Equal(w, want, got, "%s: PE %d", call, pe)
		}
	}
	return overruns
}

// exact is the exact sum of an output, rounded once: what the switch gives here.
func (w *world) exact(call *api.Call, sources [][]byte, pe int, i int64) uint16 {
	var x num.Exact
	in := call.Inputs(nil, 0, pe, i)
	for _, e := range in {
		v := binary.LittleEndian.Uint16(sources[e.Rank][2*e.Index:])
		if len(in) == 1 {
			return v
		}
		x.Add(num.BF16, uint64(v))
	}
	return uint16(x.Round(num.BF16, num.NearestEven))
}

// poisoned executes a call over a poison and gives outputs and sources.
func (w *world) poisoned(call *api.Call, in inputs.Input, kernel string, poison byte) (out, sources [][]byte) {
	gen, err := in.Open(call)
	require.NoError(w, err)
	dst, src := places(call)
	for pe := range w.contexts {
		if call.InPlace == api.OutOfPlace {
			require.NoError(w, w.streams[pe].Set8(w.heap[pe].Add(w.data+dst), poison, uint64(2*(call.DstElems(0)+guardElems))))
		}
		b := make([]byte, 2*call.SrcElems(0))
		require.NoError(w, gen.Fill(b, 0, pe, 0))
		full := b
		for range guardElems {
			full = binary.LittleEndian.AppendUint16(full, behind)
		}
		w.fill(pe, w.heap[pe].Add(w.data+src), full)
		sources = append(sources, b)
	}
	require.NoError(w, w.call(kernel, dst, src, call.Count))
	for pe := range w.contexts {
		out = append(out, w.read(pe, w.heap[pe].Add(w.data+dst), int(2*(call.DstElems(0)+guardElems))))
	}
	return out, sources
}
