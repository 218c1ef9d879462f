package host

import (
	"fmt"
	"hash/fnv"

	"example.com/tandem/api"
)

// Hash is what headers carry of a call.
func Hash(c *api.Call) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(Same(c)))
	return h.Sum64()
}

// checkAliases holds the images of one rank to one memory: source and
// destination of a lane share Go memory exactly where they share addresses, and
// no destination meets a buffer of another lane.
func checkAliases(call *api.Call, rank int, mem api.Memory) error {
	refuse := func(lane int, reason, hint string) error {
		return &api.InvalidError{Field: "memory", Value: fmt.Sprintf("lane %d of rank %d", lane, rank), Reason: reason, Hint: hint}
	}
	for i, l := range mem {
		for _, m := range []api.Image{l.Src, l.Dst} {
			if m.Addr < uint64(m.Guard) || m.Addr > 1<<63-uint64(len(m.Bytes)) {
				return refuse(i, fmt.Sprintf("no buffer of %d bytes fits at address 0x%x", len(m.Bytes), m.Addr), "")
			}
		}
		slo, shi := extent(l.Src)
		dlo, dhi := extent(l.Dst)
		if slo == shi || dlo == dhi {
			continue
		}
		shared := l.Src.Addr < l.Dst.Addr+uint64(l.Dst.Len()) && l.Dst.Addr < l.Src.Addr+uint64(l.Src.Len())
		switch {
		case shared && uint64(dlo-slo) != l.Dst.Addr-l.Src.Addr:
			return refuse(i, "source and destination overlap by address, but their bytes are not the same memory", "make one image a part of the other's bytes")
		case !shared && slo < dhi && dlo < shi:
			return refuse(i, "source and destination are apart by address, but their bytes are the same memory", "give them memory of their own")
		}
		for j, o := range mem {
			for _, m := range []api.Image{o.Src, o.Dst} {
				lo, hi := extent(m)
				meets := l.Dst.Addr < m.Addr+uint64(m.Len()) && m.Addr < l.Dst.Addr+uint64(l.Dst.Len())
				if j != i && lo < hi && (meets || lo < dhi && dlo < hi) {
					return refuse(i, fmt.Sprintf("its destination overlaps a buffer of lane %d", j), "keep the outputs apart")
				}
			}
		}
	}
	_ = call
	return nil
}
