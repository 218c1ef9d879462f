package arith_test

import (
	"fmt"

	"example.com/tandem/api/num"
	"example.com/tandem/sim/arith"
)

// Three ranks' sources, summed in place of the first one.
func ExampleReduce() {
	srcs := make([][]byte, 3)
	for rank := range srcs {
		srcs[rank] = make([]byte, 4*num.F16.Size())
		for i := range 4 {
			num.Store(num.F16, srcs[rank][2*i:], num.Encode(num.F16, float64(i*100+rank), num.NearestEven))
		}
	}
	dst := srcs[0]
	arith.Reduce(dst, num.F16, num.Scheme{Op: num.Sum}, srcs...)
	for i := range 4 {
		fmt.Print(num.Text(num.F16, num.Load(num.F16, dst[2*i:])), " ")
	}
	// Output: 3 303 603 903
}
