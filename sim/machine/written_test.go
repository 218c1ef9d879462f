package machine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
)

// Intervals are sorted and joined, also where they only meet.
func TestMergedIntervals(t *testing.T) {
	iv := func(start, end int64) api.Interval { return api.Interval{Start: start, End: end} }
	before := iv(90, 91) // of a lane already done
	got := merged([]api.Interval{before, iv(8, 12), iv(0, 4), iv(4, 8), iv(20, 24), iv(21, 22), iv(23, 30), iv(31, 32)}, 1)
	require.Equal(t, []api.Interval{before, iv(0, 12), iv(20, 30), iv(31, 32)}, got)
	require.Empty(t, merged(nil, 0))
}
