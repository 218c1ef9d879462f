package num

import "fmt"

// Op is a reduction operation. The zero Op is None, for copies.
type Op uint8

// The operations.
const (
	None Op = iota
	Sum
	Prod
	Min
	Max
	Avg
	And
	Or
	Xor
)

var opNames = [...]string{"", "sum", "prod", "min", "max", "avg", "and", "or", "xor"}

// Ops lists the reduction operations, None excluded.
func Ops() []Op { return []Op{Sum, Prod, Min, Max, Avg, And, Or, Xor} }

// ParseOp returns the operation of that name; "" is None.
func ParseOp(name string) (Op, error) {
	for o, n := range opNames {
		if n == name {
			return Op(o), nil
		}
	}
	return 0, fmt.Errorf("unknown op %q: known are %v", name, Ops())
}

// String is the name ParseOp reads.
func (o Op) String() string {
	if int(o) >= len(opNames) {
		return fmt.Sprintf("op(%d)", uint8(o))
	}
	return opNames[o]
}

// Bitwise reports whether o works on bits: and, or, xor.
func (o Op) Bitwise() bool { return o >= And && o <= Xor }

// ValidFor reports whether o is defined on d: bitwise operations are not
// defined on floats, everything else is defined everywhere.
func (o Op) ValidFor(d DType) bool {
	return o > None && int(o) < len(opNames) && d.Valid() && !(o.Bitwise() && d.Float())
}
