package main

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
	"example.com/tandem/hw/host"
	"example.com/tandem/hw/kernels/mutants"
	"example.com/tandem/hw/tandem"
)

// hand is memory for a call outside of its team.
type hand struct {
	bufs     []host.Buffers
	contexts []gpu.Context // by rank
	ptrs     []func() error
}

func (h *hand) release() {
	for _, f := range h.ptrs {
		_ = f()
	}
}

// hand allocates for a call: on a GPU for each rank, or all on the first.
func (l *lab) hand(t testing.TB, d gpu.Driver, call *api.Call) *hand {
	h := &hand{}
	var last []func() error
	for r := range call.Ranks {
		at := 0
		if l.apart {
			at = r
		}
		c, err := d.Devices()[at].Open()
		require.NoError(t, err)
		last = append(last, c.Close)
		var p [2]gpu.Ptr
		for i, n := range []int64{call.SrcElems(0), call.DstElems(0)} {
			p[i], err = c.Alloc(uint64(n)*uint64(call.DType.Size()) + 256)
			require.NoError(t, err)
			h.ptrs = append(h.ptrs, func() error { return c.Free(p[i]) })
		}
		h.contexts = append(h.contexts, c)
		h.bufs = append(h.bufs, host.Buffers{{Src: p[0], Dst: p[1]}})
	}
	h.ptrs = append(h.ptrs, last...)
	return h
}

// overwrite makes a call by hand, the ranks on GPUs of their own, and fills the
// source of rank 0 on its stream behind the call. The other ranks must have
// read it by then.
func (l *lab) overwrite(t testing.TB, team *host.Team, d gpu.Driver, trial *mutants.Trial) string {
	e := team.Engine().(*tandem.Engine)
	call := trial.Call
	size := uint64(call.DType.Size())
	h := l.hand(t, d, &call)
	defer h.release()
	var streams []gpu.Stream
	var queries []gpu.Queryer
	wait := func() error { return gpu.Wait(t.Context(), d.Clock(), time.Minute, queries...) }
	pinned := make([]gpu.HostMemory, call.Ranks)
	for r, c := range h.contexts {
		s, err := c.NewStream(gpu.StreamOptions{})
		require.NoError(t, err)
		streams, queries = append(streams, s), append(queries, s)
		pinned[r], err = c.AllocHost(int(uint64(call.DstElems(0)) * size))
		require.NoError(t, err)
		require.NoError(t, s.Set8(h.bufs[r][0].Src, 0, uint64(call.SrcElems(0))*size))
		require.NoError(t, s.Set8(h.bufs[r][0].Dst, 0xff, uint64(call.DstElems(0))*size))
		defer func() {
			_ = wait()
			_ = errors.Join(s.Destroy(), c.Free(pinned[r].Ptr))
		}()
	}
	require.NoError(t, wait())
	e.Inject(&trial.Fault)
	bound, err := e.Bind(&call, h.bufs, make([]gpu.Ptr, call.Ranks))
	require.NoError(t, err)
	for r, s := range streams {
		require.NoError(t, s.Launch(bound[0][r]))
	}
	if err := streams[0].Set8(h.bufs[0][0].Src, 0x5a, uint64(call.SrcElems(0))*size); err != nil {
		return firstLine(err)
	}
	if err := wait(); err != nil {
		return firstLine(err)
	}
	if errs := e.Verdicts(&call); errs != nil {
		return firstLine(errors.Join(errs...))
	}
	for r, s := range streams {
		if err := s.Copy(pinned[r].Ptr, h.bufs[r][0].Dst, uint64(len(pinned[r].Bytes))); err != nil {
			return firstLine(err)
		}
	}
	if err := wait(); err != nil {
		return firstLine(err)
	}
	for r, m := range pinned {
		for i, x := range m.Bytes {
			if x != 0 {
				return fmt.Sprintf("rank %d read a source after it had been given back: byte %d is %#x", r, i, x)
			}
		}
	}
	return ""
}
