package accept

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
	"example.com/tandem/hw/cascade"
	nvlsmodel "example.com/tandem/sim/nvls"
	"example.com/tandem/sim/ptx"
)

// modelled is what a backend of the simulator leaves in the destinations.
func modelled(t *testing.T, spec string, call api.Call, seed uint64, style int) []api.Memory {
	b := model()
	s, err := api.ParseSpec(spec)
	require.NoError(t, err)
	team, err := b.Open(t.Context(), s, api.TeamConfig{Ranks: call.Ranks, Kind: call.Team})
	require.NoError(t, err)
	defer func() { require.NoError(t, team.Close(t.Context())) }()
	var mem []api.Memory
	for rank := range call.Ranks {
		mem = append(mem, images(&call, rank, seed, style))
	}
	_, err = api.Run(t.Context(), team, call, mem)
	require.NoError(t, err, "%s %v", spec, &call)
	return mem
}

// equals runs a call and holds every byte, written or not, to the simulator's. It
// gives the elements of rank 0 that still are poison, out of place.
func (r *rig) equals(spec string, call api.Call, seed uint64, style int) (unwritten int64) {
	want := modelled(r.t, spec, call, seed, style)
	mem := make([]api.Memory, call.Ranks)
	for rank := range mem {
		mem[rank] = images(&call, rank, seed, style)
	}
	_, err := api.Run(r.t.Context(), r.team, call, mem)
	require.NoError(r.t, err, "%v", &call)
	for rank := range mem {
		if bad := differ(call.DType, want[rank][0].Dst.Payload(), mem[rank][0].Dst.Payload()); bad != "" {
			require.Fail(r.t, "wrong", "%v seed %d style %d, rank %d: %s", &call, seed, style, rank, bad)
		}
		require.True(r.t, bytes.Equal(want[rank][0].Dst.Bytes, mem[rank][0].Dst.Bytes), "a guard of %v", &call)
		require.True(r.t, bytes.Equal(want[rank][0].Src.Bytes, mem[rank][0].Src.Bytes), "a source of %v", &call)
	}
	for e := range slices.Chunk(mem[0][0].Dst.Payload(), call.DType.Size()) {
		if !slices.ContainsFunc(e, func(b byte) bool { return b != poison }) {
			unwritten++
		}
	}
	return unwritten
}

var cascadeForms = []form{
	{"emulated", func(ranks int) ptx.Options { return ptx.Options{Devices: (ranks + 1) / 2} }, "dir=rz", []int{2, 4}},
	{"native", func(ranks int) ptx.Options { return ptx.Options{Devices: ranks, Multicast: true, Sum: truncatedSum} }, "multicast=on", []int{2, 4}},
}

// truncatedSum is the model of a Blackwell switch that rounds 16-bit sums toward
// zero.
func truncatedSum(d num.DType, in []uint64, _ uint64) uint64 {
	c := nvlsmodel.Config{Fabric: nvlsmodel.NVLink5, Dir: nvlsmodel.RZ}
	m, err := c.Model(d, api.Sum, true)
	if err != nil {
		panic(err) // the types are those of the kernels
	}
	return m.Word(d, api.Sum, in, 0)
}

// TestCascadeSmall: one block, every algorithm, before and after.
func TestCascadeSmall(t *testing.T) {
	for _, f := range cascadeForms {
		for i, version := range cascade.Versions()[:2] {
			for _, ranks := range f.ranks {
				t.Run(fmt.Sprintf("%s/%s/%d", f.name, version, ranks), func(t *testing.T) {
					r := newRig(t, f.options(ranks), "ptx:cascade@"+version+"?threads=32&"+f.params, ranks)
					defer r.close()
					for n, call := range smallCascades(ranks) {
						if testing.Short() && (n+i)%3 != 0 {
							continue
						}
						r.equals("sim:nvshmem@"+version+"?dir=rz", call, uint64(n), near)
					}
				})
			}
		}
	}
}

// TestRowsNative: the rows of the pull request on the multimem instructions of a
// virtual switch that truncates, before and after: as many outputs are unwritten
// as it reports, and every byte is the simulator's. Those of 1024 elements alone;
// TANDEM_EXHAUSTIVE=1 does all 22, and on 8 ranks those that take less memory
// than 3 GiB there.
func TestRowsNative(t *testing.T) {
	rows, err := Rows()
	require.NoError(t, err)
	most, ranks := map[int]int64{2: 2 * 1024, 4: 4 * 1024}, []int{2, 4}
	if os.Getenv("TANDEM_EXHAUSTIVE") != "" {
		most, ranks = map[int]int64{2: math.MaxInt64, 4: math.MaxInt64, 8: 8 * 131105}, []int{2, 4, 8}
	}
	for i, version := range cascade.Versions()[:2] {
		for _, n := range ranks {
			t.Run(fmt.Sprintf("%s/%d", version, n), func(t *testing.T) {
				r := newRig(t, ptx.Options{Devices: n, Multicast: true, Sum: truncatedSum}, "ptx:cascade@"+version+"?threads=32&multicast=on", n)
				defer r.close()
				for k, row := range rows {
					call, own := row.Call, row.Call.Ranks == n
					if call.Ranks = n; !own && n != 8 || call.Count*int64(n) > most[n] {
						continue
					}
					unwritten := r.equals("sim:nvshmem@"+version+"?dir=rz", call, uint64(k), near)
					if own {
						require.Equal(t, []int64{row.Before, row.After}[i], unwritten, "%v", &call)
					}
					t.Logf("%v: %d unwritten", &call, unwritten)
				}
			})
		}
	}
}

func smallCascades(ranks int) (out []api.Call) {
	add := func(d api.DType, op api.Op, count int64, change func(*api.Call)) {
		c := api.Call{Collective: api.AllReduce, DType: d, Op: op, Ranks: ranks, Count: count}
		if change != nil {
			change(&c)
		}
		out = append(out, c)
	}
	offset := func(src, dst int64) func(*api.Call) {
		return func(c *api.Call) { c.SrcOffset, c.DstOffset = api.Offsets{src}, api.Offsets{dst} }
	}
	block := func(c *api.Call) { c.Scope = api.Block }
	for _, n := range []int64{1, 2, 7, 16, 24, 1024, 2048, 2056, 3000, 2050} {
		add(api.BF16, api.Sum, n, nil)
	}
	add(api.BF16, api.Sum, 1024, offset(1, 1))
	add(api.BF16, api.Sum, 3072, offset(2, 2))
	add(api.BF16, api.Sum, 3072, offset(4, 6))
	add(api.BF16, api.Sum, 3072, offset(1, 2))
	add(api.F16, api.Sum, 3000, func(c *api.Call) { c.InPlace = api.InPlaceOwn })
	add(api.F16, api.Sum, 24, func(c *api.Call) { c.InPlace = api.InPlaceOwn })
	add(api.F32, api.Sum, 3001, nil)
	add(api.F32, api.Sum, 301, offset(1, 3))
	add(api.BF16, api.Max, 300, nil)
	add(api.F16, api.Min, 301, nil)
	add(api.F16, api.Prod, 100, func(c *api.Call) { c.Team = api.SubTeam })
	add(api.F64, api.Sum, 100, nil) // lines
	add(api.I32, api.Max, 101, nil)
	add(api.U8, api.Sum, 1000, block)
	add(api.I64, api.Xor, 33, nil)
	add(api.F32, api.Min, 50, nil) // lines
	add(api.BF16, api.Sum, 20001, block)
	return out
}
