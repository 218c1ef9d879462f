package nvshmem

import (
	"slices"

	"example.com/tandem/api"
	"example.com/tandem/sim/nvls"
)

// Family is the nvshmem family: its versions, and the planner of their calls.
type Family struct{}

// Name is the name of the family in a Spec.
func (Family) Name() string { return Name }

// Plan is [Plan] at the addresses of the call itself.
func (Family) Plan(spec api.Spec, call api.Call) (*api.Plan, error) { return Plan(spec, call, nil) }

// Implementations lists the versions.
func (Family) Implementations() []api.Implementation {
	summaries := map[string]string{
		version2dca770: "before PR #131: read in source around commit 2dca770, recursive exchange as in 2026",
		versionPR131:   "after PR #131, which keeps NVLS reductions on 4-byte aligned 16-bit slices; reconstructed from its text",
		versionTeam:    "a follow-up that PR #131 names: CTAs split at multiples of 16 bytes x team size",
		versionTail:    "a follow-up that PR #131 names: what is no multiple of 16 bytes x team size is split off to P2P",
		version345:     "release 3.4.5, whose P2P results were recorded",
	}
	out := make([]api.Implementation, len(versions))
	for i, v := range versions {
		var params []api.Param
		for _, s := range settingsOf(v) {
			params = append(params, s.Param)
		}
		params = append(params, nvls.Params()...)
		out[i] = api.Implementation{
			Name: Name, Version: v, Summary: summaries[v], Params: params,
			Collectives: slices.Clone(collectives), DTypes: slices.Clone(dtypes),
			Promises: []api.Check{api.CheckCoverage, api.CheckValue, api.CheckRunToRun, api.CheckLiveness},
			Contract: api.Faithful, Evidence: evidenceOf(v),
			Thresholds: func(c api.Call) []int64 { return thresholds(v, c) },
		}
	}
	return out
}

// evidenceOf is the evidence of each algorithm of a version at its best; a plan
// says what holds for its call.
func evidenceOf(version string) map[string]api.Evidence {
	p2p, inSwitch, scatter, gather := api.FromSource, api.FromSource, api.FromSource, api.Assumed
	switch version {
	case version345:
		p2p, gather = api.Recorded, api.Recorded
	case version2dca770:
		inSwitch = api.Reported
	case versionPR131:
		inSwitch, scatter = api.Reconstructed, api.Reconstructed
	case versionTeam, versionTail:
		inSwitch, scatter = api.Assumed, api.Reconstructed
	}
	return map[string]api.Evidence{
		algOneShot: inSwitch, algTwoShot: inSwitch, algNVLS: scatter,
		algRecExch: p2p, algSegment: p2p, algLL: p2p, algLinear: p2p,
		algLL8: gather, algCopy: gather, algTree: p2p, algPutSignal: p2p,
	}
}

// thresholds are the counts around which a version changes its mind about a
// call, all parameters at their defaults.
func thresholds(version string, c api.Call) []int64 {
	if c.Validate() != nil {
		return nil
	}
	p := defaults(version)
	s := newSelector(p, &c)
	var out []int64
	switch c.Collective {
	case api.AllReduce:
		out = s.reduceThresholds()
	case api.ReduceScatter:
		out = []int64{2, p.Half() / (s.size * s.ranks), reduceScatterCTABytes / (s.size * s.ranks), reduceCTAs * p.Half() / (s.size * s.ranks)}
	case api.AllGather:
		out = []int64{4, p.LLThreshold / s.size, fcollectCTABytes / (s.size * s.ranks)}
	case api.Broadcast:
		out = []int64{2, broadcastLLBytes / s.size}
	}
	slices.Sort(out)
	out = slices.Compact(out)
	return slices.DeleteFunc(out, func(n int64) bool { return n < 1 || n > api.MaxCount })
}

func (s *selector) reduceThresholds() []int64 {
	seg := s.p.SegmentBytes()
	exchange := newExchange(s.call.Ranks, s.p).limit(s.p)
	out := []int64{
		1, s.ranks, 2 * s.ranks, s.p.NVLSThreshold, exchange, reduceCTAs * exchange,
		s.p.LLThreshold / s.size, s.p.Half() / (s.ranks * s.size), reduceCTABytes / s.size, reduceCTAs * s.p.NVLSThreshold,
	}
	// The segment algorithm's tail goes to as many peers a round as fit.
	for slots := int64(1); slots < s.ranks; slots++ {
		out = append(out, seg/(s.size*slots))
	}
	return out
}
