package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"example.com/tandem/api/gpu/gputest"
)

func TestMain(m *testing.M) {
	testscript.Main(gputest.Main(m), map[string]func(){"compare": main})
}

// TestScripts runs the command as a process: testdata/script/*.txtar.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": scriptExits,
		},
		Setup: func(env *testscript.Env) error {
			golden, err := os.Getwd()
			env.Setenv("GOLDEN", golden+"/testdata/golden")
			return err
		},
	})
}

// scriptExits is `exits CODE COMMAND ARGS...`: the command ends with that code.
func scriptExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND ARGS...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// result is what one command line gave.
type result struct {
	code           int
	stdout, stderr string
}

// compare runs a command line in this process.
func compare(args ...string) result {
	return compareIn(context.Background(), args...)
}

func compareIn(ctx context.Context, args ...string) result {
	var out, errs bytes.Buffer
	a := &app{ctx: ctx, stdout: &out, stderr: &errs, getenv: func(string) string { return "" }, backends: backends()}
	code := a.run(args)
	return result{code, out.String(), errs.String()}
}

// requireRefused holds a result to what bad input must give: exit code 2,
// nothing on standard output, and one clear line that says all of these words.
func requireRefused(t *testing.T, got result, says ...string) {
	t.Helper()
	require.Equal(t, exitCannotCompare, got.code, got.stderr)
	require.Empty(t, got.stdout)
	require.Equal(t, 1, strings.Count(got.stderr, "\n"), "one line: %q", got.stderr)
	require.True(t, strings.HasPrefix(got.stderr, "compare: ") && strings.HasSuffix(got.stderr, "\n"), got.stderr)
	for _, word := range append(says, "") {
		require.Contains(t, got.stderr, word)
	}
	for _, never := range []string{"goroutine", "panic", "runtime error", "%!"} {
		require.NotContains(t, got.stderr, never)
	}
}
