package tandemnvls

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"example.com/tandem/api"
	"example.com/tandem/sim/nvls"
	"example.com/tandem/sim/tandem"
)

// Name is the family's name in a Spec.
const Name = "tandem-nvls"

// config is a Spec, read.
type config struct {
	spec   api.Spec
	arith  nvls.Config
	tandem api.Spec // what calls that the switch cannot do are handed to
	domain int
	ctas   int // of every call; 0 leaves it to the plan
	stage  int64
}

func domainParam() api.Param {
	return api.Param{Name: nvls.DomainParam, Default: strconv.Itoa(nvls.MaxDomain), Values: fmt.Sprintf("2..%d", nvls.MaxDomain), Help: "ranks of one NVLink domain; a team over two has no multicast base, and its calls are tandem's"}
}

// params are the switch's and tandem's.
func params() []api.Param {
	return append(append(nvls.Params(), domainParam()), tandem.Params()...)
}

func parseConfig(spec api.Spec) (*config, error) {
	if spec.Version != "" {
		return nil, &api.InvalidError{Field: "version", Value: spec.Version, Reason: Name + " has no versions", Hint: "write sim:" + Name}
	}
	c := &config{spec: spec, domain: nvls.MaxDomain, tandem: api.Spec{Backend: spec.Backend, Implementation: tandem.Name, Params: map[string]string{}}}
	var err error
	if c.arith, err = nvls.Parse(spec.Params); err != nil {
		return nil, err
	}
	known := tandem.Params()
	for _, name := range slices.Sorted(maps.Keys(spec.Params)) {
		value := spec.Params[name]
		switch {
		case name == nvls.DomainParam:
			if c.domain, err = strconv.Atoi(value); err != nil || c.domain < 2 || c.domain > nvls.MaxDomain {
				return nil, &api.InvalidError{Field: name, Value: value, Reason: "not a value of this parameter", Hint: "values: " + domainParam().Values}
			}
		case nvls.Known(name):
		case slices.ContainsFunc(known, func(p api.Param) bool { return p.Name == name }):
			c.tandem.Params[name] = value
		default:
			return nil, &api.InvalidError{Field: "parameter", Value: name, Reason: "unknown to " + Name, Hint: fmt.Sprintf("known are %v", names(params()))}
		}
	}
	c.ctas, _ = strconv.Atoi(c.tandem.Param("ctas", "auto")) // tandem says what is wrong with it
	if c.stage, err = strconv.ParseInt(c.tandem.Param("stage", strconv.Itoa(defaultStage)), 10, 64); err != nil || c.stage < 1 {
		c.stage = defaultStage
	}
	return c, nil
}

func names(ps []api.Param) []string {
	out := make([]string, len(ps))
	for i, p := range ps {
		out[i] = p.Name
	}
	return out
}

// elsewhere says why the call is tandem's; "" where it goes through the switch.
func (c *config) elsewhere(call *api.Call) string {
	switch call.Collective {
	case api.AllReduce, api.ReduceScatter, api.AllGather:
	default:
		return call.Collective.Name() + " has no form through the switch"
	}
	switch {
	case call.Ranks < 2:
		return "one rank has no multicast base"
	case call.Ranks > c.domain:
		return fmt.Sprintf("%d ranks over NVLink domains of %d have no multicast base", call.Ranks, c.domain)
	case !call.Collective.Reduces():
		return ""
	}
	if mode := call.Mode; mode != "" && mode != "node" || mode == "" && c.tandem.Param("mode", "node") != "node" {
		return "a mode other than node rounds otherwise than the switch"
	}
	if call.Op == api.Min || call.Op == api.Max {
		if call.DType.Float() && c.tandem.Param("nan", "drop") != "drop" {
			return "the switch drops NaNs"
		}
	}
	if !inTable(call.DType, call.Op) {
		return fmt.Sprintf("no load-reduce does %s of %s", call.Op, call.DType)
	}
	m, err := c.arith.Model(call.DType, call.Op, true)
	if err == nil {
		_, err = nvls.NewReducer(m, call.DType, call.Op, call.Ranks)
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// inTable is what the switch can do, on every fabric: fp8 is on some only.
func inTable(d api.DType, op api.Op) bool {
	return !(d.Float() && d.Size() == 1) && len(nvls.Widths(d, op)) > 0
}
