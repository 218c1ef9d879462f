package conformance

import (
	"bytes"
	"math"
	"math/bits"

	"example.com/tandem/api"
)

// Guard is the number of poisoned bytes before and after every buffer.
const Guard = 64

// The poisons of a destination: none of them is a likely result, and an element
// that holds both in turn was not written.
const (
	poison1 = 0xff
	poison2 = 0x5a
)

// arena keeps one allocation a rank, so that a sweep does not allocate for every
// call.
type arena struct{ slabs [][]byte }

// keepSlab bounds what an arena holds on to for a rank, in bytes.
const keepSlab = 64 << 20

// take is n bytes of a rank, with whatever is in them.
func (a *arena) take(rank int, n int64) []byte {
	for len(a.slabs) <= rank {
		a.slabs = append(a.slabs, nil)
	}
	if int64(cap(a.slabs[rank])) < n {
		a.slabs[rank] = make([]byte, n)
	}
	return a.slabs[rank][:n]
}

// trim lets go of what a large call left.
func (a *arena) trim() {
	for i, s := range a.slabs {
		if cap(s) > keepSlab {
			a.slabs[i] = nil
		}
	}
}

// images are the buffers of one side's call.
type images struct {
	call *api.Call
	mem  []api.Memory  // by rank
	held [][]api.Image // by rank: the buffers that have guards, whole
}

// newImages lays a call out: out of place sources in src and destinations in
// dst, in place both in dst, the smaller buffer within the larger.
func newImages(call *api.Call, src, dst *arena) *images {
	im := &images{call: call}
	for r := range call.Ranks {
		mem := make(api.Memory, call.Lanes())
		var held []api.Image
		srcSlab, dstSlab := src.take(r, slabBytes(call, true)), dst.take(r, slabBytes(call, false))
		for l := range mem {
			mem[l].Src.Addr, mem[l].Dst.Addr = call.Addrs(l, r)
			s, d := laneBytes(call, l)
			cut := func(slab *[]byte, n int64) []byte {
				p := (*slab)[: n+2*Guard : n+2*Guard]
				*slab = (*slab)[len(p):]
				return p
			}
			lane := &mem[l]
			switch {
			case call.InPlace == api.OutOfPlace:
				lane.Src.Bytes, lane.Src.Guard = cut(&srcSlab, s), Guard
				lane.Dst.Bytes, lane.Dst.Guard = cut(&dstSlab, d), Guard
				held = append(held, lane.Src, lane.Dst)
			case s >= d:
				lane.Src.Bytes, lane.Src.Guard = cut(&dstSlab, s), Guard
				lane.Dst.Bytes = within(lane.Src, lane.Dst.Addr, d)
				held = append(held, lane.Src)
			default:
				lane.Dst.Bytes, lane.Dst.Guard = cut(&dstSlab, d), Guard
				lane.Src.Bytes = within(lane.Dst, lane.Src.Addr, s)
				held = append(held, lane.Dst)
			}
		}
		im.mem, im.held = append(im.mem, mem), append(im.held, held)
	}
	return im
}

// within is the part of a buffer that begins at an address.
func within(large api.Image, addr uint64, n int64) []byte {
	at := int64(addr - large.Addr)
	return large.Payload()[at : at+n : at+n]
}

// laneBytes is the size of a lane's source and destination.
func laneBytes(call *api.Call, lane int) (src, dst int64) {
	size := int64(call.Lane(lane).DType.Size())
	return call.SrcElems(lane) * size, call.DstElems(lane) * size
}

// slabBytes is what a rank needs in the arena of sources or of destinations.
func slabBytes(call *api.Call, source bool) int64 {
	var n int64
	for l := range call.Lanes() {
		s, d := laneBytes(call, l)
		switch {
		case call.InPlace != api.OutOfPlace && source:
		case call.InPlace != api.OutOfPlace:
			n += max(s, d) + 2*Guard
		case source:
			n += s + 2*Guard
		default:
			n += d + 2*Guard
		}
	}
	return n
}

// memoryNeed is what buffers of a call take: the pristine sources copies times,
// one set of source images, and sets of destination images. math.MaxInt64
// stands for more than can be counted.
func memoryNeed(call *api.Call, copies, sets int64) int64 {
	if call.MemoryBytes() == math.MaxInt64 {
		return math.MaxInt64
	}
	var source int64
	for l := range call.Lanes() {
		s, _ := laneBytes(call, l)
		source += s
	}
	hi1, a := bits.Mul64(uint64(source), uint64(copies))
	hi2, b := bits.Mul64(uint64(slabBytes(call, false)), uint64(sets))
	hi3, n := bits.Mul64(a+b+uint64(slabBytes(call, true)), uint64(call.Ranks))
	if hi1|hi2|hi3 != 0 || n > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(n)
}

// prepare poisons what a rank's call has to write and the guards, and fills its
// sources by calling fill.
func (im *images) prepare(rank int, poison byte, fill func(dst []byte, lane int) error) error {
	for l, lane := range im.mem[rank] {
		for _, h := range []api.Image{lane.Src, lane.Dst} {
			if h.Guard > 0 {
				fillBytes(h.Bytes[:Guard], poison)
				fillBytes(h.Bytes[len(h.Bytes)-Guard:], poison)
			}
		}
		if lane.Dst.Guard > 0 {
			fillBytes(lane.Dst.Payload(), poison)
		}
		if err := fill(lane.Src.Payload(), l); err != nil {
			return err
		}
	}
	return nil
}

// guardHits counts the guard bytes of a rank that are no longer poison.
func (im *images) guardHits(rank int, poison byte) int64 {
	var clean [Guard]byte
	fillBytes(clean[:], poison)
	var n int64
	for _, h := range im.held[rank] {
		n += differingBytes(h.Bytes[:Guard], clean[:])
		n += differingBytes(h.Bytes[len(h.Bytes)-Guard:], clean[:])
	}
	return n
}

// sourceChanged counts the source bytes of a rank, outside its destination, that
// are not what they were.
func (im *images) sourceChanged(rank int, pristine [][]byte) int64 {
	var n int64
	for l, lane := range im.mem[rank] {
		got, want := lane.Src.Payload(), pristine[l]
		if im.call.InPlace == api.OutOfPlace {
			n += differingBytes(got, want)
		} else if lane.Src.Guard > 0 { // the destination lies within the source
			at := int64(lane.Dst.Addr - lane.Src.Addr)
			end := at + lane.Dst.Len()
			n += differingBytes(got[:at], want[:at]) + differingBytes(got[end:], want[end:])
		}
	}
	return n
}

// outputs are a rank's destinations, by lane.
func (im *images) outputs(rank int) [][]byte {
	out := make([][]byte, len(im.mem[rank]))
	for l, lane := range im.mem[rank] {
		out[l] = lane.Dst.Payload()
	}
	return out
}

func differingBytes(a, b []byte) int64 {
	if bytes.Equal(a, b) {
		return 0
	}
	var n int64
	for i := range a {
		if a[i] != b[i] {
			n++
		}
	}
	return n
}

// fillBytes sets every byte of p.
func fillBytes(p []byte, b byte) {
	if len(p) == 0 {
		return
	}
	p[0] = b
	for n := 1; n < len(p); n *= 2 {
		copy(p[n:], p[:n])
	}
}
