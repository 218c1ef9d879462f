package gpu

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHostMemory(t *testing.T) {
	words := make([]uint64, 2)
	m := HostMemory{Bytes: bytesOf(words)}
	m.Store32(4, 0x01020304)
	require.Equal(t, uint64(0x0102030400000000), m.Load64(0))
	m.Store64(8, 1<<40|7)
	require.Equal(t, uint32(7), m.Load32(8))
	for _, bad := range []func(){
		func() { m.Load32(2) }, func() { m.Load64(4) }, func() { m.Store32(16, 1) }, func() { m.Store64(-8, 1) }, func() { HostMemory{}.Load32(0) },
	} {
		require.Panics(t, bad)
	}
}

func bytesOf(w []uint64) []byte {
	b := make([]byte, 0, 8*len(w)+8)
	for range w {
		b = append(b, make([]byte, 8)...)
	}
	return b
}

func TestRange(t *testing.T) {
	r := Range{Base: 100, Bytes: 10}
	require.Equal(t, Ptr(110), r.End())
	for _, c := range []struct {
		p    Ptr
		n    uint64
		want bool
	}{{100, 10, true}, {100, 11, false}, {99, 1, false}, {109, 1, true}, {110, 0, true}, {110, 1, false}, {105, 1 << 63, false}, {111, 0, false}, {Ptr(1) << 63, 1, false}} {
		require.Equal(t, c.want, r.Holds(c.p, c.n), "%d bytes at %d", c.n, c.p)
	}
}

func TestDim3(t *testing.T) {
	require.Equal(t, Dim3{1, 1, 1}, Dim3{}.Dims())
	require.Equal(t, uint64(6), Dim3{X: 2, Z: 3}.Count())
	require.Equal(t, "2x1x3", Dim3{X: 2, Z: 3}.String())
	require.Equal(t, uint64(1)<<62, Dim3{X: 1 << 31, Y: 1 << 31}.Count())
}

func TestShare(t *testing.T) {
	require.Equal(t, "not shared", NotShared.String())
	require.Equal(t, "by file and fabric", (ByFile | ByFabric).String())
	require.True(t, (ByFile | ByFabric).Valid())
	require.False(t, Share(4).Valid())
}

// lockDevice is a device of which only the lock works.
type lockDevice struct {
	Device
	id  byte
	log *[]int
	err error
}

func (d lockDevice) Info() Info { return Info{UUID: UUID{d.id}} }

func (d lockDevice) Lock(context.Context) (func() error, error) {
	if d.err != nil {
		return nil, d.err
	}
	*d.log = append(*d.log, int(d.id))
	return func() error { *d.log = append(*d.log, -int(d.id)); return nil }, nil
}

func TestLockAll(t *testing.T) {
	var log []int
	a, b, c := lockDevice{id: 1, log: &log}, lockDevice{id: 2, log: &log}, lockDevice{id: 3, log: &log}
	unlock, err := LockAll(context.Background(), c, a, b, a)
	require.NoError(t, err)
	require.NoError(t, unlock())
	require.NoError(t, unlock(), "again does nothing")
	require.Equal(t, []int{1, 2, 3, -3, -2, -1}, log)

	log = nil
	b.err = errors.New("taken")
	_, err = LockAll(context.Background(), c, a, b)
	require.ErrorIs(t, err, b.err)
	require.Equal(t, []int{1, -1}, log, "what was taken is given back")
}
