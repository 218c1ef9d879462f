package main

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/conformance"
	"example.com/tandem/hw"
	"example.com/tandem/sim"
	"example.com/tandem/sim/ptx"
	"example.com/tandem/sim/tandem"
)

// TestPTX runs the committed kernels, through hw's own host code, on a virtual
// machine with a GPU for every rank or for some, and compares every bit with
// the simulator's: eager and as graphs.
func TestPTX(t *testing.T) {
	dtypes := []api.DType{api.BF16, api.F16, api.F32, api.F64, api.I32, api.U8, api.I64, api.E4M3}
	n := 0
	for _, ranks := range []int{1, 2, 3, 4, 8} {
		for gpus := range 2 {
			if gpus == 1 && (ranks == 1 || testing.Short()) {
				continue
			}
			devices := ranks
			if gpus == 1 {
				devices = (ranks + 1) / 2
			}
			d := ptx.Open(ptx.Options{Devices: devices, Seed: uint64(ranks)})
			h := hw.New("ptx", d)
			var r conformance.Runner
			r.Exact = true
			for i, c := range api.Collectives() {
				if api.IsMany(c) {
					continue
				}
				dt := dtypes[n%len(dtypes)]
				op := api.Sum
				if !c.Reduces() {
					op = api.NoOp
				}
				call := api.Call{Collective: c, DType: dt, Op: op, Ranks: ranks, Count: int64(5 + 37*(i%3))}
				n++
				r.Graph = n%3 == 0
				t.Run(fmt.Sprintf("%d ranks on %d GPUs/%v/%v", ranks, devices, c.Name(), dt), func(t *testing.T) {
					rep, err := r.Run(t.Context(), side(t, sim.New(tandem.Family{}), "sim:tandem"), side(t, h, "ptx:tandem"), call)
					require.NoError(t, err)
					require.Equal(t, conformance.Agree, rep.Verdict, "%+v", rep)
				})
			}
			require.NoError(t, r.Close(t.Context()))
			require.NoError(t, h.Close())
			require.NoError(t, d.Close())
		}
	}
}

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
