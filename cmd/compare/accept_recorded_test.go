package main

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/conformance/vectors"
)

const acceptFiles = "testdata/accept/"

// TestAcceptRecorded replays what `make accept` left on an H200, but for outputs
// too long to keep: cascade in its four versions, and tandem-nvls on 1 to 16 ranks
// at other offsets on every rank, multicast emulated.
func TestAcceptRecorded(t *testing.T) {
	for name, want := range map[string]int{
		"cascade-2dca770": 31, "cascade-pr131": 31, "cascade-pr131-team": 27, "cascade-pr131-tail": 27, "tandem-nvls": 636,
	} {
		t.Run(name, func(t *testing.T) {
			file := acceptFiles + name + ".jsonl.gz"
			require.Equal(t, result{exitHolds, fmt.Sprintf("%d passed, 0 failed, 0 refused\n", want), ""}, compare("replay", file))
			unwritten, guards, ranks := damage(t, file)
			require.Zero(t, guards)
			require.Equal(t, name == "cascade-2dca770", unwritten > 0, "%d unwritten", unwritten)
			if name == "tandem-nvls" {
				require.Len(t, ranks, 16)
			}
		})
	}
	// The holes that the pull request closes are not its own version's.
	got := compare("replay", acceptFiles+"cascade-2dca770.jsonl.gz", "--against", "sim:nvshmem@pr131")
	require.Equal(t, exitBroken, got.code)
}

// damage sums what a recording's calls left unwritten and wrote into guards, and
// says on how many ranks they were.
func damage(t *testing.T, file string) (unwritten, guards int64, ranks map[int]bool) {
	r, err := vectors.Open(file)
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	ranks = map[int]bool{}
	for {
		row, err := r.Next()
		if errors.Is(err, io.EOF) {
			return unwritten, guards, ranks
		}
		require.NoError(t, err)
		ranks[row.Call.Ranks] = true
		for rank := range row.Call.Ranks {
			if n := row.Unwritten[rank]; n != nil { // in place nobody can know
				unwritten += *n
			}
			guards += row.GuardHits[rank]
		}
	}
}
