package arith

import (
	"runtime"
	"sync"

	"example.com/tandem/api/num"
)

// Options says how a range is worked on, never what comes out. The zero value
// is right for almost everybody.
type Options struct {
	// Workers is the most goroutines that share one range; 0 stands for
	// GOMAXPROCS, 1 keeps to the caller's goroutine.
	Workers int
	// Portable keeps to the portable kernels where there is assembly too.
	Portable bool
	past     bool // for tests: write past the caches, however short a range is
}

const (
	badLength = "arith: ranges differ in length"
	badSize   = "arith: length is not a whole number of elements"
	noSources = "arith: no sources"
	badDType  = "arith: unknown element type"
	badOp     = "arith: no such operation on this type"
)

// tileElements is the length of a tile: with f32 accumulators for two of them
// half of a first-level cache of 32 KiB.
const tileElements = 2048

// shareBytes is the least number of source bytes that is worth a goroutine: about
// 20 us of work.
const shareBytes = 512 << 10

// Reduce sets every element of dst to what the scheme makes of the elements of
// srcs at the same place, srcs[0] being input 0. All are of one length, in bytes,
// and hold little-endian elements of d; dst may be one of srcs. See [num.Eval]
// for the meaning; lengths that do not fit and what Eval panics on panic.
func Reduce(dst []byte, d num.DType, s num.Scheme, srcs ...[]byte) {
	Options{}.Reduce(dst, d, s, srcs...)
}

// Reduce is the function [Reduce] under these options.
func (o Options) Reduce(dst []byte, d num.DType, s num.Scheme, srcs ...[]byte) {
	check(dst, d, srcs)
	if !s.Op.ValidFor(d) {
		panic(badOp)
	}
	if len(dst) == 0 {
		return
	}
	if len(srcs) == 1 {
		copy(dst, srcs[0])
		return
	}
	p := o.plan(d, s, len(srcs))
	o.split(len(dst), d.Size(), len(srcs)*len(dst), func(lo, hi int) {
		part := make([][]byte, len(srcs))
		for i, src := range srcs {
			part[i] = src[lo:hi]
		}
		p.run(dst[lo:hi], part)
	})
}

// Convert rounds every element of src, of type from, once into dst, of type to,
// as [num.Convert] does. Both hold the same number of elements. dst may be src
// where the types are of one size.
func Convert(dst []byte, to num.DType, src []byte, from num.DType, r num.Rounding) {
	Options{}.Convert(dst, to, src, from, r)
}

// Convert is the function [Convert] under these options.
func (o Options) Convert(dst []byte, to num.DType, src []byte, from num.DType, r num.Rounding) {
	if !to.Valid() || !from.Valid() || !to.Float() || !from.Float() {
		panic(badDType)
	}
	if len(dst)%to.Size() != 0 {
		panic(badSize)
	}
	if len(dst)/to.Size()*from.Size() != len(src) {
		panic(badLength)
	}
	convert := o.converter(to, from, r)
	o.split(len(dst), to.Size(), len(dst)+len(src), func(lo, hi int) {
		convert(dst[lo:hi], src[lo/to.Size()*from.Size():hi/to.Size()*from.Size()])
	})
}

func check(dst []byte, d num.DType, srcs [][]byte) {
	if !d.Valid() {
		panic(badDType)
	}
	if len(srcs) == 0 {
		panic(noSources)
	}
	for _, src := range srcs {
		if len(src) != len(dst) {
			panic(badLength)
		}
	}
	if len(dst)%d.Size() != 0 {
		panic(badSize)
	}
}

// split calls work for parts of the range 0:n bytes of elements of size bytes,
// on several goroutines if the cost in bytes is worth it.
func (o Options) split(n, size, cost int, work func(lo, hi int)) {
	workers := o.Workers
	if workers == 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	workers = min(workers, cost/shareBytes, n/(size*tileElements))
	if workers < 2 {
		work(0, n)
		return
	}
	// Whole tiles, so that no two workers write to one cache line of an aligned
	// destination.
	tiles := (n + size*tileElements - 1) / (size * tileElements)
	var wg sync.WaitGroup
	for w := range workers {
		lo := tiles * w / workers * tileElements * size
		hi := min(tiles*(w+1)/workers*tileElements*size, n)
		wg.Go(func() { work(lo, hi) })
	}
	wg.Wait()
}
