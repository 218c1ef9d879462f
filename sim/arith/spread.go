package arith

import (
	"unsafe"

	"example.com/tandem/api/num"
)

// ReduceAll is [Reduce] into several destinations, none of which overlaps another;
// each may be one of srcs, exactly. Ranges that no cache holds are written past the
// caches.
func ReduceAll(dsts [][]byte, d num.DType, s num.Scheme, srcs ...[]byte) {
	Options{}.ReduceAll(dsts, d, s, srcs...)
}

// ReduceAll is the function [ReduceAll] under these options.
func (o Options) ReduceAll(dsts [][]byte, d num.DType, s num.Scheme, srcs ...[]byte) {
	if len(dsts) == 0 {
		panic(noDestinations)
	}
	for _, dst := range dsts {
		check(dst, d, srcs)
	}
	if !s.Op.ValidFor(d) {
		panic(badOp)
	}
	n := len(dsts[0])
	if n == 0 {
		return
	}
	cost := (len(srcs) + len(dsts)) * n
	past := len(dsts) > 1 && cost >= uncached && !o.Portable && streams() || o.past
	o.split(n, d.Size(), cost, func(lo, hi int) {
		to, from := cut(nil, dsts, lo, hi), cut(nil, srcs, lo, hi)
		switch {
		case len(srcs) == 1 && past:
			spreadPast(to, from[0])
		case len(srcs) == 1:
			spread(to, from[0])
		case past:
			o.plan(d, s, len(srcs)).runPast(to, from)
		default:
			o.plan(d, s, len(srcs)).runAll(to, from)
		}
	})
}

// Spread copies src to every destination, as [ReduceAll] does with one source.
func Spread(dsts [][]byte, src []byte) { ReduceAll(dsts, num.U8, num.Scheme{Op: num.Sum}, src) }

const noDestinations = "arith: no destinations"

const (
	// uncached is from how many bytes of sources and destinations on the caches
	// had better be left alone: what one processor's third-level cache may hold.
	uncached = 16 << 20
	// spreadBytes is how much of a result is copied at a time: it is still in the
	// second-level cache then.
	spreadBytes = 128 << 10
)

// cut appends a part of every range.
func cut(to, ranges [][]byte, lo, hi int) [][]byte {
	for _, r := range ranges {
		to = append(to, r[lo:hi])
	}
	return to
}

// spread copies src, which may be a destination.
func spread(dsts [][]byte, src []byte) {
	for lo := 0; lo < len(src); lo += spreadBytes {
		hi := min(lo+spreadBytes, len(src))
		for _, dst := range dsts {
			if &dst[0] != &src[0] {
				copy(dst[lo:hi], src[lo:hi])
			}
		}
	}
}

// spreadPast is spread past the caches.
func spreadPast(dsts [][]byte, src []byte) {
	var others [][]byte
	for _, dst := range dsts {
		if &dst[0] != &src[0] {
			others = append(others, dst)
		}
	}
	for lo := 0; lo < len(src); lo += spreadBytes {
		hi := min(lo+spreadBytes, len(src))
		o := outflow{from: src[lo:hi], dsts: others, at: lo}
		o.flush()
	}
	settle()
}

// runAll reduces into the first destination and copies from there.
func (p *plan) runAll(dsts, srcs [][]byte) {
	run := p.runner(min(len(dsts[0])/p.d.Size(), tileElements))
	var part [][]byte
	for lo := 0; lo < len(dsts[0]); lo += spreadBytes {
		hi := min(lo+spreadBytes, len(dsts[0]))
		part = cut(part[:0], srcs, lo, hi)
		run(dsts[0][lo:hi], part)
		for _, dst := range dsts[1:] {
			copy(dst[lo:hi], dsts[0][lo:hi])
		}
	}
}

// pastTiles is the number of tiles whose results leave together: a kernel that
// combines 8 sources copies as many bytes as it reads.
const pastTiles = 8

// runPast reduces into a buffer, from which the results go past the caches to the
// destinations while the next ones are computed.
func (p *plan) runPast(dsts, srcs [][]byte) {
	b, size := &bench{plan: p, elements: tileElements}, p.d.Size()
	reduce := b.kernel()
	tile := tileElements * size
	room := [2][]byte{make([]byte, pastTiles*tile), make([]byte, pastTiles*tile)}
	part := make([][]byte, len(srcs))
	n := len(dsts[0])
	for lo, hi := 0, p.lead(dsts); lo < n; lo, hi = hi, hi+pastTiles*tile {
		hi = min(hi, n)
		out := room[0][:hi-lo]
		for at := 0; at < len(out); at += tile {
			end := min(at+tile, len(out))
			for i, src := range srcs {
				part[i] = src[lo+at : lo+end]
			}
			reduce(out[at:end], part)
		}
		b.out.flush()
		b.out = outflow{from: out, dsts: dsts, at: lo}
		room[0], room[1] = room[1], room[0]
	}
	b.out.flush()
	settle()
}

// line is the size of what a store that passes the caches by had better fill.
const line = 64

// lead is where the first tiles end, so that the next ones begin on a line of the
// first destination if elements do at all.
func (p *plan) lead(dsts [][]byte) int {
	lead := int(-address(dsts[0]) % line)
	if lead == 0 || lead%p.d.Size() != 0 {
		lead = pastTiles * tileElements * p.d.Size()
	}
	return lead
}

func address(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// outflow is a result on its way to the destinations.
type outflow struct {
	from []byte
	dsts [][]byte // those it has not come to
	at   int      // its place in them
}

// next is a destination for a kernel that copies n bytes, if there is one that it
// can write; it is then the caller's.
func (o *outflow) next(n int) (to, from []byte) {
	if len(o.dsts) == 0 || len(o.from) != n {
		return nil, nil
	}
	to = o.dsts[0][o.at : o.at+n]
	if address(to)%vector != 0 {
		return nil, nil
	}
	o.dsts = o.dsts[1:]
	return to, o.from
}

// flush copies to all destinations that are left.
func (o *outflow) flush() {
	for _, dst := range o.dsts {
		streamTo(dst[o.at:o.at+len(o.from)], o.from)
	}
	o.dsts = nil
}

// vector is what the address of a store that passes the caches by is a multiple of.
const vector = 32

// streamTo copies past the caches what can be.
func streamTo(dst, src []byte) {
	n := 0
	if address(dst)%vector == 0 {
		n = len(src) &^ (4*vector - 1)
		stream(dst[:n], src[:n])
	}
	copy(dst[n:], src[n:])
}
