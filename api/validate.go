package api

import (
	"fmt"
	"math/bits"
)

// Limits of every call.
const (
	MaxRanks = 1024
	MaxCount = int64(1) << 40 // elements of a rank's largest buffer, per block
	MaxLanes = 4096
)

// Validate says whether the call makes sense at all, whatever implementation
// executes it. The error is an *InvalidError.
func (c *Call) Validate() error {
	if c.Collective == nil {
		return &InvalidError{Field: "collective", Reason: "none given"}
	}
	if c.Ranks < 1 || c.Ranks > MaxRanks {
		return &InvalidError{Field: "ranks", Value: fmt.Sprint(c.Ranks), Reason: "out of range", Hint: fmt.Sprintf("1 to %d", MaxRanks)}
	}
	if c.Scope > Thread {
		return &InvalidError{Field: "scope", Value: fmt.Sprint(uint8(c.Scope)), Reason: "unknown", Hint: fmt.Sprintf("known are %v", scopeNames)}
	}
	if c.Team > SubTeam {
		return &InvalidError{Field: "team", Value: fmt.Sprint(uint8(c.Team)), Reason: "unknown", Hint: "known are [world sub]"}
	}
	for _, step := range []func() error{c.validateLanes, c.validateOp, c.validateRoot, c.validateOffsets} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (c *Call) validateLanes() error {
	if !IsMany(c.Collective) {
		if len(c.Many) > 0 {
			return &InvalidError{Field: "lanes", Value: fmt.Sprint(len(c.Many)), Reason: c.Collective.Name() + " has one lane", Hint: "use all_gather_many or reduce_scatter_many"}
		}
	} else if len(c.Many) < 1 || len(c.Many) > MaxLanes {
		return &InvalidError{Field: "lanes", Value: fmt.Sprint(len(c.Many)), Reason: c.Collective.Name() + " needs lanes", Hint: fmt.Sprintf("1 to %d of them, as --lanes 1024,7,f32:0", MaxLanes)}
	}
	for i := range c.Lanes() {
		l := c.Lane(i)
		if !l.DType.Valid() {
			return &InvalidError{Field: "dtype", Value: l.DType.String(), Reason: "unknown"}
		}
		if l.Count < 0 || l.Count > MaxCount {
			return &InvalidError{Field: "count", Value: fmt.Sprint(l.Count), Reason: "out of range", Hint: fmt.Sprintf("0 to %d", MaxCount)}
		}
	}
	return nil
}

func (c *Call) validateOp() error {
	if !c.Collective.Reduces() {
		if c.Op != NoOp {
			return &InvalidError{Field: "op", Value: c.Op.String(), Reason: c.Collective.Name() + " takes no op"}
		}
		return nil
	}
	for i := range c.Lanes() {
		if d := c.Lane(i).DType; !c.Op.ValidFor(d) {
			return &InvalidError{Field: "op", Value: c.Op.String(), Reason: fmt.Sprintf("not defined on %s", d), Hint: "sum, prod, min, max and avg are defined on every dtype; and, or, xor on integers"}
		}
	}
	return nil
}

func (c *Call) validateRoot() error {
	if c.Root != 0 && !c.Collective.Rooted() {
		return &InvalidError{Field: "root", Value: fmt.Sprint(c.Root), Reason: c.Collective.Name() + " has no root"}
	}
	if c.Root < 0 || c.Root >= c.Ranks {
		return &InvalidError{Field: "root", Value: fmt.Sprint(c.Root), Reason: "no such rank", Hint: fmt.Sprintf("0 to %d", c.Ranks-1)}
	}
	return nil
}

func (c *Call) validateOffsets() error {
	for _, o := range []struct {
		name string
		off  Offsets
	}{{"src-offset", c.SrcOffset}, {"dst-offset", c.DstOffset}} {
		if len(o.off) > 1 && len(o.off) != c.Ranks {
			return &InvalidError{Field: o.name, Value: fmt.Sprint([]int64(o.off)), Reason: "wrong number of offsets", Hint: fmt.Sprintf("one, or one for each of %d ranks", c.Ranks)}
		}
		for _, v := range o.off {
			if v < 0 || v > MaxCount {
				return &InvalidError{Field: o.name, Value: fmt.Sprint(v), Reason: "beyond any buffer", Hint: fmt.Sprintf("0 to %d elements", MaxCount)}
			}
		}
	}
	if c.InPlace == OutOfPlace {
		return nil
	}
	for i := range c.Lanes() {
		if _, ok := c.Collective.InPlace(c.Geometry(i), 0, c.InPlace); !ok {
			return &InvalidError{Field: "in-place", Value: c.InPlace.String(), Reason: c.Collective.Name() + " has no such in-place form", Hint: "leave it out, or use a form that the collective defines: all_reduce, broadcast and all_gather have true, reduce_scatter true and start"}
		}
	}
	for r := range c.Ranks {
		if c.SrcOffset.At(r) != c.DstOffset.At(r) {
			return &InvalidError{Field: "dst-offset", Value: fmt.Sprint(c.DstOffset.At(r)), Reason: "an in-place call has one buffer, so both offsets must be equal"}
		}
	}
	return nil
}

// MemoryBytes is what the buffers of all ranks take, guards and offsets left
// out; math.MaxInt64 stands for more than that.
func (c *Call) MemoryBytes() int64 {
	var total uint64
	for i := range c.Lanes() {
		elems := uint64(c.DstElems(i))
		if s := uint64(c.SrcElems(i)); c.InPlace == OutOfPlace {
			elems += s
		} else {
			elems = max(elems, s)
		}
		hi, lo := bits.Mul64(elems, uint64(c.Lane(i).DType.Size()*c.Ranks))
		if total += lo; hi != 0 || total > 1<<62 {
			return 1<<63 - 1
		}
	}
	return int64(total)
}
