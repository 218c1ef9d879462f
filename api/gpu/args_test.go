package gpu

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestArgsLayout compares the packing with the rule of a C struct, byte by
// byte: each argument at the next multiple of its alignment.
func TestArgsLayout(t *testing.T) {
	var a Args // reused, as a launch loop does
	rapid.Check(t, func(t *rapid.T) {
		a.Reset()
		want, spans := map[int]byte{}, []Param{}
		end := 0
		put := func(size, align int, b []byte) {
			off := (end + align - 1) / align * align
			for i := range size {
				want[off+i] = b[i]
			}
			spans, end = append(spans, Param{off, size}), off+size
		}
		for range rapid.IntRange(0, 12).Draw(t, "arguments") {
			v := rapid.Uint64().Draw(t, "value")
			b := binary.LittleEndian.AppendUint64(nil, v)
			switch rapid.IntRange(0, 8).Draw(t, "kind") {
			case 0:
				a.Ptr(Ptr(v))
				put(8, 8, b)
			case 1:
				a.Uint32(uint32(v))
				put(4, 4, b)
			case 2:
				a.Uint16(uint16(v))
				put(2, 2, b)
			case 3:
				a.Uint8(uint8(v))
				put(1, 1, b)
			case 4:
				a.Int64(int64(v))
				put(8, 8, b)
			case 5:
				a.Int32(int32(v))
				put(4, 4, b)
			default:
				s := rapid.SliceOfN(rapid.Byte(), 1, 40).Draw(t, "struct")
				align := 1 << rapid.IntRange(0, 4).Draw(t, "align")
				a.Struct(s, align)
				put(len(s), align, s)
			}
		}
		require.Equal(t, len(spans), a.Len())
		require.Len(t, a.Bytes(), end)
		for i, b := range a.Bytes() {
			require.Equal(t, want[i], b, "byte %d; padding is zero", i)
		}
		require.NoError(t, a.Check(append([]Param(nil), a.Spans()...)))
		require.ElementsMatch(t, spans, a.Spans())
	})
}

func TestArgsCheck(t *testing.T) {
	var none *Args
	require.NoError(t, none.Check(nil))
	require.Empty(t, none.Bytes())
	require.Empty(t, none.Spans())
	kernel := []Param{{0, 8}, {8, 4}}
	good := new(Args).Ptr(1).Uint32(2)
	require.NoError(t, good.Check(kernel))
	for text, a := range map[string]*Args{
		"0 arguments, the kernel takes 2":                             nil,
		"1 arguments, the kernel takes 2":                             new(Args).Ptr(1),
		"3 arguments, the kernel takes 2":                             new(Args).Ptr(1).Uint32(2).Uint8(3),
		"argument 1 is 8 bytes at offset 8, the kernel takes 4 at 8":  new(Args).Ptr(1).Uint64(2),
		"argument 0 is 4 bytes at offset 0, the kernel takes 8 at 0":  new(Args).Uint32(2).Ptr(1),
		"argument 1 is 4 bytes at offset 12, the kernel takes 4 at 8": {buf: make([]byte, 16), spans: []Param{{0, 8}, {12, 4}}},
	} {
		require.EqualError(t, a.Check(kernel), text)
	}
	long, params := new(Args), []Param{}
	for i := range MaxArgs + 1 {
		long.Uint8(1)
		params = append(params, Param{i, 1})
	}
	require.ErrorContains(t, long.Check(params), "at most 256")
}

func TestArgsFloats(t *testing.T) {
	a := new(Args).Float32(1).Float64(-2)
	require.Equal(t, []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xc0}, a.Bytes())
}

func TestArgsReuse(t *testing.T) {
	var a Args
	fill := func() { a.Reset().Ptr(1).Uint32(2).Uint64(3).Float32(4) }
	fill()
	require.Zero(t, testing.AllocsPerRun(100, fill))
}
