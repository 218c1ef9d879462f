package nvshmem

import (
	"fmt"

	"example.com/tandem/api"
	"example.com/tandem/sim/nvls"
)

// notes are the facts about the plan worth reading, in order of weight.
func (pl *planner) notes() []string {
	var out []string
	for _, add := range []func() string{
		pl.noteInPlace, pl.noteDomain, pl.noteRounding, pl.noteIntegerWords, pl.noteRankOrder, pl.noteAlign,
		pl.noteThreshold, pl.noteVersion, pl.noteCoverage, pl.noteOverrun, pl.noteMaxCTAs, pl.noteEmpty, pl.noteNCCL,
	} {
		if text := add(); text != "" {
			out = append(out, text)
		}
	}
	for i := 1; i < len(pl.faults); i++ {
		out = append(out, "it would also fail with "+string(pl.faults[i].Kind)+": "+pl.faults[i].Detail)
	}
	return out
}

func (pl *planner) uses(alg string) bool {
	_, ok := pl.plan.Algorithms[alg]
	return ok
}

func (pl *planner) inSwitchSum() bool {
	return pl.uses(algOneShot) || pl.uses(algTwoShot) || (pl.uses(algNVLS) && pl.call.Op == api.Sum)
}

// noteInPlace names the calls of which the library spoils its own input.
func (pl *planner) noteInPlace() string {
	if !pl.inPlace || pl.ranks < 3 {
		return ""
	}
	if pl.call.InPlace == api.InPlaceOwn && pl.uses(algLinear) {
		return "in place on the own block, ranks 2 and up lose their own contribution and count the sum before them twice (recorded from 3.4.5)"
	}
	if !pl.uses(algSegment) {
		return ""
	}
	for _, c := range pl.plan.Kernels[0].CTAs {
		if c.Algorithm == algSegment && c.Rounds > 1 {
			return "in place in several rounds, the segment algorithm sends what it has already reduced (recorded from 3.4.5)"
		}
	}
	return ""
}

// noteDomain: no NVLink domain that exists is as large as the team.
func (pl *planner) noteDomain() string {
	if !pl.multicast || pl.ranks <= nvls.MaxDomain || pl.p.Domain != 0 {
		return ""
	}
	return fmt.Sprintf("%d ranks are taken as one NVLink domain, and none holds more than %d; say %s=%d, and the team has no multicast base", pl.ranks, nvls.MaxDomain, nvls.DomainParam, nvls.MaxDomain)
}

func (pl *planner) noteRounding() string {
	if !pl.inSwitchSum() || !pl.call.DType.Float() {
		return ""
	}
	m, err := pl.p.Switch(pl.call.DType, pl.call.Op)
	if err != nil {
		return ""
	}
	if m.Final == nvls.RNE && pl.half() && pl.call.Op == api.Sum && !m.Fitted {
		return fmt.Sprintf("last rounding rne: the hardware is known not to round in-switch 16-bit sums to nearest (PR #131, B300); no public rule says which neighbour it gives; %s", m.Says(pl.call.DType, pl.call.Op))
	}
	return m.Says(pl.call.DType, pl.call.Op)
}

func (pl *planner) noteIntegerWords() string {
	if !pl.uses(algNVLS) || pl.call.Collective != api.ReduceScatter || pl.call.DType.Float() {
		return ""
	}
	switch pl.call.Op {
	case api.Sum:
		return "integer sums in 16-byte words are added by the switch as f32 patterns, which is exact only while the 32-bit words of all ranks sum to less than 2^24, and refused beyond; in 8-byte words as u64, so a 32-bit carry reaches the next element"
	case api.Min, api.Max:
		if pl.size == 4 {
			return "32-bit min and max in 8-byte words are compared as 64-bit pairs"
		}
	}
	return ""
}

func (pl *planner) noteRankOrder() string {
	if pl.ranks < 3 || !pl.call.DType.Float() {
		return ""
	}
	if pl.uses(algSegment) {
		return "the segment algorithm adds in the order own, me-1, me-2, ..: ranks may end with different bits"
	}
	if pl.uses(algRecExch) && pl.p.Radix(pl.call.Ranks) > 2 {
		return "recursive exchange of a radix above 2 adds in an order of its own on every rank: ranks may end with different bits"
	}
	return ""
}

func (pl *planner) noteAlign() string {
	if pl.p.rsAlign == "" || pl.call.Collective != api.ReduceScatter {
		return ""
	}
	return "rs_align=" + pl.p.rsAlign + " is an assumption: the text of PR #131 does not say which address reduce-scatter tests"
}

func (pl *planner) noteThreshold() string {
	if pl.call.Collective != api.AllReduce || pl.call.Scope != api.OnStream || !pl.multicast || pl.count*pl.size != reduceCTABytes {
		return ""
	}
	return fmt.Sprintf("at the threshold: the source spreads a call over CTAs from >= %d bytes on, the text of PR #131 says above", reduceCTABytes)
}

func (pl *planner) noteVersion() string {
	if !pl.p.exchange2026() || pl.call.Collective != api.AllReduce || pl.call.Team != api.World {
		return ""
	}
	if pl.uses(algSegment) && pl.noExchange() != "" {
		return "recursive exchange with radix 2 on powers of two only, as the 2026 sources have it"
	}
	return ""
}

func (pl *planner) noteCoverage() string {
	if pl.p.Version != version345 || pl.call.Scope != api.Block || !(pl.inSwitchSum() || pl.uses(algNVLS)) {
		return ""
	}
	return "what stays unwritten was recorded from the library's own device code; in-switch values were never run"
}

// noteOverrun: the 16-byte stage of the multicast copy is handed the length of
// the whole range, not that of its words.
func (pl *planner) noteOverrun() string {
	if pl.call.Collective != api.AllGather {
		return ""
	}
	for _, c := range pl.plan.Kernels[0].CTAs {
		if c.Algorithm == algNVLS && c.Count*pl.size%16 != 0 && c.Count*pl.size >= 16 {
			return "in source, the 16-byte stage of fcollect's multicast copy runs over the end of a length that is no multiple of 16, by up to 12 bytes; not run, and not in the model"
		}
	}
	return ""
}

func (pl *planner) noteMaxCTAs() string {
	if pl.p.MaxCTAs == 0 || !pl.p.exchange2026() || pl.split.blocks == 1 {
		return ""
	}
	return "max_ctas: in 2026 versions it passes through a function whose body was not seen; taken as in 3.4.5"
}

func (pl *planner) noteEmpty() string {
	if pl.count > 0 || pl.call.Scope != api.OnStream || pl.call.Collective == api.AllReduce || pl.call.Collective == api.AllGather {
		return ""
	}
	return "in source, an empty on-stream call of this collective is launched with 0 threads, which CUDA rejects; not run, planned as a call that does nothing"
}

func (pl *planner) noteNCCL() string {
	switch {
	case pl.p.NCCL || pl.call.Scope != api.OnStream:
		return ""
	case pl.handedToNCCL():
		return "nccl=off (default): a build with NCCL would hand this call to it"
	}
	return "nccl=off (default): it would make no difference to this call"
}
