package conformance

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/conformance/inputs"
	"example.com/tandem/conformance/vectors"
)

// plainRecording is a file's text, and where its last line ends.
func plainRecording(t *testing.T, rows ...*vectors.Row) string {
	t.Helper()
	var b bytes.Buffer
	w, err := vectors.NewWriter(&b, vectors.Header{})
	require.NoError(t, err)
	for _, row := range rows {
		require.NoError(t, w.Write(row))
	}
	require.NoError(t, w.Close())
	z, err := gzip.NewReader(bytes.NewReader(b.Bytes()))
	if err != nil {
		return b.String()
	}
	text, err := io.ReadAll(z)
	require.NoError(t, err)
	return string(text)
}

// endless repeats a line for ever.
type endless struct {
	line string
	at   int
	read *int64
}

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = e.line[e.at]
		e.at = (e.at + 1) % len(e.line)
	}
	*e.read += int64(len(p))
	return len(p), nil
}

// TestReplayGivesUpOnRubbish: a file without end, of lines that are no rows, is
// left after a bounded part of it, and the rows before are checked.
func TestReplayGivesUpOnRubbish(t *testing.T) {
	row := record(t, (&fake{}).side(), inputs.Input{}, allReduce(api.F32, 2, 3))
	for line, says := range map[string]string{
		"{}\n":                            "more than 1000 lines cannot be read",
		"\n":                              "MiB of blank or unreadable lines",
		strings.Repeat(" ", 99) + "\n":    "MiB of blank or unreadable lines",
		strings.Repeat("[", 1<<20) + "\n": "MiB of blank or unreadable lines",
		`{"` + strings.Repeat("x", 1000):  "cannot be", // one line for ever
	} {
		var read int64
		r, err := vectors.NewReader(io.MultiReader(strings.NewReader(plainRecording(t, row)), &endless{line: line, read: &read}))
		require.NoError(t, err)
		rep, err := Replay(context.Background(), r, (&fake{}).side())
		if says == "cannot be" {
			require.NoError(t, err)
			require.Equal(t, 1, rep.UnreadableLines)
		} else {
			require.ErrorIs(t, err, api.ErrInvalid, "%.20q", line)
			require.ErrorContains(t, err, says)
			require.ErrorContains(t, err, "as compare record writes them")
		}
		require.Equal(t, 1, rep.Passed)
		require.LessOrEqual(t, len(rep.Unreadable), MaxKept)
		require.LessOrEqual(t, rep.UnreadableLines, vectors.MaxBadLines)
		require.Less(t, read, int64(3*vectors.MaxLine))
		for _, u := range rep.Unreadable {
			require.LessOrEqual(t, len(u.Reason), maxReason+2)
		}
	}
}

// TestReplayKeepsTheFirstOfMany and counts the others.
func TestReplayKeepsTheFirstOfMany(t *testing.T) {
	const n = 3*MaxKept + 7
	row := record(t, (&fake{}).side(), inputs.Input{}, allReduce(api.F32, 2, 3))
	rows := make([]*vectors.Row, n)
	for i := range rows {
		rows[i] = row
	}
	wrong := (&fake{value: func(_ *execution, _, _ int, _ int64, _ []uint64, v uint64) uint64 { return v ^ 1<<22 }}).side()
	rep, err := (&Runner{Workers: 3}).Replay(context.Background(), recording(t, vectors.Header{}, rows...), wrong)
	require.NoError(t, err)
	require.Equal(t, n, rep.Failed)
	require.Len(t, rep.Failures, MaxKept)
	for i, f := range rep.Failures {
		require.Equal(t, i+2, f.Line)
	}
	var b bytes.Buffer
	require.NoError(t, rep.WriteText(&b, TextOptions{}))
	require.Contains(t, b.String(), "and 1487 more failures: the JSON form lists the first 500\n")
	refusing := (&fake{refuse: &api.Refused{Reason: "no"}}).side()
	rep, err = (&Runner{Workers: 3}).Replay(context.Background(), recording(t, vectors.Header{}, rows...), refusing)
	require.NoError(t, err)
	require.Equal(t, n, rep.Refused)
	require.Len(t, rep.Refusals, MaxKept)
	require.Equal(t, MaxKept+1, rep.Refusals[MaxKept-1].Line)
	runtime.KeepAlive(rows)
}
