package accept

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
	nvlsmodel "example.com/tandem/sim/nvls"
	"example.com/tandem/sim/ptx"
)

// split says how an element of a tandem-nvls call comes about: by the switch
// where it lies below the multiple of a row, else in the fixed tree.
func split(call *api.Call, sw reducer) func(rank int, index int64, in []uint64) uint64 {
	size := int64(call.DType.Size())
	row := int64(16)
	if call.Collective == api.AllReduce {
		row *= int64(call.Ranks)
	}
	main := call.Count * size / row * row / size
	fixed := tree(call)
	return func(rank int, index int64, in []uint64) uint64 {
		switch {
		case !call.Collective.Reduces():
			return in[0]
		case index >= main:
			return fixed(in, 0)
		case call.Collective == api.ReduceScatter:
			return sw(in, int64(rank)*call.Count+index)
		}
		return sw(in, index)
	}
}

// exact is the sum rounded once, and +0 where it is zero; min, max and integers
// as a fold.
func exact(call *api.Call, last num.Rounding) reducer {
	if call.DType.Size() != 2 {
		last = num.NearestEven
	}
	return func(in []uint64, _ int64) uint64 {
		v := num.Eval(call.DType, num.Scheme{Op: call.Op, Acc: num.AccExact, Last: last}, in)
		if call.Op == api.Sum && num.SignBit(call.DType, v) && num.IsZero(call.DType, v) && len(in) > 1 && allZero(call.DType, in) {
			return 0
		}
		return v
	}
}

func allZero(d num.DType, in []uint64) bool {
	for _, v := range in {
		if !num.IsZero(d, v) {
			return false
		}
	}
	return true
}

func TestCells(t *testing.T) {
	require.Len(t, cells(), 4+4+4+4*2+4*0+8*3)
}

// form is one of the two forms of the kernels on a virtual machine.
type form struct {
	name    string
	options func(ranks int) ptx.Options
	params  string
	ranks   []int
}

var forms = []form{
	{"emulated", func(ranks int) ptx.Options { return ptx.Options{Devices: (ranks + 2) / 3} }, "window=off", []int{2, 3, 8}},
	{"native", func(ranks int) ptx.Options { return ptx.Options{Devices: ranks, Multicast: true, Sum: nearestSum} }, "multicast=on", []int{2, 4}},
}

// nearestSum is the arithmetic of the virtual switch: the exact sum, to nearest
// even, without -0.
func nearestSum(d num.DType, in []uint64, _ uint64) uint64 {
	call := api.Call{DType: d, Op: api.Sum}
	return exact(&call, num.NearestEven)(in, 0)
}

// TestCellsOfTheSwitch holds both forms of the kernels to the arithmetic of
// api/num, for every cell of the table: all of them on two ranks, samples on
// more.
func TestCellsOfTheSwitch(t *testing.T) {
	for _, f := range forms {
		for _, ranks := range f.ranks {
			t.Run(fmt.Sprintf("%s/%d", f.name, ranks), func(t *testing.T) {
				r := newRig(t, f.options(ranks), "ptx:tandem-nvls?threads=32&ctas=1&dir=rne&"+f.params, ranks)
				defer r.close()
				step := map[int]int{2: 1, 3: 7, 4: 13, 8: 47}[ranks]
				if testing.Short() {
					step *= 6
				}
				for i, c := range cells() {
					for j, k := range []api.Collective{api.AllReduce, api.ReduceScatter} {
						if n := 2*i + j; n%step == 0 {
							r.run(cellCall(k, c, ranks, uint64(n)))
						}
					}
				}
				gather := api.Call{Collective: api.AllGather, DType: api.U8, Ranks: ranks, Count: 37, SrcOffset: offsets(ranks, 1), DstOffset: offsets(ranks, 5)}
				r.run(gather, 1, anyBits, split(&gather, nil))
			})
		}
	}
}

// cellCall is a call of a cell with some words and a rest, at offsets of all
// kinds, and what makes its result.
func cellCall(k api.Collective, c cell, ranks int, n uint64) (api.Call, uint64, int, func(int, int64, []uint64) uint64) {
	call := api.Call{Collective: k, DType: c.d, Op: c.op, Ranks: ranks, Count: int64(33+n%90) / int64(min(c.d.Size(), 4))}
	call.SrcOffset, call.DstOffset = offsets(ranks, n), offsets(ranks, n+3)
	return call, n, int(n) % styles, split(&call, exact(&call, num.NearestEven))
}

// TestDirections: sums of 16 bits under the other directions, exactly as api/num
// rounds, and f32 and f64 as ever.
func TestDirections(t *testing.T) {
	for dir, last := range map[string]num.Rounding{"rz": num.TowardZero, "away": num.AwayFromZero} {
		r := newRig(t, ptx.Options{Devices: 2}, "ptx:tandem-nvls?threads=32&window=off&ctas=1&dir="+dir, 3)
		for n, d := range []api.DType{api.BF16, api.F16, api.F32, api.F64} {
			for style := range styles {
				call := api.Call{Collective: api.AllReduce, DType: d, Op: api.Sum, Ranks: 3, Count: 100}
				r.run(call, uint64(n), style, split(&call, exact(&call, last)))
			}
		}
		r.close()
	}
}

// TestSeeded holds the emulated arithmetic, with its window and seeded
// directions, to the simulator's model of a Blackwell switch.
func TestSeeded(t *testing.T) {
	config := nvlsmodel.Config{Fabric: nvlsmodel.NVLink5, Seed: 7}
	for _, ranks := range []int{2, 5} {
		r := newRig(t, ptx.Options{Devices: 2}, "ptx:tandem-nvls?threads=32&ctas=1&seed=7", ranks)
		for n, d := range []api.DType{api.BF16, api.F16, api.F32, api.F64} {
			m, err := config.Model(d, api.Sum, true)
			require.NoError(t, err)
			sw := func(in []uint64, index int64) uint64 { return m.Word(d, api.Sum, in, index) }
			for style := range styles {
				for i, k := range []api.Collective{api.AllReduce, api.ReduceScatter} {
					call := api.Call{Collective: k, DType: d, Op: api.Sum, Ranks: ranks, Count: 200 / int64(1+i)}
					r.run(call, uint64(10+n), style, split(&call, sw))
				}
			}
		}
		r.close()
	}
}

// TestAgainstModel samples calls: any number of ranks and any count around every
// threshold, at different offsets on every rank, in place, and holds all bits to
// the simulator's tandem-nvls; sums are seeded on both sides.
func TestAgainstModel(t *testing.T) {
	calls := map[int]int{2: 14, 3: 10, 5: 6, 7: 4, 16: 2}
	every := os.Getenv("TANDEM_EXHAUSTIVE") != ""
	for _, ranks := range []int{2, 3, 5, 7, 16} {
		if testing.Short() && ranks > 3 || !every && (ranks == 3 || ranks == 16) {
			continue
		}
		if every {
			calls[ranks] *= 20
		}
		r := newRig(t, ptx.Options{Devices: 4}, "ptx:tandem-nvls?threads=32&ctas=2&stage=160000&seed=3", ranks)
		rng := rand.New(rand.NewPCG(uint64(ranks), 1))
		for n := range calls[ranks] {
			r.equals("sim:tandem-nvls?seed=3", sampled(rng, ranks, n), uint64(n), n%styles)
		}
		r.close()
	}
}

// offsets are one a rank, all different where there are few.
func offsets(ranks int, seed uint64) api.Offsets {
	out := make(api.Offsets, ranks)
	for r := range out {
		out[r] = int64((seed + 3*uint64(r)) % 8)
	}
	return out
}
