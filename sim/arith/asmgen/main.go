// Command asmgen writes the AVX2 assembly of package arith and its stubs. Run it
// with go generate in that package.
package main

import (
	. "github.com/mmcloughlin/avo/build"
)

func main() {
	ConstraintExpr("amd64,!noasm")
	for _, op := range []operation{sum, prod} {
		for _, f := range []format{bf16, f16, f32, f64} {
			fold(op, f, f, f)
			tree(op, f, f, 4)
			tree(op, f, f, 8)
		}
		for _, f := range []format{bf16, f16} {
			fold(op, f, f32, f32)
			fold(op, f, f32, f)
			tree(op, f, f32, 4)
			tree(op, f, f32, 8)
		}
		for _, f := range []format{bf16, f16, f32} {
			fold(op, f, f64, f64)
		}
	}
	for _, op := range []operation{less, more} {
		fold(op, f32, f32, f32)
		fold(op, f64, f64, f64)
	}
	stream()
	for _, f := range []format{bf16, f16, f32} {
		treeStream(sum, f, f)
	}
	for _, f := range []format{bf16, f16} {
		treeStream(sum, f, f32)
	}
	narrowing()
	directing()
	minmax()
	for _, l := range []lane{half, word} {
		spread(l)
		over(l)
	}
	Generate()
}
