package api

import (
	"fmt"
	"unsafe"

	"github.com/x448/float16"
)

// The addresses that buffers without a device address of their own are given:
// page aligned, and so far apart that no call's buffers meet.
const (
	SrcBase    uint64 = 1 << 60
	DstBase    uint64 = 1 << 61
	LaneStride uint64 = 1 << 48
)

// Image is one buffer as a backend sees it: a payload between two guards.
type Image struct {
	// Bytes holds Guard bytes, the payload, and Guard bytes, little-endian.
	Bytes []byte
	// Addr is the device address of the payload's first byte. Alignment and
	// overlap are judged on it.
	Addr uint64
	// Guard is the number of bytes on either side that must survive a call.
	Guard int
}

// Payload is the image without its guards.
func (m Image) Payload() []byte { return m.Bytes[m.Guard : len(m.Bytes)-m.Guard] }

// Len is the length of the payload in bytes.
func (m Image) Len() int64 { return int64(len(m.Bytes) - 2*m.Guard) }

// Element is what a typed buffer may hold. bf16 and fp8 patterns travel as
// uint16 and uint8; []float16.Float16 is one of the slices it admits.
type Element interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64 |
		~float32 | ~float64
}

// Float16s is the payload of a 16-bit image as half-precision values, without
// copying; a trailing odd byte is left out.
func Float16s(m Image) []float16.Float16 {
	p := m.Payload()
	if len(p) < 2 {
		return nil
	}
	return unsafe.Slice((*float16.Float16)(unsafe.Pointer(unsafe.SliceData(p))), len(p)/2)
}

// ImageOf wraps a typed buffer without copying it, as if it lay at addr. It has
// no guards. The buffer must outlive the image.
func ImageOf[T Element](data []T, addr uint64) Image {
	var zero T
	if len(data) == 0 {
		return Image{Bytes: []byte{}, Addr: addr}
	}
	return Image{
		Bytes: unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(data))), len(data)*int(unsafe.Sizeof(zero))),
		Addr:  addr,
	}
}

// MemoryOf is the memory of one lane over a typed source and destination, out of place, both
// at their standard addresses.
func MemoryOf[T Element](src, dst []T) Memory {
	return Memory{{Src: ImageOf(src, SrcBase), Dst: ImageOf(dst, DstBase)}}
}

// Addrs are the addresses that the buffers of one rank and lane have where the
// caller brings none: base plus offset, and in place the smaller buffer inside
// the larger.
func (c *Call) Addrs(lane, rank int) (src, dst uint64) {
	size := uint64(c.Lane(lane).DType.Size())
	src = SrcBase + uint64(lane)*LaneStride + size*uint64(c.SrcOffset.At(rank))
	dst = DstBase + uint64(lane)*LaneStride + size*uint64(c.DstOffset.At(rank))
	if c.InPlace == OutOfPlace {
		return src, dst
	}
	off, _ := c.Collective.InPlace(c.Geometry(lane), rank, c.InPlace)
	if s, d := c.Collective.Blocks(c.Ranks); s >= d {
		return src, src + size*uint64(off)
	}
	return dst + size*uint64(off), dst
}

// CheckMemory says whether mem is what the call needs of this rank: a lane
// each, the right sizes, element-aligned, and source and destination either
// apart or overlapping exactly as the call's in-place form has it.
func (c *Call) CheckMemory(rank int, mem Memory) error {
	if len(mem) != c.Lanes() {
		return &InvalidError{Field: "lanes", Value: fmt.Sprint(len(mem)), Reason: fmt.Sprintf("the call has %d lanes", c.Lanes())}
	}
	for i, l := range mem {
		size := int64(c.Lane(i).DType.Size())
		for _, b := range []struct {
			name string
			img  Image
			want int64
		}{{"source", l.Src, c.SrcElems(i) * size}, {"destination", l.Dst, c.DstElems(i) * size}} {
			if b.img.Guard < 0 || b.img.Guard > len(b.img.Bytes)/2 {
				return &InvalidError{Field: b.name, Value: fmt.Sprintf("guards of %d bytes", b.img.Guard), Reason: fmt.Sprintf("lane %d of rank %d has %d bytes in all", i, rank, len(b.img.Bytes)), Hint: "0 or more bytes on either side of the payload"}
			}
			if b.img.Len() != b.want {
				return &InvalidError{Field: b.name, Value: fmt.Sprintf("%d bytes", b.img.Len()), Reason: fmt.Sprintf("lane %d of rank %d needs %d bytes", i, rank, b.want)}
			}
			if b.img.Addr%uint64(size) != 0 {
				return &InvalidError{Field: b.name, Value: fmt.Sprintf("0x%x", b.img.Addr), Reason: fmt.Sprintf("the address is no multiple of the element size %d", size)}
			}
		}
		if err := c.checkOverlap(i, rank, l); err != nil {
			return err
		}
	}
	return nil
}

func (c *Call) checkOverlap(lane, rank int, l Lane) error {
	overlap := l.Src.Addr < l.Dst.Addr+uint64(l.Dst.Len()) && l.Dst.Addr < l.Src.Addr+uint64(l.Src.Len())
	if c.InPlace == OutOfPlace {
		if overlap {
			return &InvalidError{Field: "memory", Value: fmt.Sprintf("lane %d of rank %d", lane, rank), Reason: "source and destination overlap", Hint: "keep them apart, or ask for an in-place call"}
		}
		return nil
	}
	off, ok := c.Collective.InPlace(c.Geometry(lane), rank, c.InPlace)
	small, large := l.Dst.Addr, l.Src.Addr
	if s, d := c.Collective.Blocks(c.Ranks); s < d {
		small, large = large, small
	}
	if want := large + uint64(off)*uint64(c.Lane(lane).DType.Size()); !ok || small != want {
		return &InvalidError{Field: "memory", Value: fmt.Sprintf("lane %d of rank %d", lane, rank), Reason: fmt.Sprintf("in place the smaller buffer must begin %d elements into the larger", off)}
	}
	return nil
}
