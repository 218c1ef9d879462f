//go:build gpu && linux && cgo

package cuda

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api/gpu"
)

func TestRangesOfOthers(t *testing.T) {
	f := newFake(t, "")
	c := f.context(t, f.open(t, Options{}), 0)
	r, err := c.Range(0x5000010)
	require.NoError(t, err)
	require.Equal(t, gpu.Range{Base: 0x5000000, Bytes: 0x1000, Device: 1, Share: gpu.ByFile | gpu.ByFabric}, r)
	_, err = c.Range(0x4ffffff)
	require.ErrorIs(t, err, gpu.ErrInvalid)
	require.ErrorIs(t, c.Free(0x5000000), gpu.ErrInvalid, "another's to free")
}

// TestRefusedAddresses: what lies in no known allocation does not reach the
// driver, which would take it for pageable host memory.
func TestRefusedAddresses(t *testing.T) {
	f := newFake(t, "")
	c := f.context(t, f.open(t, Options{}), 0)
	s, err := c.NewStream(gpu.StreamOptions{})
	require.NoError(t, err)
	end(t, s.Destroy)
	p, err := c.Alloc(64)
	require.NoError(t, err)
	end(t, func() error { return c.Free(p) })
	local := new([64]byte)
	address := gpu.Ptr(uintptr(unsafe.Pointer(local)))
	for name, err := range map[string]error{
		"from Go memory":     s.Copy(p, address, 64),
		"to Go memory":       s.Copy(address, p, 64),
		"beyond the source":  s.Copy(0x5000000, p, 65),
		"beyond the target":  s.Copy(p, 0x5000000, 65),
		"bytes beyond":       s.Set8(p+1, 0, 64),
		"words beyond":       s.Set32(p+4, 0, 16),
		"misaligned words":   s.Set32(p+1, 0, 1),
		"words without end":  s.Set32(p, 0, 1<<62),
		"bytes without end":  s.Set8(p, 0, 1<<64-1),
		"bytes of Go memory": s.Set8(address, 0, 1),
	} {
		require.ErrorIs(t, err, gpu.ErrInvalid, name)
	}
	require.NoError(t, errors.Join(s.Copy(p, 0x5000000, 64), s.Copy(0x5000000, p, 64), s.Set8(p+1, 0, 63), s.Set32(p+4, 0, 15), s.Copy(address, address, 0)))
	runtime.KeepAlive(local)
}

func TestMapForDevices(t *testing.T) {
	f := newFake(t, "")
	d := f.open(t, Options{})
	c := f.context(t, d, 1)
	p, err := c.Create(1<<21, gpu.NotShared)
	require.NoError(t, err)
	end(t, p.Release)
	for want, others := range map[uint32][]gpu.Device{0b10: nil, 0b11: d.Devices()} {
		at, err := c.Map(p, others...)
		require.NoError(t, err)
		require.Equal(t, want, f.access)
		require.NoError(t, c.Unmap(at))
	}
}

func TestGlobals(t *testing.T) {
	f := newFake(t, "")
	d := f.open(t, Options{})
	c := f.context(t, d, 0)
	m, err := c.LoadModule("m", nil)
	require.NoError(t, err)
	for range 2 {
		p, n, err := m.Global("g")
		require.NoError(t, err)
		r, err := c.Range(p + 7)
		require.NoError(t, err)
		require.Equal(t, gpu.Range{Base: p, Bytes: n, Device: 0, Owned: true}, r)
		require.ErrorIs(t, c.Free(p), gpu.ErrInvalid)
	}
	require.NoError(t, m.Unload())
	require.Empty(t, d.(*driver).memory.list)
}

func TestBusyAndAbandon(t *testing.T) {
	f := newFake(t, "")
	d := f.open(t, Options{})
	c := f.context(t, d, 0)
	s, err := c.NewStream(gpu.StreamOptions{})
	require.NoError(t, err)
	p, err := c.Alloc(256)
	require.NoError(t, err)
	f.busy = 1
	require.ErrorIs(t, c.Free(p), gpu.ErrBusy)
	require.ErrorIs(t, s.Destroy(), gpu.ErrBusy)
	require.ErrorIs(t, gpu.Wait(context.Background(), d.Clock(), 5*time.Millisecond, s), gpu.ErrDeadline)
	other, err := d.Devices()[0].Open()
	require.NoError(t, err)
	q, err := other.Alloc(256)
	require.NoError(t, err)
	require.ErrorIs(t, other.Free(q), gpu.ErrBusy, "the work of another use of the same device is waited for, too")
	f.busy = 0
	require.NoError(t, other.Free(q))
	require.NoError(t, other.Close())
	require.NoError(t, c.Free(p))
	require.NoError(t, s.Destroy())

	// A context in which a kernel hangs for good.
	hung, err := d.Devices()[1].Open()
	require.NoError(t, err)
	s, err = hung.NewStream(gpu.StreamOptions{})
	require.NoError(t, err)
	p, err = hung.Alloc(256)
	require.NoError(t, err)
	f.busy = 1
	hung.Abandon()
	require.ErrorIs(t, hung.Free(p), gpu.ErrClosed)
	require.ErrorIs(t, s.Destroy(), gpu.ErrClosed)
	require.NoError(t, hung.Close())
	got := d.Counts()
	require.Equal(t, 1, got.Quarantined[gpu.KindContext])
	require.Equal(t, 1, got.Quarantined[gpu.KindStream])
	require.Equal(t, 1, got.Quarantined[gpu.KindMemory])
	// That much stays in the driver, and is meant to.
	require.Equal(t, [12]uint32{0: 2, 1: 1, 6: 1}, f.live)
	f.live[0], f.live[1], f.live[6] = 1, 0, 0
	f.busy = 0
}
