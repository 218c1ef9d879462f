package sim

import (
	"cmp"
	"fmt"
	"slices"
	"unsafe"

	"example.com/tandem/api"
)

// extent is where a payload lies in this process.
type extent struct {
	lo, hi     uintptr
	rank, lane int
}

func extentOf(m api.Image, rank, lane int) extent {
	p := m.Payload()
	lo := uintptr(unsafe.Pointer(unsafe.SliceData(p)))
	return extent{lo, lo + uintptr(len(p)), rank, lane}
}

func (e extent) overlaps(f extent) bool { return e.lo < f.hi && f.lo < e.hi }

// checkAliasing holds the images of one rank to one memory: source and
// destination of a lane share Go memory exactly where they share addresses.
func checkAliasing(rank int, mem api.Memory) error {
	for i, l := range mem {
		src, dst := extentOf(l.Src, rank, i), extentOf(l.Dst, rank, i)
		if src.lo == src.hi || dst.lo == dst.hi {
			continue
		}
		shared := l.Src.Addr < l.Dst.Addr+uint64(l.Dst.Len()) && l.Dst.Addr < l.Src.Addr+uint64(l.Src.Len())
		switch {
		case shared && uint64(dst.lo-src.lo) != l.Dst.Addr-l.Src.Addr:
			return &api.InvalidError{Field: "memory", Value: fmt.Sprintf("lane %d of rank %d", i, rank), Reason: "source and destination overlap by address, but their bytes are not the same memory", Hint: "make one image a part of the other's bytes"}
		case !shared && src.overlaps(dst):
			return &api.InvalidError{Field: "memory", Value: fmt.Sprintf("lane %d of rank %d", i, rank), Reason: "source and destination are apart by address, but their bytes are the same memory", Hint: "give them memory of their own"}
		}
	}
	return nil
}

// checkSharing finds a destination that shares memory with a buffer of another
// rank or lane. Sources may share.
func checkSharing(mem []api.Memory) error {
	var srcs, dsts []extent
	for r, m := range mem {
		for i, l := range m {
			if e := extentOf(l.Src, r, i); e.lo < e.hi {
				srcs = append(srcs, e)
			}
			if e := extentOf(l.Dst, r, i); e.lo < e.hi {
				dsts = append(dsts, e)
			}
		}
	}
	slices.SortFunc(dsts, func(a, b extent) int { return cmp.Compare(a.lo, b.lo) })
	for i := 1; i < len(dsts); i++ {
		if dsts[i].overlaps(dsts[i-1]) {
			return shared(dsts[i-1], dsts[i], "destination")
		}
	}
	for _, s := range srcs {
		i, _ := slices.BinarySearchFunc(dsts, s.lo, func(d extent, lo uintptr) int {
			if d.hi <= lo {
				return -1
			}
			return 1
		})
		for ; i < len(dsts) && dsts[i].lo < s.hi; i++ {
			if d := dsts[i]; d.rank != s.rank || d.lane != s.lane {
				return shared(d, s, "source")
			}
		}
	}
	return nil
}

func shared(dst, other extent, what string) error {
	return &api.InvalidError{
		Field: "memory", Value: fmt.Sprintf("destination of rank %d, lane %d", dst.rank, dst.lane),
		Reason: fmt.Sprintf("it shares bytes with the %s of rank %d, lane %d", what, other.rank, other.lane),
		Hint:   "give every destination memory of its own",
	}
}
