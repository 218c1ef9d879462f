package gpubook

import (
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api/gpu"
)

// books are those of a driver with one context.
func books(o Options) (*Context, *Handles[int], *gpu.Ledger) {
	o.Name, o.Lock, o.Ledger = "GPU 7", new(sync.Mutex), new(gpu.Ledger)
	if o.Lost == nil {
		o.Lost = func() *gpu.Error { return nil }
	}
	return NewContext(o), NewHandles[int](o.Lock), o.Ledger
}

func TestEnter(t *testing.T) {
	var before error
	var lost *gpu.Error
	c, _, all := books(Options{Before: func(string) error { return before }, Lost: func() *gpu.Error { return lost }})
	leave, err := c.Enter("cuMemAlloc")
	require.NoError(t, err)
	require.False(t, c.o.Lock.TryLock(), "the lock is held")
	leave()
	before = errors.New("boom")
	_, err = c.Enter("cuMemAlloc")
	require.Equal(t, before, err)
	before, lost = nil, &gpu.Error{Call: "cuStreamQuery", Code: gpu.IllegalAddress, Detail: "why"}
	_, err = c.Enter("cuMemAlloc")
	require.Equal(t, &gpu.Error{Call: "cuMemAlloc", Code: gpu.IllegalAddress, Detail: "why"}, err, "what the context was lost for, of this call")
	leave, err = c.Release("cuMemFree")
	require.NoError(t, err, "what is lost can be released")
	leave()
	require.NoError(t, c.Close())
	_, err = c.Release("cuMemFree")
	require.ErrorIs(t, err, gpu.ErrClosed)
	require.True(t, c.o.Lock.TryLock(), "no error keeps the lock")
	require.Equal(t, gpu.Counts{}, all.Counts())
}

func TestDrop(t *testing.T) {
	c, _, _ := books(Options{})
	e := c.Ledger.Add(gpu.KindGraph, nil)
	require.ErrorIs(t, c.Close(), gpu.ErrLeaked)
	require.NoError(t, c.Drop("cuGraphDestroy", &e))
	require.Nil(t, e)
	require.ErrorIs(t, c.Drop("cuGraphDestroy", &e), gpu.ErrClosed)
	require.NoError(t, c.Close())
}

func TestAbandon(t *testing.T) {
	c, _, all := books(Options{})
	c.Ledger.Add(gpu.KindStream, nil)
	kept := false
	c.Abandon(func() { kept = !c.o.Lock.TryLock() })
	require.True(t, kept, "under the lock")
	require.NoError(t, c.Close())
	require.Equal(t, "1 quarantined context, 1 quarantined stream", all.Counts().String())
}

func TestPhysical(t *testing.T) {
	c, h, all := books(Options{})
	seven := func() (int, error) { return 7, nil }
	for _, n := range []uint64{0, 1, Granularity + 1} {
		_, err := h.Create(c, n, gpu.NotShared, seven)
		require.ErrorIs(t, err, gpu.ErrInvalid)
	}
	_, err := h.Create(c, Granularity, gpu.Share(9), seven)
	require.ErrorIs(t, err, gpu.ErrInvalid)
	full := errors.New("full")
	_, err = h.Create(c, Granularity, gpu.NotShared, func() (int, error) { return 0, full })
	require.ErrorIs(t, err, full)
	p, err := h.Create(c, 2*Granularity, gpu.ByFile|gpu.ByFabric, seven)
	require.NoError(t, err)

	fd, err := p.ExportFile()
	require.NoError(t, err)
	fabric, err := p.ExportFabric()
	require.NoError(t, err)
	byFile := func() *Physical[int] { return h.File(fd.FD()) }
	_, err = h.Import(c, Granularity, gpu.ByFile, byFile)
	require.ErrorIs(t, err, gpu.ErrInvalid, "another size")
	q, err := h.Import(c, 2*Granularity, gpu.ByFile, byFile)
	require.NoError(t, err)
	require.Equal(t, []any{7, gpu.ByFile, uint64(2 * Granularity)}, []any{q.(*Physical[int]).Memory, q.Share(), q.Bytes()})
	_, err = q.ExportFabric()
	require.ErrorIs(t, err, gpu.ErrInvalid, "a way it may not travel")

	require.NoError(t, p.Release())
	require.ErrorIs(t, p.Release(), gpu.ErrClosed)
	require.False(t, p.(*Physical[int]).LiveIn(h))
	require.True(t, q.(*Physical[int]).LiveIn(h))
	require.False(t, q.(*Physical[int]).LiveIn(NewHandles[int](c.o.Lock)), "another driver's")
	require.Equal(t, p, gpu.Physical(h.Fabric(fabric)), "the handle outlives it")
	at := fd.FD()
	require.NoError(t, fd.Close())
	require.ErrorIs(t, fd.Close(), gpu.ErrClosed)
	require.Nil(t, h.File(at))
	require.NoError(t, q.Release())
	require.NoError(t, c.Close())
	require.Equal(t, gpu.Counts{}, all.Counts())
}
