package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/cmd/compare/internal/term"
	"example.com/tandem/conformance"
)

// TestInterruptEndsTheProcess interrupts a recording that would take hours.
func TestInterruptEndsTheProcess(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command("compare", "record", "sim:nvshmem@3.4.5", "--collectives", "all_reduce", "--dtypes", "bf16", "--ops", "sum",
		"--counts", "65536", "--ranks", "8", "--src-offsets", "0", "--dst-offsets", "0", "--seeds", "9999", "--full", "-o", "r.jsonl.gz") // this test binary, see TestMain
	cmd.Dir = dir
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // where the test fails
	begun := func() bool { parts, _ := filepath.Glob(dir + "/*.part"); return len(parts) == 1 }
	require.Eventually(t, begun, time.Minute, 5*time.Millisecond)
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	var exit *exec.ExitError
	require.ErrorAs(t, cmd.Wait(), &exit)
	require.Equal(t, exitCannotCompare, exit.ExitCode())
	require.Equal(t, "compare: interrupted\n", stderr.String())
	require.Empty(t, stdout.String())
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries, "nothing half written")
}

// broken is a backend that panics.
type broken struct{ api.Backend }

func (broken) Name() string                          { return "sim" }
func (broken) Implementations() []api.Implementation { panic("no\nimplementations") }

// TestNeverAStackTrace: a fault of our own is one line too.
func TestNeverAStackTrace(t *testing.T) {
	var out, errs bytes.Buffer
	a := &app{ctx: context.Background(), stdout: &out, stderr: &errs, backends: []api.Backend{broken{}}}
	requireRefused(t, result{a.run([]string{"list"}), out.String(), errs.String()}, "internal error", "no; implementations")
}

// full refuses every byte, as a full disk does.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestOutputThatCannotBeWritten(t *testing.T) {
	for _, args := range []string{"list", "version", "schema", "explain sim:nvshmem@pr131", "run --count 8", "replay /nonexistent.jsonl"} {
		var errs bytes.Buffer
		a := &app{ctx: context.Background(), stdout: full{}, stderr: &errs, getenv: func(string) string { return "" }, backends: backends()}
		requireRefused(t, result{a.run(strings.Fields(args)), "", errs.String()}, "no space left")
	}
}

func TestColoursOnlyWhereAsked(t *testing.T) {
	side, other, err := (&app{backends: backends()}).sides("sim:nvshmem@2dca770", "sim:nvshmem@pr131")
	require.NoError(t, err)
	call, err := parsedRun(t, "--count", "6", "--ranks", "4", "--scope", "block").call()
	require.NoError(t, err)
	rep, err := conformance.Run(context.Background(), side, other, call)
	require.NoError(t, err)
	require.Contains(t, reportText(rep, term.Coloured(true)), "\x1b[")
	require.NotContains(t, reportText(rep, term.Style{}), "\x1b")
}
