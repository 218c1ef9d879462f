package accept

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
	"example.com/tandem/api/num"
	"example.com/tandem/hw"
	"example.com/tandem/sim/ptx"
)

// guard is the bytes kept on either side of a payload.
const guard = 64

// poison is what destinations hold before a call.
const poison = 0xA5

// rig is a team on a virtual machine.
type rig struct {
	t       *testing.T
	driver  gpu.Driver
	backend *hw.Backend
	team    api.Team
}

// switches of the environment that turn multicast off.
var switches = []string{"NCCL_NVLS_ENABLE", "NVSHMEM_DISABLE_NVLS", "TORCH_SYMM_MEM_DISABLE_MULTICAST"}

func newRig(t *testing.T, o ptx.Options, spec string, ranks int) *rig {
	for _, name := range switches {
		t.Setenv(name, "")
	}
	r := &rig{t: t, driver: ptx.Open(o)}
	r.backend = hw.New("ptx", r.driver)
	s, err := api.ParseSpec(spec)
	require.NoError(t, err)
	r.team, err = r.backend.Open(t.Context(), s, api.TeamConfig{Ranks: ranks})
	require.NoError(t, err)
	return r
}

func (r *rig) close() {
	require.NoError(r.t, r.team.Close(r.t.Context()))
	require.NoError(r.t, r.backend.Close())
	require.NoError(r.t, r.driver.Close())
}

// images makes the memory of one rank: sources by the rank's own stream, and
// poison elsewhere.
func images(call *api.Call, rank int, seed uint64, style int) api.Memory {
	rng := rand.New(rand.NewPCG(seed, uint64(rank)))
	size := int64(call.DType.Size())
	src, dst := call.Addrs(0, rank)
	image := func(addr uint64, elems int64) api.Image {
		return api.Image{Bytes: bytes.Repeat([]byte{poison}, int(elems*size)+2*guard), Addr: addr, Guard: guard}
	}
	var l api.Lane
	srcN, dstN := call.SrcElems(0), call.DstElems(0)
	switch {
	case call.InPlace == api.OutOfPlace:
		l = api.Lane{Src: image(src, srcN), Dst: image(dst, dstN)}
	case srcN >= dstN:
		l.Src = image(src, srcN)
		l.Dst = inside(l.Src, dst, dstN*size)
	default:
		l.Dst = image(dst, dstN)
		l.Src = inside(l.Dst, src, srcN*size)
	}
	fill(call.DType, l.Src.Payload(), rng, style)
	return api.Memory{l}
}

func inside(m api.Image, addr uint64, n int64) api.Image {
	off := int64(addr-m.Addr) + int64(m.Guard)
	return api.Image{Bytes: m.Bytes[off : off+n : off+n], Addr: addr}
}

// The styles of inputs.
const (
	anyBits = iota
	near    // values near one another, so that sums round
	special
	styles
)

func fill(d num.DType, b []byte, rng *rand.Rand, style int) {
	size := d.Size()
	for i := 0; i+size <= len(b); i += size {
		v := rng.Uint64() & d.Mask()
		if d.Float() && style != anyBits {
			exp := uint64(d.Bias()+rng.IntN(9)-4) << d.MantissaBits()
			v = v&(1<<d.MantissaBits()-1) | exp | uint64(rng.IntN(2))<<(d.Bits()-1)
			if style == special && rng.IntN(3) == 0 {
				inf := uint64(1<<d.ExponentBits()-1) << d.MantissaBits()
				sign := uint64(1) << (d.Bits() - 1)
				all := []uint64{0, sign, 1, sign | 1, 1 << d.MantissaBits(), inf - 1, inf - 1, sign | inf - 1, inf, sign | inf, num.CanonicalNaN(d), inf | 1}
				v = all[rng.IntN(len(all)-rng.IntN(5))]
			}
		}
		num.Store(d, b[i:], v&d.Mask())
	}
}

// reducer is what the switch makes of the patterns of an element of that index in
// the source.
type reducer func(in []uint64, index int64) uint64

// want is the payload of a rank's destination after the call: by is how elements
// come about, index that of the first input.
func want(call *api.Call, before []api.Memory, rank int, by func(rank int, index int64, in []uint64) uint64) []byte {
	size := int64(call.DType.Size())
	out := make([]byte, call.DstElems(0)*size)
	var inputs []api.Input
	var in []uint64
	for i := range call.DstElems(0) {
		inputs, in = call.Inputs(inputs[:0], 0, rank, i), in[:0]
		for _, x := range inputs {
			in = append(in, num.Load(call.DType, before[x.Rank][0].Src.Payload()[x.Index*size:]))
		}
		num.Store(call.DType, out[i*size:], by(rank, i, in))
	}
	return out
}

// run makes a call and holds every byte of every rank to what is right.
func (r *rig) run(call api.Call, seed uint64, style int, by func(rank int, index int64, in []uint64) uint64) {
	mem, before := make([]api.Memory, call.Ranks), make([]api.Memory, call.Ranks)
	for rank := range mem {
		mem[rank] = images(&call, rank, seed, style)
		before[rank] = images(&call, rank, seed, style)
	}
	_, err := api.Run(r.t.Context(), r.team, call, mem)
	require.NoError(r.t, err, "%v", &call)
	for rank := range mem {
		image := &before[rank][0].Dst
		copy(image.Payload(), want(&call, before, rank, by))
		// In place the destination may be a part of the source's image.
		if bad := differ(call.DType, image.Payload(), mem[rank][0].Dst.Payload()); bad != "" {
			require.Fail(r.t, "wrong", "%v seed %d style %d, rank %d: %s", &call, seed, style, rank, bad)
		}
		require.True(r.t, bytes.Equal(before[rank][0].Dst.Bytes, mem[rank][0].Dst.Bytes), "%v rank %d: a guard", &call, rank)
		require.True(r.t, bytes.Equal(before[rank][0].Src.Bytes, mem[rank][0].Src.Bytes), "%v rank %d: the source", &call, rank)
	}
}

// differ describes the first element that is not as wanted.
func differ(d num.DType, want, got []byte) string {
	n, first := 0, ""
	for i := 0; i+d.Size() <= len(want); i += d.Size() {
		if w, g := num.Load(d, want[i:]), num.Load(d, got[i:]); w != g {
			if n++; first == "" {
				first = fmt.Sprintf("element %d is %#x, not %#x", i/d.Size(), g, w)
			}
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d: %s", n, len(want)/d.Size(), first)
}

// tree is the fixed tree.
func tree(call *api.Call) reducer {
	return func(in []uint64, _ int64) uint64 {
		return num.Eval(call.DType, num.Scheme{Op: call.Op, Order: num.Balanced}, in)
	}
}
