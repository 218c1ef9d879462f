package rlkernel

import (
	"fmt"

	"example.com/tandem/api"
)

// Name is the family's name in a Spec.
const Name = "rlkernel"

// The versions: the commits before and after the pull request.
const (
	Before = "43f150f"
	After  = "8ccb03c"
)

// Limits of the library, in bytes unless they say otherwise. Thresholds are
// compared with <=, so a message of exactly that size is on the small path.
const (
	singleBlock     = 256 << 10 // input of a one-block reduction or stage
	ownerLimit      = 4 << 20   // input of the owner path
	defaultCapacity = 64 << 20  // max_size_bytes
	frames          = 3         // in the staging of a rank, of which one is used
	header          = 32        // before the payload of a frame
	vector          = 16        // width of a vector access
	threads         = 256       // of a block
	maxBlocks       = 4096      // of a grid
)

// release is what differs between the versions.
type release struct {
	name string
	// gatherBlock is the greatest output, in bytes, that one block gathers.
	gatherBlock int64
	// vectors says that the gather copies 16 bytes at a time where it can.
	vectors bool
}

var releases = []release{
	{name: Before, gatherBlock: singleBlock},
	{name: After, gatherBlock: 64 << 10, vectors: true},
}

// Versions lists the versions, oldest first.
func Versions() []string {
	var names []string
	for _, r := range releases {
		names = append(names, r.name)
	}
	return names
}

func findRelease(version string) (release, error) {
	for _, r := range releases {
		if r.name == version {
			return r, nil
		}
	}
	return release{}, &api.InvalidError{Field: "version", Value: version, Reason: "unknown", Hint: fmt.Sprintf("known are %v", Versions())}
}

// worldSizes are the numbers of ranks that the class takes.
var worldSizes = []int{1, 2, 4, 8}

// collectives lists what the class has.
func collectives() []api.Collective {
	return []api.Collective{api.AllReduce, api.ReduceScatter, api.AllGather, api.AllGatherMany, api.ReduceScatterMany}
}

// reduced lists the element types that the reductions take; copies take all.
var reduced = []api.DType{api.BF16, api.F16, api.F32}
