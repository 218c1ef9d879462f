package num

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestTextRoundTrip: every narrow pattern, NaNs and zeros included, comes back.
func TestTextRoundTrip(t *testing.T) {
	for _, d := range append(narrow(), I8, U8, I16, U16) {
		for b := uint64(0); b <= d.Mask(); b++ {
			got, err := Parse(d, Text(d, b))
			if err != nil || got != b {
				t.Fatalf("%v %#x: %q gives %#x, %v", d, b, Text(d, b), got, err)
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.SampledFrom(DTypes()).Draw(t, "dtype")
		b := rapid.Uint64().Draw(t, "bits") & d.Mask()
		got, err := Parse(d, Text(d, b))
		require.NoError(t, err)
		require.Equal(t, b, got)
	})
}

func TestText(t *testing.T) {
	for _, c := range []struct {
		d    DType
		bits uint64
		want string
	}{
		{BF16, 0x3F80, "1"}, {BF16, 0x4049, "3.14"}, {BF16, 0x8000, "-0"}, {BF16, 0xFF80, "-inf"},
		{BF16, 0x7FFF, "nan"}, {BF16, 0x7FC1, "nan(0x7fc1)"}, {F16, 0x7BFF, "65500"}, {F16, 1, "6e-08"},
		{F32, 0x3DCCCCCD, "0.1"}, {F64, 0x3FB999999999999A, "0.1"}, {F64, 0x7FF8000000000001, "nan(0x7ff8000000000001)"},
		{E4M3, 0x7E, "450"}, {E4M3, 0xFF, "nan(0xff)"}, {E5M2, 0x7C, "inf"},
		{I8, 0x80, "-128"}, {U8, 0x80, "128"}, {I64, math.MaxUint64, "-1"}, {U64, math.MaxUint64, "18446744073709551615"},
	} {
		require.Equal(t, c.want, Text(c.d, c.bits))
	}
}

func TestParse(t *testing.T) {
	for _, c := range []struct {
		d    DType
		text string
		want uint64
	}{
		{BF16, "0x3f80", 0x3F80}, {BF16, "0X3F80", 0x3F80}, {BF16, "0x1p-1", 0x3F00}, {F16, "+Inf", 0x7C00},
		{F16, "NaN", 0x7FFF}, {F16, "-0.0", 0x8000}, {F32, "1e-400", 0}, {F64, "0x3ff0000000000000", 0x3FF0000000000000},
		{I8, "-128", 0x80}, {I8, "0xff", 0xFF}, {U64, "18446744073709551615", math.MaxUint64},
		// Half way between two numbers, and a little more than float64 can tell.
		{BF16, "1.00390625", 0x3F80},
		{BF16, "1.00390625000000000000000000000000001", 0x3F81},
		{BF16, "-1.01171874999999999999999999999999999", 0xBF81},
		{BF16, "1.01171875", 0x3F82},
		{F16, "65519.999999999999999999999999", 0x7BFF},
	} {
		got, err := Parse(c.d, c.text)
		require.NoError(t, err, c.text)
		require.Equal(t, c.want, got, "%v %s: %#x", c.d, c.text, got)
	}
	for _, c := range []struct {
		d    DType
		text string
		want string
	}{
		{BF16, "", "not a value"}, {BF16, "0x", "pattern"}, {BF16, "0x10000", "16-bit pattern"}, {BF16, "1e39", "beyond"},
		{F16, "65520", "beyond"}, {E4M3, "inf", "no infinity"}, {E4M3, "500", "beyond"}, {F16, "nan(0x3c00)", "not a NaN"},
		{F16, "nan(0x7e00", "not a NaN"}, {I8, "128", "not a value"}, {U8, "-1", "not a value"}, {I8, "1.5", "not a value"},
		{F32, "one", "not a value"}, {F64, strings.Repeat("1", 2000), "characters"}, {DType(0), "1", "dtype"},
	} {
		_, err := Parse(c.d, c.text)
		require.ErrorContains(t, err, c.want, "%v %q", c.d, c.text)
	}
}

// FuzzParse: no text makes Parse panic or take long, and what it reads is printed
// so that it reads the same again.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"1", "-0", "0x7fc1", "nan(0xffff)", "1e-400000000", "0x1p-3", "1_0", "inf", strings.Repeat("0", 300) + "1e300"} {
		for d := range DTypes() {
			f.Add(uint8(d), s)
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, s string) {
		all := DTypes()
		d := all[int(which)%len(all)]
		b, err := Parse(d, s)
		if err != nil {
			return
		}
		require.Zero(t, b&^d.Mask())
		again, err := Parse(d, Text(d, b))
		require.NoError(t, err)
		require.Equal(t, b, again)
	})
}

func TestNames(t *testing.T) {
	for _, d := range DTypes() {
		got, err := ParseDType(d.String())
		require.NoError(t, err)
		require.Equal(t, d, got)
	}
	for _, op := range append(Ops(), None) {
		got, err := ParseOp(op.String())
		require.NoError(t, err)
		require.Equal(t, op, got)
	}
	_, err := ParseDType("f8")
	require.ErrorContains(t, err, "known are [bf16")
	_, err = ParseOp("add")
	require.ErrorContains(t, err, "known are [sum")
	require.Equal(t, "dtype(77)", DType(77).String())
	require.Equal(t, "op(77)", Op(77).String())
	require.False(t, Xor.ValidFor(F16))
	require.True(t, Xor.ValidFor(U16))
}
