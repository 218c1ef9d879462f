package nvshmem

import "example.com/tandem/api"

// The widths a helper of the library goes through, widest first, in bytes.
var (
	widthsAll  = []int64{16, 8, 4}
	widthsNo16 = []int64{8, 4}
)

// cascade walks the word cascade of the library's multicast helpers over bytes
// bytes at dst and src: at each width that both addresses have and that fits
// what is left, all words of that width. There is no peeling of a misaligned
// head, and what is left after the narrowest width is left for good. touched is
// the length of the prefix that was processed.
//
// It models nvshmemi_add_reduce_mcast_threadroup, the local-reduce helper of
// reduce-scatter and nvshmemi_mcast_memcpy_threadgroup, which differ in widths.
func cascade(dst, src uint64, bytes int64, widths []int64) (words api.WordCount, touched int64) {
	for _, w := range widths {
		rest := bytes - touched
		at := uint64(touched)
		if rest < w || (dst+at)%uint64(w) != 0 || (src+at)%uint64(w) != 0 {
			continue
		}
		n := rest / w
		switch w {
		case 16:
			words.W16 = n
		case 8:
			words.W8 = n
		default:
			words.W4 = n
		}
		touched += n * w
	}
	return words, touched
}

// aligned4 reports whether a 4-byte word may start at both addresses.
func aligned4(dst, src uint64) bool { return dst%4 == 0 && src%4 == 0 }

// starts are the addresses at which a slice begins, and where what it is a part
// of begins.
type starts struct {
	dst, src       uint64 // of the slice
	ptrDst, ptrSrc uint64 // the caller's pointers
	cta            uint64 // from those to the CTA's range, in bytes
}

// cause says why a cascade that begins at s lost what it lost.
func (s starts) cause() api.Cause {
	switch {
	case aligned4(s.dst, s.src):
		return api.OddTail
	case !aligned4(s.ptrDst, s.ptrSrc):
		return api.OddPointer
	case s.cta%4 != 0:
		return api.OddCTAStart
	}
	return api.OddSliceStart
}
