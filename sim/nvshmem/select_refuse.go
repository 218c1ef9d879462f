package nvshmem

import (
	"fmt"
	"slices"

	"example.com/tandem/api"
)

// collectives are those the family has; dtypes those of the library's typed
// interfaces. long double and complex have no counterpart here.
var (
	collectives = []api.Collective{api.AllReduce, api.ReduceScatter, api.AllGather, api.Broadcast, api.AllToAll}
	dtypes      = []api.DType{
		api.BF16, api.F16, api.F32, api.F64,
		api.I8, api.I16, api.I32, api.I64, api.U8, api.U16, api.U32, api.U64,
	}
)

func (s *selector) refusal(spec api.Spec, reason, hint string) error {
	return &api.Refused{Spec: spec.String(), What: s.call.String(), Reason: reason, Hint: hint}
}

// refuse names the calls that the library has not, and those it hands on.
func (s *selector) refuse(spec api.Spec) error {
	c := s.call
	switch {
	case !slices.Contains(collectives, c.Collective):
		return s.refusal(spec, "NVSHMEM has no "+c.Collective.Name(), fmt.Sprintf("it has %s; make a `many` call lane by lane", names(collectives)))
	case !slices.Contains(dtypes, c.DType):
		return s.refusal(spec, fmt.Sprintf("NVSHMEM's interfaces have no %s", c.DType), "a copy of fp8 is a copy of u8; sums of fp8 it does not have")
	case c.Op == api.Avg:
		return s.refusal(spec, "NVSHMEM has no avg", "use sum, and divide")
	case c.Mode != "":
		return s.refusal(spec, fmt.Sprintf("NVSHMEM has no reduction modes, so none called %q", c.Mode), "leave the mode out")
	case !c.SrcOffset.Uniform() || !c.DstOffset.Uniform():
		return s.refusal(spec, "offsets differ between ranks, and NVSHMEM buffers are symmetric: at the same place on every rank", "give one offset for all ranks")
	case s.p.NCCL && s.handedToNCCL():
		return s.refusal(spec, "with nccl=on the library hands this on-stream call to NCCL", "use sim:nccl@2.28")
	}
	return nil
}

func names(cs []api.Collective) []string {
	out := make([]string, len(cs))
	for i, c := range cs {
		out[i] = c.Name()
	}
	return out
}

// handedToNCCL reports whether a build with NCCL hands the call over: on-stream
// calls of types and ops that NCCL has, where the team has no multicast base;
// broadcast and all-to-all with one too.
func (s *selector) handedToNCCL() bool {
	c := s.call
	if c.Scope != api.OnStream || c.DType == api.I16 || c.DType == api.U16 || c.Op.Bitwise() {
		return false
	}
	return !s.multicast || c.Collective == api.Broadcast || c.Collective == api.AllToAll
}
