package rlkernel

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/sim"
)

// gatherSizes are the bytes a rank that the copying has to get right: around
// every width and every threshold.
func gatherSizes(ranks int64) []int64 {
	const k = 1 << 10
	sizes := []int64{1, 15, 16, 17, 4095, 4096, 8191, 8192, 8193, 32767, 32768, 32769, 32*k + 3, 96 * k, 1<<20 + 5}
	for _, t := range []int64{64 * k, 256 * k} {
		sizes = append(sizes, t/ranks-1, t/ranks, t/ranks+1, t/ranks+16)
	}
	slices.Sort(sizes)
	return slices.Compact(sizes)
}

// yard is memory for many gathers, used again and again.
type yard struct {
	ranks    int
	src, dst [][]byte
	size     int64 // capacity a rank
}

func newYard(ranks int, size int64) *yard {
	y := &yard{ranks: ranks, size: size, src: make([][]byte, ranks), dst: make([][]byte, ranks)}
	for r := range ranks {
		y.src[r] = make([]byte, size+2*guard)
		anyBits(uint64(r))(r, 0, y.src[r])
		y.dst[r] = make([]byte, size*int64(ranks)+2*guard)
	}
	return y
}

// gather runs one call and compares every destination, guards included, with
// the definition.
func (y *yard) gather(t *testing.T, team *sim.Team, bytesEach, srcOff, dstOff int64) {
	call := gatherCall(y.ranks, bytesEach)
	call.SrcOffset, call.DstOffset = api.Offsets{srcOff}, api.Offsets{dstOff}
	r := &rig{call: call, mem: make([]api.Memory, y.ranks)}
	want := make([]byte, 0, bytesEach*int64(y.ranks)+2*guard)
	want = append(want, bytes.Repeat([]byte{poison}, guard)...)
	for rank := range y.ranks {
		src, dst := call.Addrs(0, rank)
		l := api.Lane{
			Src: api.Image{Bytes: y.src[rank][:bytesEach+2*guard], Addr: src, Guard: guard},
			Dst: api.Image{Bytes: y.dst[rank][:bytesEach*int64(y.ranks)+2*guard], Addr: dst, Guard: guard},
		}
		fill(l.Dst.Bytes)
		want = append(want, l.Src.Payload()...)
		r.mem[rank] = api.Memory{l}
	}
	want = append(want, bytes.Repeat([]byte{poison}, guard)...)
	outs, errs := r.run(t, team)
	for rank := range y.ranks {
		if errs[rank] != nil || !bytes.Equal(want, r.mem[rank][0].Dst.Bytes) {
			t.Fatalf("%s: rank %d: %v, or other bytes than the definition's", call, rank, errs[rank])
		}
	}
	r.whole(t, outs)
}

func fill(p []byte) {
	for i := range p {
		p[i] = poison
		if i == guard {
			break
		}
	}
	for n := guard; n < len(p); n *= 2 {
		copy(p[n:], p[:n])
	}
}

// TestGatherSizes covers B06 and every size, source and destination offset that
// the copying distinguishes, in both versions and the author's first one: the
// bytes of the definition, and guards untouched on both sides.
func TestGatherSizes(t *testing.T) {
	offsets := []int64{0, 1, 2, 3, 5, 7, 8}
	calls := 0
	for _, ranks := range []int{2, 4, 8} {
		y := newYard(ranks, 1<<20+5)
		for _, version := range append(both, After+"?copy=peerwise") {
			team := openTeam(t, version, ranks)
			for n, size := range gatherSizes(int64(ranks)) {
				if testing.Short() && (n%3 != 0 || size > 100<<10) {
					continue
				}
				for i, src := range offsets {
					for j, dst := range offsets {
						// The product is the point; only its largest size and
						// the extra version are thinned out.
						if thin := size > 1<<20 || version == After+"?copy=peerwise"; (thin || testing.Short()) && (i+2*j)%7 != 0 {
							continue
						}
						y.gather(t, team, size, src, dst)
						calls++
					}
				}
			}
		}
	}
	if !testing.Short() {
		require.Greater(t, calls, 6000)
	}
}

// TestGatherOffsetsApart gives every rank offsets of its own.
func TestGatherOffsetsApart(t *testing.T) {
	for _, version := range both {
		for seed := range uint64(20) {
			call := gatherCall(8, int64(1+mix(seed)%20000))
			for r := range uint64(8) {
				call.SrcOffset = append(call.SrcOffset, int64(mix(seed<<8|r)%17))
				call.DstOffset = append(call.DstOffset, int64(mix(seed<<8|r|128)%17))
			}
			good(t, version, call, anyBits(seed), 7)
		}
	}
}

// TestCallersBuffer: the outcome lies in the caller's own buffer, at the very
// address of its slice.
func TestCallersBuffer(t *testing.T) {
	for _, version := range both {
		team := openTeam(t, version, 2)
		call := gatherCall(2, 3)
		a, b := []byte{1, 2, 3}, []byte{4, 5, 6}
		outA, outB := make([]byte, 6), make([]byte, 6)
		r := &rig{call: call, mem: []api.Memory{api.MemoryOf(a, outA), api.MemoryOf(b, outB)}}
		_, errs := r.run(t, team)
		require.NoError(t, errs[0])
		require.Equal(t, []byte{1, 2, 3, 4, 5, 6}, outA)
		require.Equal(t, outA, outB)
	}
}

// threadLoop runs the gather of one rank as the kernel's threads do, one unit
// at a time, and counts.
func threadLoop(g *copying, width int64) (busiest, remote, divisions int64) {
	own := func(unit, shard int64) bool { return unit/shard == int64(g.rank) }
	loop := func(total int64, far func(unit int64) bool) {
		for base := int64(0); base < total; base += width {
			busiest++ // thread 0 is the busiest
			for i := base; i < min(total, base+width); i++ {
				if far(i) {
					remote++
					break
				}
			}
		}
	}
	if g.flat() {
		shard := g.bytes / g.unit()
		loop(shard*int64(g.ranks), func(u int64) bool { divisions++; return !own(u, shard) })
		return busiest, remote, shard * int64(g.ranks)
	}
	for peer := range g.ranks {
		far := func(int64) bool { return peer != g.rank }
		if g.loop(peer) == loopPeerVectors {
			loop(g.bytes/vector, far)
			loop(g.bytes%vector, far)
			continue
		}
		loop(g.bytes, far)
	}
	return busiest, remote, 0
}

// TestTripsByThreads counts loop trips by walking the loops.
func TestTripsByThreads(t *testing.T) {
	for seed := range uint64(3000) {
		x := mix(seed)
		ranks := []int{1, 2, 4, 8}[x%4]
		bytesEach := int64(x >> 8 % 3000)
		if x>>40%2 == 0 {
			bytesEach = bytesEach / 16 * 16
		}
		version := []string{Before, After, After + "?copy=peerwise"}[x>>50%3]
		c, err := parseConfig(spec(t, version))
		require.NoError(t, err)
		g := c.gather(ranks, int(x>>20)%ranks, place{dst: api.DstBase + x>>30%20}, bytesEach)
		for _, width := range []int64{256, 1024, 16} {
			all, remote := g.trips(width)
			wantAll, wantRemote, wantDiv := threadLoop(&g, width)
			require.Equal(t, wantAll, all, "%+v", g)
			require.Equal(t, wantRemote, remote, "%+v width %d", g, width)
			require.Equal(t, wantDiv, g.divisions(), "%+v", g)
		}
	}
}

// TestLoops is the rule that chooses the widths, spelt out.
func TestLoops(t *testing.T) {
	loops := func(version string, dst uint64, n int64) []string {
		c, err := parseConfig(spec(t, version))
		require.NoError(t, err)
		g := c.gather(4, 0, place{dst: dst}, n)
		return []string{g.loop(0), g.loop(1), g.loop(2), g.loop(3)}
	}
	all := func(s string) []string { return []string{s, s, s, s} }
	require.Equal(t, all(loopBytes), loops(Before, 0, 32))
	require.Equal(t, all(loopVectors), loops(After, 0, 32))
	require.Equal(t, all(loopVectors), loops(After, 0, 0), "no division is executed")
	require.Equal(t, all(loopPeerVectors), loops(After+"?copy=peerwise", 0, 32))
	require.Equal(t, []string{loopPeerVectors, loopPeerBytes, loopPeerVectors, loopPeerBytes}, loops(After, 0, 24), "where the destination lands on 16 again")
	require.Equal(t, []string{loopPeerVectors, loopPeerBytes, loopPeerBytes, loopPeerBytes}, loops(After, 0, 17))
	require.Equal(t, all(loopPeerBytes), loops(After, 8, 32), "an output off 16 is copied by bytes")
	require.Equal(t, []string{loopPeerBytes, loopPeerVectors, loopPeerBytes, loopPeerVectors}, loops(After, 8, 24))
}

// TestStaging is the 16-byte rule of the one-block staging copy.
func TestStaging(t *testing.T) {
	require.EqualValues(t, 50, stageTrips(place{src: 1 << 20}, 200<<10))
	require.EqualValues(t, 800, stageTrips(place{src: 1<<20 + 2}, 200<<10), "a source off by 2: every byte of 200 KiB by itself")
	require.EqualValues(t, 801, stageTrips(place{src: 1 << 20}, 200<<10+1))
	require.EqualValues(t, 0, stageTrips(place{src: 1 << 20}, 0))
	call := reduceCall(api.AllReduce, api.BF16, 2, 102400)
	call.SrcOffset = api.Offsets{0, 1}
	require.Contains(t, mustPlan(t, After, call).Notes, "lane 0: rank 1 stages byte by byte, trips of one block: 800; source 0x1000000000000002 and 204800 bytes are not both multiples of 16")
	call.Count = 140000 // staged by a copy
	for _, n := range mustPlan(t, After, call).Notes {
		require.NotContains(t, n, "byte by byte")
	}
}
