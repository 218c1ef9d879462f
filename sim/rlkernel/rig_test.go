package rlkernel

import (
	"bytes"
	"context"
	"encoding/binary"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
	"example.com/tandem/sim"
	"example.com/tandem/sim/machine"
)

const (
	guard  = 64
	poison = 0xA5
)

// tb is what a *testing.T and a *rapid.T have in common.
type tb interface {
	require.TestingT
	Helper()
	Fatalf(format string, args ...any)
}

// both are the versions as specs.
var both = []string{Before, After}

func openTeam(t tb, version string, ranks int) *sim.Team {
	t.Helper()
	team, err := sim.New(Family{}).Open(context.Background(), spec(t, version), api.TeamConfig{Ranks: ranks})
	require.NoError(t, err)
	return team.(*sim.Team)
}

// rig is the buffers of a call, with guards, and what they held.
type rig struct {
	call    api.Call
	mem     []api.Memory
	sources [][][]byte // by rank and lane: a copy of the payload
}

// newRig makes poisoned buffers where the call has them, sources filled by
// fill, which is given the payload of one rank and lane.
func newRig(call api.Call, fill func(rank, lane int, p []byte)) *rig {
	r := &rig{call: call, mem: make([]api.Memory, call.Ranks), sources: make([][][]byte, call.Ranks)}
	for rank := range r.mem {
		for lane := range call.Lanes() {
			size := int64(call.Lane(lane).DType.Size())
			src, dst := call.Addrs(lane, rank)
			l := api.Lane{Src: image(call.SrcElems(lane)*size, src), Dst: image(call.DstElems(lane)*size, dst)}
			if call.InPlace != api.OutOfPlace {
				share(&l)
			}
			fill(rank, lane, l.Src.Payload())
			r.mem[rank] = append(r.mem[rank], l)
			r.sources[rank] = append(r.sources[rank], bytes.Clone(l.Src.Payload()))
		}
	}
	return r
}

func image(n int64, addr uint64) api.Image {
	return api.Image{Bytes: bytes.Repeat([]byte{poison}, int(n)+2*guard), Addr: addr, Guard: guard}
}

// share makes the smaller image a part of the larger.
func share(l *api.Lane) {
	small, large := &l.Dst, &l.Src
	if l.Src.Len() < l.Dst.Len() {
		small, large = large, small
	}
	at := int64(small.Addr - large.Addr)
	small.Bytes = large.Bytes[at : at+small.Len()+2*guard]
}

// run executes the call on a team and returns what each rank returned.
func (r *rig) run(t tb, team api.Team) ([]api.Outcome, []error) {
	t.Helper()
	calls := make([]api.Call, r.call.Ranks)
	for i := range calls {
		calls[i] = r.call
	}
	return r.runAs(t, team, calls)
}

func (r *rig) runAs(t tb, team api.Team, calls []api.Call) ([]api.Outcome, []error) {
	t.Helper()
	members := team.Members()
	outs, errs := make([]api.Outcome, len(members)), make([]error, len(members))
	waits := make([]api.Pending, len(members))
	for i, m := range members {
		p, err := m.Start(calls[i], r.mem[i])
		require.NoError(t, err)
		waits[i] = p
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for i := range waits {
		outs[i], errs[i] = waits[i].Wait(ctx)
	}
	return outs, errs
}

// intact checks guards, and sources where they are apart.
func (r *rig) intact(t tb) {
	t.Helper()
	for rank, mem := range r.mem {
		for lane, l := range mem {
			imgs := []api.Image{l.Src, l.Dst}
			if r.call.InPlace != api.OutOfPlace {
				imgs = []api.Image{l.Src}
				if l.Dst.Len() > l.Src.Len() {
					imgs[0] = l.Dst
				}
			} else {
				require.True(t, bytes.Equal(r.sources[rank][lane], l.Src.Payload()), "rank %d lane %d: the source changed", rank, lane)
			}
			for _, img := range imgs {
				want := bytes.Repeat([]byte{poison}, guard)
				require.Equal(t, want, img.Bytes[:guard], "rank %d lane %d: guard before", rank, lane)
				require.Equal(t, want, img.Bytes[len(img.Bytes)-guard:], "rank %d lane %d: guard after", rank, lane)
			}
		}
	}
}

// right checks every output against the definition, reductions by num.Eval of
// the tree. every is the stride of the elements looked at.
func (r *rig) right(t tb, every int64) {
	t.Helper()
	r.intact(t)
	values := make([]uint64, 0, r.call.Ranks)
	var inputs []api.Input
	for rank, mem := range r.mem {
		for lane, l := range mem {
			d := r.call.Lane(lane).DType
			size := int64(d.Size())
			for i := int64(0); i < r.call.DstElems(lane); i += every {
				inputs, values = r.call.Inputs(inputs[:0], lane, rank, i), values[:0]
				for _, in := range inputs {
					values = append(values, num.Load(d, r.sources[in.Rank][lane][in.Index*size:]))
				}
				want := values[0]
				if r.call.Collective.Reduces() {
					want = num.Eval(d, num.Scheme{Op: num.Sum, Order: num.Balanced}, values)
				}
				if got := num.Load(d, l.Dst.Payload()[i*size:]); got != want {
					t.Fatalf("%s: rank %d, lane %d, element %d: %#x, want %#x", r.call, rank, lane, i, got, want)
				}
			}
		}
	}
}

// whole checks that stores reached all of every destination.
func (r *rig) whole(t tb, outs []api.Outcome) {
	t.Helper()
	for rank, o := range outs {
		var want []api.Interval
		for lane := range r.call.Lanes() {
			if n := r.call.DstElems(lane) * int64(r.call.Lane(lane).DType.Size()); n > 0 {
				want = append(want, api.Interval{Lane: lane, End: n})
			}
		}
		if len(want) == 0 {
			require.Empty(t, o.Written, "rank %d", rank)
			continue
		}
		require.Equal(t, want, o.Written, "rank %d", rank)
	}
}

// mix is the splitmix finaliser.
func mix(z uint64) uint64 {
	z += 0x9E3779B97F4A7C15
	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9
	z = (z ^ (z >> 27)) * 0x94D049BB133111EB
	return z ^ (z >> 31)
}

// anyBits fills with arbitrary patterns, different for every rank and lane.
func anyBits(seed uint64) func(rank, lane int, p []byte) {
	return func(rank, lane int, p []byte) {
		state := mix(seed<<16 ^ uint64(rank)<<8 ^ uint64(lane))
		for ; len(p) >= 8; p = p[8:] {
			state = state*0x5851F42D4C957F2D + 0x14057B7EF767814F
			binary.LittleEndian.PutUint64(p, state^state>>29)
		}
		for i := range p {
			p[i] = byte(state >> (8 * i))
		}
	}
}

// constants fills every element of a rank with its value.
func constants(d api.DType, values ...uint64) func(rank, lane int, p []byte) {
	return func(rank, _ int, p []byte) {
		for i := 0; i+d.Size() <= len(p); i += d.Size() {
			num.Store(d, p[i:], values[rank%len(values)])
		}
	}
}

func reduceCall(c api.Collective, d api.DType, ranks int, count int64) api.Call {
	return api.Call{Collective: c, DType: d, Op: api.Sum, Ranks: ranks, Count: count}
}

// good runs a call on a fresh team and requires success and the right bytes.
func good(t tb, version string, call api.Call, fill func(rank, lane int, p []byte), every int64) *rig {
	t.Helper()
	r := newRig(call, fill)
	outs, errs := r.run(t, openTeam(t, version, call.Ranks))
	for rank, err := range errs {
		require.NoError(t, err, "%s %s: rank %d", version, call, rank)
	}
	r.right(t, every)
	r.whole(t, outs)
	return r
}

func seeded(seed uint64) machine.Options { return machine.Options{Seeded: true, Seed: seed} }
