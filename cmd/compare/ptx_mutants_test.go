package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/conformance"
	"example.com/tandem/hw"
	"example.com/tandem/hw/kernels"
	"example.com/tandem/sim"
	"example.com/tandem/sim/ptx"
	"example.com/tandem/sim/tandem"
)

// mutation is a change of the kernels' text, and the path that shows it.
type mutation struct {
	name, old, new string
	path           string
	value          bool // it makes wrong values, not races
}

// TestPTXMutants: kernels that are wrong in their order, or in their values,
// are caught, whether or not a wrong value appears.
func TestPTXMutants(t *testing.T) {
	for _, m := range []mutation{
		{"no fences", "fence.acq_rel.sys;", "", "direct", false},
		{"fences of one GPU", "fence.acq_rel.sys;", "fence.acq_rel.gpu;", "direct", false},
		{"fences of one block", "fence.acq_rel.sys;", "fence.acq_rel.cta;", "two_shot", false},
		{"weak flags", "ld.relaxed.sys.global.v2.b64", "ld.global.v2.b64", "push", false},
		{"weak stores of flags", "st.relaxed.sys.global.v2.b64", "st.global.v2.b64", "push", false},
		{"flags of one GPU", "ld.relaxed.sys.global.b64", "ld.relaxed.gpu.global.b64", "direct", false},
		{"constant loads", "ld.global.v4.b32", "ld.global.nc.v4.b32", "staged", false},
		{"another operation", "add.rn.f32", "sub.rn.f32", "push", true},
		{"another rounding", "add.rn.bf16x2", "max.bf16x2", "direct", true},
	} {
		if testing.Short() && m.path != "push" {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			require.Contains(t, string(kernels.Tandem), m.old)
			d := ptx.Open(ptx.Options{Devices: 2, Edit: func(text []byte) []byte {
				return bytes.ReplaceAll(text, []byte(m.old), []byte(m.new))
			}})
			h := hw.New("ptx", d)
			var r conformance.Runner
			r.Exact = true
			dt := api.BF16
			if m.old == "add.rn.f32" {
				dt = api.F32
			}
			call := api.Call{Collective: api.AllReduce, DType: dt, Op: api.Sum, Ranks: 2, Count: 300}
			spec := "ptx:tandem?path=" + m.path
			rep, err := r.Run(t.Context(), side(t, sim.New(tandem.Family{}), "sim:tandem"), side(t, h, spec), call)
			if m.value {
				require.NoError(t, err)
				require.Equal(t, conformance.Diverge, rep.Verdict)
				return
			}
			fault := faultOf(rep, err)
			require.NotNil(t, fault, "%v", err)
			require.Equal(t, api.FaultRace, fault.Kind)
			require.Contains(t, fault.Detail, "tandem.ptx:")
		})
	}
}
