package rlkernel

import (
	"fmt"

	"example.com/tandem/api"
	"example.com/tandem/hw/host"
)

// The algorithms of plans and reports.
const (
	algSingle = "single_block"
	algStage  = "stage_block"
	algMulti  = "multi_block"
	algCopies = "copies"
	algOwner  = "owner"
)

// Plan is what a team would do with a call whose buffers lie at their standard
// addresses. m is nil where there is no GPU: nothing but whether all ranks fit
// depends on one.
func Plan(m *host.Machine, spec api.Spec, call api.Call) (*api.Plan, error) {
	c, err := read(spec)
	if err != nil {
		return nil, err
	}
	if err := call.Validate(); err != nil {
		return nil, err
	}
	if err := c.admit(&call); err != nil {
		return nil, err
	}
	if m != nil {
		e := &Engine{config: c, machine: m}
		if err := e.ready(call.Ranks); err != nil {
			return nil, err
		}
	}
	p := host.NewPlan(spec, &call)
	if p.Fault, err = c.fault(&call); err != nil {
		return nil, err
	}
	c.explain(p)
	return p, nil
}

// fault is what a call ends in whose pairs would be stored at an odd place; it is
// refused unless the spec allows that.
func (c *config) fault(call *api.Call) (*api.Fault, error) {
	for rank := range call.Ranks {
		_, dst := call.Addrs(0, rank)
		switch {
		case dst%4 == 0 || !c.storesPairs(call):
		case !c.allowFault:
			return nil, c.refusePairs(rank, dst)
		default:
			return pairFault(rank, dst), nil
		}
	}
	return nil, nil
}

// pairFault is what storing pairs at an odd place ends in.
func pairFault(rank int, dst uint64) *api.Fault {
	return &api.Fault{Kind: api.FaultMisaligned, Rank: rank, Detail: fmt.Sprintf("bf16 pairs are stored as 4-byte words, and the output at 0x%x is no multiple of 4; the context is lost", dst)}
}

func (c *config) explain(p *api.Plan) {
	call := &p.Call
	list := c.schedule(call)
	var launches, waits [2]int64 // of rank 0, and of the others
	for _, l := range list {
		if l.party == followers && call.Ranks == 1 {
			continue
		}
		alg := c.algorithm(call, list, l.lane)
		known := api.FromSource
		if alg == algOwner {
			known = api.Reconstructed
		}
		p.Algorithms[alg] = api.Algorithm{Evidence: known, Contract: api.Exact}
		p.Kernels = append(p.Kernels, api.Kernel{Name: l.kernel, Lane: l.lane, CTAs: []api.CTA{l.cta(call, alg)}})
		for who := range min(2, call.Ranks) {
			if l.party.has(who) {
				launches[who]++
				waits[who] += l.rounds()
			}
		}
	}
	p.Cost = api.Cost{Launches: max(launches[0], launches[1]), Rounds: max(waits[0], waits[1]), Bytes: c.linkBytes(call)}
	p.Notes = append(p.Notes, fmt.Sprintf("blocks have %d threads; those of a grid share nothing, so a grid is one entry", threads))
	if call.Collective.Reduces() {
		p.Notes = append(p.Notes, "the balanced tree over the ranks, rounded at every node in the element type; the same bits on every path")
	}
}

// algorithm names the way of a lane.
func (c *config) algorithm(call *api.Call, list []launch, lane int) string {
	switch {
	case call.Collective == api.AllGatherMany:
		return algCopies
	case c.extension && call.Collective == api.AllReduce && inputBytes(call, 0) <= ownerBytes:
		return algOwner
	}
	alg := algMulti
	for _, l := range list {
		switch {
		case l.lane != lane:
		case l.kernel == kernelFusedGather || l.kernel == kernelFusedReduce || l.kernel == kernelFinish:
			return algSingle
		case l.kernel == kernelStage:
			alg = algStage
		}
	}
	return alg
}

// rounds is how often a launch waits for other ranks: the kernels that do all of a
// call do so before they stage and before they read.
func (l *launch) rounds() int64 {
	switch {
	case l.kernel == kernelFusedGather || l.kernel == kernelFusedReduce:
		return 2
	case l.waits():
		return 1
	}
	return 0
}

// cta is what a launch does, on every rank of its party.
func (l *launch) cta(call *api.Call, alg string) api.CTA {
	cta := api.CTA{Algorithm: alg, Why: l.why(call), Rounds: l.rounds()}
	if !l.writes() {
		return cta
	}
	cta.Count = call.Lane(l.lane).Count
	switch {
	case l.move == out:
		cta.Slices = []api.Slice{{Rank: l.peer, Start: int64(l.peer) * cta.Count, Count: cta.Count}}
	case l.move == mine:
		for r := range call.Ranks {
			if l.party.has(r) {
				cta.Slices = append(cta.Slices, api.Slice{Rank: r, Count: cta.Count, Local: true})
			}
		}
	case api.Base(call.Collective) == api.AllGather:
		for r := range call.Ranks {
			cta.Slices = append(cta.Slices, api.Slice{Rank: r, Start: int64(r) * cta.Count, Count: cta.Count})
		}
	}
	return cta
}

// writes reports whether a launch stores to outputs.
func (l *launch) writes() bool {
	switch l.kernel {
	case kernelFusedGather, kernelFusedReduce, kernelFinish, kernelGather:
		return true
	case kernelReduce:
		return !l.tree
	}
	return l.move == out || l.move == mine
}

var signals = map[uint32]string{
	doReserve: "waits until every rank has retired the call before",
	doPublish: "publishes the payload",
	doWait:    "waits until every rank has published its payload",
	doOwned:   "waits until rank 0 has retired",
	doRetire:  "lets every rank overwrite its payload",
}

func (l *launch) why(call *api.Call) string {
	grid := fmt.Sprintf("%d blocks", l.blocks)
	if l.blocks == 1 {
		grid = "one block"
	}
	who := [...]string{all: "", owner: ", on rank 0", followers: ", on all ranks but 0"}[l.party]
	bytes := inputBytes(call, l.lane)
	switch {
	case l.kernel == kernelSignal:
		return signals[l.what] + who
	case l.move == in:
		return fmt.Sprintf("%s copy %d bytes of input to %d bytes into the payload", grid, bytes, l.at)
	case l.move == out:
		return fmt.Sprintf("%s copy the payload of rank %d, from %d bytes on", grid, l.peer, l.at)
	case l.move == push:
		return fmt.Sprintf("%s copy the payload of rank 0 into that of rank %d", grid, l.peer)
	case l.move == mine:
		return grid + " copy the own payload" + who
	case l.tree:
		return grid + " reduce all payloads into the own" + who
	case l.kernel == kernelStage:
		return fmt.Sprintf("one block stages %d bytes and publishes them", bytes)
	case l.kernel == kernelGather:
		return grid + " read all payloads, a thread for every byte of output"
	case l.kernel == kernelFusedGather, l.kernel == kernelFusedReduce:
		return fmt.Sprintf("one block does all of the call: %d bytes of input, %d of output", bytes, outputBytes(call, l.lane))
	}
	return grid + " reduce all payloads"
}

// linkBytes is what the rank that sends most has fetched from it, or sends;
// counters are left out.
func (c *config) linkBytes(call *api.Call) (n int64) {
	others := int64(call.Ranks - 1)
	for lane := range call.Lanes() {
		bytes := inputBytes(call, lane)
		if api.Base(call.Collective) == api.ReduceScatter {
			bytes /= int64(call.Ranks)
		}
		n += bytes * others
	}
	return n
}
