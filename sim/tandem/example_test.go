package tandem_test

import (
	"context"
	"fmt"

	"example.com/tandem/api"
	"example.com/tandem/sim"
	"example.com/tandem/sim/tandem"
)

// Eight ranks add 256 and seven times 1 in bf16: rounded at every node of the
// tree, and accumulated in f32.
func Example() {
	ctx := context.Background()
	team, err := sim.New(tandem.Family{}).Open(ctx, api.Spec{Implementation: tandem.Name}, api.TeamConfig{Ranks: 8})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer team.Close(ctx)
	call := api.Call{Collective: api.AllReduce, DType: api.BF16, Op: api.Sum, Ranks: 8, Count: 1}
	for _, call.Mode = range []string{"node", "f32"} {
		mem := make([]api.Memory, 8)
		for r := range mem {
			x := uint16(0x3f80) // 1
			if r == 0 {
				x = 0x4380 // 256
			}
			mem[r] = api.MemoryOf([]uint16{x}, []uint16{0})
		}
		if _, err := api.Run(ctx, team, call, mem); err != nil {
			fmt.Println(err)
			return
		}
		p := mem[5][0].Dst.Payload()
		fmt.Printf("%s: 0x%02x%02x\n", call.Mode, p[1], p[0])
	}
	// Output:
	// node: 0x4383
	// f32: 0x4384
}
