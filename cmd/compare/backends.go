package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"example.com/tandem/api"
	"example.com/tandem/conformance/file"
	"example.com/tandem/sim"
	"example.com/tandem/sim/nccl"
	"example.com/tandem/sim/nvls"
	"example.com/tandem/sim/nvshmem"
	"example.com/tandem/sim/rlkernel"
	"example.com/tandem/sim/tandem"
	"example.com/tandem/sim/tandemnvls"
)

// backends is where they are plugged together.
func backends() []api.Backend {
	return []api.Backend{
		sim.New(nvshmem.Family{}, nvls.Family{}, nccl.Family{}, rlkernel.Family{}, tandem.Family{}, tandemnvls.Family{}),
		newHW(),
		new(ptxBackend),
		file.New(),
	}
}

// closeBackends lets go of what backends hold of the machine.
func (a *app) closeBackends() error {
	var errs []error
	for _, b := range a.backends {
		if c, ok := b.(io.Closer); ok {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(errs...)
}

// backend finds who serves a spec.
func (a *app) backend(spec api.Spec) (api.Backend, error) {
	var names []string
	for _, b := range a.backends {
		if b.Name() == spec.Backend {
			return b, nil
		}
		names = append(names, b.Name())
	}
	return nil, &api.InvalidError{Field: "spec", Value: spec.String(), Reason: fmt.Sprintf("there is no backend %q", spec.Backend),
		Hint: "known are " + strings.Join(names, ", ")}
}

// implementation is what a spec's backend declares about it; the version may
// be left out where there is one only.
func (a *app) implementation(spec api.Spec) (api.Implementation, error) {
	b, err := a.backend(spec)
	if err != nil {
		return api.Implementation{}, err
	}
	var known []string
	for _, i := range b.Implementations() {
		if i.Name == spec.Implementation && i.Version == spec.Version {
			return i, nil
		}
		known = append(known, api.Spec{Backend: b.Name(), Implementation: i.Name, Version: i.Version}.String())
	}
	return api.Implementation{}, &api.InvalidError{Field: "spec", Value: spec.String(), Reason: "no such implementation",
		Hint: "known are " + strings.Join(known, ", ")}
}
