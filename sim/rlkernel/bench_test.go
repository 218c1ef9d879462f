package rlkernel

import (
	"testing"

	"example.com/tandem/api"
)

// BenchmarkPlan is a plan with its notes: what a sweep pays for every call.
func BenchmarkPlan(b *testing.B) {
	s := spec(b, After)
	call := api.Call{Collective: api.AllGather, DType: api.BF16, Ranks: 8, Count: 4096}
	for b.Loop() {
		if _, err := Plan(s, call); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSmallCall is one whole simulated call of 8 ranks.
func BenchmarkSmallCall(b *testing.B) {
	call := reduceCall(api.AllReduce, api.BF16, 8, 64)
	team := openTeam(b, After, 8)
	r := newRig(call, anyBits(1))
	for b.Loop() {
		_, errs := r.run(b, team)
		if errs[0] != nil {
			b.Fatal(errs[0])
		}
	}
}

// BenchmarkAllReduce is a whole simulated all-reduce of 8 x 1 Mi bf16; its
// rate counts input elements.
func BenchmarkAllReduce(b *testing.B) {
	call := reduceCall(api.AllReduce, api.BF16, 8, 1<<20)
	team := openTeam(b, After, 8)
	r := newRig(call, anyBits(1))
	b.SetBytes(8 << 20) // elements, so that MB/s reads as millions of them
	for b.Loop() {
		_, errs := r.run(b, team)
		if errs[0] != nil {
			b.Fatal(errs[0])
		}
	}
}
