package num_test

import (
	"fmt"

	"example.com/tandem/api/num"
)

// The same four numbers, added in the three ways collectives add them.
func ExampleEval() {
	var in []uint64
	for _, x := range []float64{256, 1, 1, 1} {
		in = append(in, num.Encode(num.BF16, x, num.NearestEven))
	}
	for _, s := range []num.Scheme{
		{Op: num.Sum},
		{Op: num.Sum, Order: num.Balanced},
		{Op: num.Sum, Acc: num.AccF32},
	} {
		fmt.Println(num.Text(num.BF16, num.Eval(num.BF16, s, in)))
	}
	// Output:
	// 256
	// 258
	// 260
}

func ExampleNeighbours() {
	in := []uint64{0x3F80, 0x3B80} // 1 and 2^-8
	lo, hi := num.Neighbours(num.BF16, num.Sum, in)
	fmt.Printf("%#x %#x\n", lo, hi)
	fmt.Println(num.Faithful(num.BF16, num.Sum, in, 0x3F81))
	// Output:
	// 0x3f80 0x3f81
	// true
}

func ExampleUlps() {
	fmt.Println(num.Ulps(num.F16, 0x3C00, 0x3C03))
	fmt.Println(num.Ulps(num.F16, 0x0000, 0x8000))
	// Output:
	// 3 finite
	// 0 zeros
}
