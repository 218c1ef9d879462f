package gpu

import (
	"encoding/binary"
	"fmt"
	"math"
)

// MaxArgs is the highest number of arguments of a launch.
const MaxArgs = 256

// Args packs the arguments of a launch: one flat little-endian buffer and the
// place of each argument in it, as a kernel's parameter buffer has them. The
// zero value is ready to use; Reset lets one serve many launches without
// allocating. Not for concurrent use.
type Args struct {
	buf   []byte
	spans []Param
}

// Reset forgets the arguments and keeps the buffers.
func (a *Args) Reset() *Args {
	a.buf, a.spans = a.buf[:0], a.spans[:0]
	return a
}

// place appends an argument of that size and alignment and gives its bytes.
func (a *Args) place(size, align int) []byte {
	for len(a.buf)%align != 0 {
		a.buf = append(a.buf, 0)
	}
	off := len(a.buf)
	for range size {
		a.buf = append(a.buf, 0)
	}
	a.spans = append(a.spans, Param{off, size})
	return a.buf[off:]
}

// Ptr appends an address.
func (a *Args) Ptr(p Ptr) *Args { return a.Uint64(uint64(p)) }

// Uint64 appends a 64-bit integer.
func (a *Args) Uint64(v uint64) *Args {
	binary.LittleEndian.PutUint64(a.place(8, 8), v)
	return a
}

// Int64 appends a 64-bit integer.
func (a *Args) Int64(v int64) *Args { return a.Uint64(uint64(v)) }

// Uint32 appends a 32-bit integer.
func (a *Args) Uint32(v uint32) *Args {
	binary.LittleEndian.PutUint32(a.place(4, 4), v)
	return a
}

// Int32 appends a 32-bit integer.
func (a *Args) Int32(v int32) *Args { return a.Uint32(uint32(v)) }

// Uint16 appends a 16-bit integer.
func (a *Args) Uint16(v uint16) *Args {
	binary.LittleEndian.PutUint16(a.place(2, 2), v)
	return a
}

// Uint8 appends a byte.
func (a *Args) Uint8(v uint8) *Args {
	a.place(1, 1)[0] = v
	return a
}

// Float32 appends a float.
func (a *Args) Float32(v float32) *Args { return a.Uint32(math.Float32bits(v)) }

// Float64 appends a double.
func (a *Args) Float64(v float64) *Args { return a.Uint64(math.Float64bits(v)) }

// Struct appends a parameter that is passed by value as bytes: a .param array
// of that size, at an alignment that is a power of two up to 16.
func (a *Args) Struct(b []byte, align int) *Args {
	copy(a.place(len(b), max(align, 1)), b)
	return a
}

// Len is the number of arguments; nil has none.
func (a *Args) Len() int {
	if a == nil {
		return 0
	}
	return len(a.spans)
}

// Bytes is the packed buffer, which the next append or Reset changes.
func (a *Args) Bytes() []byte {
	if a == nil {
		return nil
	}
	return a.buf
}

// Spans are the places of the arguments in Bytes, likewise.
func (a *Args) Spans() []Param {
	if a == nil {
		return nil
	}
	return a.spans
}

// Check says whether the arguments are what a kernel with these parameters
// takes: as many, of the same sizes, in the same places. A driver reads as much
// as the kernel declares, so a missing argument would be read from anywhere.
func (a *Args) Check(params []Param) error {
	if a.Len() != len(params) {
		return fmt.Errorf("%d arguments, the kernel takes %d", a.Len(), len(params))
	}
	if len(params) > MaxArgs {
		return fmt.Errorf("%d arguments, at most %d are taken", len(params), MaxArgs)
	}
	for i, p := range params {
		if s := a.spans[i]; s != p {
			return fmt.Errorf("argument %d is %d bytes at offset %d, the kernel takes %d at %d", i, s.Size, s.Offset, p.Size, p.Offset)
		}
	}
	return nil
}
