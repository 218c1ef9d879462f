package nvls

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api/num"
)

// probeVector is a line of testdata/probe_vectors.tsv.
type probeVector struct {
	id      string
	d       num.DType
	in      []uint64
	allowed map[string][]uint64 // by preset, ascending
}

func probeVectors(t testing.TB) []probeVector {
	text, err := os.ReadFile("testdata/probe_vectors.tsv")
	require.NoError(t, err)
	patterns := func(text, sep string) []uint64 {
		var out []uint64
		for _, p := range strings.Split(text, sep) {
			v, err := strconv.ParseUint(p, 16, 64)
			require.NoError(t, err)
			out = append(out, v)
		}
		return out
	}
	var all []probeVector
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimSpace(line), "\t")
		require.Greater(t, len(cells), 4, line)
		d, err := num.ParseDType(cells[1])
		require.NoError(t, err)
		v := probeVector{id: cells[0], d: d, in: patterns(cells[2], " "), allowed: map[string][]uint64{}}
		for _, cell := range cells[4:] {
			name, set, ok := strings.Cut(cell, "=")
			require.True(t, ok, cell)
			v.allowed[name] = patterns(set, "|")
			slices.Sort(v.allowed[name])
		}
		all = append(all, v)
	}
	return all
}

// TestProbeVectors: each named preset's allowed set is the file's, and every
// value that a preset gives, over many seeds, lies in it and fills it.
func TestProbeVectors(t *testing.T) {
	vectors := probeVectors(t)
	require.Len(t, vectors, 197)
	cells := 0
	for _, v := range vectors {
		for name, want := range v.allowed {
			p, ok := PresetOf(name)
			require.True(t, ok, name)
			got, err := p.Allowed(v.d, num.Sum, v.in)
			require.NoError(t, err)
			require.Equal(t, want, got, "%s under %s: %#x", v.id, name, v.in)
			var seen []uint64
			for seed := range uint64(64) {
				m := p.Model
				m.Seed = seed
				seen = append(seen, m.Word(v.d, num.Sum, v.in, int64(seed)))
			}
			slices.Sort(seen)
			require.Subset(t, want, slices.Compact(seen), "%s under %s", v.id, name)
			cells++
		}
	}
	require.Greater(t, cells, 1000)
}
