package rlkernel

import (
	"fmt"
	"slices"

	"example.com/tandem/api"
)

// admit says whether the class takes the call. The error is a *api.Refused, or
// a *api.InvalidError if the call makes no sense anywhere.
func (c *config) admit(call *api.Call) error {
	if err := call.Validate(); err != nil {
		return err
	}
	if !slices.ContainsFunc(collectives(), func(k api.Collective) bool { return k == call.Collective }) {
		return c.refuse(call.Collective.Name(), "the class has no such operation", "all_reduce, reduce_scatter, all_gather, all_gather_many or reduce_scatter_many")
	}
	if err := c.admitRanks(call.Ranks); err != nil {
		return err
	}
	switch {
	case call.Scope != api.OnStream:
		return c.refuse("scope "+call.Scope.String(), "the class has no device-side calls", "scope on_stream")
	case call.Mode != "":
		return c.refuse("mode "+call.Mode, "the class has one reduction: the balanced tree, rounded at every node in the element type", "no mode")
	case call.Collective.Reduces() && call.Op != api.Sum:
		return c.refuse("op "+call.Op.String(), "the class only sums", "op sum")
	}
	for _, check := range []func(*api.Call) error{c.admitTypes, c.admitOuts, c.admitEntry, c.admitCapacity} {
		if err := check(call); err != nil {
			return err
		}
	}
	return nil
}

// admitRanks says whether the class can be made for a group of that size; it
// is the constructor's ValueError.
func (c *config) admitRanks(ranks int) error {
	if slices.Contains(worldSizes, ranks) {
		return nil
	}
	return c.refuse(fmt.Sprintf("%d ranks", ranks), "the world size must be 1, 2, 4 or 8 (ValueError of the constructor)", "1, 2, 4 or 8 ranks")
}

func (c *config) admitTypes(call *api.Call) error {
	if !call.Collective.Reduces() {
		return nil
	}
	for i := range call.Lanes() {
		d := call.Lane(i).DType
		if slices.Contains(reduced, d) || c.checksTypeLate(call) {
			continue
		}
		return c.refuse(fmt.Sprintf("%s of %s", call.Collective.Name(), d), "reductions take f32, f16 and bf16 (TypeError)", "one of these types, or an all_gather")
	}
	return nil
}

// checksTypeLate reports whether the element type is looked at only after the
// input has been staged: reduce_scatter of the extension, which the class
// guards with a check of its own.
func (c *config) checksTypeLate(call *api.Call) bool {
	return c.extension && call.Collective == api.ReduceScatter
}

// admitOuts refuses what only a caller's own destinations could mean: the many
// forms allocate their outputs and have no outs=.
func (c *config) admitOuts(call *api.Call) error {
	if !api.IsMany(call.Collective) {
		return nil
	}
	const reason = "the class allocates the outputs and takes no outs= (TypeError)"
	name := call.Collective.Name()
	switch {
	case c.outs:
		return c.refuse(name+" with outs=", reason, "outs=off, or one call a lane")
	case call.InPlace != api.OutOfPlace:
		return c.refuse(name+" in place", reason, "an out-of-place call, or one call a lane")
	case slices.ContainsFunc(call.DstOffset, func(o int64) bool { return o != 0 }):
		return c.refuse(name+" with a destination offset", reason, "destination offset 0, or one call a lane")
	}
	return nil
}

// admitEntry refuses what the extension does not have, or does in a way that
// is not known.
func (c *config) admitEntry(call *api.Call) error {
	if !c.extension {
		return nil
	}
	switch call.Collective {
	case api.ReduceScatterMany:
		return c.refuse("reduce_scatter_many by the extension", "it is a loop in the class", "entry=class")
	case api.AllGather:
		if out := outBytes(call, 0); out <= c.gatherBlock {
			return c.refuse(fmt.Sprintf("all_gather of %d bytes of output by the extension", out), "what stage() and all_gather() launch for so small an output is not known", fmt.Sprintf("entry=class, or more than %d bytes of output", c.gatherBlock))
		}
	}
	return nil
}

// admitCapacity is the class's check of input bytes against max_size_bytes.
func (c *config) admitCapacity(call *api.Call) error {
	// A lane of the many gather goes behind the others; every other lane has
	// the payload for itself.
	if call.Collective == api.AllGatherMany {
		return c.admitLanes(call)
	}
	for i := range call.Lanes() {
		if n := laneBytes(call, i); n > c.capacity {
			return c.overCapacity(fmt.Sprintf("an input of %d bytes", n))
		}
	}
	return nil
}

func (c *config) admitLanes(call *api.Call) error {
	end := int64(0)
	for i := range call.Lanes() {
		n := laneBytes(call, i)
		start := pad(end)
		if n > c.capacity || start > c.capacity-n {
			return c.overCapacity(fmt.Sprintf("%d lanes, at 16-byte aligned offsets", call.Lanes()))
		}
		end = start + n
	}
	if pad(end) > c.capacity {
		return c.refuse(fmt.Sprintf("lanes of %d bytes", end), fmt.Sprintf("whether the padding of the last lane counts against max_size_bytes=%d is not known", c.capacity), "another capacity")
	}
	return nil
}

func (c *config) overCapacity(what string) error {
	return c.refuse(what, fmt.Sprintf("more than max_size_bytes=%d (ValueError)", c.capacity), "a smaller call, or a greater max_size_bytes")
}

func (c *config) refuse(what, reason, hint string) error {
	return &api.Refused{Spec: c.spec.String(), What: what, Reason: reason, Hint: hint}
}

// pad rounds up to the alignment of lanes in the payload. Its argument is at
// most a capacity, so it cannot overflow.
func pad(n int64) int64 { return (n + vector - 1) / vector * vector }

// laneBytes is the input of a lane in bytes. A valid call of at most 8 ranks
// cannot overflow: 2^40 elements of 8 bytes a block.
func laneBytes(call *api.Call, lane int) int64 {
	return call.SrcElems(lane) * int64(call.Lane(lane).DType.Size())
}

// outBytes is the output of a lane in bytes.
func outBytes(call *api.Call, lane int) int64 {
	return call.DstElems(lane) * int64(call.Lane(lane).DType.Size())
}
