package nvls

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api/num"
)

// TestKeepNaN: with keep_nan the NaNs of f64 are those that additions leave, in a
// profile's tree and where subnormals are flushed besides; without it they are
// canonical.
func TestKeepNaN(t *testing.T) {
	in := []uint64{0x3FF0000000000000, 0xFFF8000000000001, 0x7FF0000000000000, 0xFFF0000000000000}
	scheme := num.Scheme{Op: num.Sum, Order: num.Balanced}
	srcs := make([][]byte, len(in))
	for i, v := range in {
		srcs[i] = binary.LittleEndian.AppendUint64(nil, v)
	}
	for _, flush := range []bool{false, true} {
		for _, keep := range []bool{false, true} {
			m := Model{Kind: KindTree, Acc: AccSame, Step: RNE, Order: OrderRank, Final: RNE, KeepNeg0: true, KeepNaN: keep, FTZOut: flush}
			want := num.CanonicalNaN(num.F64)
			if keep {
				want = num.Eval(num.F64, scheme, in)
				require.NotEqual(t, num.CanonicalNaN(num.F64), want)
			}
			require.Equal(t, want, m.Word(num.F64, num.Sum, in, 0), "by word, flush %v, keep %v", flush, keep)
			dst := make([]byte, 8)
			r, err := NewReducer(m, num.F64, num.Sum, len(in))
			require.NoError(t, err)
			r.Fold(dst, 0, srcs...)
			require.Equal(t, want, binary.LittleEndian.Uint64(dst), "by range, flush %v, keep %v", flush, keep)
		}
	}
}
