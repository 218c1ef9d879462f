package nvshmem_test

import (
	"encoding/binary"
	"hash/fnv"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
	"example.com/tandem/sim"
	"example.com/tandem/sim/machine"
	"example.com/tandem/sim/nvshmem"
)

// mix is splitmix64, the generator of recorded inputs.
func mix(z uint64) uint64 {
	z += 0x9E3779B97F4A7C15
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

// input is element i of a rank's source.
func input(gen string, d api.DType, seed uint64, rank int, i int64) uint64 {
	x := mix(mix(seed*256+uint64(rank)) + uint64(i))
	v := x & d.Mask()
	if !d.Float() || gen == "bits" {
		return v
	}
	m := uint(d.MantissaBits())
	field := uint64(1)<<d.ExponentBits() - 1
	if gen == "finite" {
		if v>>m&field == field {
			v &^= 1 << m
		}
		return v
	}
	spread := x >> 32 & 7
	if d == api.F64 {
		spread = mix(x) >> 32 & 7
	}
	return v&^(field<<m) | (uint64(d.Bias()-4)+spread)<<m
}

// memory is the buffers of every rank as the suite lays them out: guards of 64
// bytes, destinations poisoned, in place the smaller image a part of the larger.
func memory(call *api.Call, value func(rank int, i int64) uint64) []api.Memory {
	const guard = 64
	all := make([]api.Memory, call.Ranks)
	for r := range all {
		size := int64(call.DType.Size())
		src, dst := call.Addrs(0, r)
		image := func(elems int64, addr uint64) api.Image {
			b := make([]byte, elems*size+2*guard)
			for i := range b {
				b[i] = 0xFF
			}
			return api.Image{Bytes: b, Addr: addr, Guard: guard}
		}
		part := func(of api.Image, elems int64, addr uint64) api.Image {
			off := int64(addr - of.Addr)
			return api.Image{Bytes: of.Bytes[off : off+elems*size+2*guard], Addr: addr, Guard: guard}
		}
		var l api.Lane
		switch sn, dn := call.SrcElems(0), call.DstElems(0); {
		case call.InPlace == api.OutOfPlace:
			l = api.Lane{Src: image(sn, src), Dst: image(dn, dst)}
		case sn >= dn:
			l.Src = image(sn, src)
			l.Dst = part(l.Src, dn, dst)
		default:
			l.Dst = image(dn, dst)
			l.Src = part(l.Dst, sn, src)
		}
		fill(call.DType, l.Src.Payload(), func(i int64) uint64 { return value(r, i) })
		all[r] = api.Memory{l}
	}
	return all
}

func fill(d api.DType, p []byte, value func(i int64) uint64) {
	for i := int64(0); int(i)*d.Size() < len(p); i++ {
		num.Store(d, p[int(i)*d.Size():], value(i))
	}
}

func normal(call *api.Call, seed uint64) []api.Memory {
	return memory(call, func(r int, i int64) uint64 { return input("normal", call.DType, seed, r, i) })
}

func elems(d api.DType, m api.Image) []uint64 {
	p := m.Payload()
	out := make([]uint64, len(p)/d.Size())
	for i := range out {
		out[i] = num.Load(d, p[i*d.Size():])
	}
	return out
}

func hashOf(p []byte) uint64 {
	h := fnv.New64a()
	h.Write(p)
	return h.Sum64()
}

// open opens a team on a spec without "sim:nvshmem@".
func open(t testing.TB, version string, call *api.Call) *sim.Team {
	t.Helper()
	spec, err := api.ParseSpec("sim:nvshmem@" + version)
	require.NoError(t, err)
	team, err := sim.New(nvshmem.Family{}).Open(t.Context(), spec, api.TeamConfig{Ranks: call.Ranks, Kind: call.Team})
	require.NoError(t, err)
	return team.(*sim.Team)
}

func run(t testing.TB, version string, call api.Call, mem []api.Memory) ([]api.Outcome, error) {
	t.Helper()
	return api.Run(t.Context(), open(t, version, &call), call, mem)
}

// unwritten counts, per rank, the destination elements outside the intervals.
func unwritten(call *api.Call, out []api.Outcome) []int64 {
	left := make([]int64, len(out))
	for r := range out {
		left[r] = call.DstElems(0)
		for _, w := range out[r].Written {
			left[r] -= (w.End - w.Start) / int64(call.DType.Size())
		}
	}
	return left
}

// program is the steps of a plan, as the backend would run them.
func program(t testing.TB, version string, plan *api.Plan) machine.Program {
	t.Helper()
	spec, err := api.ParseSpec("sim:nvshmem@" + version)
	require.NoError(t, err)
	s, err := nvshmem.Family{}.Open(spec, api.TeamConfig{Ranks: plan.Call.Ranks})
	require.NoError(t, err)
	p, err := s.Program(plan)
	require.NoError(t, err)
	return p
}

func planOf(t testing.TB, version string, call api.Call) *api.Plan {
	t.Helper()
	spec, err := api.ParseSpec("sim:nvshmem@" + version)
	require.NoError(t, err)
	p, err := nvshmem.Family{}.Plan(spec, call)
	require.NoError(t, err)
	return p
}

func allReduce(d api.DType, op api.Op, ranks int, count int64) api.Call {
	return api.Call{Collective: api.AllReduce, DType: d, Op: op, Ranks: ranks, Count: count}
}

func block(c api.Call) api.Call {
	c.Scope = api.Block
	return c
}

func inPlace(c api.Call, form api.InPlace) api.Call {
	c.InPlace = form
	return c
}

func shifted(c api.Call, off int64) api.Call {
	c.SrcOffset, c.DstOffset = api.Offsets{off}, api.Offsets{off}
	return c
}

func same(n int, v int64) []int64 {
	out := make([]int64, n)
	for i := range out {
		out[i] = v
	}
	return out
}

func u16s(p []byte) []uint16 {
	out := make([]uint16, len(p)/2)
	for i := range out {
		out[i] = binary.LittleEndian.Uint16(p[2*i:])
	}
	return out
}
