package api

import (
	"encoding/json"
	"fmt"
	"slices"
)

// InPlace says how source and destination share memory.
type InPlace uint8

// The forms. Collective.InPlace says what a form means for a collective.
const (
	OutOfPlace   InPlace = iota
	InPlaceOwn           // the smaller buffer lies at the rank's own place in the larger
	InPlaceStart         // the smaller buffer lies at the start of the larger
)

// String is the form as the flag writes it: false, true or start.
func (p InPlace) String() string {
	return [...]string{"false", "true", "start"}[min(p, InPlaceStart)]
}

// MarshalJSON writes false, true or "start", as vector files do.
func (p InPlace) MarshalJSON() ([]byte, error) {
	if p == InPlaceStart {
		return []byte(`"start"`), nil
	}
	return json.Marshal(p == InPlaceOwn)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (p *InPlace) UnmarshalJSON(b []byte) error {
	switch string(b) {
	case "false":
		*p = OutOfPlace
	case "true":
		*p = InPlaceOwn
	case `"start"`:
		*p = InPlaceStart
	default:
		return fmt.Errorf("in_place must be true, false or \"start\", not %.20s", b)
	}
	return nil
}

// Scope is the group of threads that performs a call.
type Scope uint8

// The scopes; the zero value is OnStream.
const (
	OnStream Scope = iota
	Block
	Warp
	Thread
)

var scopeNames = []string{"on_stream", "block", "warp", "thread"}

// String is the name ParseScope reads.
func (s Scope) String() string { return scopeNames[min(int(s), len(scopeNames)-1)] }

// ParseScope returns the scope of that name.
func ParseScope(name string) (Scope, error) {
	if i := slices.Index(scopeNames, name); i >= 0 {
		return Scope(i), nil
	}
	return 0, &InvalidError{Field: "scope", Value: name, Reason: "unknown", Hint: fmt.Sprintf("known are %v", scopeNames)}
}

// TeamKind says whether the team is the whole world or a proper subset of it.
type TeamKind uint8

// The team kinds; the zero value is World.
const (
	World TeamKind = iota
	SubTeam
)

// String is the name ParseTeamKind reads.
func (t TeamKind) String() string {
	if t == SubTeam {
		return "sub"
	}
	return "world"
}

// ParseTeamKind returns the team kind of that name.
func ParseTeamKind(name string) (TeamKind, error) {
	switch name {
	case "world":
		return World, nil
	case "sub":
		return SubTeam, nil
	}
	return 0, &InvalidError{Field: "team", Value: name, Reason: "unknown", Hint: "known are [world sub]"}
}

// Offsets are element offsets from a 16-byte aligned base, one per rank; one
// entry serves every rank and none is zero everywhere.
type Offsets []int64

// At is the offset of rank.
func (o Offsets) At(rank int) int64 {
	switch len(o) {
	case 0:
		return 0
	case 1:
		return o[0]
	}
	return o[rank]
}

// Uniform reports whether all ranks have the same offset.
func (o Offsets) Uniform() bool {
	for _, v := range o {
		if v != o[0] {
			return false
		}
	}
	return true
}

// MarshalJSON writes a number where all ranks agree, else a list.
func (o Offsets) MarshalJSON() ([]byte, error) {
	if o.Uniform() {
		return json.Marshal(o.At(0))
	}
	return json.Marshal([]int64(o))
}

// UnmarshalJSON reads a number or a list of numbers.
func (o *Offsets) UnmarshalJSON(b []byte) error {
	var list []int64
	if err := json.Unmarshal(b, &list); err == nil {
		*o = list
		return nil
	}
	var one int64
	if err := json.Unmarshal(b, &one); err != nil {
		return fmt.Errorf("an offset is an integer or a list of them: %w", err)
	}
	*o = Offsets{one}
	return nil
}

// LaneShape is the part of a `many` call that differs between lanes.
type LaneShape struct {
	DType DType
	Count int64
}

// Call is one invocation of a collective, complete but for the data. Source
// and destination sizes follow from the collective's Blocks.
type Call struct {
	Collective Collective
	DType      DType
	Op         Op // NoOp for collectives that copy
	Ranks      int
	Count      int64 // elements; ignored where Many is set
	Many       []LaneShape
	Root       int
	SrcOffset  Offsets // elements
	DstOffset  Offsets // elements
	InPlace    InPlace
	Scope      Scope
	Team       TeamKind
	// Mode is the reduction mode where an implementation has several, such as
	// tandem's node and f32; "" is its default.
	Mode string
}

// Lanes is the number of source and destination pairs a rank brings.
func (c *Call) Lanes() int {
	if IsMany(c.Collective) {
		return len(c.Many)
	}
	return 1
}

// Lane is the dtype and count of one lane.
func (c *Call) Lane(lane int) LaneShape {
	if !IsMany(c.Collective) {
		return LaneShape{c.DType, c.Count}
	}
	l := c.Many[lane]
	if l.DType == 0 {
		l.DType = c.DType
	}
	return l
}

// Geometry is what the definition needs of one lane.
func (c *Call) Geometry(lane int) Geometry {
	return Geometry{Ranks: c.Ranks, Count: c.Lane(lane).Count, Root: c.Root}
}

// SrcElems is the number of source elements of one lane.
func (c *Call) SrcElems(lane int) int64 {
	src, _ := c.Collective.Blocks(c.Ranks)
	return src * c.Lane(lane).Count
}

// DstElems is the number of destination elements of one lane.
func (c *Call) DstElems(lane int) int64 {
	_, dst := c.Collective.Blocks(c.Ranks)
	return dst * c.Lane(lane).Count
}

// Inputs appends the inputs of one output element, by the definition.
func (c *Call) Inputs(dst []Input, lane, rank int, index int64) []Input {
	return c.Collective.Inputs(dst, c.Geometry(lane), rank, index)
}

// OwnPlace reports whether, in place, the destination element already holds
// its right value before the call: its one input is the rank's own element at
// that very place.
func (c *Call) OwnPlace(lane, rank int, index int64) bool {
	if c.InPlace == OutOfPlace {
		return false
	}
	g := c.Geometry(lane)
	in := c.Collective.Inputs(nil, g, rank, index)
	off, ok := c.Collective.InPlace(g, rank, c.InPlace)
	if !ok || len(in) != 1 || in[0].Rank != rank {
		return false
	}
	if src, dst := c.Collective.Blocks(c.Ranks); src > dst {
		return in[0].Index == index+off
	}
	return in[0].Index+off == index
}
