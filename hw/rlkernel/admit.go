package rlkernel

import (
	"fmt"
	"slices"

	"example.com/tandem/api"
)

// worlds are the numbers of ranks that the constructor takes.
var worlds = []int{1, 2, 4, 8}

// operations are those of the class.
func operations() []api.Collective {
	return []api.Collective{api.AllReduce, api.ReduceScatter, api.AllGather, api.AllGatherMany, api.ReduceScatterMany}
}

// admit says whether the class takes a call that is valid.
func (c *config) admit(call *api.Call) error {
	many := api.IsMany(call.Collective)
	name := call.Collective.Name()
	const noOuts = "the class allocates the outputs and takes no outs= (TypeError)"
	switch {
	case !slices.Contains(operations(), call.Collective):
		return c.refuse(name, "the class has no such operation", "all_reduce, reduce_scatter, all_gather, all_gather_many or reduce_scatter_many")
	case !slices.Contains(worlds, call.Ranks):
		return c.refuseRanks(call.Ranks)
	case call.Scope != api.OnStream:
		return c.refuse("scope "+call.Scope.String(), "the class has no device-side calls", "scope on_stream")
	case call.Mode != "":
		return c.refuse("mode "+call.Mode, "the class has one reduction: the balanced tree, rounded at every node in the element type", "no mode")
	case call.Collective.Reduces() && call.Op != api.Sum:
		return c.refuse("op "+call.Op.String(), "the class only sums", "op sum")
	case many && c.outs:
		return c.refuse(name+" with outs=", noOuts, "outs=off, or one call a lane")
	case many && call.InPlace != api.OutOfPlace:
		return c.refuse(name+" in place", noOuts, "an out-of-place call, or one call a lane")
	case many && slices.ContainsFunc(call.DstOffset, func(o int64) bool { return o != 0 }):
		return c.refuse(name+" with a destination offset", noOuts, "destination offset 0, or one call a lane")
	}
	if err := c.admitLanes(call); err != nil {
		return err
	}
	return c.admitEntry(call)
}

func (c *config) refuseRanks(ranks int) error {
	return c.refuse(fmt.Sprintf("%d ranks", ranks), "the world size must be 1, 2, 4 or 8 (ValueError of the constructor)", "1, 2, 4 or 8 ranks")
}

// admitLanes checks types, and input bytes against the payload. The lanes of
// all_gather_many share it, each at a multiple of 16.
func (c *config) admitLanes(call *api.Call) error {
	end := int64(0)
	for i := range call.Lanes() {
		d := call.Lane(i).DType
		if _, ok := types[d]; !ok && call.Collective.Reduces() {
			return c.refuse(fmt.Sprintf("%s of %s", call.Collective.Name(), d), "reductions take f32, f16 and bf16 (TypeError)", "one of these types, or an all_gather")
		}
		n := inputBytes(call, i)
		if call.Collective != api.AllGatherMany {
			end = 0
		}
		if n > c.room || end > c.room-n {
			return c.refuse(fmt.Sprintf("lane %d of %d bytes, %d bytes into the payload", i, n, end), fmt.Sprintf("more than max_size_bytes=%d (ValueError)", c.room), "a smaller call, or a greater max_size_bytes")
		}
		end = padded(end + n)
	}
	if end > c.room && call.Collective == api.AllGatherMany {
		return c.refuse(fmt.Sprintf("lanes of %d bytes with their padding", end), fmt.Sprintf("whether the padding of the last lane counts against max_size_bytes=%d is not known", c.room), "another capacity")
	}
	return nil
}

// admitEntry refuses what the extension alone does not have, or does in a way
// that is not known.
func (c *config) admitEntry(call *api.Call) error {
	switch {
	case !c.extension:
		return nil
	case call.Collective == api.ReduceScatterMany:
		return c.refuse("reduce_scatter_many by the extension", "it is a loop in the class", "entry=class")
	case call.Collective == api.AllGather && outputBytes(call, 0) <= gatherLimit(c.spec.Version):
		return c.refuse(fmt.Sprintf("all_gather of %d bytes of output by the extension", outputBytes(call, 0)), "what stage() and all_gather() launch for so small an output is not known",
			fmt.Sprintf("entry=class, or more than %d bytes of output", gatherLimit(c.spec.Version)))
	}
	return nil
}

// refusePairs refuses the call whose kernel would store two bf16 as a 4-byte
// word at an address that is no multiple of 4.
func (c *config) refusePairs(rank int, dst uint64) error {
	return c.refuse(fmt.Sprintf("all_reduce of bf16 to 0x%x on rank %d", dst, rank), "one block stores bf16 pairs as 4-byte words whatever the address: a misaligned address, which loses the context and hangs the peers",
		"an output at a multiple of 4 bytes, or allow_fault=1 in a process of its own")
}

// padded is the next multiple of the alignment of lanes.
func padded(n int64) int64 { return (n + laneAlign - 1) &^ (laneAlign - 1) }

func inputBytes(call *api.Call, lane int) int64 {
	return call.SrcElems(lane) * int64(call.Lane(lane).DType.Size())
}

func outputBytes(call *api.Call, lane int) int64 {
	return call.DstElems(lane) * int64(call.Lane(lane).DType.Size())
}
