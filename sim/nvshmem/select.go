package nvshmem

import (
	"fmt"

	"example.com/tandem/api"
)

// The algorithms, as plans name them; plan.go says what each means.
const (
	algOneShot   = "one_shot"
	algTwoShot   = "two_shot"
	algRecExch   = "recexch"
	algSegment   = "segment"
	algLL        = "ll"
	algLinear    = "linear"
	algNVLS      = "nvls"
	algLL8       = "ll8"
	algCopy      = "copy"
	algTree      = "tree"
	algPutSignal = "put_signal"
	algNone      = "none"
)

// choice is an algorithm and why it was taken.
type choice struct{ alg, why string }

// selector holds what every decision about one call looks at. Counts given to
// its methods are those of one CTA, which decides for itself.
type selector struct {
	p         Params
	call      *api.Call
	ranks     int64
	count     int64 // of the call
	size      int64 // of an element, bytes
	multicast bool  // the team has a multicast base
	inPlace   bool

	whyScatterNVLS string // the same for every CTA and rank
}

func newSelector(p Params, call *api.Call) *selector {
	return &selector{
		p: p, call: call, ranks: int64(call.Ranks), count: call.Count, size: int64(call.DType.Size()),
		multicast: p.NVLS && call.Ranks >= 2 && (p.Domain == 0 || int64(call.Ranks) <= p.Domain), inPlace: call.InPlace != api.OutOfPlace,
		whyScatterNVLS: fmt.Sprintf("%s of %s has an in-switch form", call.Op, call.DType),
	}
}

// half reports whether the type is one of the two 16-bit floats.
func (s *selector) half() bool { return s.call.DType == api.BF16 || s.call.DType == api.F16 }

// noMulticast says why the team has no multicast base; "" if it has one.
func (s *selector) noMulticast() string {
	switch {
	case !s.p.NVLS:
		return "nvls=off: no multicast base"
	case s.ranks < 2:
		return "one rank: no multicast base"
	case !s.multicast:
		return fmt.Sprintf("%d ranks over two NVLink domains of %d: no multicast base", s.ranks, s.p.Domain)
	}
	return ""
}

const whyOddBytes = "byte length no multiple of 4"

// allReduce is nvshmemi_reduce_threadgroup's decision for n elements at the
// CTA's dst and src.
func (s *selector) allReduce(n int64, dst, src uint64) choice {
	common := s.noNVLS(n, dst, src)
	one, two := common, common
	if common == "" {
		two = s.noTwoShot(n)
		if dst == src {
			one = "in place, so no one-shot"
		}
	}
	switch s.p.ReduceAlgo {
	case 0, 1, 2:
		small := n <= s.p.NVLSThreshold
		if small && one == "" {
			return choice{algOneShot, fmt.Sprintf("%d elements, no more than %d, out of place", n, s.p.NVLSThreshold)}
		}
		if two != "" {
			return s.p2p(n, two)
		}
		if small {
			return choice{algTwoShot, fmt.Sprintf("no more than %d elements, but %s", s.p.NVLSThreshold, one)}
		}
		return choice{algTwoShot, fmt.Sprintf("%d elements, more than %d", n, s.p.NVLSThreshold)}
	case 3:
		if two == "" {
			return choice{algTwoShot, "forced by reduce_algo=3"}
		}
		return s.p2p(n, two)
	case 4:
		if one == "" {
			return choice{algOneShot, "forced by reduce_algo=4"}
		}
		return s.p2p(n, one)
	}
	return s.p2p(n, fmt.Sprintf("reduce_algo=%d selects P2P", s.p.ReduceAlgo))
}

// noNVLS says what keeps n elements from both in-switch algorithms of
// all-reduce; "" if nothing does. The library names single 16-bit elements apart,
// whose length is no multiple of 4 either.
func (s *selector) noNVLS(n int64, dst, src uint64) string {
	if why := s.noMulticast(); why != "" {
		return why
	}
	switch {
	case s.call.Op != api.Sum && !s.minMaxInSwitch():
		return fmt.Sprintf("all-reduce uses NVLS for sum only, not for %s", s.call.Op)
	case !s.half() && s.call.DType != api.F32:
		return fmt.Sprintf("all-reduce uses NVLS for bf16, f16 and f32 only, not for %s", s.call.DType)
	case n*s.size%4 != 0:
		return whyOddBytes
	case s.p.after() && dst%4 != 0:
		return "destination not 4-byte aligned"
	case s.p.after() && src%4 != 0:
		return "source not 4-byte aligned"
	}
	return ""
}

// minMaxInSwitch reports whether the call is a min or max that the text of PR
// #131 puts on the path of sums; there is no load-reduce for those of f32.
func (s *selector) minMaxInSwitch() bool {
	return s.p.MinMaxPR && s.half() && (s.call.Op == api.Min || s.call.Op == api.Max)
}

func (s *selector) noTwoShot(n int64) string {
	if !s.half() {
		return ""
	}
	switch {
	case n <= s.ranks:
		return fmt.Sprintf("%d elements for %d ranks", n, s.ranks)
	case n%s.ranks != 0:
		return fmt.Sprintf("%d elements are no multiple of %d ranks", n, s.ranks)
	case s.p.after() && n/s.ranks%2 != 0:
		return fmt.Sprintf("%d elements a rank is an odd slice", n/s.ranks)
	}
	return ""
}

// p2p is nvshmemi_gpu_rdxn_threadgroup's decision; why says what led there.
func (s *selector) p2p(n int64, why string) choice {
	if s.reduceLL(n) {
		return choice{algLL, fmt.Sprintf("%s; %d bytes a rank, no more than %d", why, n*s.size, s.p.LLThreshold)}
	}
	need, limit := newExchange(s.call.Ranks, s.p).scratch(n), s.p.SegmentBytes()
	if no := s.noExchange(); no != "" {
		return choice{algSegment, why + "; no recursive exchange: " + no}
	}
	if need > limit {
		return choice{algSegment, fmt.Sprintf("%s; recursive exchange would need %d of %d scratch elements", why, need, limit)}
	}
	return choice{algRecExch, fmt.Sprintf("%s; needs %d of %d scratch elements", why, need, limit)}
}

func (s *selector) reduceLL(n int64) bool {
	blockWide := s.call.Scope == api.Block || s.call.Scope == api.OnStream
	return s.call.Team == api.World && s.size >= 4 && n%2 == 0 && blockWide &&
		s.ranks*n*s.size <= s.p.Half() && n*s.size <= s.p.LLThreshold
}

// noExchange says what keeps the team from recursive exchange whatever the
// count; "" if nothing does.
func (s *selector) noExchange() string {
	radix := s.p.Radix(s.call.Ranks)
	switch {
	case s.call.Team != api.World:
		return "not the world team"
	case s.p.exchange2026() && radix != 2:
		return fmt.Sprintf("radix %d, and this version takes 2 only", radix)
	case s.p.exchange2026() && s.ranks&(s.ranks-1) != 0:
		return fmt.Sprintf("%d ranks are no power of two", s.ranks)
	}
	return ""
}
