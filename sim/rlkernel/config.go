package rlkernel

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"example.com/tandem/api"
)

// config is a Spec, read.
type config struct {
	release
	spec     api.Spec
	capacity int64 // max_size_bytes
	// peerwise copies peer by peer also where everything is aligned, as the
	// author's first version did.
	peerwise bool
	// signatures says that ranks compare the signature of a call when they
	// see it first.
	signatures bool
	// outs says that the caller passes outs= to the many forms.
	outs bool
	// extension calls stage() and the operation directly, without the class.
	extension bool
}

// Params lists the parameters of a version; nil for an unknown one.
func Params(version string) []api.Param {
	r, err := findRelease(version)
	if err != nil {
		return nil
	}
	params := []api.Param{
		{Name: "max_size_bytes", Default: strconv.Itoa(defaultCapacity), Values: "1..2^61", Help: "capacity of the staging payload of a rank, in bytes"},
		{Name: "validate_signature", Default: "on", Values: "on|off", Help: "compare op, shape and dtype across ranks the first time a rank sees them"},
		{Name: "outs", Default: "off", Values: "off|on", Help: "pass the destinations to the many forms as outs=, which the class does not take: refused"},
		{Name: "entry", Default: "class", Values: "class|extension", Help: "extension: stage() and the operation called directly (the owner path of all_reduce), which the class never does"},
	}
	if r.vectors {
		params = append(params, api.Param{Name: "copy", Default: "ranks", Values: "ranks|peerwise", Help: "ranks: one flat loop over all ranks' vectors where everything is aligned; peerwise: the author's first version, peer by peer"})
	}
	return params
}

func parseConfig(spec api.Spec) (config, error) {
	r, err := findRelease(spec.Version)
	if err != nil {
		return config{}, err
	}
	c := config{release: r, spec: spec, capacity: defaultCapacity}
	if err := knownParams(spec); err != nil {
		return c, err
	}
	if text, ok := spec.Params["max_size_bytes"]; ok {
		// The staging of three frames must be countable in 64 bits.
		const most = math.MaxInt64/frames - header
		c.capacity, err = strconv.ParseInt(text, 10, 64)
		if err != nil || c.capacity < 1 || c.capacity > most {
			return c, &api.InvalidError{Field: "max_size_bytes", Value: text, Reason: "not a capacity", Hint: fmt.Sprintf("1 to %d bytes", int64(most))}
		}
	}
	for _, p := range []struct {
		name, off, on string
		def           bool
		set           *bool
	}{
		{"validate_signature", "off", "on", true, &c.signatures},
		{"outs", "off", "on", false, &c.outs},
		{"entry", "class", "extension", false, &c.extension},
		{"copy", "ranks", "peerwise", false, &c.peerwise},
	} {
		switch text, ok := spec.Params[p.name]; {
		case !ok:
			*p.set = p.def
		case text == p.on:
			*p.set = true
		case text != p.off:
			return c, &api.InvalidError{Field: p.name, Value: text, Reason: "unknown", Hint: fmt.Sprintf("known are %s and %s", p.off, p.on)}
		}
	}
	return c, nil
}

func knownParams(spec api.Spec) error {
	var names []string
	for _, p := range Params(spec.Version) {
		names = append(names, p.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(spec.Params)) {
		if !slices.Contains(names, name) {
			return &api.InvalidError{Field: "parameter", Value: name, Reason: fmt.Sprintf("unknown to %s@%s", Name, spec.Version), Hint: fmt.Sprintf("known are %v", names)}
		}
	}
	return nil
}
