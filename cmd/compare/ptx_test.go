package main

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/conformance"
)

// faultOf is the fault that ended a call on the right side, or the opening of
// its team, which makes empty calls; nil if there is none.
func faultOf(rep *conformance.Report, err error) *api.Fault {
	var f *api.Fault
	if errors.As(err, &f) || rep == nil {
		return f
	}
	for _, r := range rep.Right.Ranks {
		if r.Fault != nil {
			return r.Fault
		}
	}
	return nil
}

func side(t *testing.T, b api.Backend, spec string) conformance.Side {
	s, err := api.ParseSpec(spec)
	require.NoError(t, err)
	s.Version = b.Implementations()[0].Version
	return conformance.Side{Backend: b, Spec: s}
}
