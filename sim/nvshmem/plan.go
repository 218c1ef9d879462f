package nvshmem

import (
	"fmt"
	"slices"

	"example.com/tandem/api"
	"example.com/tandem/sim/nvls"
)

// What a plan holds, by algorithm. The program executes exactly this; from the
// parameters it takes only SegmentBytes, Radix and Rounding. n is the call's
// Count, m and start the CTA's. Slices, where there are any, are one a rank in
// rank order (broadcast: the root's only), empty ones included, so Slices[r] is
// rank r's. Slice.Algorithm replaces the CTA's where it is set. Starts and
// counts are elements of the destination. A slice in words is the prefix of
// 16*W16 + 8*W8 + 4*W4 bytes, in that order of widths; the rest is not touched.
//
//	none        no elements: nothing, not even a sync.
//	one_shot    all_reduce. Local slices, all of the CTA's range: each rank
//	            load-reduces its words and stores them into its own destination.
//	two_shot    all_reduce. Rank r load-reduces the words of its slice from all
//	            sources and multicasts them into all destinations.
//	recexch     all_reduce, no slices. Recursive exchange of the whole range,
//	            radix Params.Radix; one rank copies.
//	segment     all_reduce, no slices. Puts of at most Params.SegmentBytes.
//	ll          all_reduce, no slices. t = op(a0, a1); t = op(a_i, t).
//	            In version pr131-tail a CTA of either may have one slice more, the
//	            last one: a tail for the algorithm named in it, after the others.
//	linear      reduce_scatter. Local slices [start, m). Block j is read at
//	            source + j*m, whatever start: right for a single CTA only; holes
//	            of cause offset say where it is wrong. Where another rank of the
//	            CTA is on nvls its block never arrives: holes of cause stale.
//	nvls        reduce_scatter: local slices; rank r load-reduces words at
//	            source + r*n + start and stores them locally. all_gather: slice r
//	            begins at r*n + start; rank r multicasts words of its source from
//	            source + start.
//	ll8         all_gather. Slice r as in nvls is where the block belongs; the
//	            library writes it at r*m, which differs where m < n (such a call
//	            is raced: Unknown is set).
//	copy        all_gather: slice r as in nvls, put into every destination.
//	            all_to_all: slice r is block r of every destination, put by rank
//	            r from block q of its source into rank q's. reduce_scatter of one
//	            rank: a local copy.
//	tree        broadcast down the LL tree; the one slice is the root's. The root
//	            copies into its own destination unless in place.
//	put_signal  broadcast, flat; as tree.
//
// Holes of the causes offset and stale are written, with wrong values, and are
// in no Unwritten; the one exception is ll8 above, whose holes are unwritten.
// Plan.Fault is what the call ends in; CTAs are planned in 64 bits all the same.
// Plan.Unknown names a race; such a plan must be refused when run.

// Plan says what version and parameters of spec do with call. addrs gives the
// addresses of source and destination on a rank, and is call.Addrs where nil.
// The error is an *api.InvalidError or an *api.Refused; what the library would
// itself end in is Plan.Fault.
func Plan(spec api.Spec, call api.Call, addrs func(lane, rank int) (src, dst uint64)) (*api.Plan, error) {
	p, err := ParseParams(spec)
	if err != nil {
		return nil, err
	}
	if err := call.Validate(); err != nil {
		return nil, err
	}
	s := newSelector(p, &call)
	if err := s.refuse(spec); err != nil {
		return nil, err
	}
	if addrs == nil {
		addrs = call.Addrs
	}
	pl := &planner{selector: s, spec: spec}
	if err := pl.place(addrs); err != nil {
		return nil, err
	}
	if err := pl.build(); err != nil {
		return nil, err
	}
	if err := pl.checkSwitch(); err != nil {
		return nil, err
	}
	return pl.finish(), nil
}

// checkSwitch refuses a plan whose sums the fabric's switch does not do.
func (pl *planner) checkSwitch() error {
	for _, alg := range pl.used {
		if !pl.switched(alg) {
			continue
		}
		m, err := pl.p.Switch(pl.call.DType, pl.call.Op)
		if err == nil {
			_, err = nvls.NewReducer(m, pl.call.DType, pl.call.Op, pl.call.Ranks)
		}
		if err != nil {
			return pl.refusal(pl.spec, err.Error(), "another preset, or nvls=off")
		}
	}
	return nil
}

// planner builds one plan.
type planner struct {
	*selector
	spec api.Spec

	src, dst []uint64 // of each rank

	split split
	align string // the reading of PR #131 in force
	plan  *api.Plan
	words []int64  // multicast words, per rank
	bytes []int64  // sent to peers, per rank
	used  []string // algorithms, in order of appearance

	faults    []api.Fault
	faultKeys []string
}

// place takes the addresses and holds the caller to symmetric ones.
func (pl *planner) place(addrs func(lane, rank int) (src, dst uint64)) error {
	pl.src, pl.dst = make([]uint64, pl.ranks), make([]uint64, pl.ranks)
	for r := range pl.src {
		pl.src[r], pl.dst[r] = addrs(0, r)
		if (pl.src[r]|pl.dst[r])%uint64(pl.size) != 0 {
			return &api.InvalidError{
				Field: "memory", Value: fmt.Sprintf("source 0x%x, destination 0x%x on rank %d", pl.src[r], pl.dst[r], r),
				Reason: fmt.Sprintf("an address is no multiple of the element size %d", pl.size),
			}
		}
	}
	srcShared, dstShared := true, true
	if pl.inPlace {
		// One buffer: only the larger of the two is symmetric.
		src, dst := pl.call.Collective.Blocks(pl.call.Ranks)
		srcShared, dstShared = src >= dst, dst >= src
	}
	for r := range pl.src {
		if (srcShared && pl.src[r] != pl.src[0]) || (dstShared && pl.dst[r] != pl.dst[0]) {
			return pl.refusal(pl.spec, fmt.Sprintf("rank %d brings other addresses than rank 0, and NVSHMEM buffers are symmetric", r),
				"give every rank the same address")
		}
	}
	return nil
}

func (pl *planner) build() error {
	pl.words, pl.bytes = make([]int64, pl.ranks), make([]int64, pl.ranks)
	pl.plan = &api.Plan{Spec: pl.spec.String(), Call: *pl.call, Unwritten: make([]int64, pl.ranks)}
	pl.split = pl.splitCall()
	if err := pl.chooseAlign(); err != nil {
		return err
	}
	pl.checkParams()
	pl.checkSplit()
	kernel := api.Kernel{CTAs: make([]api.CTA, len(pl.split.spans))}
	if pl.call.Scope == api.OnStream {
		kernel.Name = pl.call.Collective.Name() + "_on_stream"
		pl.plan.Cost.Launches = 1
	}
	for b, sp := range pl.split.spans {
		cta := &kernel.CTAs[b]
		*cta = api.CTA{CTA: b, Start: sp.start, Count: sp.count}
		if sp.count == 0 {
			cta.Algorithm, cta.Why = algNone, "no elements"
			continue
		}
		switch pl.call.Collective {
		case api.AllReduce:
			pl.planAllReduce(cta)
		case api.ReduceScatter:
			pl.planReduceScatter(cta)
		case api.AllGather:
			pl.planAllGather(cta)
		case api.Broadcast:
			pl.planBroadcast(cta)
		default:
			pl.planAllToAll(cta)
		}
		pl.use(cta.Algorithm)
		pl.plan.Cost.Rounds = max(pl.plan.Cost.Rounds, cta.Rounds)
	}
	pl.plan.Kernels = []api.Kernel{kernel}
	return nil
}

func (pl *planner) use(alg string) {
	if !slices.Contains(pl.used, alg) {
		pl.used = append(pl.used, alg)
	}
}

// finish adds what follows from the CTAs as a whole.
func (pl *planner) finish() *api.Plan {
	pl.coverLL8()
	pl.countUnwritten()
	for r := range pl.words {
		pl.plan.Cost.Words = max(pl.plan.Cost.Words, pl.words[r])
		pl.plan.Cost.Bytes = max(pl.plan.Cost.Bytes, pl.bytes[r])
	}
	if len(pl.used) == 0 {
		pl.use(algNone)
	}
	pl.plan.Algorithms = make(map[string]api.Algorithm, len(pl.used))
	for _, alg := range pl.used {
		a := api.Algorithm{Evidence: pl.evidence(alg), Contract: pl.contract(alg)}
		if pl.switched(alg) {
			how := pl.arithmetic()
			a.AnyOrder, a.Fitted = how.AnyOrder, how.Fitted
		}
		pl.plan.Algorithms[alg] = a
	}
	if len(pl.faults) > 0 {
		pl.plan.Fault = &pl.faults[0]
	}
	pl.plan.Unknown = pl.race()
	pl.plan.Notes = pl.notes()
	return pl.plan
}

// countUnwritten sums the slices. In place a rank's own block of an all-gather
// already holds its value.
func (pl *planner) countUnwritten() {
	var shared int64
	own := pl.inPlace && pl.call.Collective == api.AllGather
	for i := range pl.plan.Kernels[0].CTAs {
		for _, s := range pl.plan.Kernels[0].CTAs[i].Slices {
			switch {
			case s.Local:
				pl.plan.Unwritten[s.Rank] += s.Unwritten
			default:
				shared += s.Unwritten
				if own {
					pl.plan.Unwritten[s.Rank] -= s.Unwritten
				}
			}
		}
	}
	for r := range pl.plan.Unwritten {
		pl.plan.Unwritten[r] += shared
	}
}
