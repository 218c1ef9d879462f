//go:build gpu

package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api/gpu"
	"example.com/tandem/api/gpu/gputest"
	"example.com/tandem/hw"
	"example.com/tandem/hw/cuda"
)

// TestGPUConformance holds hw:tandem on the GPUs here to sim:tandem.
func TestGPUConformance(t *testing.T) {
	d := gputest.Open(t, func() (gpu.Driver, error) { return cuda.Open(cuda.Options{}) })
	b := hw.New("hw", d)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	c := &conform{backend: b, variants: []string{"", "?path=direct", "?path=two_shot", "?buffers=staged", "?ctas=3"}, ranks: []int{1, 2, 3, 4, 8},
		maxBytes: 4 << 20, budget: 2 * time.Minute, repeats: 100, sample: 60, steps: 400}
	if testing.Short() {
		c.variants, c.maxBytes, c.budget, c.sample, c.steps = c.variants[:2], 256<<10, 20*time.Second, 15, 60
	}
	c.run(t)
}
