package gputest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api/gpu"
)

func testEvents(t *testing.T, d gpu.Driver) {
	r := newRig(t, d, 0)
	first, last, plain := r.event(true), r.event(true), r.event(false)
	done, err := plain.Query()
	require.NoError(t, err)
	require.True(t, done, "never recorded counts as reached")
	out, h := r.words([]uint32{0}), r.host(8)

	// Work in one stream that takes a while, and in another that waits for it.
	other := r.stream()
	require.NoError(t, r.s.Record(first))
	require.NoError(t, r.s.Launch(r.one("await", new(gpu.Args).Ptr(h.Ptr).Ptr(out).Uint64(r.cycles(5*time.Millisecond)))))
	require.NoError(t, r.s.Set32(out, 7, 1))
	require.NoError(t, r.s.Record(last))
	require.NoError(t, other.WaitEvent(last))
	require.NoError(t, other.Launch(r.one("bump", new(gpu.Args).Ptr(out).Uint32(1).Uint32(1))))
	r.wait(other, last)
	require.Equal(t, []uint32{8}, r.read(out, 1))

	took, err := last.Since(first)
	require.NoError(t, err)
	// The clock of the cycles may run slower than its highest rate.
	require.GreaterOrEqual(t, took, 4*time.Millisecond)
	require.Less(t, took, limit)
	_, err = last.Since(plain)
	require.ErrorIs(t, err, gpu.ErrInvalid)
}

// capture records work of r.s as an executable graph.
func (r *rig) capture(work func()) gpu.GraphExec {
	require.NoError(r, r.s.BeginCapture())
	work()
	g, err := r.s.EndCapture()
	require.NoError(r, err)
	x, err := g.Instantiate()
	require.NoError(r, err)
	require.NoError(r, g.Destroy())
	require.ErrorIs(r, g.Destroy(), gpu.ErrClosed)
	r.atEnd(x.Destroy)
	require.NoError(r, x.Upload(r.s))
	r.wait(r.s)
	return x
}

func testGraph(t *testing.T, d gpu.Driver) {
	r := newRig(t, d, 0)
	in, out := r.words([]uint32{1, 2, 3}), r.words([]uint32{0, 0, 0})
	bump := gpu.Launch{Function: r.function("bump"), Block: gpu.Dim3{X: 32}}
	var args gpu.Args
	x := r.capture(func() {
		require.NoError(t, r.s.Copy(out, in, 12))
		for i := range 20 {
			bump.Args = args.Reset().Ptr(out).Uint32(3).Uint32(uint32(i))
			require.NoError(t, r.s.Launch(bump))
		}
		require.NoError(t, r.s.Set32(in.Add(8), 50, 1))
	})
	require.Equal(t, []uint32{0, 0, 0}, r.read(out, 3), "capturing runs nothing")
	for round := range 5 {
		require.NoError(t, r.s.Set32(in, uint32(round), 2))
		require.NoError(t, x.Launch(r.s))
		third := uint32(50 + 190)
		if round == 0 {
			third = 3 + 190
		}
		require.Equal(t, []uint32{uint32(round) + 190, uint32(round) + 190, third}, r.read(out, 3))
	}
	// Back to back, each seeing what the one before left.
	sum := r.words([]uint32{0})
	y := r.capture(func() {
		require.NoError(t, r.s.Launch(r.one("bump", new(gpu.Args).Ptr(sum).Uint32(1).Uint32(3))))
	})
	for range 100 {
		require.NoError(t, y.Launch(r.s))
	}
	require.Equal(t, []uint32{300}, r.read(sum, 1))
}

func testGraphFork(t *testing.T, d gpu.Driver) {
	r := newRig(t, d, 0)
	other, fork, join := r.stream(), r.event(false), r.event(false)
	a, b, p := r.words([]uint32{0}), r.words([]uint32{0}), r.alloc(64)
	x := r.capture(func() {
		require.NoError(t, r.s.Record(fork))
		require.NoError(t, other.WaitEvent(fork))
		require.NoError(t, other.Launch(r.one("bump", new(gpu.Args).Ptr(a).Uint32(1).Uint32(2))))
		require.NoError(t, r.s.Launch(r.one("bump", new(gpu.Args).Ptr(b).Uint32(1).Uint32(3))))
		// Allocating and freeing is allowed meanwhile and spoils nothing.
		q, err := r.c.Alloc(64)
		require.NoError(t, err)
		require.NoError(t, r.c.Free(q))
		require.NoError(t, other.Record(join))
		require.NoError(t, r.s.WaitEvent(join))
		require.NoError(t, r.s.Copy(p, a, 4))
	})
	for range 4 {
		require.NoError(t, x.Launch(r.s))
	}
	require.Equal(t, []uint32{8}, r.read(p, 1))
	require.Equal(t, []uint32{12}, r.read(b, 1))
}

func testRefusedCaptures(t *testing.T, d gpu.Driver) {
	r := newRig(t, d, 0)
	_, err := r.s.EndCapture()
	require.ErrorIs(t, err, gpu.ErrCapture, "none was begun")
	require.NoError(t, r.s.BeginCapture())
	require.ErrorIs(t, r.s.BeginCapture(), gpu.ErrCapture)
	_, err = r.s.Query()
	require.ErrorIs(t, err, gpu.ErrCapture)
	g, err := r.s.EndCapture()
	require.NoError(t, err, "the query was refused, not made")
	require.NoError(t, g.Destroy())
	_, err = g.Instantiate()
	require.ErrorIs(t, err, gpu.ErrClosed)

	// A stream that joined and was not waited for fails the capture, and no
	// more than that.
	other, fork := r.stream(), r.event(false)
	x := r.words([]uint32{1})
	require.NoError(t, r.s.BeginCapture())
	require.NoError(t, r.s.Record(fork))
	require.NoError(t, other.WaitEvent(fork))
	require.NoError(t, other.Launch(r.one("bump", new(gpu.Args).Ptr(x).Uint32(1).Uint32(1))))
	_, err = r.s.EndCapture()
	require.ErrorIs(t, err, gpu.ErrCapture)
	require.Equal(t, []uint32{1}, r.read(x, 1))
	r.wait(r.s, other)

	// A stream destroyed in mid-capture takes the capture with it.
	s, err := r.c.NewStream(gpu.StreamOptions{Priority: -1})
	require.NoError(t, err)
	require.NoError(t, s.BeginCapture())
	require.NoError(t, s.Launch(r.one("nothing", nil)))
	require.NoError(t, s.Destroy())
}
