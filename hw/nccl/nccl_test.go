package nccl

import (
	"bytes"
	"context"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
	"example.com/tandem/api/num"
	"example.com/tandem/hw/host"
)

func ptr(p uint64) gpu.Ptr { return gpu.Ptr(p) }

func freeFrom(c gpu.Context, p uint64) error { return c.Free(ptr(p)) }

// session is a team over the fake; everything must be given back at its end.
func session(t *testing.T, f *fakeLibrary, l *Library, text string, ranks int) (*host.Team, error) {
	m := host.NewMachine(f.d)
	spec, err := api.ParseSpec(text)
	require.NoError(t, err)
	team, err := l.Open(context.Background(), m, spec, api.TeamConfig{Ranks: ranks})
	t.Cleanup(func() {
		if team != nil {
			require.NoError(t, team.Close(context.Background()))
		}
		require.NoError(t, l.Close())
		require.NoError(t, m.Close())
		require.True(t, f.d.Counts().None(), "left: %v", f.d.Counts())
		require.Empty(t, f.comms)
		require.Empty(t, f.registered)
		require.Empty(t, f.memory)
		require.Equal(t, "LL128", f.env.vars["NCCL_PROTO"], "the environment is as before")
		require.NotContains(t, f.env.vars, "NCCL_ALGO")
	})
	return team, err
}

// memory makes random sources, guards and poison for all ranks.
func memory(call *api.Call, rng *rand.Rand) []api.Memory {
	const guard = 32
	out := make([]api.Memory, call.Ranks)
	for r := range out {
		for i := range call.Lanes() {
			size := int64(call.Lane(i).DType.Size())
			src, dst := call.Addrs(i, r)
			image := func(addr uint64, n int64) api.Image {
				return api.Image{Bytes: bytes.Repeat([]byte{0xa5}, int(n)+2*guard), Addr: addr, Guard: guard}
			}
			inside := func(m api.Image, addr uint64, n int64) api.Image {
				off := int64(addr-m.Addr) + guard
				return api.Image{Bytes: m.Bytes[off : off+n : off+n], Addr: addr}
			}
			l := api.Lane{Src: image(src, call.SrcElems(i)*size), Dst: image(dst, call.DstElems(i)*size)}
			switch {
			case call.InPlace == api.OutOfPlace:
			case call.SrcElems(i) >= call.DstElems(i):
				l.Dst = inside(l.Src, dst, call.DstElems(i)*size)
			default:
				l.Src = inside(l.Dst, src, call.SrcElems(i)*size)
			}
			for k, b := 0, l.Src.Payload(); k < len(b); k++ {
				b[k] = byte(rng.Uint32()) & 0x3f
			}
			out[r] = append(out[r], l)
		}
	}
	return out
}

// expect computes destinations by the definition.
func expect(call *api.Call, mem []api.Memory) [][]byte {
	var out [][]byte
	for r := range mem {
		for i := range call.Lanes() {
			d := call.Lane(i).DType
			want := make([]byte, call.DstElems(i)*int64(d.Size()))
			for k := range call.DstElems(i) {
				var v []uint64
				for _, in := range call.Inputs(nil, i, r, k) {
					v = append(v, num.Load(d, mem[in.Rank][i].Src.Payload()[in.Index*int64(d.Size()):]))
				}
				x := v[0]
				if call.Collective.Reduces() {
					x = num.Eval(d, num.Scheme{Op: call.Op}, v)
				}
				num.Store(d, want[k*int64(d.Size()):], x)
			}
			out = append(out, want)
		}
	}
	return out
}

func check(t *testing.T, call *api.Call, mem []api.Memory, want [][]byte) {
	t.Helper()
	for r := range mem {
		for i, l := range mem[r] {
			require.Equal(t, want[r*call.Lanes()+i], l.Dst.Payload(), "%s: rank %d lane %d", call, r, i)
			for _, b := range l.Dst.Bytes[:l.Dst.Guard] {
				require.Equal(t, byte(0xa5), b, "guard")
			}
		}
	}
}

// allCalls are every collective, type, operation and form that the library has.
func allCalls(ranks int) []api.Call {
	var out []api.Call
	add := func(c api.Call) {
		c.Ranks = ranks
		if api.IsMany(c.Collective) {
			c.Many = []api.LaneShape{{Count: 5}, {Count: 0}, {DType: api.F32, Count: 3}}
		} else {
			c.Count = 7
		}
		for _, form := range []api.InPlace{api.OutOfPlace, api.InPlaceOwn} {
			c.InPlace = form
			if c.Validate() == nil {
				out = append(out, c)
			}
		}
	}
	for _, k := range collectives() {
		for d := range dtypes {
			c := api.Call{Collective: k, DType: d, SrcOffset: api.Offsets{3}, DstOffset: api.Offsets{3}}
			if k == api.Broadcast {
				c.Root = ranks - 1
			}
			if !k.Reduces() {
				add(c)
				continue
			}
			for op := range ops {
				c.Op = op
				add(c)
			}
		}
	}
	return out
}

func TestCalls(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, buffers := range []string{plain, registered, symmetric} {
		for _, ranks := range []int{1, 2, 4} {
			f, l := newFake(ranks)
			team, err := session(t, f, l, "hw:nccl?buffers="+buffers, ranks)
			require.NoError(t, err)
			calls, made := allCalls(ranks), 0
			for i, call := range calls {
				if testing.Short() && i%11 != 0 {
					continue
				}
				made++
				mem := memory(&call, rng)
				want := expect(&call, mem)
				_, err := api.Run(context.Background(), team, call, mem)
				require.NoError(t, err, "%s", &call)
				check(t, &call, mem, want)
			}
			require.Len(t, f.groups, made+1, "each call is one group")
			if buffers != plain {
				require.Len(t, f.registered, ranks, "memory is registered once, not once a call")
			}
		}
	}
}

// TestGraph captures calls and replays them on other inputs.
func TestGraph(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, buffers := range []string{plain, registered, symmetric} {
		f, l := newFake(2)
		team, err := session(t, f, l, "hw:nccl?buffers="+buffers, 2)
		require.NoError(t, err)
		var calls []api.Call
		var mem [][]api.Memory
		for i, c := range allCalls(2) {
			if i%9 == 0 {
				calls = append(calls, c)
				mem = append(mem, memory(&c, rng))
			}
		}
		before := len(f.groups)
		g, err := team.Capture(context.Background(), calls, mem)
		require.NoError(t, err)
		require.Len(t, f.groups, before+len(calls))
		for range 3 {
			var want [][][]byte
			for k := range calls {
				fresh := memory(&calls[k], rng)
				for r := range fresh {
					for i := range fresh[r] {
						copy(mem[k][r][i].Src.Payload(), fresh[r][i].Src.Payload())
					}
				}
				want = append(want, expect(&calls[k], mem[k]))
			}
			require.NoError(t, g.Replay(context.Background()))
			for k := range calls {
				check(t, &calls[k], mem[k], want[k])
			}
		}
		require.NoError(t, g.Close())
	}
}
