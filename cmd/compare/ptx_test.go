package main

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

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

// TestPTXAfterAFault: a kernel that faults costs the machine, and not the calls
// that come after.
func TestPTXAfterAFault(t *testing.T) {
	withoutRaceDetector(t)
	broken := true
	b := &ptxBackend{edit: func(text []byte) []byte {
		if broken {
			return bytes.ReplaceAll(text, []byte("st.relaxed.sys.global.v2.b64"), []byte("st.global.v2.b64"))
		}
		return text
	}}
	model, _ := sidesOf(t, "sim:tandem", "sim:tandem")
	var r conformance.Runner
	call := api.Call{Collective: api.AllReduce, DType: api.BF16, Op: api.Sum, Ranks: 2, Count: 9}
	rep, err := r.Run(t.Context(), model, side(t, b, "ptx:tandem"), call)
	fault := faultOf(rep, err)
	require.NotNil(t, fault, "%v", err)
	require.Equal(t, api.FaultRace, fault.Kind)
	broken = false
	rep, err = r.Run(t.Context(), model, side(t, b, "ptx:tandem"), call)
	require.NoError(t, err)
	require.Equal(t, conformance.Agree, rep.Verdict)
	require.NoError(t, r.Close(t.Context()))
	require.NoError(t, b.Close())
}

// TestPTXInterrupted: a call whose caller stops waiting while kernels run ends
// soon, in an error, and the calls after it are as any.
func TestPTXInterrupted(t *testing.T) {
	withoutRaceDetector(t)
	b := &ptxBackend{}
	var r conformance.Runner
	model, _ := sidesOf(t, "sim:tandem", "sim:tandem")
	small := api.Call{Collective: api.AllReduce, DType: api.BF16, Op: api.Sum, Ranks: 4, Count: 9}
	large := small
	large.Count = 300000 // takes seconds
	for i := range 2 {
		rep, err := r.Run(t.Context(), model, side(t, b, "ptx:tandem"), small)
		require.NoError(t, err)
		require.Equal(t, conformance.Agree, rep.Verdict)
		if i > 0 {
			break
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		_, err = r.Run(ctx, model, side(t, b, "ptx:tandem"), large)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "the caller stopped waiting")
		cancel()
	}
	require.NoError(t, r.Close(t.Context()))
	require.NoError(t, b.Close())
}

// TestPTXGraphFault: what a kernel of a graph did wrong is told, and nothing of
// what cannot be released any more.
func TestPTXGraphFault(t *testing.T) {
	withoutRaceDetector(t)
	b := &ptxBackend{edit: func(text []byte) []byte {
		return bytes.ReplaceAll(text, []byte("add.rn.bf16x2"), []byte("trap; add.rn.bf16x2")) // empty calls, of the opening, add nothing
	}}
	model, _ := sidesOf(t, "sim:tandem", "sim:tandem")
	r := conformance.Runner{Graph: true}
	rep, err := r.Run(t.Context(), model, side(t, b, "ptx:tandem"), api.Call{Collective: api.AllReduce, DType: api.BF16, Op: api.Sum, Ranks: 2, Count: 64})
	fault := faultOf(rep, err)
	require.NotNil(t, fault, "%v %v", rep, err)
	require.Contains(t, fault.Detail, "trap")
	if err = errors.Join(err, r.Close(t.Context()), b.Close()); err != nil {
		require.NotContains(t, err.Error(), "closed")
	}
}
