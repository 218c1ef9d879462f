package ptx_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
	"example.com/tandem/sim/ptx"
)

const text = `.version 8.4
.target sm_90
.address_size 64
.visible .entry store(.param .u64 p) { .reg .b64 %p; ld.param.u64 %p, [p]; st.global.b32 [%p], 7; ret; }
.visible .entry mixed(.param .u64 p) { .reg .b64 %p; .reg .b32 %r; ld.param.u64 %p, [p]; mov.u32 %r, %tid.x; st.global.b32 [%p], %r; ret; }
.visible .entry half(.param .u64 p) { .reg .b32 %r; .reg .pred %q; mov.u32 %r, %tid.x; setp.eq.u32 %q, %r, 0; @%q bra L; bar.sync 0; ret; L: bar.sync 1; ret; }
.visible .entry ring(.param .u64 p, .param .u64 q) { .reg .b64 %p, %q; .reg .b32 %r; .reg .pred %z; ld.param.u64 %p, [p]; ld.param.u64 %q, [q];
	st.relaxed.sys.global.b32 [%q], 1;
L:	ld.relaxed.sys.global.b32 %r, [%p]; setp.ne.u32 %z, %r, 2; @%z bra L; st.relaxed.sys.global.b32 [%q], 2; ret; }
.visible .entry add(.param .u64 m, .param .u64 p) { .reg .b64 %m, %p; .reg .b32 %r<4>; ld.param.u64 %m, [m]; ld.param.u64 %p, [p];
	multimem.ld_reduce.relaxed.sys.global.add.acc::f32.v4.bf16x2 {%r0, %r1, %r2, %r3}, [%m]; st.global.v4.b32 [%p], {%r0, %r1, %r2, %r3}; ret; }
`

// rig is an open context with a stream and the kernels.
type rig struct {
	*testing.T
	d     gpu.Driver
	c     []gpu.Context
	s     []gpu.Stream
	m     []gpu.Module
	first gpu.Physical
}

func open(t *testing.T, o ptx.Options) *rig {
	r := &rig{T: t, d: ptx.Open(o)}
	for _, v := range r.d.Devices() {
		c, err := v.Open()
		require.NoError(t, err)
		s, err := c.NewStream(gpu.StreamOptions{})
		require.NoError(t, err)
		m, err := c.LoadModule("k.ptx", []byte(text))
		require.NoError(t, err)
		r.c, r.s, r.m = append(r.c, c), append(r.s, s), append(r.m, m)
	}
	return r
}

func (r *rig) launch(device int, name string, threads uint32, args *gpu.Args) {
	f, err := r.m[device].Function(name)
	require.NoError(r, err)
	require.NoError(r, r.s[device].Launch(gpu.Launch{Function: f, Block: gpu.Dim3{X: threads}, Args: args, Ranks: []int{70 + device}}))
}

func (r *rig) wait() error {
	var errs []error
	for _, s := range r.s {
		errs = append(errs, gpu.Wait(r.Context(), r.d.Clock(), time.Hour, s))
	}
	return errors.Join(errs...)
}

func (r *rig) alloc(device int, n uint64) gpu.Ptr {
	p, err := r.c[device].Alloc(n)
	require.NoError(r, err)
	return p
}

// TestLost: a fault costs the context of its device, and says what it was.
func TestLost(t *testing.T) {
	for name, c := range map[string]struct {
		run  func(r *rig)
		says string
		kind api.FaultKind
	}{
		"out of bounds": {func(r *rig) { r.launch(0, "store", 1, new(gpu.Args).Ptr(r.alloc(0, 4)+4)) }, "kernel store, rank 70, device 0, block [0 0 0], thread [0 0 0] at k.ptx:4 (st.global.b32)", api.FaultAddress},
		"no access":     {func(r *rig) { r.launch(0, "store", 1, new(gpu.Args).Ptr(r.alloc(1, 4))) }, "to which device 0 has no access", api.FaultAddress},
		"a race":        {func(r *rig) { r.launch(0, "mixed", 2, new(gpu.Args).Ptr(r.alloc(0, 4))) }, "race: weak store of 4 bytes by rank 70 block 0 thread", api.FaultRace},
		"a barrier":     {func(r *rig) { r.launch(0, "half", 64, new(gpu.Args).Ptr(0)) }, "deadlock at barriers: rank 70 block 0 thread 0 and 63 more wait", api.FaultHang},
	} {
		t.Run(name, func(t *testing.T) {
			r := open(t, ptx.Options{Devices: 2})
			c.run(r)
			err := r.wait()
			require.ErrorIs(t, err, gpu.ErrContextLost)
			require.ErrorContains(t, err, c.says)
			var fault *api.Fault
			require.ErrorAs(t, err, &fault)
			require.Equal(t, []any{c.kind, 70, 0}, []any{fault.Kind, fault.Rank, fault.CTA})
			_, err = r.c[0].Alloc(1)
			require.ErrorIs(t, err, gpu.ErrContextLost)
			require.NoError(t, r.s[0].Destroy(), "what is lost can be released")
		})
	}
}

// TestDeadlock: two kernels that wait for each other are ended with the cycle.
func TestDeadlock(t *testing.T) {
	r := open(t, ptx.Options{Devices: 2})
	require.NoError(t, r.c[0].EnablePeer(r.c[1]))
	require.NoError(t, r.c[1].EnablePeer(r.c[0]))
	p, q := r.alloc(0, 4), r.alloc(1, 4)
	require.NoError(t, r.s[0].Set32(p, 0, 1))
	require.NoError(t, r.s[1].Set32(q, 0, 1))
	require.NoError(t, r.wait())
	r.launch(0, "ring", 1, new(gpu.Args).Ptr(p).Ptr(q))
	r.launch(1, "ring", 1, new(gpu.Args).Ptr(q).Ptr(p))
	err := r.wait()
	require.ErrorContains(t, err, "deadlock: rank 70 block 0")
	require.ErrorContains(t, err, "the cycle is rank 70 block 0 -> rank 71 block 0 -> rank 70 block 0")
}

// TestMulticast: an object over two devices, made as the protocol says, adds
// their memories; without being asked for there is none.
func TestMulticast(t *testing.T) {
	r := open(t, ptx.Options{Devices: 2, Multicast: true})
	o := gpu.MulticastOptions{Devices: 2, Bytes: 2 << 20}
	var m [2]gpu.Multicaster
	for i := range m {
		var err error
		m[i], err = r.c[i].Multicast()
		require.NoError(t, err)
	}
	obj, err := m[0].Create(o)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	mem, err := r.c[0].Create(o.Bytes, gpu.NotShared)
	require.NoError(t, err)
	require.ErrorIs(t, obj.Bind(ctx, 0, mem, 0, o.Bytes), gpu.ErrDeadline, "a device is missing")
	for i, d := range r.d.Devices() {
		require.NoError(t, obj.AddDevice(d))
		if i == 1 {
			mem, err = r.c[1].Create(o.Bytes, gpu.NotShared)
			require.NoError(t, err)
		}
		p, err := r.c[i].Map(mem)
		require.NoError(t, err)
		require.NoError(t, r.s[i].Set32(p, []uint32{0x3F803F80, 0x40003F80}[i], 4)) // 1 1, 2 1
		if i == 0 {
			r.first = mem
		}
	}
	require.NoError(t, r.wait())
	require.NoError(t, obj.Bind(t.Context(), 0, r.first, 0, o.Bytes))
	require.NoError(t, obj.Bind(t.Context(), 0, mem, 0, o.Bytes))
	at, err := obj.Map(t.Context(), r.c[0])
	require.NoError(t, err)
	h, err := r.c[0].AllocHost(16)
	require.NoError(t, err)
	r.launch(0, "add", 1, new(gpu.Args).Ptr(at).Ptr(h.Ptr))
	require.NoError(t, r.wait())
	require.Equal(t, uint32(0x40404000), h.Load32(0)) // 3 2

	_, err = open(t, ptx.Options{}).c[0].Multicast()
	require.ErrorIs(t, err, gpu.ErrMulticastOff)
}

// TestVirtualTime: a day passes in no time.
func TestVirtualTime(t *testing.T) {
	d := ptx.Open(ptx.Options{})
	d.Clock().Sleep(24 * time.Hour)
	require.Equal(t, 24*time.Hour, d.Clock().Now())
	require.Equal(t, "virtual GPU", fmt.Sprint(d.Name()))
}
