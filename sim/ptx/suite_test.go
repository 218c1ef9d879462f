package ptx_test

import (
	"testing"

	"example.com/tandem/api/gpu"
	"example.com/tandem/api/gpu/gputest"
	"example.com/tandem/sim/ptx"
)

// TestSuite runs the suite for drivers, with other schedules as well.
func TestSuite(t *testing.T) {
	for _, devices := range []int{1, 2} {
		for seed := range uint64(devices) {
			d := gputest.Open(t, func() (gpu.Driver, error) {
				return ptx.Open(ptx.Options{Devices: devices, Seed: seed}), nil
			})
			gputest.Run(t, d)
		}
	}
}
