package rlkernel

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"example.com/tandem/api"
)

// Name is the implementation's name in a Spec.
const Name = "rlkernel"

// The versions: the commits before and after the pull request.
const (
	Before = "43f150f"
	After  = "8ccb03c"
)

// Sizes of the library, in bytes. A message of exactly a limit is below it.
const (
	oneBlock    = 256 << 10 // that one block reduces, or stages
	ownerBytes  = 4 << 20   // that rank 0 reduces for all
	defaultRoom = 64 << 20  // of a rank's payload
	laneAlign   = 16        // of lanes in the payload
	threads     = 256       // of a block
	maxBlocks   = 4096      // of a grid
)

// gatherLimit is the greatest output that one block gathers.
func gatherLimit(version string) int64 {
	if version == Before {
		return 256 << 10
	}
	return 64 << 10
}

// Bounds of a team.
const (
	maxScale = 1000
	maxRoom  = 1 << 40
)

// Paths that can be forced.
const (
	pathAuto   = "auto"
	pathSingle = "single"
	pathMulti  = "multi"
)

// config is a Spec, read.
type config struct {
	spec       api.Spec
	room       int64 // max_size_bytes
	outs       bool
	extension  bool
	peerwise   bool
	path       string
	gpus       int
	cyclic     bool
	scale      int
	allowFault bool
}

// vectors says whether the gather of the version moves 16 bytes at a time.
func (c *config) vectors() bool { return c.spec.Version == After }

// Params are the parameters of a version.
func Params(version string) []api.Param {
	p := []api.Param{
		{Name: "max_size_bytes", Default: strconv.Itoa(defaultRoom), Values: "1..2^40", Help: "capacity of the staging payload of a rank, in bytes"},
		{Name: "outs", Default: "off", Values: "off|on", Help: "pass the destinations to the many forms as outs=, which the class does not take: refused"},
		{Name: "entry", Default: "class", Values: "class|extension", Help: "extension: stage() and the operation called directly (rank 0 reduces for all), which the class never does"},
		{Name: "path", Default: pathAuto, Values: "auto|single|multi", Help: "forces one block or a grid, whatever the size; never changes bits"},
		{Name: "gpus", Default: "auto", Values: fmt.Sprintf("auto|1..%d", maxRanks), Help: "GPUs that the ranks share; ranks of one GPU are block groups of the same launches"},
		{Name: "placement", Default: "block", Values: "block|cyclic", Help: "which ranks share a GPU: neighbours, or every gpus-th. Never changes bits"},
		{Name: "deadline_scale", Default: "1", Values: fmt.Sprintf("1..%d", maxScale), Help: "factor on both deadlines, for sanitizers and debuggers"},
		{Name: "allow_fault", Default: "0", Values: "0|1", Help: "launch the bf16 all_reduce whose pair store is misaligned, which loses the context; compare does it in a child process"},
	}
	if version == After {
		p = append(p, api.Param{Name: "copy", Default: "ranks", Values: "ranks|peerwise", Help: "ranks: one flat loop over all ranks' vectors where everything is aligned; peerwise: the author's first version, rank by rank"})
	}
	return p
}

// read reads a Spec.
func read(spec api.Spec) (*config, error) {
	if spec.Version != Before && spec.Version != After {
		return nil, &api.InvalidError{Field: "version", Value: spec.Version, Reason: "unknown", Hint: fmt.Sprintf("known are %s and %s", Before, After)}
	}
	c := &config{spec: spec, room: defaultRoom, path: pathAuto, scale: 1}
	params := Params(spec.Version)
	for _, key := range slices.Sorted(maps.Keys(spec.Params)) {
		i := slices.IndexFunc(params, func(p api.Param) bool { return p.Name == key })
		if i < 0 {
			var names []string
			for _, p := range params {
				names = append(names, p.Name)
			}
			return nil, &api.InvalidError{Field: "parameter", Value: key, Reason: fmt.Sprintf("%s@%s has no such parameter", Name, spec.Version), Hint: fmt.Sprintf("known are %v", names)}
		}
		if !c.set(key, spec.Params[key]) {
			return nil, &api.InvalidError{Field: key, Value: spec.Params[key], Reason: "not a value of this parameter", Hint: params[i].Values}
		}
	}
	return c, nil
}

func (c *config) set(key, value string) bool {
	oneOf := func(to *bool, off, on string) bool {
		*to = value == on
		return value == on || value == off
	}
	number := func(to *int64, most int64) bool {
		v, err := strconv.ParseInt(value, 10, 64)
		*to = v
		return err == nil && v >= 1 && v <= most
	}
	var n int64
	switch key {
	case "max_size_bytes":
		return number(&c.room, maxRoom)
	case "outs":
		return oneOf(&c.outs, "off", "on")
	case "entry":
		return oneOf(&c.extension, "class", "extension")
	case "copy":
		return oneOf(&c.peerwise, "ranks", "peerwise")
	case "path":
		c.path = value
		return slices.Contains([]string{pathAuto, pathSingle, pathMulti}, value)
	case "gpus":
		ok := value == "auto" || number(&n, maxRanks)
		c.gpus = int(n)
		return ok
	case "placement":
		return oneOf(&c.cyclic, "block", "cyclic")
	case "deadline_scale":
		ok := number(&n, maxScale)
		c.scale = int(n)
		return ok
	case "allow_fault":
		return oneOf(&c.allowFault, "0", "1")
	}
	return false
}

func (c *config) refuse(what, reason, hint string) error {
	return &api.Refused{Spec: c.spec.String(), What: what, Reason: reason, Hint: hint}
}
