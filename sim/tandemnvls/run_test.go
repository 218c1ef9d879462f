package tandemnvls_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
	"example.com/tandem/sim"
	"example.com/tandem/sim/machine"
	"example.com/tandem/sim/nvls"
	"example.com/tandem/sim/tandemnvls"
)

const guard = 64

func specOf(params map[string]string) api.Spec {
	return api.Spec{Backend: "sim", Implementation: tandemnvls.Name, Params: params}
}

// memoryOf makes the buffers of all ranks, each at its own offset, between
// guards of 0xA5, the destinations full of 0xA5.
func memoryOf(call *api.Call, value func(rank int, i int64) uint64) []api.Memory {
	mem := make([]api.Memory, call.Ranks)
	size := int64(call.DType.Size())
	for r := range mem {
		srcN, dstN := call.SrcElems(0)*size, call.DstElems(0)*size
		srcAt, dstAt := call.Addrs(0, r)
		image := func(n int64) []byte {
			b := make([]byte, n+2*guard)
			for i := range b {
				b[i] = 0xA5
			}
			return b
		}
		var src, dst []byte
		if call.InPlace == api.OutOfPlace {
			src, dst = image(srcN), image(dstN)
		} else if srcN >= dstN {
			src = image(srcN)
			dst = src[int64(dstAt-srcAt):][:dstN+2*guard]
		} else {
			dst = image(dstN)
			src = dst[int64(srcAt-dstAt):][:srcN+2*guard]
		}
		for i := range call.SrcElems(0) {
			num.Store(call.DType, src[guard+i*size:], value(r, i))
		}
		mem[r] = api.Memory{{Src: api.Image{Bytes: src, Addr: srcAt, Guard: guard}, Dst: api.Image{Bytes: dst, Addr: dstAt, Guard: guard}}}
	}
	return mem
}

// expected is an output element by the rules: the switch below the last whole
// word of all ranks, the fixed tree above.
func expected(m nvls.Model, call *api.Call, value func(int, int64) uint64, rank int, i int64) uint64 {
	in := call.Inputs(nil, 0, rank, i)
	vals := make([]uint64, len(in))
	for k, x := range in {
		vals[k] = value(x.Rank, x.Index)
	}
	if len(vals) == 1 {
		return vals[0]
	}
	size := int64(call.DType.Size())
	unit := int64(16)
	if call.Collective == api.AllReduce {
		unit *= int64(call.Ranks)
	}
	if i*size >= call.Count*size/unit*unit {
		return num.Eval(call.DType, num.Scheme{Op: call.Op, Order: num.Balanced}, vals)
	}
	return m.Word(call.DType, call.Op, vals, in[0].Index)
}

// runCall executes a call on a fresh team and holds everything to the rules.
func runCall(t testing.TB, params map[string]string, call api.Call, opt machine.Options) {
	runLooking(t, params, call, opt, sampled)
}

// runLooking is runCall with the values only of elements that look asks for: what
// was written, and the guards, are looked at whole.
func runLooking(t testing.TB, params map[string]string, call api.Call, opt machine.Options, look func(n, i int64) bool) {
	team, err := sim.New(tandemnvls.Family{}).Open(t.Context(), specOf(params), api.TeamConfig{Ranks: call.Ranks})
	require.NoError(t, err)
	team.(*sim.Team).Schedule(opt)
	for turn := range 2 { // the second on the memory of the first
		checkCall(t, team, params, call, uint64(turn), look)
	}
	require.NoError(t, team.Close(t.Context()))
}

func checkCall(t testing.TB, team api.Team, params map[string]string, call api.Call, turn uint64, look func(n, i int64) bool) {
	value := func(rank int, i int64) uint64 {
		z := (uint64(rank)*1e9+uint64(i)+turn*7919)*0x9E3779B97F4A7C15 + 1
		z ^= z >> 31
		z *= 0xBF58476D1CE4E5B9
		z ^= z >> 29
		if !call.DType.Float() {
			return z & call.DType.Mask()
		}
		d := call.DType // both signs, eight exponents
		m := d.MantissaBits()
		return z&(1<<m-1) | (uint64(d.Bias()-4)+z>>60&7)<<m | z>>63<<(d.Bits()-1)
	}
	mem := memoryOf(&call, value)
	outcomes, err := api.Run(t.Context(), team, call, mem)
	require.NoError(t, err, "%s", call)
	config, err := nvls.Parse(map[string]string{"seed": params["seed"]})
	if params["seed"] == "" {
		config, err = nvls.Parse(nil)
	}
	require.NoError(t, err)
	var m nvls.Model
	if call.Collective.Reduces() {
		m, err = config.Model(call.DType, call.Op, true)
		require.NoError(t, err)
	}
	size := int64(call.DType.Size())
	var same []uint64 // of an all-reduce, by element
	if call.Collective == api.AllReduce {
		for i := range call.Count {
			if !look(call.Count, i) {
				same = append(same, 0)
				continue
			}
			same = append(same, expected(m, &call, value, 0, i))
		}
	}
	for r := range mem {
		dst := mem[r][0].Dst
		// In place the result of one rank is there already, and no store is owed.
		if n := dst.Len(); n > 0 && (call.Ranks > 1 || call.InPlace == api.OutOfPlace) {
			require.Equal(t, []api.Interval{{End: n}}, outcomes[r].Written, "%s rank %d", call, r)
		}
		for i := range call.DstElems(0) {
			if !look(call.Count, i%max(call.Count, 1)) {
				continue
			}
			var want uint64
			if same != nil {
				want = same[i]
			} else {
				want = expected(m, &call, value, r, i)
			}
			if got := num.Load(call.DType, dst.Payload()[i*size:]); got != want {
				require.Equal(t, want, got, "%s rank %d element %d", call, r, i)
			}
		}
		outer := mem[r][0].Src.Bytes
		if call.InPlace != api.OutOfPlace && len(dst.Bytes) > len(outer) {
			outer = dst.Bytes
		}
		for _, b := range [][]byte{outer, dst.Bytes} {
			if call.InPlace != api.OutOfPlace && len(b) != len(outer) {
				continue // its guards lie in the larger one
			}
			for k := range guard {
				require.EqualValues(t, 0xA5, b[k], "%s: guard", call)
				require.EqualValues(t, 0xA5, b[len(b)-1-k], "%s: guard", call)
			}
		}
		if call.InPlace == api.OutOfPlace {
			for i := range call.SrcElems(0) {
				require.Equal(t, value(r, i), num.Load(call.DType, mem[r][0].Src.Payload()[i*size:]), "the source is left alone")
			}
		}
	}
}

// sampled reports whether element i of a block of n is looked at: of large ones a
// part, and the end.
func sampled(n, i int64) bool { return n < 8192 || i%61 == 0 || n-i < 200 }

// sparse is a part of every range, the edges, and all of a short one.
func sparse(n, i int64) bool { return i%13 == n%13 || i < 24 || n-i < 40 }

// formsOf are the in-place forms of a collective.
func formsOf(c api.Collective) []api.InPlace {
	if c == api.ReduceScatter {
		return []api.InPlace{api.OutOfPlace, api.InPlaceOwn, api.InPlaceStart}
	}
	return []api.InPlace{api.OutOfPlace, api.InPlaceOwn}
}

func drawOffsets(t *rapid.T, ranks int, name string) api.Offsets {
	return rapid.SliceOfN(rapid.Int64Range(0, 7), ranks, ranks).Draw(t, name)
}

// table is (dtype, op) pairs that the switch can do.
func table() (out []api.Call) {
	for _, op := range api.Ops() {
		for _, d := range api.DTypes() {
			if len(nvls.Widths(d, op)) > 0 && !(d.Float() && d.Size() == 1) {
				out = append(out, api.Call{DType: d, Op: op})
			}
		}
	}
	return out
}

// TestNoHoles: zero unwritten, the right value in every element and guards
// intact, for any ranks, count, offsets (another on every rank), in place or not,
// chunked or not, under any schedule.
func TestNoHoles(t *testing.T) {
	cells := table()
	rapid.Check(t, func(rt *rapid.T) {
		call := rapid.SampledFrom(cells).Draw(rt, "cell")
		call.Collective = rapid.SampledFrom([]api.Collective{api.AllReduce, api.ReduceScatter, api.AllGather}).Draw(rt, "collective")
		if call.Collective == api.AllGather {
			call.Op = api.NoOp
		}
		call.Ranks = rapid.IntRange(1, 16).Draw(rt, "ranks")
		call.Count = rapid.OneOf(rapid.Int64Range(0, 4096), rapid.Int64Range(0, 200), rapid.Int64Range(0, 600)).Draw(rt, "count")
		call.InPlace = rapid.SampledFrom(formsOf(call.Collective)).Draw(rt, "in place")
		call.SrcOffset = drawOffsets(rt, call.Ranks, "src")
		call.DstOffset = call.SrcOffset
		if call.InPlace == api.OutOfPlace {
			call.DstOffset = drawOffsets(rt, call.Ranks, "dst")
		}
		params := map[string]string{}
		if rapid.Bool().Draw(rt, "chunked") {
			params["stage"] = "1024"
		}
		if n := rapid.IntRange(0, 5).Draw(rt, "ctas"); n > 0 {
			params["ctas"] = fmt.Sprint(n)
		}
		opt := machine.Options{Seeded: rapid.Bool().Draw(rt, "seeded"), Seed: rapid.Uint64().Draw(rt, "schedule")}
		runCall(t, params, call, opt)
	})
}

// TestNoHolesWhole is every number of ranks, 1 to 16, and every count of the three
// collectives with 16-bit sums, in every form; a part of it unless
// TANDEM_EXHAUSTIVE=1. Offsets differ between the ranks and follow from the count:
// on every rank any 64 counts in a row from a multiple of 64 have all 64 pairs of
// offsets. All counts with all offsets of all ranks are beyond reach, and not
// asked for: what goes through the switch follows from the count alone, and the
// offsets are those of the copies into team memory and out of it.
func TestNoHolesWhole(t *testing.T) {
	step := int64(12007)
	if os.Getenv("TANDEM_EXHAUSTIVE") == "1" {
		step = 1
	} else if testing.Short() {
		step = 60013
	}
	first := int64(0)
	for _, c := range []api.Collective{api.AllReduce, api.ReduceScatter, api.AllGather} {
		for ranks := 1; ranks <= 16; ranks++ {
			from := first
			first += 4097 * int64(len(formsOf(c)))
			t.Run(fmt.Sprint(c.Name(), "/", ranks), func(t *testing.T) {
				t.Parallel()
				call := api.Call{Collective: c, DType: api.BF16, Ranks: ranks}
				if c.Reduces() {
					call.Op = api.Sum
				}
				noHoles(t, call, from, step)
			})
		}
	}
}

// noHoles is a call in all forms with all counts, or every step-th of them.
func noHoles(t *testing.T, call api.Call, next, step int64) {
	for _, form := range formsOf(call.Collective) {
		for n := range int64(4097) {
			if next++; next%step != 0 {
				continue
			}
			call.Count, call.InPlace = n, form
			call.SrcOffset, call.DstOffset = nil, nil
			for r := range int64(call.Ranks) {
				call.SrcOffset = append(call.SrcOffset, (n+3*r)%8)
				call.DstOffset = append(call.DstOffset, (n/8+5*r)%8)
			}
			if form != api.OutOfPlace {
				call.DstOffset = call.SrcOffset
			}
			runLooking(t, nil, call, machine.Options{}, sparse)
		}
	}
}

// TestThresholds: at and around every count at which something changes.
func TestThresholds(t *testing.T) {
	impl := tandemnvls.Family{}.Implementations()[0]
	for _, c := range []api.Collective{api.AllReduce, api.ReduceScatter, api.AllGather} {
		call := api.Call{Collective: c, DType: api.F16, Ranks: 3, SrcOffset: api.Offsets{1, 0, 7}, DstOffset: api.Offsets{2, 5, 0}}
		if c.Reduces() {
			call.Op = api.Sum
		}
		for _, at := range impl.Thresholds(call) {
			for _, n := range []int64{at - 1, at, at + 1} {
				if testing.Short() && n > 20000 {
					continue
				}
				call.Count = n
				runCall(t, nil, call, machine.Options{})
			}
		}
	}
}
