package num

import "fmt"

// DType is an element type of a collective.
type DType uint8

// The element types. The zero DType is invalid.
const (
	BF16 DType = iota + 1
	F16
	F32
	F64
	E4M3 // fp8, 4 exponent and 3 mantissa bits, no infinities ("fn")
	E5M2 // fp8, 5 exponent and 2 mantissa bits, IEEE-like
	I8
	I16
	I32
	I64
	U8
	U16
	U32
	U64
)

var dtypes = [...]struct {
	name          string
	size          int
	float, signed bool
	exp, man      int
}{
	BF16: {"bf16", 2, true, true, 8, 7},
	F16:  {"f16", 2, true, true, 5, 10},
	F32:  {"f32", 4, true, true, 8, 23},
	F64:  {"f64", 8, true, true, 11, 52},
	E4M3: {"e4m3", 1, true, true, 4, 3},
	E5M2: {"e5m2", 1, true, true, 5, 2},
	I8:   {"i8", 1, false, true, 0, 0},
	I16:  {"i16", 2, false, true, 0, 0},
	I32:  {"i32", 4, false, true, 0, 0},
	I64:  {"i64", 8, false, true, 0, 0},
	U8:   {"u8", 1, false, false, 0, 0},
	U16:  {"u16", 2, false, false, 0, 0},
	U32:  {"u32", 4, false, false, 0, 0},
	U64:  {"u64", 8, false, false, 0, 0},
}

// DTypes lists every element type, in declaration order.
func DTypes() []DType {
	all := make([]DType, 0, len(dtypes)-1)
	for d := BF16; int(d) < len(dtypes); d++ {
		all = append(all, d)
	}
	return all
}

// ParseDType returns the element type of that name.
func ParseDType(name string) (DType, error) {
	for _, d := range DTypes() {
		if dtypes[d].name == name {
			return d, nil
		}
	}
	return 0, fmt.Errorf("unknown dtype %q: known are %v", name, DTypes())
}

// Valid reports whether d is one of the declared types.
func (d DType) Valid() bool { return d >= BF16 && int(d) < len(dtypes) }

// String is the name ParseDType reads.
func (d DType) String() string {
	if !d.Valid() {
		return fmt.Sprintf("dtype(%d)", uint8(d))
	}
	return dtypes[d].name
}

// Size is the width of one element in bytes.
func (d DType) Size() int { return dtypes[d].size }

// Bits is the width of one element in bits.
func (d DType) Bits() int { return 8 * dtypes[d].size }

// Float reports whether d is a floating-point format.
func (d DType) Float() bool { return dtypes[d].float }

// Signed reports whether d has negative values.
func (d DType) Signed() bool { return dtypes[d].signed }

// ExponentBits is the width of the exponent field; 0 for integers.
func (d DType) ExponentBits() int { return dtypes[d].exp }

// MantissaBits is the width of the stored mantissa; 0 for integers.
func (d DType) MantissaBits() int { return dtypes[d].man }

// Bias is the exponent bias of a floating-point format.
func (d DType) Bias() int { return 1<<(dtypes[d].exp-1) - 1 }

// Mask has the low Bits() bits set.
func (d DType) Mask() uint64 { return ^uint64(0) >> (64 - d.Bits()) }
