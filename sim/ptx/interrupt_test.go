package ptx_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api/gpu"
	"example.com/tandem/sim/ptx"
)

// endless computes for ever; obedient does until it is told to stop, and says so.
const endless = `.version 8.4
.target sm_90
.address_size 64
.visible .entry endless() { .reg .b32 %r; mov.u32 %r, 0; L: add.u32 %r, %r, 1; bra L; }
.visible .entry obedient(.param .u64 p) { .reg .b64 %p; .reg .b32 %r; .reg .pred %q; ld.param.u64 %p, [p];
L:	ld.relaxed.sys.global.b32 %r, [%p]; setp.eq.u32 %q, %r, 0; @%q bra L; st.relaxed.sys.global.b32 [%p+4], 7; ret; }
`

// interrupted launches a kernel on a device and waits until a context has ended,
// which it does while the kernel runs.
func (r *rig) interrupted(device int, f gpu.Function, args *gpu.Args) {
	require.NoError(r, r.s[device].Launch(gpu.Launch{Function: f, Args: args, Ranks: []int{device}}))
	ctx, cancel := context.WithTimeout(r.Context(), 20*time.Millisecond)
	defer cancel()
	start := time.Now()
	require.ErrorIs(r, gpu.Wait(ctx, r.d.Clock(), time.Hour, r.s[device]), context.DeadlineExceeded)
	require.Less(r, time.Since(start), 10*time.Second, "to its end it would take for ever")
}

func (r *rig) function(device int, name string) gpu.Function {
	m, err := r.c[device].LoadModule("endless.ptx", []byte(endless))
	require.NoError(r, err)
	f, err := m.Function(name)
	require.NoError(r, err)
	return f
}

// TestInterrupt: a kernel that runs on when nobody waits for it is ended, and
// costs its device's contexts only.
func TestInterrupt(t *testing.T) {
	r := open(t, ptx.Options{Devices: 2})
	p, q := r.alloc(1, 4), r.alloc(0, 4)
	r.interrupted(0, r.function(0, "endless"), nil)
	r.launch(1, "store", 1, new(gpu.Args).Ptr(p))
	require.NoError(t, gpu.Wait(t.Context(), r.d.Clock(), time.Hour, r.s[1]))
	err := gpu.Wait(t.Context(), r.d.Clock(), time.Hour, r.s[0])
	require.ErrorIs(t, err, gpu.ErrContextLost)
	require.ErrorContains(t, err, "kernel endless, rank 0, device 0, block [0 0 0], thread [0 0 0] at endless.ptx:4")
	require.ErrorContains(t, err, "still running when nobody waits any more")
	require.ErrorIs(t, r.s[0].Set32(q, 0, 1), gpu.ErrContextLost)
	require.NoError(t, r.s[1].Set32(p, 0, 1))
	require.NoError(t, gpu.Wait(t.Context(), r.d.Clock(), time.Hour, r.s[1]))
}

// TestInterruptObeyed: a kernel that ends when it is told to costs nothing, and
// the stream goes on as if it had not been interrupted.
func TestInterruptObeyed(t *testing.T) {
	r := open(t, ptx.Options{})
	h, err := r.c[0].AllocHost(8)
	require.NoError(t, err)
	// Its deadlock would show after a while of virtual time, which does not pass
	// as long as another thread computes.
	s, err := r.c[0].NewStream(gpu.StreamOptions{})
	require.NoError(t, err)
	busy := r.function(0, "endless")
	require.NoError(t, s.Launch(gpu.Launch{Function: busy}))
	r.interrupted(0, r.function(0, "obedient"), new(gpu.Args).Ptr(h.Ptr))
	h.Store32(0, 1)
	require.NoError(t, gpu.Wait(t.Context(), r.d.Clock(), time.Hour, r.s[0]))
	require.Equal(t, uint32(7), h.Load32(4))
	p := r.alloc(0, 4)
	for range 100 { // far more than what an interrupted stream has left
		r.launch(0, "store", 1, new(gpu.Args).Ptr(p))
		require.NoError(t, gpu.Wait(t.Context(), r.d.Clock(), time.Hour, r.s[0]))
	}
}
