//go:build gpu

package main

import (
	"testing"
	"time"

	"example.com/tandem/api/gpu"
	"example.com/tandem/api/gpu/gputest"
	"example.com/tandem/hw/kernels"
	"example.com/tandem/hw/kernels/mutants"
)

// TestGPUMutants: kernels that are wrong in their values, barriers, epochs or
// headers are caught on the GPU, all ranks on one. Of those that only lose an
// order it is said which the GPU showed as well.
func TestGPUMutants(t *testing.T) {
	d := gputest.Open(t, openCUDA)
	l := &lab{name: "hw", params: "gpus=1", deadline: 300 * time.Millisecond, compiles: true,
		open: func(edit func([]byte) []byte) (gpu.Driver, func() error) {
			return mutants.Editing(d, "tandem.ptx", edit), func() error { return nil }
		}}
	list := mutants.List(kernels.Tandem)
	if testing.Short() {
		list = list[:4]
	}
	start := time.Now()
	wrong, caught := l.table(t, list)
	t.Logf("done when 6: %d of %d mutants were caught by the GPU, all those with wrong values; %v", caught, wrong, time.Since(start).Round(time.Second))
}
