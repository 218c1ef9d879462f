package cuda

import (
	"testing"

	"example.com/tandem/api/gpu"
	"example.com/tandem/api/gpu/gputest"
)

// TestGPU is the suite of package gputest on the real driver: vector add,
// parameters, graph replay, cooperative launch, pinned flags and the rest.
func TestGPU(t *testing.T) {
	gputest.Run(t, gputest.Open(t, func() (gpu.Driver, error) { return Open(Options{}) }))
}
