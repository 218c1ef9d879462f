//go:build gpu

package main

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
	"example.com/tandem/api/gpu/gputest"
	"example.com/tandem/hw"
	"example.com/tandem/hw/cuda"
	"example.com/tandem/hw/host"
	"example.com/tandem/hw/tandem"
)

func openCUDA() (gpu.Driver, error) { return cuda.Open(cuda.Options{}) }

// TestGPUConformance holds hw:tandem on the GPUs here to sim:tandem.
func TestGPUConformance(t *testing.T) {
	d := gputest.Open(t, openCUDA)
	b := hw.New("hw", d)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	c := &conform{backend: b, variants: []string{"", "?path=direct&avg=premul", "?path=two_shot", "?buffers=staged&nan=propagate", "?ctas=3&mode=f32"},
		ranks: []int{1, 2, 3, 4, 8}, maxBytes: 4 << 20, atLeast: 50000, rounds: 4, workers: runtime.GOMAXPROCS(0),
		repeats: 100, sample: 60, steps: 400,
		hinder: func(team api.Team, late *tandem.Fault) { team.(*host.Team).Engine().(*tandem.Engine).Inject(late) }}
	if testing.Short() {
		c.variants, c.maxBytes, c.rounds, c.atLeast, c.sample, c.steps = c.variants[:2], 256<<10, 1, 0, 15, 60
	}
	start := time.Now()
	c.run(t)
	t.Logf("done when 2: %d calls of the matrix at %v ranks agree, %d diverge; %v", c.agree, c.ranks, c.diverge, time.Since(start).Round(time.Second))
}
