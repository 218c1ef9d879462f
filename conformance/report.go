package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"

	"example.com/tandem/api"
	"example.com/tandem/conformance/inputs"
)

// Schema names the JSON form of a Report.
const Schema = "tandem.report/1"

// The verdicts.
const (
	Agree   = "agree"   // the contract holds in every element, and nothing else was touched
	Diverge = "diverge" // it does not
)

// Report says whether two executions of a call owe each other nothing, and if
// they do, where and why. It marshals to JSON with these fields, and
// [Report.WriteText] tells it in words.
type Report struct {
	Schema  string `json:"schema"`
	Verdict string `json:"verdict"`
	// Contract is the weakest that was applied to an element.
	Contract  api.Contract `json:"contract"`
	Call      CallReport   `json:"call"`
	Left      SideReport   `json:"left"`
	Right     SideReport   `json:"right"`
	Differing Differing    `json:"differing"`
	// First is the first element that breaks its contract; nil if none does.
	First *First `json:"first"`
	// Ranges say where the elements lie that break their contract. Where there
	// are too many to list, RangesLeftOut says how many are not here.
	Ranges        []Range       `json:"ranges"`
	RangesLeftOut int64         `json:"ranges_left_out,omitempty"`
	Causes        []CauseReport `json:"causes"`
	// ULPHistogram counts pairs by distance: 0, 1, 2, 3-4, 5-8, .. 2^15, more;
	// nil where no lane is a float.
	ULPHistogram []int64 `json:"ulp_histogram"`
	// RankAgreement is nil for collectives whose ranks end with different
	// outputs.
	RankAgreement *Agreement        `json:"rank_agreement"`
	Environment   map[string]string `json:"environment"`
	Repro         string            `json:"repro"`

	plans  [2]*api.Plan
	values []valueLine // of small calls
}

// Holds reports whether the contract holds.
func (r *Report) Holds() bool { return r.Verdict == Agree }

// CallReport is the call with its input.
type CallReport struct {
	api.Call
	Input inputs.Input
}

// MarshalJSON writes the fields of a vector row.
func (c CallReport) MarshalJSON() ([]byte, error) {
	call, err := json.Marshal(c.Call)
	if err != nil {
		return nil, err
	}
	in, err := json.Marshal(c.Input)
	if err != nil {
		return nil, err
	}
	call = bytes.TrimSuffix(call, []byte("}"))
	return fmt.Appendf(call, `,"input":%s}`, in), nil
}

// SideReport is what one side left behind.
type SideReport struct {
	Spec     string                  `json:"spec"`
	Evidence map[string]api.Evidence `json:"evidence"` // per algorithm
	Ranks    []RankReport            `json:"ranks"`
}

// RankReport is what one rank ended with. Where any rank of the side faulted
// the outputs of all ranks are unspecified: Unwritten, Unreduced, FNV1a64 and
// OutHex are nil then.
type RankReport struct {
	Rank int `json:"rank"`
	// Unwritten counts the elements that no store reached; nil where that
	// cannot be known.
	Unwritten *int64 `json:"unwritten"`
	// Unreduced counts, where Unwritten is nil in place, the elements that are
	// still the rank's own input although the right result differs.
	Unreduced *int64 `json:"unreduced"`
	// GuardHits counts bytes around the buffers that did not survive.
	GuardHits int64 `json:"guard_hits"`
	// SourceChanged counts source bytes, outside the destination, that the call
	// altered.
	SourceChanged int64 `json:"source_changed"`
	// NotFaithful counts outputs of a floating sum that are no neighbour of the
	// exact sum.
	NotFaithful int64      `json:"not_faithful"`
	FNV1a64     *string    `json:"fnv1a64"`
	OutHex      *string    `json:"out_hex"` // the first 64 elements, in memory order
	Fault       *api.Fault `json:"fault"`
}

// Differing counts elements whose bits are not the same.
type Differing struct {
	// Elements break their contract.
	Elements int64   `json:"elements"`
	PerRank  []int64 `json:"per_rank"`
	// InSwitch differ within it.
	InSwitch int64 `json:"in_switch"`
	// Unwritten are those that neither side wrote: equal, and not compared.
	Unwritten int64 `json:"unwritten_on_both,omitempty"`
	// Undecided are among the values accepted as in-switch sums, but too close
	// to the end of the switch's window for anybody to know.
	Undecided int64 `json:"undecided,omitempty"`
}

// First is one element on both sides.
type First struct {
	Rank  int   `json:"rank"`
	Lane  int   `json:"lane,omitempty"`
	Index int64 `json:"index"`
	// Left and Right are bit patterns; nil where the side did not write.
	Left  *string `json:"left"`
	Right *string `json:"right"`
	// ULP is the distance; nil for integers, and where it means nothing.
	ULP *uint64 `json:"ulp"`

	left, right uint64
}

// Range is Count elements, Stride apart, that break their contract for one
// cause.
type Range struct {
	Rank   int       `json:"rank"`
	Lane   int       `json:"lane,omitempty"`
	Start  int64     `json:"start"`
	Stride int64     `json:"stride"`
	Count  int64     `json:"count"`
	Cause  api.Cause `json:"cause"`
}

// CauseReport is a class of causes with what it amounts to. For guard, which
// is about bytes outside the destinations, Elements are as many as those bytes
// would fill.
type CauseReport struct {
	Class       api.Cause `json:"class"`
	Elements    int64     `json:"elements"`
	Explanation string    `json:"explanation"`

	parts []string // of the explanation, the heaviest first
}

// Agreement says for each side whether all its ranks ended with the same bits;
// nil for a side that faulted.
type Agreement struct {
	Left  *bool `json:"left"`
	Right *bool `json:"right"`
}

// Nothing is an error where no output was compared and nothing else was found
// broken, nil otherwise: such a report agrees about guards and sources alone.
func (r *Report) Nothing() error {
	switch {
	case !r.Holds() || r.compared() > 0:
		return nil
	case r.outputs() == 0:
		return &NothingCompared{Reason: "the call has no elements"}
	}
	return &NothingCompared{Reason: fmt.Sprintf("both sides left every output unwritten, %s", plural(r.outputs(), "of one", "all %d of them"))}
}

// outputs is the number of elements of all destinations.
func (r *Report) outputs() int64 {
	var n int64
	for l := range r.Call.Lanes() {
		n += r.Call.DstElems(l) * int64(r.Call.Ranks)
	}
	return n
}

// compared is the number of outputs that at least one side wrote.
func (r *Report) compared() int64 { return r.outputs() - r.Differing.Unwritten }

// NothingCompared is the error of a comparison that compared nothing: both sides
// faulted, or there was no output that either wrote.
type NothingCompared struct {
	Left, Right *api.Fault // of both sides, or nil and nil
	Reason      string     // where no side faulted
}

// Error is one line with both faults, or the reason.
func (e *NothingCompared) Error() string {
	if e.Left == nil || e.Right == nil {
		return "nothing was compared: " + e.Reason
	}
	return fmt.Sprintf("nothing was compared, both sides fault: left: %v; right: %v", e.Left, e.Right)
}

// Unwrap is api.ErrFault, or api.ErrInvalid where no side faulted: the call asks
// for nothing that could be compared.
func (e *NothingCompared) Unwrap() error {
	if e.Left == nil || e.Right == nil {
		return api.ErrInvalid
	}
	return api.ErrFault
}
