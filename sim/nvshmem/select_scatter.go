package nvshmem

import "example.com/tandem/api"

// scatterWidths are the word widths of the local-reduce helper for the call: 16
// bytes for sums only, and never for f64.
func (s *selector) scatterWidths() []int64 {
	if s.call.Op == api.Sum && s.call.DType != api.F64 {
		return widthsAll
	}
	return widthsNo16
}

// The ways PR #131 may be read: which source address reduce-scatter tests.
const (
	alignPointer = "pointer" // the source of the call
	alignShifted = "shifted" // source + source_offset, which a rank reads from
)

// reduceScatter is nvshmemi_reducescatter_threadgroup's decision on one rank,
// for m elements: dst is the CTA's, src the call's source and shifted the
// address the rank reads from. A reduce-scatter that asserts is planned as if
// reducescatter_algo were 0; the fault is noted elsewhere.
func (s *selector) reduceScatter(m int64, dst, src, shifted uint64, align string) choice {
	if s.ranks == 1 {
		return choice{algCopy, "one rank"}
	}
	why := s.noScatterNVLS(m)
	if s.p.ReduceScatterAlgo == 2 {
		why = "reducescatter_algo=2 selects P2P"
	}
	if why == "" && s.p.after() {
		tested := src
		if align == alignShifted {
			tested = shifted
		}
		switch {
		case dst%4 != 0:
			why = "destination not 4-byte aligned"
		case tested%4 != 0:
			why = "source not 4-byte aligned"
		}
	}
	if why != "" {
		return choice{algLinear, why}
	}
	return choice{algNVLS, s.whyScatterNVLS}
}

// noScatterNVLS says what keeps m elements from the in-switch reduce-scatter,
// addresses apart; "" if nothing does.
func (s *selector) noScatterNVLS(m int64) string {
	if why := s.noMulticast(); why != "" {
		return why
	}
	wide, op := s.size >= 4, s.call.Op
	switch {
	case op == api.Prod:
		return "prod has no in-switch form"
	case !wide && !(s.half() && op == api.Sum):
		return "of the types narrower than 4 bytes only bf16 and f16 sums use NVLS"
	case wide && (op == api.Min || op == api.Max) && s.call.DType.Float():
		return "min and max of floats have no in-switch form here"
	case s.half() && s.ranks%2 != 0:
		return "16-bit sums use NVLS on an even number of ranks only"
	case m*s.size%4 != 0:
		return whyOddBytes
	}
	return ""
}

// scatterAlgoAsserts reports whether reducescatter_algo is one on which the
// library asserts.
func (s *selector) scatterAlgoAsserts() bool {
	a := s.p.ReduceScatterAlgo
	return a != 0 && a != 2 && a != 3
}
