package nvls_test

import (
	"fmt"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
	"example.com/tandem/sim/nvls"
)

// What a Blackwell switch may make of the one published 8-GPU sum: two results,
// of which the machine gave the lower one.
func ExampleModel_Allowed() {
	in := []uint64{0x400A, 0x3FFE, 0xBCDF, 0x3F9F, 0xBD1D, 0x3E4E, 0xC007, 0x3F4E}
	for _, name := range []string{"bw_half", "bw_half_g1", "hop_acc32", "ideal_rne"} {
		p, _ := nvls.PresetOf(name)
		set, _ := p.Allowed(api.BF16, api.Sum, in)
		fmt.Printf("%s %x\n", name, set)
	}
	// Output:
	// bw_half [4086 4087]
	// bw_half_g1 [4086]
	// hop_acc32 [4087]
	// ideal_rne [4087]
}

// One 4-byte access of a load-reduce: two bf16 sums of two ranks.
func ExampleConfig_Access() {
	config, _ := nvls.Parse(map[string]string{"dir": "rz"})
	form, _ := nvls.ParseForm("multimem.ld_reduce.relaxed.sys.global.add.acc::f32.bf16x2")
	access, _ := config.Access(form)
	sum := access.Word([]uint64{0x3F80_4380, 0x3BC0_3F80}, 0)
	fmt.Println(num.Text(api.BF16, sum&0xFFFF), num.Text(api.BF16, sum>>16))
	_, err := config.Access(nvls.Form{Instr: "ld_reduce", Op: "min", Acc: "f32", Vec: 1, Type: "bf16x2"})
	fmt.Println(err)
	// Output:
	// 256 1
	// multimem.ld_reduce.min.acc::f32.bf16x2 does not exist: .acc belongs to ld_reduce.add
}
