package inputs

import (
	"encoding/binary"
	"math"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
	"example.com/tandem/conformance/dumps"
)

// Generator fills the sources of one call.
type Generator struct {
	in    Input
	call  api.Call
	first []int64    // number of the first element of each lane
	lanes []lane     // what each lane needs
	dir   *dumps.Dir // of Files
}

type lane struct {
	dtype api.DType
	table []uint64 // of OrderFree sums in narrow formats: pattern of index - m
}

// Open checks the input against the call and prepares it. Auto is resolved.
// Files are looked at, and their sizes checked, here.
func (in Input) Open(call *api.Call) (*Generator, error) {
	in = in.Resolve(call)
	if err := in.check(call); err != nil {
		return nil, err
	}
	g := &Generator{in: in, call: *call}
	var at int64
	for i := range call.Lanes() {
		d := call.Lane(i).DType
		l := lane{dtype: d}
		if in.Kind == OrderFree && call.Op == api.Sum && d.Float() && d.MantissaBits() <= 10 {
			l.table = orderFreeTable(d, call.Ranks)
		}
		g.first = append(g.first, at)
		g.lanes = append(g.lanes, l)
		at += call.SrcElems(i)
	}
	if in.Kind == Files {
		var err error
		if g.dir, err = openSources(in.Dir, call); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// Input is the input that the generator was opened from, resolved.
func (g *Generator) Input() Input { return g.in }

// Fill writes the elements from start on of one lane of one rank's source, as
// many as dst holds, little-endian. It may be called for different ranges at
// the same time. Only Files can fail.
func (g *Generator) Fill(dst []byte, lane, rank int, start int64) error {
	l := g.lanes[lane]
	size := l.dtype.Size()
	switch g.in.Kind {
	case Files:
		return g.dir.ReadAt(rank, dst, g.offset(lane)+start*int64(size))
	case Ones:
		fillConstant(dst, size, one(l.dtype))
	case Values:
		fillConstant(dst, size, g.in.Values[rank])
	default:
		g.fillRandom(dst, l, rank, uint64(g.first[lane]+start))
	}
	return nil
}

// offset is where a lane begins in a file, in bytes.
func (g *Generator) offset(lane int) int64 {
	var off int64
	for i := range lane {
		off += g.call.SrcElems(i) * int64(g.lanes[i].dtype.Size())
	}
	return off
}

// openSources opens a directory of sources and checks it against the call.
func openSources(path string, call *api.Call) (*dumps.Dir, error) {
	dir, err := dumps.Open(path)
	if err != nil {
		return nil, err
	}
	return dir, dir.Check(call, call.SrcElems)
}

func one(d api.DType) uint64 {
	if d.Float() {
		return num.Encode(d, 1, num.NearestEven)
	}
	return 1
}

// block is how many elements are made at a time: enough to keep the loops
// tight, few enough to stay in the first cache.
const block = 512

func (g *Generator) fillRandom(dst []byte, l lane, rank int, first uint64) {
	var xs [block]uint64
	size := l.dtype.Size()
	base := mix(g.in.Seed*256+uint64(rank)) + first
	for len(dst) >= size {
		n := min(block, len(dst)/size)
		raw(xs[:n], base)
		g.shape(xs[:n], l, rank)
		store(dst[:n*size], xs[:n], size)
		dst = dst[n*size:]
		base += uint64(n)
	}
}

// mix is the finaliser of splitmix64.
func mix(z uint64) uint64 {
	z += 0x9E3779B97F4A7C15
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

// raw writes mix(base), mix(base+1), ..
func raw(xs []uint64, base uint64) {
	for i := range xs {
		xs[i] = mix(base + uint64(i))
	}
}

// shape turns raw numbers into patterns of the lane's type.
func (g *Generator) shape(xs []uint64, l lane, rank int) {
	d := l.dtype
	switch g.in.Kind {
	case Normal:
		shapeNormal(xs, d)
	case Finite:
		shapeFinite(xs, d)
	case Uniform:
		shapeUniform(xs, d, g.in.Lo, g.in.Hi)
	case OrderFree:
		g.shapeOrderFree(xs, l, rank)
	}
	// Bits needs nothing: store keeps the low bits.
}

func shapeNormal(xs []uint64, d api.DType) {
	m := d.MantissaBits()
	keep := d.Mask() &^ (exponentMask(d))
	least := uint64(d.Bias() - 4)
	for i, x := range xs {
		e := x
		if d == api.F64 {
			e = mix(x) // the bits of x are all in use
		}
		xs[i] = x&keep | (least+(e>>32)&7)<<m
	}
}

func shapeFinite(xs []uint64, d api.DType) {
	exp := exponentMask(d)
	low := uint64(1) << d.MantissaBits()
	for i, x := range xs {
		if x&exp == exp {
			xs[i] = x &^ low
		}
	}
}

func shapeUniform(xs []uint64, d api.DType, lo, hi float64) {
	width := hi - lo
	for i, x := range xs {
		// The conversion keeps the product from being fused with the sum.
		xs[i] = encode(d, lo+float64(width*float64(x>>40)*0x1p-24))
	}
}

func exponentMask(d api.DType) uint64 {
	return (1<<d.ExponentBits() - 1) << d.MantissaBits()
}

// encode is num.Encode to nearest even, with the ordinary case done here: x is
// normal in d and stays so.
func encode(d api.DType, x float64) uint64 {
	switch d {
	case api.F64:
		return math.Float64bits(x)
	case api.F32:
		return uint64(math.Float32bits(float32(x)))
	}
	drop := 52 - d.MantissaBits()
	b := math.Float64bits(x)
	neg := b >> 63
	b &= 1<<63 - 1
	b += 1<<(drop-1) - 1 + b>>drop&1
	field := int(b>>52) - 1023 + d.Bias()
	if field < 1 || field >= 1<<d.ExponentBits()-1 {
		return num.Encode(d, x, num.NearestEven)
	}
	return neg<<(d.Bits()-1) | uint64(field)<<d.MantissaBits() | b<<12>>(64-d.MantissaBits())
}

// store writes the low bytes of the patterns, little-endian.
func store(dst []byte, xs []uint64, size int) {
	switch size {
	case 1:
		for i, x := range xs {
			dst[i] = byte(x)
		}
	case 2:
		for i, x := range xs {
			binary.LittleEndian.PutUint16(dst[2*i:], uint16(x))
		}
	case 4:
		for i, x := range xs {
			binary.LittleEndian.PutUint32(dst[4*i:], uint32(x))
		}
	default:
		for i, x := range xs {
			binary.LittleEndian.PutUint64(dst[8*i:], x)
		}
	}
}

// fillConstant repeats one pattern.
func fillConstant(dst []byte, size int, b uint64) {
	n := min(len(dst), size)
	if n == 0 {
		return
	}
	var one [8]byte
	binary.LittleEndian.PutUint64(one[:], b)
	copy(dst, one[:n])
	for n < len(dst) {
		n += copy(dst[n:], dst[:n])
	}
}
