package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
	"example.com/tandem/conformance/inputs"
	"example.com/tandem/conformance/matrix"
	"example.com/tandem/hw"
	"example.com/tandem/sim/ptx"
)

// ptxAll says that every case of the matrix is to run, which takes minutes; CI
// has a step of its own for it.
func ptxAll() bool { return os.Getenv("TANDEM_PTX") != "" }

// smallGPU holds two blocks of 256 threads: enough for blocks to meet, and a
// virtual machine executes each of their threads.
func smallGPU(i *gpu.Info) { i.SMs, i.MaxThreadsPerSM = 1, 512 }

// virtual is the backend ptx with a small GPU for every rank, or for every
// other one, whose streams reuse buffers as soon as a kernel has ended.
func virtual(t *testing.T, gpus int, seed uint64) *hw.Backend {
	d := ptx.Open(ptx.Options{Devices: gpus, Seed: seed, Info: smallGPU})
	h := hw.New("ptx", reusing{d})
	t.Cleanup(func() {
		require.NoError(t, h.Close())
		require.NoError(t, d.Close())
	})
	return h
}

// ptxVariants are the paths that a call is forced onto, in turn.
var ptxVariants = []string{"", "?path=direct", "?path=two_shot", "?buffers=staged", "?ctas=1"}

// kind is what a kernel may do differently in every instruction.
type kind struct {
	collective api.Collective
	dtype      api.DType
	op         api.Op
}

// kinds are all collectives with all their types and operations.
func kinds() (out []kind) {
	for _, c := range api.Collectives() {
		ops := []api.Op{api.NoOp}
		if c.Reduces() {
			ops = api.Ops()
		}
		for _, d := range api.DTypes() {
			for _, o := range ops {
				if o == api.NoOp || o.ValidFor(d) {
					out = append(out, kind{c, d, o})
				}
			}
		}
	}
	return out
}

// caseOf makes a case of a kind, the rest of it drawn.
func caseOf(k kind, ranks int, seed uint64) []matrix.Case {
	rng := rand.New(rand.NewPCG(seed, 6))
	pick := func(n int) int { return rng.IntN(n) }
	offsets := []api.Offsets{{0}, {1}, {8}, {0, 1, 3}, {5, 2}}
	form := []api.InPlace{api.OutOfPlace, api.OutOfPlace, api.InPlaceOwn, api.InPlaceStart}[pick(4)]
	if _, ok := k.collective.InPlace(api.Geometry{Ranks: 2, Count: 8}, 0, form); !ok {
		form = api.OutOfPlace
	}
	src := offsets[pick(len(offsets))]
	dst := src
	if form == api.OutOfPlace {
		dst = offsets[pick(len(offsets))]
	}
	kinds := []inputs.Input{{Kind: inputs.Bits}, matrix.Special}
	if k.dtype.Float() {
		kinds = append(kinds, inputs.Input{}, inputs.Input{Kind: inputs.Finite})
	}
	mode := ""
	if k.collective.Reduces() && k.dtype.Float() && k.dtype != api.F64 && pick(3) == 0 {
		mode = "f32"
	}
	counts := []int64{1, 2, 3, 7, 8, 15, 33, 100, 257}
	a := matrix.Axes{
		Collectives: []api.Collective{k.collective}, DTypes: []api.DType{k.dtype}, Ops: []api.Op{k.op}, Ranks: []int{ranks},
		Counts: []int64{counts[pick(len(counts))]}, SrcOffsets: []api.Offsets{src}, DstOffsets: []api.Offsets{dst}, InPlace: []api.InPlace{form},
		Modes: []string{mode}, Roots: []int{-pick(2)}, Inputs: []inputs.Input{kinds[pick(len(kinds))]}, Seeds: []uint64{seed}, Graph: []bool{pick(2) == 0},
	}
	return a.Expand(true)
}

// TestPTXMatrix executes the committed kernels of tandem through hw's own host
// code and compares every bit with the simulator's: every type and operation of
// every collective on 1, 2, 3, 4 and 8 ranks, in turn on every path, eager and
// as graphs, in place and apart, at all kinds of offsets and inputs. Without
// TANDEM_PTX=1 a sample.
func TestPTXMatrix(t *testing.T) {
	withoutRaceDetector(t)
	start := time.Now()
	all := kinds()
	stride, rankss := 23, []int{1, 2, 3}
	if ptxAll() {
		stride, rankss = 1, []int{1, 2, 3, 4, 8}
	} else if testing.Short() {
		stride, rankss = 60, []int{2}
	}
	model, _ := sidesOf(t, "sim:tandem", "sim:tandem")
	var mu sync.Mutex
	total := matrix.Result{}
	t.Run("all", func(t *testing.T) {
		for _, ranks := range rankss {
			lists := make([][]matrix.Case, len(ptxVariants))
			for i := ranks % stride; i < len(all); i += stride {
				v := i / stride % len(lists)
				lists[v] = append(lists[v], caseOf(all[i], ranks, uint64(1000*ranks+i))...)
			}
			for v, cases := range lists {
				t.Run(fmt.Sprintf("%d ranks, %q", ranks, ptxVariants[v]), func(t *testing.T) {
					t.Parallel()
					gpus := ranks
					if v%2 == 1 {
						gpus = (ranks + 1) / 2 // ranks share them
					}
					res := matrix.Test(t.Context(), t, side(t, virtual(t, gpus, uint64(v)), "ptx:tandem"+ptxVariants[v]), model, cases, matrix.Options{Workers: 1, MaxShrunk: 3})
					mu.Lock()
					defer mu.Unlock()
					total.Calls, total.Agree, total.Diverge, total.Refused = total.Calls+res.Calls, total.Agree+res.Agree, total.Diverge+res.Diverge, total.Refused+res.Refused
				})
			}
		}
	})
	t.Logf("%s in %v", total.Line(), time.Since(start).Round(time.Second/10))
}

// TestPTXThresholds runs calls around the counts at which the plan changes.
func TestPTXThresholds(t *testing.T) {
	if !ptxAll() {
		t.Skip("calls of many chunks take a minute; with TANDEM_PTX=1 they run")
	}
	model, _ := sidesOf(t, "sim:tandem", "sim:tandem")
	for _, params := range []string{"", "?buffers=staged&stage=262144"} {
		t.Run(params, func(t *testing.T) {
			t.Parallel()
			device := side(t, virtual(t, 2, 5), "ptx:tandem"+params)
			axes := matrix.For(device, model, matrix.Axes{Ranks: []int{2, 3}, MaxBytes: 3 << 20, DTypes: []api.DType{api.BF16, api.F32, api.U8}, Ops: nil,
				Graph: []bool{false}, Modes: []string{""}, SrcOffsets: []api.Offsets{{0}, {1, 8}}, DstOffsets: []api.Offsets{{0}, {3}}, Around: []int64{1}})
			cases, large := matrix.ExpandAll(axes, false)
			res := matrix.Test(t.Context(), t, device, model, thinned(cases, 60), matrix.Options{Workers: 1, MaxShrunk: 3})
			t.Logf("%d of %d cases, %d left out for their size: %s", res.Calls, len(cases), large, res.Line())
		})
	}
}

// thinned is an even choice of at most n.
func thinned[T any](list []T, n int) []T {
	if len(list) <= n {
		return list
	}
	out := make([]T, 0, n)
	for i := range n {
		out = append(out, list[i*len(list)/n])
	}
	return out
}

// TestPTXManyRanks is a sample on 9 ranks, and with TANDEM_PTX=1 on 16 and 72,
// the largest team there is, a GPU for each.
func TestPTXManyRanks(t *testing.T) {
	sizes := []int{9}
	switch {
	case ptxAll():
		sizes = []int{16, 72}
	case testing.Short():
		t.Skip("to open a team of nine takes seconds; the run without -short has it")
	}
	model, _ := sidesOf(t, "sim:tandem", "sim:tandem")
	for _, ranks := range sizes {
		t.Run(fmt.Sprint(ranks), func(t *testing.T) {
			t.Parallel()
			start := time.Now()
			var cases []matrix.Case
			for i, k := range []kind{
				{api.AllReduce, api.BF16, api.Sum}, {api.ReduceScatter, api.F32, api.Max}, {api.AllGather, api.U8, api.NoOp},
				{api.Broadcast, api.F16, api.NoOp}, {api.AllToAll, api.I32, api.NoOp}, {api.ReduceScatterMany, api.BF16, api.Avg},
			} {
				if ranks == 72 && i > 2 || !ptxAll() && i%2 == 0 {
					continue
				}
				cases = append(cases, caseOf(k, ranks, uint64(ranks+i))...)
			}
			res := matrix.Test(t.Context(), t, side(t, virtual(t, ranks, 9), "ptx:tandem?ctas=1&stage=262144"), model, cases, matrix.Options{Workers: 1, MaxShrunk: 1})
			t.Logf("%d calls in %v", res.Calls, time.Since(start).Round(time.Second/10))
		})
	}
}
