package nvls

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"example.com/tandem/api"
	"example.com/tandem/sim"
	"example.com/tandem/sim/machine"
)

// FamilyName is the name in a Spec.
const FamilyName = "nvls"

// DomainParam is how many ranks one NVLink domain holds: a larger team has no
// multicast base.
const DomainParam = "nvlink_domain"

// MaxDomain is the largest NVLink domain there is, in GPUs.
const MaxDomain = 72

const algSwitch = "switch"

// Family is the switch alone, as an implementation: every element of the result
// is one in-switch reduction, wherever the buffers lie. It is there for values;
// how libraries cut calls into words is their families' business.
type Family struct{}

var _ sim.Family = Family{}

// Name is "nvls".
func (Family) Name() string { return FamilyName }

// Implementations describes the one version there is.
func (Family) Implementations() []api.Implementation {
	params := append(append(Params(), SpaceParams()...), api.Param{Name: DomainParam, Default: strconv.Itoa(MaxDomain), Values: fmt.Sprintf("2..%d", MaxDomain), Help: "ranks of one NVLink domain; a team over two has no multicast base"})
	return []api.Implementation{{
		Name: FamilyName, Summary: "one in-switch reduction per element (multimem.ld_reduce): the arithmetic of a switch, by preset",
		Params: params, Collectives: []api.Collective{api.AllReduce, api.ReduceScatter}, DTypes: api.DTypes(),
		Promises: api.Checks(), Contract: api.Faithful, Evidence: map[string]api.Evidence{algSwitch: api.Reported},
		Thresholds: func(api.Call) []int64 { return []int64{1, 2} },
	}}
}

// setup is a spec, read for a call.
type setup struct {
	spec   api.Spec
	config Config
	domain int
}

func parseSpec(spec api.Spec) (*setup, error) {
	s := &setup{spec: spec, domain: MaxDomain}
	if spec.Version != "" {
		return nil, &api.InvalidError{Field: "version", Value: spec.Version, Reason: FamilyName + " has no versions", Hint: "leave it out"}
	}
	for _, name := range slices.Sorted(maps.Keys(spec.Params)) {
		if name == DomainParam {
			v, err := strconv.Atoi(spec.Params[name])
			if err != nil || v < 2 || v > MaxDomain {
				return nil, &api.InvalidError{Field: name, Value: spec.Params[name], Reason: "not a value of this parameter", Hint: fmt.Sprintf("values: 2..%d", MaxDomain)}
			}
			s.domain = v
		} else if !Known(name) && !knownToSpace(name) {
			return nil, &api.InvalidError{Field: "parameter", Value: name, Reason: "unknown to " + FamilyName, Hint: fmt.Sprintf("known are %v and %s", paramNames(), DomainParam)}
		}
	}
	var err error
	s.config, err = Parse(spec.Params)
	return s, err
}

func paramNames() []string {
	var names []string
	for _, p := range append(Params(), SpaceParams()...) {
		names = append(names, p.Name)
	}
	return names
}

// Plan says what the switch would do.
func (Family) Plan(spec api.Spec, call api.Call) (*api.Plan, error) {
	s, err := parseSpec(spec)
	if err != nil {
		return nil, err
	}
	if err := call.Validate(); err != nil {
		return nil, err
	}
	return s.plan(&call)
}

// Open checks the spec.
func (Family) Open(spec api.Spec, _ api.TeamConfig) (sim.Session, error) {
	s, err := parseSpec(spec)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Plan ignores the addresses: values do not depend on them.
func (s *setup) Plan(call api.Call, _ sim.Addrs) (*api.Plan, error) { return s.plan(&call) }

func (s *setup) refuse(call *api.Call, reason, hint string) error {
	return &api.Refused{Spec: s.spec.String(), What: call.String(), Reason: reason, Hint: hint}
}

func (s *setup) plan(call *api.Call) (*api.Plan, error) {
	switch {
	case call.Collective != api.AllReduce && call.Collective != api.ReduceScatter:
		return nil, s.refuse(call, "a switch reduces: it has all_reduce and reduce_scatter", "one of the two")
	case call.Ranks < 2:
		return nil, s.refuse(call, "one rank has no multicast base", fmt.Sprintf("2 to %d ranks", s.domain))
	case call.Ranks > s.domain:
		return nil, s.refuse(call, fmt.Sprintf("%d ranks do not fit into one NVLink domain of %d, so there is no multicast base", call.Ranks, s.domain), "fewer ranks")
	case call.Mode != "":
		return nil, s.refuse(call, fmt.Sprintf("a switch has no modes, so none called %q", call.Mode), "leave the mode out")
	}
	m, err := s.config.Model(call.DType, call.Op, true)
	if err == nil {
		_, err = NewReducer(m, call.DType, call.Op, call.Ranks)
	}
	if err != nil {
		hint := ""
		if e, ok := err.(*Missing); ok {
			hint = e.Hint
		}
		return nil, s.refuse(call, err.Error(), hint)
	}
	p := &api.Plan{
		Spec: s.spec.String(), Call: *call, Unwritten: make([]int64, call.Ranks), Notes: []string{m.Says(call.DType, call.Op)},
		Cost:       api.Cost{Launches: 1},
		Algorithms: map[string]api.Algorithm{algSwitch: s.config.Algorithm(call.DType, call.Op)},
	}
	cta := api.CTA{Count: call.Count, Algorithm: algSwitch, Why: fmt.Sprintf("%s of %s in the switch", call.Op, call.DType)}
	for r := range call.Ranks {
		slice := api.Slice{Rank: r, Count: call.Count, Local: true}
		if call.Collective == api.AllReduce {
			lo, hi := share(call.Count, call.Ranks, r)
			slice = api.Slice{Rank: r, Start: lo, Count: hi - lo}
		}
		cta.Slices = append(cta.Slices, slice)
	}
	p.Kernels = []api.Kernel{{Name: "in_switch", CTAs: []api.CTA{cta}}}
	return p, nil
}

// share is the part of n elements that a rank reduces for all.
func share(n int64, ranks, rank int) (lo, hi int64) {
	size, rest := n/int64(ranks), n%int64(ranks)
	at := func(r int64) int64 { return size*r + min(r, rest) }
	return at(int64(rank)), at(int64(rank) + 1)
}

// Program is an entry barrier, one reduction a rank, and an exit barrier.
func (s *setup) Program(plan *api.Plan) (machine.Program, error) {
	m, err := s.config.Model(plan.Call.DType, plan.Call.Op, true)
	if err != nil {
		return nil, err
	}
	r, err := NewReducer(m, plan.Call.DType, plan.Call.Op, plan.Call.Ranks)
	if err != nil {
		return nil, err
	}
	return &program{call: &plan.Call, slices: plan.Kernels[0].CTAs[0].Slices, fold: r, size: int64(plan.Call.DType.Size())}, nil
}

type program struct {
	call   *api.Call
	slices []api.Slice
	fold   *Reducer
	size   int64
}

func (p *program) CTAs() int { return 1 }

// Needs: results of a reduce-scatter wait in scratch until nobody reads sources
// any more, since in place they may lie in another rank's block.
func (p *program) Needs() machine.Needs {
	n := machine.Needs{Barriers: 1}
	if p.held() {
		n.Scratch = p.call.Count * p.size
	}
	return n
}

func (p *program) held() bool {
	return p.call.Collective == api.ReduceScatter && p.call.InPlace == api.InPlaceStart
}

// The steps: a synchronisation, the reduction, a synchronisation, and the copy
// of what had to wait. Buffers are written through other addresses than those of
// multicast, so each side of a synchronisation has a proxy fence.
const (
	stepReduce = 3
	stepCopy   = 7
)

func (p *program) Len(int, int) int {
	if p.held() {
		return stepCopy + 1
	}
	return stepCopy
}

func (p *program) Step(s *machine.Step, rank, _, i int) {
	slice := &p.slices[rank]
	switch i {
	case stepReduce:
	case 1, 5:
		s.Kind, s.Count = machine.Barrier, p.call.Ranks
		return
	case stepCopy:
		s.Kind, s.Bytes = machine.Copy, slice.Count*p.size
		s.Dst = machine.User(rank, machine.Dst, 0, 0)
		s.Srcs = append(s.Srcs, machine.At(rank, machine.Scratch, 0))
		return
	default:
		s.Kind, s.Order, s.Alias = machine.Fence, machine.AcqRel, true
		return
	}
	from, to := slice.Start, machine.All
	if slice.Local {
		from, to = int64(rank)*p.call.Count, rank
	}
	s.Kind, s.DType, s.Fold, s.At, s.Bytes = machine.Reduce, p.call.DType, p.fold, from*p.size, slice.Count*p.size
	s.Dst = machine.User(to, machine.Dst, 0, slice.Start*p.size)
	if p.held() {
		s.Dst = machine.At(rank, machine.Scratch, 0)
	}
	s.Srcs = append(s.Srcs, machine.User(machine.All, machine.Src, 0, from*p.size))
}

// Says is one line about the arithmetic, for plans.
func (m *Model) Says(d api.DType, op api.Op) string {
	if !d.Float() {
		return fmt.Sprintf("in-switch %v of %v: exact", op, d)
	}
	if op != api.Sum && m.Fitted {
		return fmt.Sprintf("in-switch %v of %v: fitted to the fabric by a probe", op, d) + m.remark
	}
	if op != api.Sum {
		return fmt.Sprintf("in-switch %v of %v: a NaN loses against a number, -0 is below +0; measured on GB200 for two forms", op, d) + m.remark
	}
	text := fmt.Sprintf("in-switch sums of %v: %s, last rounding %s", d, cmp.Or(m.Name, "custom"), m.Final)
	switch p, named := PresetOf(m.Name); {
	case m.Fitted:
		return text + "; fitted to the fabric by a probe" + m.remark
	case named:
		text += " (" + p.Says + ")"
	}
	if m.stepwise() {
		text += fmt.Sprintf("; operand order %s", cmp.Or(m.Order, OrderRank))
	}
	if !m.Determined(d, op) {
		text += "; a member of the set of results, no prediction"
	}
	return text + m.remark
}
