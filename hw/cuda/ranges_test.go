package cuda

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/tandem/api/gpu"
)

// TestRanges compares the table with a map of every single address.
func TestRanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r ranges
		var ledger gpu.Ledger
		owner := map[gpu.Ptr]gpu.Ptr{} // address to base
		size := map[gpu.Ptr]uint64{}
		free := func(base gpu.Ptr, n uint64) bool {
			for i := range n {
				if _, ok := owner[base.Add(i)]; ok {
					return false
				}
			}
			return true
		}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				base, n := gpu.Ptr(rapid.IntRange(0, 60).Draw(t, "base")), uint64(rapid.IntRange(1, 9).Draw(t, "size"))
				if !free(base, n) {
					t.Skip("occupied")
				}
				r.add(block{Range: gpu.Range{Base: base, Bytes: n}, entry: ledger.Add(gpu.KindMemory, nil)})
				size[base] = n
				for i := range n {
					owner[base.Add(i)] = base
				}
			},
			"take": func(t *rapid.T) {
				base := gpu.Ptr(rapid.IntRange(0, 60).Draw(t, "base"))
				b, err := r.take(base, func(block) error { return nil })
				n, ok := size[base]
				require.Equal(t, ok, err == nil)
				if ok {
					require.Equal(t, n, b.Bytes)
					b.entry.Release()
				}
				for i := range n {
					delete(owner, base.Add(i))
				}
				delete(size, base)
			},
			"": func(t *rapid.T) {
				for p := gpu.Ptr(0); p < 80; p++ {
					b, found := r.find(p)
					base, ok := owner[p]
					require.Equal(t, ok, found)
					require.Equal(t, base, b.Base)
				}
				require.Equal(t, len(size), ledger.Counts().Live[gpu.KindMemory])
			},
		})
	})
}

func TestRangesKeep(t *testing.T) {
	var r ranges
	var ledger gpu.Ledger
	for _, base := range []gpu.Ptr{10, 20, 30} {
		r.add(block{Range: gpu.Range{Base: base, Bytes: 5}, entry: ledger.Add(gpu.KindMemory, nil)})
	}
	require.Equal(t, 1, r.keep(func(b block) bool { return b.Base == 20 }))
	require.Equal(t, 0, r.keep(func(b block) bool { return b.Base == 20 }), "once")
	require.Equal(t, 2, ledger.Counts().Live[gpu.KindMemory])
	require.Equal(t, 1, ledger.Counts().Quarantined[gpu.KindMemory])
	b, ok := r.find(24)
	require.True(t, ok)
	require.True(t, b.kept)
}
