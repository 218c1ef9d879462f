package main

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the report in the README")

const readme = "../../README.md"

// block is the text of the code block that follows a line of the README.
func block(t *testing.T, text, after string) string {
	t.Helper()
	_, rest, ok := strings.Cut(text, after)
	require.True(t, ok, "%q is in the README", after)
	_, rest, _ = strings.Cut(rest, "```\n")
	found, _, ok := strings.Cut(rest, "```\n")
	require.True(t, ok)
	return found
}

// TestReadmeShowsTheReport keeps the first thing a newcomer reads true.
func TestReadmeShowsTheReport(t *testing.T) {
	text, err := os.ReadFile(readme)
	require.NoError(t, err)
	shown := block(t, string(text), "and this report:")
	want := compare().stdout
	if *update {
		require.NoError(t, os.WriteFile(readme, []byte(strings.Replace(string(text), shown, want, 1)), 0o666))
		return
	}
	require.Equal(t, want, shown, "go test ./cmd/compare -run Readme -update rewrites it")
}

// TestReadmeCommandsWork runs every command line that the README suggests.
func TestReadmeCommandsWork(t *testing.T) {
	text, err := os.ReadFile(readme)
	require.NoError(t, err)
	t.Chdir(t.TempDir())
	ran := 0
	for line := range strings.Lines(block(t, string(text), "## What to ask")) {
		line, _, _ = strings.Cut(line, "#")
		args := strings.Fields(strings.ReplaceAll(line, "'", ""))
		require.Equal(t, "compare", args[0])
		got := compare(args[1:]...)
		require.NotEqual(t, exitCannotCompare, got.code, "%s: %s", line, got.stderr)
		ran++
	}
	require.Equal(t, 7, ran)
}
