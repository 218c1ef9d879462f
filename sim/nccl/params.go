package nccl

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"example.com/tandem/api"
)

// Name is the name of the family in a Spec.
const Name = "nccl"

// Version is the one version modelled, as it appears in a Spec.
const Version = "2.28"

// The protocols of a ring.
const (
	protoLL     = "LL"
	protoLL128  = "LL128"
	protoSimple = "Simple"
	protoAuto   = "auto"
)

// params are the parameters of a Spec, parsed.
type params struct {
	proto    string
	channels int64
}

const maxChannels = 64 // MAXCHANNELS of the library

func settings() []api.Param {
	return []api.Param{
		{Name: "algo", Default: "Ring", Values: "Ring", Help: "NCCL_ALGO; only rings are modelled"},
		{Name: "proto", Default: protoAuto, Values: "auto|LL|LL128|Simple", Help: "NCCL_PROTO; auto takes LL up to 1750000 bytes a call, as recorded on 2 ranks, and Simple above"},
		{Name: "max_nchannels", Default: "24", Values: "1..64", Help: "NCCL_MAX_NCHANNELS; the channels of the communicator, 24 as recorded on 2 H200s"},
	}
}

// On 2 ranks the tuner's last call seen on LL has 1693176 bytes and the first
// seen off it 1806054; auto changes between the two. What comes above, LL128 or
// Simple, the recordings do not tell apart.
const (
	lastSeenLL = 1693176
	autoLL     = 1750000
)

func parseParams(spec api.Spec) (params, error) {
	p := params{proto: protoAuto, channels: 24}
	if spec.Version != "" && spec.Version != Version {
		return p, &api.InvalidError{Field: "version", Value: spec.Version, Reason: "unknown version of " + Name, Hint: "known is " + Version}
	}
	for _, name := range slices.Sorted(maps.Keys(spec.Params)) {
		value := spec.Params[name]
		i := slices.IndexFunc(settings(), func(s api.Param) bool { return s.Name == name })
		if i < 0 {
			return p, &api.InvalidError{Field: "parameter", Value: name, Reason: "unknown to " + Name, Hint: "known are [algo max_nchannels proto]"}
		}
		ok := false
		switch name {
		case "algo":
			ok = value == "Ring"
		case "proto":
			ok = slices.Contains([]string{protoAuto, protoLL, protoLL128, protoSimple}, value)
			p.proto = value
		case "max_nchannels":
			n, err := strconv.ParseInt(value, 10, 64)
			ok = err == nil && n >= 1 && n <= maxChannels
			p.channels = n
		}
		if !ok {
			return p, &api.InvalidError{Field: name, Value: value, Reason: "not a value of this parameter", Hint: "values: " + settings()[i].Values}
		}
	}
	return p, nil
}

// refuse names what the library or this model does not do.
func refuse(spec api.Spec, c *api.Call) error {
	no := func(what, why, hint string) error {
		return &api.Refused{Spec: spec.String(), What: what, Reason: why, Hint: hint}
	}
	switch {
	case api.IsMany(c.Collective):
		return no(c.Collective.Name(), "the library has no such call", "make one call a lane")
	case !slices.Contains(collectives(), c.Collective):
		return no(c.Collective.Name(), "not modelled", "")
	case c.Scope != api.OnStream:
		return no("scope "+c.Scope.String(), "NCCL has no device-side collectives", "use scope on_stream")
	case c.InPlace == api.InPlaceStart:
		return no("in place at the start of the source", "NCCL's in-place reduce-scatter writes the rank's own block", "use in_place true")
	case c.DType == api.I16 || c.DType == api.U16:
		return no(c.DType.String(), "NCCL has no 16-bit integers", "use another dtype")
	case c.Op.Bitwise():
		return no(c.Op.String(), "NCCL has no bitwise operations", "sum, prod, min, max or avg")
	case c.Collective.Reduces() && (c.DType == api.E4M3 || c.DType == api.E5M2):
		return no(fmt.Sprintf("%s of %s", c.Op, c.DType), "how NCCL rounds fp8 was not recorded", "copies of fp8 are exact")
	case c.Mode != "":
		return no("mode "+c.Mode, "NCCL has no modes", "leave it out")
	}
	return nil
}

func collectives() []api.Collective {
	return []api.Collective{api.AllReduce, api.ReduceScatter, api.AllGather, api.Broadcast, api.AllToAll}
}
