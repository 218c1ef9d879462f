package sweep

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
)

// TestTheFirstIsKept: of one kind that several shards have, what is told is the
// one met first in the whole matrix, whichever shard is added first.
func TestTheFirstIsKept(t *testing.T) {
	at := func(c int) *Result {
		return &Result{
			Failures: []Failure{{FailureHead{Class: "a", Check: api.CheckValue, Calls: 2, Case: c}, nil}},
			Refusals: []Refusal{{"no", 3, c, ""}},
		}
	}
	for _, order := range [][]int{{1, 2, 3}, {3, 2, 1}, {2, 1, 3}} {
		var r Result
		for _, c := range order {
			r.add(at(c))
		}
		require.Equal(t, []Refusal{{"no", 9, 1, ""}}, r.Refusals)
		require.Len(t, r.Failures, 1)
		require.Equal(t, [2]int{1, 6}, [2]int{r.Failures[0].Case, r.Failures[0].Calls})
	}
}
