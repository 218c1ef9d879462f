package nvshmem_test

import (
	"fmt"

	"example.com/tandem/api"
	"example.com/tandem/sim/nvshmem"
)

// What the library does with 1048573 bf16 elements on two ranks before PR #131,
// and which CTA leaves outputs unwritten.
func ExamplePlan() {
	spec, err := api.ParseSpec("sim:nvshmem@2dca770")
	if err != nil {
		panic(err)
	}
	call := api.Call{Collective: api.AllReduce, DType: api.BF16, Op: api.Sum, Ranks: 2, Count: 1048573}
	plan, err := nvshmem.Plan(spec, call, nil)
	if err != nil {
		panic(err)
	}
	fmt.Println("unwritten:", plan.Unwritten)
	for _, cta := range plan.Kernels[0].CTAs {
		for _, s := range cta.Slices {
			for _, h := range s.Holes {
				fmt.Printf("CTA %d (%s), slice of rank %d: %d elements from %d, %s\n", cta.CTA, cta.Algorithm, s.Rank, h.Count, h.Start, h.Cause)
			}
		}
	}
	// Output:
	// unwritten: [65548 65548]
	// CTA 15 (two_shot), slice of rank 0: 32774 elements from 983025, odd_cta_start
	// CTA 15 (two_shot), slice of rank 1: 32774 elements from 1015799, odd_cta_start
}
