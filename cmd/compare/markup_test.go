package main

import (
	"encoding/xml"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestHTML: a page holds the text of the report, neither more nor less.
func TestHTML(t *testing.T) {
	for _, args := range []string{
		"run --ranks 2", "run --count 1027 --left sim:nvshmem@pr131", "explain sim:nvshmem@pr131?max_ctas=3&reduce_algo=3",
		"sweep --left sim:tandem --right sim:tandem --collectives all_reduce --counts 8 --ranks 2 --dtypes f32 --ops sum",
	} {
		text, page := compare(strings.Fields(args)...), compare(append(strings.Fields(args), "--format", "html")...)
		require.Equal(t, text.code, page.code, page.stderr)
		_, body, ok := strings.Cut(page.stdout, "<pre>\n")
		require.True(t, ok)
		body, after, ok := strings.Cut(body, "</pre>")
		require.True(t, ok)
		require.Equal(t, "\n</body>\n</html>\n", after)
		require.NotContains(t, page.stdout, "\x1b")
		require.Equal(t, strings.Count(body, "<b"), strings.Count(body, "</b>"))
		seconds := regexp.MustCompile(`[0-9.]+ s\b|[0-9.]+ seconds?`)
		plain := html.UnescapeString(regexp.MustCompile(`</?b[^>]*>`).ReplaceAllString(body, ""))
		require.Equal(t, seconds.ReplaceAllString(text.stdout, ""), seconds.ReplaceAllString(plain, ""), args)
	}
	require.Contains(t, htmlPage("a<b>&\x1b[31mno\x1b[0m"), "a&lt;b&gt;&amp;<b class=\"red\">no</b>")
}

// suite runs a command line with --format junit and reads what it gives; what
// the suite counts is what it holds.
func suite(t *testing.T, code int, args string) junitSuite {
	got := compare(append(strings.Fields(args), "--format", "junit")...)
	require.Equal(t, code, got.code, got.stderr)
	var s junitSuite
	require.NoError(t, xml.Unmarshal([]byte(got.stdout), &s), got.stdout)
	failures, skipped := 0, 0
	for _, c := range s.Cases {
		require.NotEmpty(t, c.Name)
		if c.Failure != nil {
			failures++
		}
		if c.Skipped != nil {
			skipped++
		}
	}
	require.Equal(t, [3]int{len(s.Cases), failures, skipped}, [3]int{s.Tests, s.Failures, s.Skipped})
	return s
}

// TestJUnit: a build fails where the exit code says so, and only there.
func TestJUnit(t *testing.T) {
	s := suite(t, exitBroken, "run --ranks 2")
	require.Equal(t, 1, s.Failures)
	require.Contains(t, s.Cases[0].Failure.Text, "DIVERGE")
	require.Contains(t, s.Cases[0].Name, "compare run --left sim:nvshmem@2dca770")
	s = suite(t, exitHolds, "run --left sim:tandem --right sim:tandem --count 7")
	require.Equal(t, [2]int{1, 0}, [2]int{s.Tests, s.Failures})
	require.Contains(t, s.Cases[0].Out, "AGREE")

	matrix := strings.TrimPrefix(strings.Join(small, " "), "sweep ")
	s = suite(t, exitBroken, "sweep "+matrix)
	require.Positive(t, s.Failures)
	known := filepath.Join(t.TempDir(), "known.json")
	require.Equal(t, exitHolds, compare(strings.Fields("sweep "+matrix+" --write-known --known "+known)...).code)
	s = suite(t, exitHolds, "sweep "+matrix+" --known "+known)
	require.Zero(t, s.Failures, "expected, and met")

	file := filepath.Join(t.TempDir(), "r.jsonl")
	require.Equal(t, exitHolds, compare("record", "sim:nvshmem@3.4.5", "--collectives", "all_reduce", "--counts", "64", "--ranks", "2", "--dtypes", "bf16", "-o", file).code)
	s = suite(t, exitHolds, "replay "+file)
	require.Zero(t, s.Failures)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, append(text, "no row\n"...), 0o600))
	s = suite(t, exitCannotCompare, "replay "+file)
	require.Equal(t, 1, s.Failures)
	require.Contains(t, s.Cases[len(s.Cases)-1].Name, "line ")
}
