package api

import (
	"fmt"
	"slices"
)

// Geometry is what the definition of a collective depends on.
type Geometry struct {
	Ranks int
	Count int64 // elements a rank gives, or gets (reduce-scatter), or per block (all-to-all)
	Root  int
}

// Input names one input element: Index counts from the start of the source of
// Rank.
type Input struct {
	Rank  int
	Index int64
}

// Collective is the executable definition of one collective: which inputs
// contribute to an output, how large the buffers are, and where an in-place
// call puts the smaller buffer. An output with one input is a copy of it; one
// with several is their reduction under the call's op, in rank order.
//
// Implementations must be comparable values. Nothing else in this module
// enumerates collectives, so a new one is usable by handing it to a Call.
type Collective interface {
	Name() string
	// Reduces reports whether calls carry an op.
	Reduces() bool
	// Rooted reports whether calls carry a root.
	Rooted() bool
	// Blocks is the size of source and destination, in blocks of Count elements.
	Blocks(ranks int) (src, dst int64)
	// Inputs appends, in rank order, the inputs of element index of the
	// destination of rank.
	Inputs(dst []Input, g Geometry, rank int, index int64) []Input
	// InPlace says where, in elements from the start of the larger buffer,
	// the smaller one lies in an in-place call of that form; false if the
	// collective has no such form.
	InPlace(g Geometry, rank int, form InPlace) (offset int64, ok bool)
	// Symmetric reports whether every rank must end with the same bits, so
	// that rank agreement is a question.
	Symmetric() bool
}

// Many is implemented by collectives whose call holds several lanes, each an
// independent instance of Base.
type Many interface {
	Collective
	Base() Collective
}

// Collectives lists the definitions of this package.
func Collectives() []Collective {
	return []Collective{AllReduce, ReduceScatter, AllGather, Broadcast, AllToAll, AllGatherMany, ReduceScatterMany}
}

// ParseCollective returns the collective of that name.
func ParseCollective(name string) (Collective, error) {
	var names []string
	for _, c := range Collectives() {
		if c.Name() == name {
			return c, nil
		}
		names = append(names, c.Name())
	}
	return nil, &InvalidError{Field: "collective", Value: name, Reason: "unknown", Hint: fmt.Sprintf("known are %v", names)}
}

// Base is the collective each lane of c performs: c itself unless c is Many.
func Base(c Collective) Collective {
	if m, ok := c.(Many); ok {
		return m.Base()
	}
	return c
}

// IsMany reports whether c takes lanes.
func IsMany(c Collective) bool { _, ok := c.(Many); return ok }

// rankInputs appends one input per rank, all at the same index.
func rankInputs(dst []Input, ranks int, index int64) []Input {
	dst = slices.Grow(dst, ranks)
	for r := range ranks {
		dst = append(dst, Input{r, index})
	}
	return dst
}
