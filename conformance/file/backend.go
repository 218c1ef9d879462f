package file

import (
	"context"
	"os"

	"example.com/tandem/api"
	"example.com/tandem/conformance"
	"example.com/tandem/conformance/dumps"
	"example.com/tandem/conformance/inputs"
	"example.com/tandem/conformance/vectors"
)

// Name is the backend's part of a spec: file:PATH.
const Name = "file"

// Backend opens recordings. The zero Backend is ready to use; it keeps what it
// has read, so that a file is read once.
type Backend struct {
	shelf shelf
}

var (
	_ conformance.RowSource = (*Backend)(nil)
	_ conformance.Promiser  = (*rowTeam)(nil)
	_ conformance.Promiser  = (*dumpTeam)(nil)
)

// New makes a backend.
func New() *Backend { return &Backend{} }

// Name is "file".
func (*Backend) Name() string { return Name }

// Recorded marks the backend as one that gives back the past.
func (*Backend) Recorded() {}

// Implementations says what the backend serves; a file's own contract and
// evidence are those of its team.
func (*Backend) Implementations() []api.Implementation {
	return []api.Implementation{{
		Summary:     "a recording: a vector file, or a directory of dumps (raw little-endian or .npy, one file a rank)",
		Collectives: api.Collectives(), DTypes: api.DTypes(),
		Evidence: map[string]api.Evidence{"recording": api.Recorded, "dump": api.Assumed},
	}}
}

// Open opens file:PATH.
func (b *Backend) Open(_ context.Context, spec api.Spec, cfg api.TeamConfig) (api.Team, error) {
	info, err := stat(spec)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		dir, err := dumps.Open(spec.Path)
		if err != nil {
			return nil, err
		}
		return newDumpTeam(spec, dir, cfg.Ranks), nil
	}
	book, err := b.shelf.open(spec.Path, info)
	if err != nil {
		return nil, err
	}
	return newRowTeam(spec, book, cfg), nil
}

// Row is the row of a call, whatever it holds.
func (b *Backend) Row(spec api.Spec, call api.Call, input inputs.Input) (*vectors.Row, error) {
	info, err := stat(spec)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, &api.Refused{Spec: spec.String(), What: call.String(), Reason: "a directory of dumps has no rows", Hint: "compare it with compare run"}
	}
	book, err := b.shelf.open(spec.Path, info)
	if err != nil {
		return nil, err
	}
	for _, row := range book.rows[key(&call)] {
		if sameInput(row.Input, input) {
			return row, nil
		}
	}
	return nil, missing(spec, &call)
}

func stat(spec api.Spec) (os.FileInfo, error) {
	if spec.Path == "" {
		return nil, &api.InvalidError{Field: "spec", Value: spec.String(), Reason: "it names no file", Hint: "write file:PATH"}
	}
	info, err := os.Stat(spec.Path)
	if err != nil {
		return nil, &api.InvalidError{Field: "file", Value: spec.Path, Reason: "it cannot be opened", Hint: "name a vector file or a directory of dumps"}
	}
	if !info.IsDir() && !info.Mode().IsRegular() {
		return nil, &api.InvalidError{Field: "file", Value: spec.Path, Reason: "neither a file nor a directory"}
	}
	return info, nil
}

func missing(spec api.Spec, call *api.Call) error {
	return &api.Refused{Spec: spec.String(), What: call.String(), Reason: "the recording does not hold this call with these inputs", Hint: "a recording answers only the calls it holds"}
}

func hashesOnly(spec api.Spec, call *api.Call) error {
	return &api.Refused{Spec: spec.String(), What: call.String(), Reason: "the recording holds only hashes of this call", Hint: "compare replay checks hashes; a run needs whole outputs"}
}

// key is a call as text, the same for every way of writing its offsets.
func key(call *api.Call) string { return call.String() }
