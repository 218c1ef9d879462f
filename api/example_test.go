package api_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/x448/float16"

	"example.com/tandem/api"
)

// A call is complete in itself, and says what is wrong with it.
func ExampleCall_Validate() {
	call := api.Call{Collective: api.AllReduce, DType: api.BF16, Op: api.Xor, Ranks: 2, Count: 8}
	err := call.Validate()
	fmt.Println(err)
	fmt.Println(errors.Is(err, api.ErrInvalid))
	// Output:
	// op "xor": not defined on bf16 (sum, prod, min, max and avg are defined on every dtype; and, or, xor on integers)
	// true
}

// The definition of a collective says where every output comes from.
func ExampleCall_Inputs() {
	call := api.Call{Collective: api.ReduceScatter, DType: api.F32, Op: api.Sum, Ranks: 3, Count: 10}
	fmt.Println(call.Inputs(nil, 0, 2, 4))
	// Output: [{0 24} {1 24} {2 24}]
}

func ExampleParseSpec() {
	spec, err := api.ParseSpec("sim:nvshmem@3.4.5?nvls=off")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(spec.Backend, spec.Implementation, spec.Version, spec.Param("nvls", "on"))
	_, err = api.ParseSpec("nvshmem")
	fmt.Println(err)
	// Output:
	// sim nvshmem 3.4.5 off
	// spec "nvshmem": it has no backend (write BACKEND:IMPLEMENTATION[@VERSION][?key=value], e.g. sim:nvshmem@pr131?nvls=off, or file:PATH)
}

// Own buffers go in as they are, without a copy: here half-precision values,
// through a backend of one's own (byDefinition, in this package's tests).
func ExampleRun() {
	half := func(values ...float32) []float16.Float16 {
		var out []float16.Float16
		for _, v := range values {
			out = append(out, float16.Fromfloat32(v))
		}
		return out
	}
	ctx := context.Background()
	call := api.Call{Collective: api.AllReduce, DType: api.F16, Op: api.Sum, Ranks: 2, Count: 3}
	team, err := byDefinition{}.Open(ctx, api.Spec{Backend: "fake"}, api.TeamConfig{Ranks: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer team.Close(ctx)
	mem := []api.Memory{
		api.MemoryOf(half(1, 2, 3), half(0, 0, 0)),
		api.MemoryOf(half(0.5, 0.5, 0.5), half(0, 0, 0)),
	}
	outcomes, err := api.Run(ctx, team, call, mem)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(api.Float16s(mem[1][0].Dst), outcomes[1].Written)
	// Output: [1.5 2.5 3.5] [{0 0 6}]
}
