package gputest

import (
	"context"
	_ "embed"
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/tandem/api/gpu"
)

// Kernels is the PTX of the suite's kernels.
//
//go:embed kernels.ptx
var Kernels []byte

// limit is more than any wait of the suite takes.
const limit = 20 * time.Second

// rig is one device made ready: a context, a stream and the kernels. What is
// made through it is released at the end of the test, last first.
type rig struct {
	*testing.T
	d gpu.Driver
	c gpu.Context
	s gpu.Stream
	m gpu.Module
	// kernels are all found beforehand: nothing is loaded while one waits.
	kernels map[string]gpu.Function
}

func newRig(t *testing.T, d gpu.Driver, device int) *rig {
	c, err := d.Devices()[device].Open()
	require.NoError(t, err)
	r := &rig{T: t, d: d, c: c, kernels: make(map[string]gpu.Function)}
	t.Cleanup(func() { assert.NoError(t, c.Close(), "closing the context") })
	r.s = r.stream()
	r.m, err = c.LoadModule("kernels.ptx", Kernels)
	require.NoErrorf(t, err, "%+v", err)
	r.atEnd(r.m.Unload)
	for _, name := range []string{"vadd", "bump", "params", "reverse", "raise", "await", "meet", "nothing"} {
		r.kernels[name], err = r.m.Function(name)
		require.NoError(t, err)
	}
	return r
}

func (r *rig) atEnd(release func() error) {
	r.Cleanup(func() { assert.NoError(r, release()) })
}

func (r *rig) stream() gpu.Stream {
	s, err := r.c.NewStream(gpu.StreamOptions{})
	require.NoError(r, err)
	r.Cleanup(func() {
		assert.NoError(r, gpu.Wait(context.Background(), r.d.Clock(), limit, s))
		assert.NoError(r, s.Destroy())
	})
	return s
}

func (r *rig) event(timing bool) gpu.Event {
	e, err := r.c.NewEvent(gpu.EventOptions{Timing: timing})
	require.NoError(r, err)
	r.atEnd(e.Destroy)
	return e
}

func (r *rig) alloc(bytes uint64) gpu.Ptr {
	p, err := r.c.Alloc(bytes)
	require.NoError(r, err)
	r.atEnd(func() error { return r.c.Free(p) })
	return p
}

func (r *rig) host(bytes int) gpu.HostMemory {
	m, err := r.c.AllocHost(bytes)
	require.NoError(r, err)
	require.Len(r, m.Bytes, bytes)
	r.atEnd(func() error { return r.c.Free(m.Ptr) })
	return m
}

func (r *rig) function(name string) gpu.Function {
	f := r.kernels[name]
	require.NotNil(r, f, name)
	return f
}

// launch starts a kernel over n threads in blocks of 64.
func (r *rig) launch(name string, n int, args *gpu.Args) {
	require.NoError(r, r.s.Launch(gpu.Launch{
		Function: r.function(name),
		Grid:     gpu.Dim3{X: uint32((n + 63) / 64)}, Block: gpu.Dim3{X: 64}, Args: args,
	}))
}

// one is a launch of a single thread.
func (r *rig) one(name string, args *gpu.Args) gpu.Launch {
	return gpu.Launch{Function: r.function(name), Args: args}
}

func (r *rig) wait(q ...gpu.Queryer) {
	r.Helper()
	require.NoError(r, gpu.Wait(context.Background(), r.d.Clock(), limit, q...))
}

// words puts 32-bit words into new device memory.
func (r *rig) words(v []uint32) gpu.Ptr {
	h := r.host(4 * len(v))
	for i, w := range v {
		binary.LittleEndian.PutUint32(h.Bytes[4*i:], w)
	}
	p := r.alloc(uint64(4 * len(v)))
	require.NoError(r, r.s.Copy(p, h.Ptr, uint64(4*len(v))))
	r.wait(r.s)
	return p
}

// read gets n 32-bit words from device memory.
func (r *rig) read(p gpu.Ptr, n int) []uint32 {
	h := r.host(4 * n)
	require.NoError(r, r.s.Copy(h.Ptr, p, uint64(4*n)))
	r.wait(r.s)
	v := make([]uint32, n)
	for i := range v {
		v[i] = binary.LittleEndian.Uint32(h.Bytes[4*i:])
	}
	return v
}

// cycles is that time on the device's clock.
func (r *rig) cycles(d time.Duration) uint64 {
	return uint64(r.c.Device().Info().ClockKHz) * uint64(d/time.Microsecond) / 1000
}
