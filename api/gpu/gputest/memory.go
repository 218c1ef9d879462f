package gputest

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api/gpu"
)

func testMemory(t *testing.T, d gpu.Driver) {
	r := newRig(t, d, 0)
	const n = 1000
	a, b := r.alloc(n), r.alloc(n)
	require.Zero(t, uint64(a)%256)
	h := r.host(n)
	require.Equal(t, make([]byte, n), h.Bytes, "pinned memory is cleared")
	// Bytes, then words and odd places over them, and around by two copies.
	require.NoError(t, r.s.Set8(a, 0xa5, n))
	require.NoError(t, r.s.Set32(a.Add(8), 0x01020304, 3))
	require.NoError(t, r.s.Set8(a.Add(33), 7, 1))
	require.NoError(t, r.s.Set8(a.Add(33), 9, 0))
	require.NoError(t, r.s.Copy(b, a, n))
	require.NoError(t, r.s.Copy(h.Ptr.Add(1), b.Add(1), n-2))
	r.wait(r.s)
	want := make([]byte, n)
	for i := range want {
		want[i] = 0xa5
	}
	copy(want[8:], []byte{4, 3, 2, 1, 4, 3, 2, 1, 4, 3, 2, 1})
	want[33], want[0], want[n-1] = 7, 0, 0
	require.Equal(t, want, h.Bytes)

	got, err := r.c.Range(a.Add(n - 1))
	require.NoError(t, err)
	require.Equal(t, gpu.Range{Base: a, Bytes: n, Device: 0, Owned: true}, got)
	got, err = r.c.Range(h.Ptr)
	require.NoError(t, err)
	require.Equal(t, gpu.Range{Base: h.Ptr, Bytes: n, Device: -1, Owned: true}, got)
}

func testRefusedMemory(t *testing.T, d gpu.Driver) {
	r := newRig(t, d, 0)
	_, err := r.c.Alloc(0)
	require.ErrorIs(t, err, gpu.ErrInvalid)
	_, err = r.c.AllocHost(-1)
	require.ErrorIs(t, err, gpu.ErrInvalid)
	_, total, err := r.c.MemInfo()
	require.NoError(t, err)
	_, err = r.c.Alloc(2 * total)
	require.ErrorIs(t, err, gpu.ErrOutOfMemory)

	p, live := r.alloc(64), r.alloc(64)
	freed, err := r.c.Alloc(1 << 20)
	require.NoError(t, err)
	require.NoError(t, r.c.Free(freed))
	require.ErrorIs(t, r.c.Free(freed), gpu.ErrInvalid, "freed twice")
	require.ErrorIs(t, r.c.Free(p.Add(1)), gpu.ErrInvalid, "not the beginning")
	_, err = r.c.Range(freed)
	require.ErrorIs(t, err, gpu.ErrInvalid)
	_, err = r.c.Range(0)
	require.ErrorIs(t, err, gpu.ErrInvalid)
	for name, err := range map[string]error{
		"from freed memory":       r.s.Copy(p, freed, 64),
		"to freed memory":         r.s.Copy(freed, p, 64),
		"to address 0":            r.s.Copy(0, p, 64),
		"beyond the source":       r.s.Copy(live, p, 65),
		"beyond the end":          r.s.Set8(p, 0, 65),
		"more than there is":      r.s.Set8(p, 0, 1<<63),
		"words beyond the end":    r.s.Set32(p, 0, 17),
		"more words than 64 bits": r.s.Set32(p, 0, 1<<62),
		"misaligned words":        r.s.Set32(p+2, 0, 1),
	} {
		require.ErrorIs(t, err, gpu.ErrInvalid, name)
	}
	// None of this has harmed the context.
	require.NoError(t, r.s.Set32(p, 0, 16))
	r.wait(r.s)

	// Memory of one context is not another's to free; quarantined memory is
	// nobody's, and does not count as a leak.
	other, err := d.Devices()[0].Open()
	require.NoError(t, err)
	require.ErrorIs(t, other.Free(p), gpu.ErrInvalid, "another context's")
	require.ErrorIs(t, other.Quarantine(p), gpu.ErrInvalid)
	require.NoError(t, other.Close())
	kept, err := r.c.Alloc(64)
	require.NoError(t, err)
	before := d.Counts().Quarantined[gpu.KindMemory]
	require.NoError(t, r.c.Quarantine(kept))
	require.Equal(t, before+1, d.Counts().Quarantined[gpu.KindMemory])
	require.ErrorIs(t, r.c.Free(kept), gpu.ErrInvalid)
	require.ErrorIs(t, r.c.Quarantine(kept), gpu.ErrInvalid)
	require.NoError(t, r.s.Set8(kept, 1, 64), "late stores still find it")
	r.wait(r.s)
}

func testVirtualMemory(t *testing.T, d gpu.Driver) {
	r := newRig(t, d, 0)
	if !r.c.Device().Info().VirtualMemory {
		t.Skip("the device has no virtual memory management")
	}
	n, err := r.c.Granularity(gpu.NotShared)
	require.NoError(t, err)
	require.Positive(t, n)
	_, err = r.c.Granularity(1 << 7)
	require.ErrorIs(t, err, gpu.ErrInvalid)
	p, err := r.c.Create(n, gpu.NotShared)
	require.NoError(t, err)
	require.Equal(t, n, p.Bytes())
	_, err = p.ExportFile()
	require.ErrorIs(t, err, gpu.ErrInvalid, "not made to be shared")

	// Two addresses of the same memory.
	a, err := r.c.Map(p)
	require.NoError(t, err)
	b, err := r.c.Map(p, d.Devices()[0])
	require.NoError(t, err)
	require.NotEqual(t, a, b)
	require.NoError(t, p.Release())
	require.ErrorIs(t, p.Release(), gpu.ErrClosed)
	require.NoError(t, r.s.Set32(a, 77, 4))
	require.Equal(t, []uint32{77, 77, 77, 77}, r.read(b, 4))
	got, err := r.c.Range(b.Add(n - 1))
	require.NoError(t, err)
	require.Equal(t, gpu.Range{Base: b, Bytes: n, Device: 0, Owned: true}, got)

	require.ErrorIs(t, r.c.Free(a), gpu.ErrInvalid, "a mapping is unmapped, not freed")
	require.NoError(t, r.c.Unmap(a))
	require.ErrorIs(t, r.c.Unmap(a), gpu.ErrInvalid)
	require.NoError(t, r.c.Unmap(b))
}

func testByFile(t *testing.T, d gpu.Driver) {
	r := newRig(t, d, 0)
	n, p := r.shared(gpu.ByFile, r.c.Device().Info().FileHandles)
	fd, err := p.ExportFile()
	r.travels(err)
	require.GreaterOrEqual(t, fd.FD(), 0)
	q, err := r.c.ImportFile(fd.FD(), n)
	require.NoError(t, err)
	require.NoError(t, fd.Close())
	require.ErrorIs(t, fd.Close(), gpu.ErrClosed)
	_, err = r.c.ImportFile(-1, n)
	require.ErrorIs(t, err, gpu.ErrInvalid)
	r.sameMemory(p, q)
}

func testByFabric(t *testing.T, d gpu.Driver) {
	r := newRig(t, d, 0)
	n, p := r.shared(gpu.ByFabric, r.c.Device().Info().FabricHandles)
	h, err := p.ExportFabric()
	r.travels(err)
	q, err := r.c.ImportFabric(h, n)
	r.travels(err)
	r.sameMemory(p, q)
}

// shared makes memory that can travel, or skips where that is not to be had:
// the attribute may say yes and the driver no.
func (r *rig) shared(way gpu.Share, attribute bool) (uint64, gpu.Physical) {
	if !attribute {
		r.Skipf("the device has no memory %v", way)
	}
	n, err := r.c.Granularity(way)
	if err == nil {
		var p gpu.Physical
		if p, err = r.c.Create(n, way); err == nil {
			r.atEnd(p.Release)
			return n, p
		}
	}
	r.travels(err)
	return 0, nil
}

// travels goes on where there is no error, and skips where it says that memory
// does not travel here.
func (r *rig) travels(err error) {
	if errors.Is(err, gpu.ErrUnsupported) {
		r.Skipf("the attribute says yes, the driver no: %v", err)
	}
	require.NoError(r, err)
}

// sameMemory maps two handles, writes through one, reads through the other,
// and releases the second.
func (r *rig) sameMemory(p, q gpu.Physical) {
	a, err := r.c.Map(p)
	require.NoError(r, err)
	b, err := r.c.Map(q)
	require.NoError(r, err)
	require.NoError(r, r.s.Set32(a, 0xfeed, 2))
	require.Equal(r, []uint32{0xfeed, 0xfeed}, r.read(b, 2))
	for _, err := range []error{r.c.Unmap(a), r.c.Unmap(b), q.Release()} {
		require.NoError(r, err)
	}
}

func testPeers(t *testing.T, d gpu.Driver) {
	if len(d.Devices()) < 2 {
		t.Skip("one device only")
	}
	dev := d.Devices()
	info, err := dev[0].Peer(dev[1])
	require.NoError(t, err)
	if !info.Access {
		t.Skip("device 0 has no access to device 1")
	}
	near, far := newRig(t, d, 0), newRig(t, d, 1)
	require.NoError(t, near.c.EnablePeer(far.c))
	require.NoError(t, near.c.EnablePeer(far.c), "twice is once")
	require.NoError(t, near.c.EnablePeer(near.c), "itself is nothing to do")
	x := far.words([]uint32{1, 2, 3})
	var args gpu.Args
	near.launch("bump", 3, args.Ptr(x).Uint32(3).Uint32(10))
	near.wait(near.s)
	require.Equal(t, []uint32{11, 12, 13}, far.read(x, 3))
	y := near.words(make([]uint32, 3))
	require.NoError(t, near.s.Copy(y, x, 12))
	require.Equal(t, []uint32{11, 12, 13}, near.read(y, 3))
	require.ErrorIs(t, near.s.Launch(far.one("nothing", nil)), gpu.ErrInvalid, "a kernel of another context")
	require.ErrorIs(t, near.c.Free(x), gpu.ErrInvalid)
}
