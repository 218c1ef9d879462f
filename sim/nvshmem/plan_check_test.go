package nvshmem

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
)

// checkPlan checks what must hold for every plan, whatever the call.
func checkPlan(t *testing.T, p *api.Plan) {
	t.Helper()
	require.Len(t, p.Kernels, 1)
	require.Len(t, p.Unwritten, p.Call.Ranks)
	next, base := int64(0), p.Kernels[0].CTAs
	var words, rounds int64
	for i, c := range base {
		require.Equal(t, i, c.CTA)
		require.Equal(t, next, c.Start)
		next += c.Count
		require.NotEmpty(t, c.Why)
		if c.Algorithm != algNone {
			require.Contains(t, p.Algorithms, c.Algorithm)
		}
		rounds = max(rounds, c.Rounds)
		words += c.Words
		checkSlices(t, p, c)
	}
	require.Equal(t, p.Call.Count, next, "the CTAs cover the call exactly")
	require.Equal(t, rounds, p.Cost.Rounds)
	require.LessOrEqual(t, p.Cost.Words, words)
	for _, n := range p.Unwritten {
		require.GreaterOrEqual(t, n, int64(0))
	}
}

func checkSlices(t *testing.T, p *api.Plan, c api.CTA) {
	t.Helper()
	var busiest, sum int64
	whole := c.Count // but for a tail that is split off, in version pr131-tail
	for r, s := range c.Slices {
		if r == p.Call.Ranks && s.Algorithm != "" {
			require.Contains(t, p.Spec, "pr131-tail")
			require.Contains(t, p.Algorithms, s.Algorithm)
			require.Equal(t, c.Start+c.Count, s.Start+s.Count)
			require.Zero(t, s.Words.Total()+s.Unwritten)
			whole -= s.Count
			continue
		}
		if c.Algorithm != algTree && c.Algorithm != algPutSignal {
			require.Equal(t, r, s.Rank)
		}
		busiest = max(busiest, s.Words.Total())
		sum += s.Count
		lost := int64(0)
		for _, h := range s.Holes {
			require.Positive(t, h.Count)
			require.GreaterOrEqual(t, h.Start, s.Start)
			require.LessOrEqual(t, h.Start+h.Count, s.Start+s.Count)
			if h.Cause.Unwritten() {
				lost += h.Count
			}
		}
		if c.Algorithm != algLL8 {
			require.Equal(t, lost, s.Unwritten)
		}
	}
	require.Equal(t, busiest, c.Words)
	if len(c.Slices) == 0 {
		return
	}
	switch c.Algorithm {
	case algTwoShot:
		require.Equal(t, whole, sum, "the slices cover the CTA exactly")
	case algOneShot, algNVLS, algLinear, algLL8:
		require.Equal(t, whole*int64(p.Call.Ranks), sum)
	}
}
