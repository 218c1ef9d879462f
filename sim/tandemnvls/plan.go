package tandemnvls

import (
	"fmt"

	"example.com/tandem/api"
	"example.com/tandem/sim"
	"example.com/tandem/sim/tandem"
)

// The algorithms of a plan.
const (
	algSwitch = "switch" // words through the switch
	algTree   = "tree"   // lines to the peers, then the fixed tree
	algEmpty  = "empty"  // nothing to move: a synchronisation
)

// Family is the sim.Family of tandem-nvls.
type Family struct{}

var (
	_ sim.Family = Family{}
	_ sim.Runner = (*session)(nil)
)

// Name is "tandem-nvls".
func (Family) Name() string { return Name }

// Implementations describes the one version there is.
func (Family) Implementations() []api.Implementation {
	evidence := map[string]api.Evidence{algSwitch: api.Reported, algTree: api.FromSource, algEmpty: api.FromSource}
	for _, impl := range (tandem.Family{}).Implementations() {
		for alg, e := range impl.Evidence {
			evidence[alg] = e
		}
	}
	return []api.Implementation{{
		Name: Name, Summary: "all_reduce, reduce_scatter and all_gather through the switch, without holes; every other call is tandem's",
		Params: params(), Collectives: api.Collectives(), DTypes: api.DTypes(),
		Promises: []api.Check{api.CheckCoverage, api.CheckValue, api.CheckRankAgreement, api.CheckRunToRun, api.CheckPlacementInvariance, api.CheckLiveness},
		Contract: api.Faithful, Evidence: evidence, Thresholds: thresholds,
	}}
}

// thresholds are the counts at which something goes another way.
func thresholds(call api.Call) []int64 {
	if !call.DType.Valid() || call.Ranks < 2 {
		return nil
	}
	size, ranks := int64(call.DType.Size()), int64(call.Ranks)
	return []int64{max(1, word/size), word * ranks / size, ctaBytes / size, maxCTAs * ctaBytes / size}
}

// Plan decides what a call does; its addresses do not matter.
func (Family) Plan(spec api.Spec, call api.Call) (*api.Plan, error) {
	c, err := parseConfig(spec)
	if err != nil {
		return nil, err
	}
	return c.plan(&call)
}

func (c *config) plan(call *api.Call) (*api.Plan, error) {
	// Whatever tandem does not take, this does not take either.
	p, err := tandem.Family{}.Plan(c.tandem, *call)
	if err != nil {
		return nil, err
	}
	if why := c.elsewhere(call); why != "" {
		p.Spec = c.spec.String()
		p.Notes = append([]string{"this call is tandem's: " + why}, p.Notes...)
		return p, nil
	}
	s := c.shapeOf(call)
	p = &api.Plan{Spec: c.spec.String(), Call: *call, Unwritten: make([]int64, call.Ranks), Cost: s.cost(c), Notes: c.notes(s), Algorithms: map[string]api.Algorithm{}}
	k := api.Kernel{Name: "tandem_nvls"}
	for b := range int(s.grid) {
		if cta := s.cta(b); cta.Count > 0 {
			k.CTAs = append(k.CTAs, cta)
			p.Algorithms[algSwitch] = c.switchAlgorithm(call)
		}
	}
	if s.rest > 0 {
		k.CTAs = append(k.CTAs, s.tail())
		p.Algorithms[algTree] = api.Algorithm{Evidence: api.FromSource}
	}
	if len(k.CTAs) == 0 {
		k.CTAs = []api.CTA{{Algorithm: algEmpty, Why: "nothing to move; the call still synchronises", Rounds: 1}}
		p.Algorithms[algEmpty] = api.Algorithm{Evidence: api.FromSource}
	}
	p.Kernels = []api.Kernel{k}
	return p, nil
}

func (c *config) switchAlgorithm(call *api.Call) api.Algorithm {
	if !call.Collective.Reduces() {
		return api.Algorithm{Evidence: api.FromSource}
	}
	return c.arith.Algorithm(call.DType, call.Op)
}

// cta is what a CTA puts through the switch.
func (s *shape) cta(b int) api.CTA {
	lo, n := s.bytes(s.share(b))
	cta := api.CTA{CTA: b, Start: lo / s.size, Count: n / s.size, Algorithm: algSwitch, Why: "whole 16-byte words, in team memory", Rounds: int64(2*s.chunks(b) + 1)}
	cta.Words = ceil(n, word)
	if s.call.Collective == api.AllReduce {
		cta.Words = ceil(cta.Words, int64(s.call.Ranks))
	}
	if s.call.Collective == api.AllGather && n > 0 {
		for r := range s.call.Ranks {
			cta.Slices = append(cta.Slices, api.Slice{Rank: r, Start: int64(r)*s.call.Count + cta.Start, Count: cta.Count, Words: api.WordCount{W16: cta.Words}})
		}
	}
	return cta
}

// tail is the CTA of what is left.
func (s *shape) tail() api.CTA {
	return api.CTA{
		CTA: int(s.grid), Start: s.main / s.size, Count: s.rest / s.size, Algorithm: algTree, Rounds: 2,
		Why: fmt.Sprintf("the last %d bytes, fewer than %d: lines to the peers, and the fixed tree", s.rest, s.unit),
	}
}

func (s *shape) cost(c *config) api.Cost {
	cost := api.Cost{Launches: 1}
	var most int64
	for b := range int(s.grid) {
		cta := s.cta(b)
		cost.Words += cta.Words
		most = max(most, cta.Rounds)
	}
	cost.Rounds, cost.RoundTrip = most, 2*most
	if s.call.Collective != api.ReduceScatter {
		cost.Bytes = cost.Words * word
	}
	if s.rest > 0 {
		cost.Bytes += 2 * s.rest * int64(s.call.Ranks-1)
		cost.Rounds = max(cost.Rounds, 2)
	}
	return cost
}

func (c *config) notes(s *shape) []string {
	var notes []string
	if s.call.Collective.Reduces() {
		total := s.call.Count * s.size
		notes = append(notes, fmt.Sprintf("off the switch: %d of %d bytes a rank, less than 16 x %d ranks", s.off(), total, s.call.Ranks))
		if m, err := c.arith.Model(s.call.DType, s.call.Op, true); err == nil {
			notes = append(notes, m.Says(s.call.DType, s.call.Op))
		}
	}
	if n := s.chunks(0); n > 1 {
		notes = append(notes, fmt.Sprintf("%d chunks a CTA, as its share of the stage holds %d bytes of a block", n, s.room*s.unit))
	}
	return append(notes, fmt.Sprintf("one CTA for each %d bytes, at most %d", ctaBytes, maxCTAs))
}
