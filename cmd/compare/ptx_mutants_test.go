package main

import (
	"bytes"
	"os"
	"testing"
	"time"

	"example.com/tandem/api/gpu"
	"example.com/tandem/hw/kernels"
	"example.com/tandem/hw/kernels/mutants"
	"example.com/tandem/sim/ptx"
)

// virtualLab is the virtual GPU, one for each rank.
func virtualLab() *lab {
	return &lab{name: "ptx", deadline: 50 * time.Millisecond, apart: true, virtual: true,
		open: func(edit func([]byte) []byte) (gpu.Driver, func() error) {
			d := ptx.Open(ptx.Options{Devices: 4, Seed: 3, Edit: func(text []byte) []byte {
				if !bytes.Equal(text, kernels.Tandem) {
					return text // another module
				}
				return edit(text)
			}})
			return d, d.Close
		}}
}

// TestPTXMutants: kernels that are wrong in their values, their barriers, their
// epochs, their headers or their order are caught on the virtual GPU, a GPU for
// each rank; wrong orders as races, whether or not a wrong value appears. All of
// them with TANDEM_PTX=1, as CI has it, and a sixth without.
func TestPTXMutants(t *testing.T) {
	withoutRaceDetector(t)
	l := virtualLab()
	l.every = os.Getenv("TANDEM_EXHAUSTIVE") != ""
	list := mutants.List(kernels.Tandem)
	if !l.every && !ptxAll() { // all of them take a minute
		var some []mutants.Mutant
		for i := 0; i < len(list); i += 6 {
			some = append(some, list[i])
		}
		list = some
	}
	l.table(t, list)
}
