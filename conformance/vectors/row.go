package vectors

import (
	"fmt"
	"math"

	"example.com/tandem/api"
	"example.com/tandem/conformance/inputs"
)

// Header is the first line of a file.
type Header struct {
	Format      string            `json:"format"`
	Version     int               `json:"version"`
	Library     string            `json:"library"`
	Profile     string            `json:"profile"` // implementation@version whose model gives these results
	NVLS        bool              `json:"nvls"`
	Hardware    string            `json:"hardware"`
	Environment map[string]string `json:"environment"`
}

const (
	formatName = "vectors"
	// Version is what a Writer writes.
	Version = 2
)

func (h *Header) check() error {
	if h.Format != formatName {
		return &api.InvalidError{Field: "format", Value: h.Format, Reason: "not a vector file", Hint: `the first line is {"format":"vectors","version":1 or 2,..}`}
	}
	if h.Version < 1 || h.Version > Version {
		return &api.InvalidError{Field: "version", Value: fmt.Sprint(h.Version), Reason: "unknown", Hint: fmt.Sprintf("this reader knows versions 1 to %d", Version)}
	}
	return nil
}

// DefaultPoison fills destinations where a row does not say otherwise.
const DefaultPoison = 0xff

// Row is one recorded call.
type Row struct {
	Line  int // in the file, from 1; 0 for rows not read from one
	Call  api.Call
	Input inputs.Input
	// Hash is the hash of each rank's output; nil where the call faulted.
	Hash []uint64
	// Blocks hashes each rank's output in blocks of BlockBytes; may be nil.
	Blocks [][]uint64
	// Output is each rank's output; may be nil, in whole or for some ranks.
	Output [][]byte
	Poison byte
	// Unwritten counts the elements no store reached, per rank; nil, in whole
	// or for a rank, where that is not known.
	Unwritten []*int64
	// GuardHits counts the guard bytes that did not survive, per rank; nil
	// where they were not looked at.
	GuardHits []int64
	Fault     *api.Fault
	MS        float64 // how long the call took, in milliseconds; 0 if not measured
}

// OutputBytes is the size of one rank's output, all lanes together.
func (r *Row) OutputBytes() int64 { return OutputBytes(&r.Call) }

// OutputBytes is the size of one rank's output, all lanes together. The call
// must be valid and its MemoryBytes less than math.MaxInt64.
func OutputBytes(call *api.Call) int64 {
	var n int64
	for i := range call.Lanes() {
		n += call.DstElems(i) * int64(call.Lane(i).DType.Size())
	}
	return n
}

// HasOutput reports whether the whole output of every rank is there.
func (r *Row) HasOutput() bool {
	for _, p := range r.Output {
		if p == nil {
			return false
		}
	}
	return len(r.Output) == r.Call.Ranks
}

// check says whether the parts of a row fit together.
func (r *Row) check() error {
	if err := r.Call.Validate(); err != nil {
		return err
	}
	if r.Call.MemoryBytes() == math.MaxInt64 {
		return &api.InvalidError{Field: "count", Value: fmt.Sprint(r.Call.Count), Reason: "the call needs more than 2^62 bytes"}
	}
	if r.Input.Kind == inputs.Files {
		return &api.InvalidError{Field: "input", Value: r.Input.String(), Reason: "a recording cannot name files of one machine"}
	}
	if _, err := r.Input.Open(&r.Call); err != nil {
		return err
	}
	if r.Fault != nil {
		if len(r.Hash)+len(r.Blocks)+len(r.Output) > 0 {
			return &api.InvalidError{Field: "fault", Value: string(r.Fault.Kind), Reason: "a call that faulted has no outputs"}
		}
	} else if len(r.Hash) != r.Call.Ranks {
		return wrongLength("out_fnv1a64", len(r.Hash), r.Call.Ranks)
	}
	for _, l := range []struct {
		name string
		n    int
	}{{"out_hex", len(r.Output)}, {"block_fnv1a64", len(r.Blocks)}, {"unwritten", len(r.Unwritten)}, {"guard_hits", len(r.GuardHits)}} {
		if l.n != 0 && l.n != r.Call.Ranks {
			return wrongLength(l.name, l.n, r.Call.Ranks)
		}
	}
	return r.checkOutputs()
}

// checkOutputs holds the sizes of outputs and block hashes, and the outputs'
// own hashes, against the call.
func (r *Row) checkOutputs() error {
	need := r.OutputBytes()
	for rank, p := range r.Output {
		if p == nil {
			continue
		}
		if int64(len(p)) != need {
			return &api.InvalidError{Field: "out_hex", Value: fmt.Sprintf("%d bytes", len(p)), Reason: fmt.Sprintf("rank %d has %d bytes of output", rank, need)}
		}
		if r.Hash != nil && uint64(NewHash().Add(p)) != r.Hash[rank] {
			return &api.InvalidError{Field: "out_hex", Value: fmt.Sprintf("rank %d", rank), Reason: "its hash is not the one in out_fnv1a64"}
		}
	}
	for rank, b := range r.Blocks {
		if b != nil && int64(len(b)) != Blocks(need) {
			return wrongLength(fmt.Sprintf("block_fnv1a64[%d]", rank), len(b), int(Blocks(need)))
		}
	}
	for _, v := range r.Unwritten {
		if v != nil && *v < 0 {
			return &api.InvalidError{Field: "unwritten", Value: fmt.Sprint(*v), Reason: "negative"}
		}
	}
	for _, v := range r.GuardHits {
		if v < 0 {
			return &api.InvalidError{Field: "guard_hits", Value: fmt.Sprint(v), Reason: "negative"}
		}
	}
	return nil
}

func wrongLength(field string, got, want int) error {
	return &api.InvalidError{Field: field, Value: fmt.Sprint(got), Reason: "wrong number of entries", Hint: fmt.Sprintf("%d are needed", want)}
}

// FullyWritten reports whether the row says that every output was written.
func (r *Row) FullyWritten() bool {
	for _, n := range r.Unwritten {
		if n == nil || *n != 0 {
			return false
		}
	}
	return len(r.Unwritten) == r.Call.Ranks
}
