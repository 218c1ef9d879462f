package vectors

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBadLinesThatAreTooMany: so many bad lines are passed over, and one more
// ends the file.
func TestBadLinesThatAreTooMany(t *testing.T) {
	const header = `{"format":"vectors","version":1,"profile":"x"}` + "\n"
	for _, n := range []int{MaxBadLines, MaxBadLines + 1} {
		r, err := NewReader(strings.NewReader(header + strings.Repeat("no row\n", n)))
		require.NoError(t, err)
		bad := 0
		for {
			_, err = r.Next()
			var line *LineError
			if !errors.As(err, &line) {
				break
			}
			bad++
			require.Equal(t, 1+bad, line.Line)
		}
		require.Equal(t, MaxBadLines, bad)
		if n == MaxBadLines {
			require.ErrorIs(t, err, io.EOF)
		} else {
			require.ErrorContains(t, err, "more than 1000 lines cannot be read")
		}
	}
}
