package main

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api/gpu"
	"example.com/tandem/sim/ptx"
	"example.com/tandem/sim/ptx/vm"
)

// world is NVSHMEM on virtual GPUs, a PE on each, as its host part sets it up on
// one NVLink domain: what the device part finds in nvshmemi_device_state_d.
// Offsets are of nvshmem_types.h of 3.4.5, in bytes.
type world struct {
	testing.TB
	driver   gpu.Driver
	contexts []gpu.Context
	streams  []gpu.Stream
	modules  []gpu.Module
	heap     []gpu.Ptr // of each PE
	pinned   gpu.HostMemory
	data     uint64 // offset in the heap of what is left for buffers
	races    int
}

// Sizes in longs, of nvshmem_common.cuh, and parameters at their defaults.
const (
	syncSize     = 27648
	scratchBytes = 524288
	llThreshold  = 2048
	vendorTeams  = 6
)

const (
	heapData   = 24 << 20 // bytes for buffers
	granule    = 2 << 20
	pinnedSize = heapData
)

// perTeam is the longs of the pool that each team has.
func perTeam(pes int) uint64 {
	return 2*2*syncSize + scratchBytes/8 + 10*syncSize + 2*2*uint64(pes)*llThreshold/8 + 2*syncSize
}

// newWorld sets the library up. With cast, teams have multicast memory.
func newWorld(t testing.TB, pes int, text string, cast bool) *world {
	w := &world{TB: t, data: (8*perTeam(pes)*vendorTeams + granule - 1) / granule * granule}
	w.driver = ptx.Open(ptx.Options{Devices: pes, Seed: 1, Stale: -1, Multicast: cast, MaxSteps: 2_000_000_000,
		// The library relies on loads that are volatile, and on barriers of the
		// block, for more order than PTX promises.
		Race: func(func() *vm.Fault) bool { w.races++; return false }})
	for _, d := range w.driver.Devices() {
		c, err := d.Open()
		require.NoError(t, err)
		s, err := c.NewStream(gpu.StreamOptions{})
		require.NoError(t, err)
		m, err := c.LoadModule("nvshmem.ptx", []byte(text))
		require.NoError(t, err)
		w.contexts, w.streams, w.modules = append(w.contexts, c), append(w.streams, s), append(w.modules, m)
	}
	for _, a := range w.contexts {
		for _, b := range w.contexts {
			require.NoError(t, a.EnablePeer(b))
		}
	}
	var err error
	w.pinned, err = w.contexts[0].AllocHost(pinnedSize)
	require.NoError(t, err)
	bases := w.makeHeaps(w.data+heapData, cast)
	for pe := range w.contexts {
		w.setUp(pe, bases)
	}
	return w
}

// makeHeaps gives each PE its heap, and the address of all of them together.
func (w *world) makeHeaps(n uint64, cast bool) (bases []gpu.Ptr) {
	if !cast {
		for _, c := range w.contexts {
			p, err := c.Alloc(n)
			require.NoError(w, err)
			w.heap = append(w.heap, p)
		}
		return nil
	}
	m, err := w.contexts[0].Multicast()
	require.NoError(w, err)
	object, err := m.Create(gpu.MulticastOptions{Devices: len(w.contexts), Bytes: n})
	require.NoError(w, err)
	for _, d := range w.driver.Devices() {
		require.NoError(w, object.AddDevice(d))
	}
	for _, c := range w.contexts {
		p, err := c.Create(n, gpu.NotShared)
		require.NoError(w, err)
		at, err := c.Map(p, w.driver.Devices()...)
		require.NoError(w, err)
		require.NoError(w, object.Bind(w.Context(), 0, p, 0, n))
		w.heap = append(w.heap, at)
	}
	for _, c := range w.contexts {
		at, err := object.Map(w.Context(), c)
		require.NoError(w, err)
		bases = append(bases, at)
	}
	return bases
}

// image is memory of one PE that the host fills in before it copies it there.
type image struct {
	at gpu.Ptr
	b  []byte
}

func (m *image) u32(off int, v int) { binary.LittleEndian.PutUint32(m.b[off:], uint32(v)) }
func (m *image) u64(off int, v uint64) {
	binary.LittleEndian.PutUint64(m.b[off:], v)
}

// room takes bytes of the image and gives their address.
func (m *image) room(n int) (off int, at gpu.Ptr) {
	off = (len(m.b) + 15) / 16 * 16
	m.b = append(m.b, make([]byte, off+n-len(m.b))...)
	return off, m.at.Add(uint64(off))
}

// setUp fills in the state of a PE.
func (w *world) setUp(pe int, bases []gpu.Ptr) {
	pes := len(w.contexts)
	at, err := w.contexts[pe].Alloc(1 << 16)
	require.NoError(w, err)
	aux := &image{at: at}
	state := &image{b: make([]byte, 776)}
	peers, peersAt := aux.room(8 * pes)
	for i, h := range w.heap {
		aux.u64(peers+8*i, uint64(h))
	}
	pool, poolAt := aux.room(8 * vendorTeams)
	counters, countersAt := aux.room(8 * 2 * vendorTeams)
	for i := range 2 * vendorTeams {
		aux.u64(counters+8*i, 1)
	}
	cast := gpu.Ptr(0)
	if bases != nil {
		var off int
		off, cast = aux.room(8)
		aux.u64(off, uint64(bases[pe]))
	}
	for team := range vendorTeams {
		alone := team == 3 || team == 4 // PEs at the same place on other nodes; on the same GPU
		aux.u64(pool+8*team, uint64(w.team(aux, team, pe, alone, cast)))
	}
	state.u32(0, 1<<16+776)
	for off, v := range map[int]int{4: pe, 8: pes, 12: pe, 16: pes, 20: 1, 32: 1} {
		state.u32(off, v)
	}
	state.u64(40, uint64(w.heap[pe]))
	state.u64(48, w.data+heapData)
	state.u64(56, uint64(peersAt))
	state.u64(96, uint64(poolAt))
	state.u64(104, uint64(w.heap[pe]))
	state.u64(112, uint64(countersAt))
	for off, v := range map[int]int{120: 2<<16 + 512, 124: 2, 128: 2, 132: 2, 136: 2, 144: 1} {
		state.u32(off, v)
	}
	for off, v := range map[int]uint64{152: llThreshold, 160: 16 << 20, 168: scratchBytes, 184: 16 << 20, 208: 2048} {
		state.u64(off, v)
	}
	w.fill(pe, aux.at, aux.b)
	global, n, err := w.modules[pe].Global("nvshmemi_device_state_d")
	require.NoError(w, err)
	require.Equal(w, uint64(776), n)
	w.fill(pe, global, state.b)
	for team := range vendorTeams { // what is waited for begins as zero
		base := w.heap[pe].Add(8 * perTeam(pes) * uint64(team))
		require.NoError(w, w.streams[pe].Set8(base, 0, 8*uint64(pes)))
		require.NoError(w, w.streams[pe].Set8(base.Add(8*(2*2*syncSize+scratchBytes/8+10*syncSize)), 0, uint64(2*2*pes*llThreshold)))
	}
	w.wait()
}

// team is nvshmemi_team_v3.
func (w *world) team(aux *image, number, pe int, alone bool, cast gpu.Ptr) gpu.Ptr {
	pes, me, start := len(w.contexts), pe, 0
	if alone {
		pes, me, start = 1, 0, pe
	}
	off, at := aux.room(792)
	for field, v := range map[int]int{0: 2<<16 + 792, 4: me, 8: start, 12: 1, 16: pes, 20: number, 176: 1, 232: 1, 240: 2, 248: -1} {
		aux.u32(off+field, v)
	}
	aux.b[off+236], aux.b[off+237] = 1, 1
	for i := range 128 {
		aux.u32(off+272+4*i, -1)
	}
	aux.u64(off+264, uint64(cast))
	members, membersAt := aux.room(4 * (pes + len(w.contexts)))
	for i := range pes {
		aux.u32(members+4*i, start+i)
		aux.u32(members+4*(pes+start+i), i)
	}
	aux.u64(off+784, uint64(membersAt))
	w.exchange(aux, off+104, me, pes)
	return at
}

// exchange is nvshmemi_reduce_recexch_v1 for radix 2.
func (w *world) exchange(aux *image, off, me, pes int) {
	phases := 0
	for 2<<phases <= pes {
		phases++
	}
	rest := pes - 1<<phases
	to, from, mine := -1, -1, me-rest
	switch {
	case me < 2*rest && me%2 == 0:
		to = me + 1
	case me < 2*rest:
		from, mine = me-1, me/2
	}
	one, oneAt := aux.room(4)
	lists, listsAt := aux.room(8 * max(phases, 1))
	for i := range phases {
		peer := mine ^ 1<<i
		if peer < rest {
			peer = 2*peer + 1
		} else {
			peer += rest
		}
		n, nAt := aux.room(4)
		aux.u32(n, peer)
		aux.u64(lists+8*i, uint64(nAt))
	}
	aux.u32(off, 1<<16+64)
	aux.u32(off+4, to)
	aux.u64(off+8, uint64(oneAt))
	aux.u64(off+16, uint64(listsAt))
	if from >= 0 {
		aux.u32(one, from)
		aux.u32(off+24, 1)
	}
	aux.u32(off+28, phases)
}

func (w *world) wait() {
	var all []gpu.Queryer
	for _, s := range w.streams {
		all = append(all, s)
	}
	require.NoError(w, gpu.Wait(w.Context(), w.driver.Clock(), time.Hour, all...))
}

// fill copies bytes to a PE.
func (w *world) fill(pe int, to gpu.Ptr, b []byte) {
	if len(b) == 0 {
		return
	}
	copy(w.pinned.Bytes, b)
	require.NoError(w, w.streams[pe].Copy(to, w.pinned.Ptr, uint64(len(b))))
	w.wait()
}

// read copies bytes from a PE.
func (w *world) read(pe int, from gpu.Ptr, n int) []byte {
	if n == 0 {
		return nil
	}
	require.NoError(w, w.streams[pe].Copy(w.pinned.Ptr, from, uint64(n)))
	w.wait()
	return append([]byte(nil), w.pinned.Bytes[:n]...)
}

// call runs a kernel on every PE over symmetric buffers, as one block each, and
// gives the error of the first that fails.
func (w *world) call(kernel string, dst, src uint64, count int64) error {
	for pe := range w.contexts {
		f, err := w.modules[pe].Function(kernel)
		require.NoError(w, err)
		args := new(gpu.Args).Uint32(0).Ptr(w.heap[pe].Add(w.data + dst)).Ptr(w.heap[pe].Add(w.data + src)).Int64(count)
		require.NoError(w, w.streams[pe].Launch(gpu.Launch{Function: f, Block: gpu.Dim3{X: 64}, Args: args, Ranks: []int{pe}}))
	}
	var all []gpu.Queryer
	for _, s := range w.streams {
		all = append(all, s)
	}
	return gpu.Wait(w.Context(), w.driver.Clock(), time.Hour, all...)
}
