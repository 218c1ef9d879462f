package inswitch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
	"example.com/tandem/hw/host"
)

// Most is the largest grid of a rank, in blocks.
func (t *Team) Most() int { return t.most }

// Native reports whether the kernels use multimem instructions.
func (t *Team) Native() bool { return t.o.native() }

// GPUs are those of the team, in order; ranks with Place's numbers are on them.
func (t *Team) GPUs() []*host.GPU { return t.gpus }

// Place is the GPU of each rank.
func (t *Team) Place() []int { return t.place }

// Deadlines are those of the team, scaled.
func (t *Team) Deadlines() (arrive, progress time.Duration) { return t.arrive, t.progress }

// Inject makes the next calls fail; nil ends that.
func (t *Team) Inject(f *Fault) { t.fault = f }

// Stop ends running kernels at their next look at the clock.
func (t *Team) Stop() {
	for _, p := range t.pages {
		p.Host.Store32(reportStop, reasonStopped)
	}
}

// cycles is a time on the fastest clock of the team's GPUs.
func (t *Team) cycles(d time.Duration) uint64 {
	most := 0
	for _, g := range t.gpus {
		most = max(most, g.Context.Device().Info().ClockKHz)
	}
	return uint64(most) * uint64(d/time.Microsecond) / 1000
}

// Launches are those of a call: one for each GPU. cast gives the multicast
// addresses of source and destination on a GPU, and is nil where there are none.
func (t *Team) Launches(kernel string, a Args, cast func(g int) (src, dst uint64)) host.Bound {
	step := make([]gpu.Launch, len(t.gpus))
	for i := range t.gpus {
		own := a
		if cast != nil {
			own.Cast[ObjectSource], own.Cast[ObjectTarget] = cast(i)
		}
		args := new(gpu.Args).Struct(t.pack(&own, i), 8)
		step[i] = gpu.Launch{Function: t.functions[i][kernel], Grid: gpu.Dim3{X: uint32(a.Blocks * len(t.local[i]))}, Block: gpu.Dim3{X: uint32(t.o.Choice.Threads)}, Cooperative: true, Args: args, Ranks: t.local[i]}
	}
	return host.Bound{step}
}

// Rehearse makes an empty call of each kernel.
func (t *Team) Rehearse(ctx context.Context, streams []gpu.Stream) error {
	none := make([]uint64, len(t.place))
	for _, k := range t.o.Kernels {
		b := t.Launches(k, Args{Src: none, Dst: none, Blocks: 1}, nil)
		var q []gpu.Queryer
		for i, s := range streams {
			if err := s.Launch(b[0][i]); err != nil {
				return err
			}
			q = append(q, s)
		}
		if err := gpu.Wait(ctx, t.o.Machine.Driver.Clock(), t.arrive+setupLimit, q...); err != nil {
			t.Stop()
			return err
		}
		call := api.Call{Collective: api.AllReduce, DType: api.U8, Op: api.Sum, Ranks: len(t.place)}
		if errs := t.Verdicts(&call); errs != nil {
			return errors.Join(errs...)
		}
	}
	return nil
}

// Addresses are a call's buffers, rank by rank. It refuses, before anything is
// launched, those that no kernel could use.
func (t *Team) Addresses(call *api.Call, mem []host.Buffers) (src, dst []uint64, err error) {
	size := int64(call.DType.Size())
	for r, lanes := range mem {
		for _, b := range []struct {
			name  string
			p     gpu.Ptr
			elems int64
			to    *[]uint64
		}{{"source", lanes[0].Src, call.SrcElems(0), &src}, {"destination", lanes[0].Dst, call.DstElems(0), &dst}} {
			if err := t.check(r, b.name, b.p, size, b.elems*size); err != nil {
				return nil, nil, err
			}
			*b.to = append(*b.to, uint64(b.p))
		}
	}
	return src, dst, nil
}

func (t *Team) check(rank int, name string, p gpu.Ptr, size, bytes int64) error {
	refuse := func(reason, hint string) error {
		return &api.InvalidError{Field: name, Value: fmt.Sprintf("0x%x", uint64(p)), Reason: fmt.Sprintf("rank %d: %s", rank, reason), Hint: hint}
	}
	if uint64(p)%uint64(size) != 0 {
		return refuse(fmt.Sprintf("the address is no multiple of the element size %d", size), "align buffers to their elements")
	}
	if bytes == 0 {
		return nil
	}
	g := t.gpus[t.place[rank]]
	r, err := g.Context.Range(p)
	switch {
	case err != nil:
		return refuse("no allocation holds it: "+err.Error(), "it was freed, or is not device memory")
	case !r.Holds(p, uint64(bytes)):
		return refuse(fmt.Sprintf("%d bytes reach beyond its allocation of %d bytes at 0x%x", bytes, r.Bytes, uint64(r.Base)), "allocate more")
	case r.Device != g.Index:
		return refuse(fmt.Sprintf("it is memory of device %d, the rank runs on GPU %d", r.Device, g.Index), "allocate it on the rank's GPU")
	}
	return nil
}
