package inswitch

import (
	"context"
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
func (t *Team) GPUs() []*host.GPU { return t.on.GPUs }

// Place is the GPU of each rank.
func (t *Team) Place() []int { return t.on.Place }

// Deadlines are those of the team, scaled.
func (t *Team) Deadlines() (arrive, progress time.Duration) {
	return t.deadlines.Arrive, t.deadlines.Progress
}

// Inject makes the next calls fail; nil ends that.
func (t *Team) Inject(f *Fault) { t.fault = f }

// Launches are those of a call: one for each GPU. cast gives the multicast
// addresses of source and destination on a GPU, and is nil where there are none.
func (t *Team) Launches(kernel string, a Args, cast func(g int) (src, dst uint64)) host.Bound {
	step := make([]gpu.Launch, len(t.on.GPUs))
	for i := range t.on.GPUs {
		own := a
		if cast != nil {
			own.Cast[ObjectSource], own.Cast[ObjectTarget] = cast(i)
		}
		args := new(gpu.Args).Struct(t.pack(&own, i), 8)
		step[i] = gpu.Launch{Function: t.functions[i][kernel], Grid: gpu.Dim3{X: uint32(a.Blocks * len(t.on.Local[i]))}, Block: gpu.Dim3{X: uint32(t.o.Choice.Threads)}, Cooperative: true, Args: args, Ranks: t.on.Local[i]}
	}
	return host.Bound{step}
}

// Rehearse makes an empty call of each kernel.
func (t *Team) Rehearse(ctx context.Context, streams []gpu.Stream) error {
	none := make([]uint64, len(t.on.Place))
	call := api.Call{Collective: api.AllReduce, DType: api.U8, Op: api.Sum, Ranks: len(t.on.Place)}
	for _, k := range t.o.Kernels {
		b := t.Launches(k, Args{Src: none, Dst: none, Blocks: 1}, nil)
		if err := host.Rehearse(ctx, t.o.Machine.Driver.Clock(), t, &call, b, streams); err != nil {
			return err
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
			if err := t.on.CheckBuffer(r, fmt.Sprintf("rank %d", r), b.name, b.p, size, b.elems*size); err != nil {
				return nil, nil, err
			}
			*b.to = append(*b.to, uint64(b.p))
		}
	}
	return src, dst, nil
}
