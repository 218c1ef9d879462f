package machine

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestShadowIsByByte compares cells with one history a byte: who stored last, and
// whether anybody loaded since.
func TestShadowIsByByte(t *testing.T) {
	const size = 96
	rapid.Check(t, func(rt *rapid.T) {
		s := shadow{order: &order{}}
		var stored [size]uint32
		var touched [size]bool
		for i := range stored {
			stored[i] = nobody
		}
		first, end := int64(size), int64(0)
		always := func(touch) bool { return true }
		for step := range uint32(rapid.IntRange(1, 40).Draw(rt, "steps")) {
			lo := rapid.Int64Range(0, size-1).Draw(rt, "lo")
			hi := rapid.Int64Range(lo+1, min(lo+12, size)).Draw(rt, "hi")
			require.Equal(rt, end > lo && first < hi, s.touches(lo, hi))
			store := rapid.Bool().Draw(rt, "store")
			_, bad := s.record(lo, hi, store, touch{agent: step}, always)
			require.False(rt, bad)
			first, end = min(first, lo), max(end, hi)
			for i := lo; i < hi; i++ {
				touched[i] = true
				if store {
					stored[i] = step
				}
			}
			s.hint = rapid.IntRange(0, s.len()+1).Draw(rt, "hint") // any will do
			sameCells(rt, &s, stored[:], touched[:])
		}
	})
}

// sameCells requires that cells lie apart and in order, say what the bytes say, and
// are found by any place.
func sameCells(rt *rapid.T, s *shadow, stored []uint32, touched []bool) {
	pos := int64(0)
	for i := range s.len() {
		c := s.at(i)
		require.Equal(rt, c.hi, s.sorted[i].hi)
		require.GreaterOrEqual(rt, c.lo, pos)
		for ; pos < c.lo; pos++ {
			require.False(rt, touched[pos])
			require.Equal(rt, i, s.find(pos))
		}
		for ; pos < c.hi; pos++ {
			require.True(rt, touched[pos])
			require.Equal(rt, stored[pos], c.store.agent)
			require.Equal(rt, i, s.find(pos))
		}
	}
	require.Equal(rt, s.len(), s.find(pos))
}
