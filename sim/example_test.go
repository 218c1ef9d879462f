package sim_test

import (
	"context"
	"fmt"

	"example.com/tandem/api"
	"example.com/tandem/sim"
	"example.com/tandem/sim/machine"
	"example.com/tandem/sim/nvshmem"
)

// One's own buffers, summed as NVSHMEM 3.4.5 would sum them on two ranks.
func Example() {
	ctx := context.Background()
	spec, _ := api.ParseSpec("sim:nvshmem@3.4.5")
	team, err := sim.New(nvshmem.Family{}).Open(ctx, spec, api.TeamConfig{Ranks: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer team.Close(ctx)

	src := [][]float32{{1, 2, 3}, {4, 5, 6}}
	dst := [][]float32{make([]float32, 3), make([]float32, 3)}
	mem := []api.Memory{api.MemoryOf(src[0], dst[0]), api.MemoryOf(src[1], dst[1])}
	call := api.Call{Collective: api.AllReduce, DType: api.F32, Op: api.Sum, Ranks: 2, Count: 3}
	out, err := api.Run(ctx, team, call, mem)
	fmt.Println(dst, err)
	fmt.Println("rank 1 was written at", out[1].Written)
	// Output:
	// [[5 7 9] [5 7 9]] <nil>
	// rank 1 was written at [{0 0 12}]
}

// A plan takes no memory, whatever the count.
func ExampleBackend_Plan() {
	spec, _ := api.ParseSpec("sim:nvshmem@2dca770")
	call := api.Call{Collective: api.AllReduce, DType: api.BF16, Op: api.Sum, Ranks: 2, Count: 1048573}
	plan, err := sim.New(nvshmem.Family{}).Plan(spec, call)
	if err != nil {
		fmt.Println(err)
		return
	}
	last := plan.Kernels[0].CTAs[15]
	fmt.Println("unwritten on each rank:", plan.Unwritten)
	fmt.Println("CTA 15:", last.Algorithm, "from", last.Start, "because", last.Why)
	// Output:
	// unwritten on each rank: [65548 65548]
	// CTA 15: two_shot from 983025 because 65548 elements, more than 2048
}

// A rank that stops leaves the others waiting; the fault says who waits for whom.
func ExampleTeam_Schedule() {
	ctx := context.Background()
	spec, _ := api.ParseSpec("sim:nvshmem@3.4.5?nvls=off")
	opened, err := sim.New(nvshmem.Family{}).Open(ctx, spec, api.TeamConfig{Ranks: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	team := opened.(*sim.Team)
	team.Schedule(machine.Options{Seeded: true, Seed: 1, Inject: []machine.Injection{{Rank: 1, Harm: machine.Stop}}})
	call := api.Call{Collective: api.ReduceScatter, DType: api.I32, Op: api.Sum, Ranks: 2, Count: 1}
	_, err = api.Run(ctx, team, call, []api.Memory{
		api.MemoryOf([]int32{1, 2}, make([]int32, 1)),
		api.MemoryOf([]int32{3, 4}, make([]int32, 1)),
	})
	fmt.Println(err)
	// Output:
	// fault: hang on rank 0, CTA 0: rank 0, CTA 0 waits at step 1 (barrier 0 of 2) for rank 1; rank 1, CTA 0 stopped at step 0
}
