package nccl

import (
	"fmt"

	"example.com/tandem/api"
)

// The algorithms of a plan.
const (
	algCopy    = "copy"
	algOneRank = "one_rank" // oneRankReduce: one rank's avg
	algRing    = "ring"     // reduce-scatter; all-reduce has ring_ll and so on
	algNone    = "none"
)

// maxSlices bounds the slices listed in a plan; a CTA that would exceed it
// lists none, and its range and rounds say the same.
const maxSlices = 4096

// Plan says what the spec does with call.
func Plan(spec api.Spec, call api.Call) (*api.Plan, error) {
	p, err := parseParams(spec)
	if err != nil {
		return nil, err
	}
	if err := call.Validate(); err != nil {
		return nil, err
	}
	if err := refuse(spec, &call); err != nil {
		return nil, err
	}
	plan := &api.Plan{
		Spec: spec.String(), Call: call, Unwritten: make([]int64, call.Ranks),
		Kernels: []api.Kernel{{Name: call.Collective.Name()}}, Cost: api.Cost{Launches: 1},
		Algorithms: map[string]api.Algorithm{},
	}
	kernel := &plan.Kernels[0]
	switch {
	case call.Count == 0:
		kernel.CTAs = []api.CTA{{Algorithm: algNone, Why: "no elements"}}
	case call.Ranks == 1 && call.Op == api.Avg && call.DType.Float():
		kernel.CTAs = oneRank(plan)
	case call.Ranks == 1 || !call.Collective.Reduces():
		kernel.CTAs = []api.CTA{{Count: call.Count, Algorithm: algCopy, Why: "nothing to reduce", Rounds: 1}}
		plan.Cost.Bytes = int64(call.Ranks-1) * call.Count * int64(call.DType.Size())
	case call.Collective == api.ReduceScatter:
		kernel.CTAs = []api.CTA{scatter(&call)}
		plan.Cost.Rounds = int64(call.Ranks - 1)
		plan.Cost.Bytes = int64(call.Ranks-1) * call.Count * int64(call.DType.Size())
	default:
		kernel.CTAs = ring(plan, p)
	}
	for i := range kernel.CTAs {
		alg := kernel.CTAs[i].Algorithm
		plan.Algorithms[alg] = api.Algorithm{Evidence: evidence(alg, &call)}
	}
	return plan, nil
}

// evidence: two ranks were recorded; at more the owners depend on the protocol
// and channels, which are assumed.
func evidence(alg string, c *api.Call) api.Evidence {
	switch {
	case alg == algCopy || alg == algNone || alg == algOneRank:
		return api.FromSource
	case c.Ranks == 2 && (c.DType == api.F32 || c.DType == api.F16 || c.DType == api.BF16) &&
		(alg == algRing || c.Count*int64(c.DType.Size()) <= lastSeenLL):
		return api.Recorded
	case alg == algRing:
		return api.FromSource
	}
	return api.Assumed
}

// oneRank is the kernel of a single rank's avg. Each block takes a share that
// is rounded down, so the tail of the call is dropped unless it divides
// (NVIDIA/nccl#1950, fixed in 2.29.7).
func oneRank(plan *api.Plan) []api.CTA {
	c := &plan.Call
	size := int64(c.DType.Size())
	blocks := min(32, ceilDiv(c.Count*size, 16<<10))
	grain := 16 / size
	share := ceilDiv(c.Count/blocks, grain) * grain
	ctas := make([]api.CTA, blocks)
	for b := range ctas {
		start := min(int64(b)*share, c.Count)
		n := min(share, c.Count-start)
		ctas[b] = api.CTA{
			CTA: b, Start: start, Count: n, Algorithm: algOneRank, Why: "one rank multiplies by 1/1 in a kernel of its own",
			Slices: []api.Slice{{Start: start, Count: n}},
		}
	}
	if lost := c.Count - min(blocks*share, c.Count); lost > 0 {
		last := &ctas[blocks-1]
		last.Count += lost
		last.Slices = append(last.Slices, api.Slice{
			Start: c.Count - lost, Count: lost, Unwritten: lost, Why: "every block's share is rounded down and no block takes the rest",
			Holes: []api.Hole{{Start: c.Count - lost, Count: lost, Cause: api.OddTail}},
		})
		plan.Unwritten[0] = lost
	}
	return ctas
}

func scatter(c *api.Call) api.CTA {
	cta := api.CTA{Count: c.Count, Algorithm: algRing, Why: "block r is folded from rank r+1 round to rank r, whatever the split", Rounds: int64(c.Ranks - 1)}
	for r := range c.Ranks {
		cta.Slices = append(cta.Slices, api.Slice{Rank: r, Count: c.Count, Local: true})
	}
	return cta
}

func ring(plan *api.Plan, p params) []api.CTA {
	c := &plan.Call
	name, why := p.proto, "as asked"
	if name == protoAuto {
		name, why = protoSimple, fmt.Sprintf("above %d bytes", autoLL)
		if c.Count*int64(c.DType.Size()) <= autoLL {
			name, why = protoLL, fmt.Sprintf("at most %d bytes", autoLL)
		}
	}
	proto := protocolOf(name)
	ranks, size := int64(c.Ranks), int64(c.DType.Size())
	var ctas []api.CTA
	slices := 0
	for i, pt := range channelParts(c, p, proto) {
		loops := ceilDiv(pt.count, ranks*(proto.chunk/size))
		cta := api.CTA{CTA: i, Start: pt.start, Count: pt.count, Algorithm: algorithmOf(name), Why: fmt.Sprintf("%s: %s", name, why), Rounds: 2 * (ranks - 1) * loops}
		if slices += int(min(loops*ranks, maxSlices+1)); slices <= maxSlices {
			for ch := range chunks(pt, ranks, size, proto) {
				cta.Slices = append(cta.Slices, api.Slice{Rank: int(ch.owner), Start: ch.start, Count: ch.count})
			}
		}
		plan.Cost.Rounds = max(plan.Cost.Rounds, cta.Rounds)
		ctas = append(ctas, cta)
	}
	plan.Cost.Bytes = 2 * (ranks - 1) * ceilDiv(c.Count, ranks) * size
	return ctas
}

func algorithmOf(proto string) string {
	return map[string]string{protoLL: "ring_ll", protoLL128: "ring_ll128", protoSimple: "ring_simple"}[proto]
}

func protoOf(algorithm string) protocol {
	for _, name := range []string{protoLL, protoLL128} {
		if algorithmOf(name) == algorithm {
			return protocolOf(name)
		}
	}
	return protocolOf(protoSimple)
}

// chunk is what one rank owns of one loop.
type chunk struct{ owner, start, count int64 }

// chunks yields the chunks of a channel in order, empty ones left out.
func chunks(pt part, ranks, size int64, proto protocol) func(yield func(chunk) bool) {
	return func(yield func(chunk) bool) {
		for off := int64(0); off < pt.count; {
			rem := pt.count - off
			n := chunkElems(rem, ranks, size, proto)
			for r := range ranks {
				if left := rem - r*n; left > 0 && !yield(chunk{r, pt.start + off + r*n, min(n, left)}) {
					return
				}
			}
			off += ranks * n
		}
	}
}

// Thresholds are the counts around which the plan of a call changes.
func Thresholds(c api.Call) []int64 {
	size := int64(max(1, c.DType.Size()))
	return []int64{16 / size, 16384 / size, autoLL / size, 32768 / size * int64(c.Ranks)}
}
