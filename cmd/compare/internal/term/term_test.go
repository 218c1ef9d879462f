package term_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/cmd/compare/internal/term"
)

func TestTable(t *testing.T) {
	table := term.Table{Indent: "  "}
	table.Row("CTA", "count", "why")
	table.Row("0-14", "65535 each", "byte length")
	table.Row("a line that is longer than any cell")
	table.Row("15", "é", "")
	require.Equal(t, "  CTA   count       why\n  0-14  65535 each  byte length\n  a line that is longer than any cell\n  15    é\n", table.String())
	require.Equal(t, "", (&term.Table{}).String())
}

func TestStyle(t *testing.T) {
	require.Equal(t, "x", term.Style{}.Red("x"))
	require.Equal(t, "\x1b[31mx\x1b[0m", term.Coloured(true).Red("x"))
	require.Equal(t, "", term.Coloured(true).Bold(""))
	require.Equal(t, "\x1b[1ma\x1b[0m\x1b[32mb\x1b[0m\x1b[2mc\x1b[0m",
		term.Coloured(true).Bold("a")+term.Coloured(true).Green("b")+term.Coloured(true).Dim("c"))
}

func TestWants(t *testing.T) {
	env := func(m map[string]string) func(string) string { return func(k string) string { return m[k] } }
	require.False(t, term.Wants(&bytes.Buffer{}, false, env(nil)), "no file")
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	defer w.Close()
	require.False(t, term.Wants(w, false, env(nil)), "a pipe")
	tty, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0) // a character device, as a terminal is
	require.NoError(t, err)
	defer tty.Close()
	require.True(t, term.Wants(tty, false, env(nil)))
	require.False(t, term.Wants(tty, true, env(nil)))
	require.False(t, term.Wants(tty, false, env(map[string]string{"NO_COLOR": "1"})))
	require.True(t, term.Wants(tty, false, env(map[string]string{"NO_COLOR": ""})), "set to nothing is not set")
	require.False(t, term.Wants(tty, false, env(map[string]string{"TERM": "dumb"})))
}
