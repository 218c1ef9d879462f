//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func fifo(t *testing.T) string {
	name := filepath.Join(t.TempDir(), "fifo")
	require.NoError(t, syscall.Mkfifo(name, 0o600))
	return name
}

// TestInterruptedPipe: one interrupt ends a replay that waits for somebody to
// write, and one that waits for more.
func TestInterruptedPipe(t *testing.T) {
	for _, silent := range []bool{false, true} {
		name := fifo(t)
		cmd := exec.Command("compare", "replay", name) // this test binary, see TestMain
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		require.NoError(t, cmd.Start())
		if silent {
			f, err := os.OpenFile(name, os.O_WRONLY, 0)
			require.NoError(t, err)
			defer f.Close()
			_, err = f.WriteString(`{"format":"vectors","version":1,"profile":"nvshmem@3.4.5"}` + "\n")
			require.NoError(t, err)
		}
		time.Sleep(300 * time.Millisecond) // it waits
		done := make(chan error, 1)
		go func() { done <- cmd.Wait() }()
		require.NoError(t, cmd.Process.Signal(os.Interrupt))
		select {
		case <-done:
		case <-time.After(20 * time.Second):
			_ = cmd.Process.Kill()
			t.Fatal("one interrupt did not end it")
		}
		require.Equal(t, exitCannotCompare, cmd.ProcessState.ExitCode(), "%s", &stderr)
		require.Equal(t, "compare: interrupted\n", stderr.String())
		require.Contains(t, stdout.String(), "0 passed, 0 failed, 0 refused\n")
	}
}

// TestPipes: a recording may come through a pipe; what is asked more than once
// may not, and nothing waits for a reader that is not there.
func TestPipes(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "r.jsonl")
	require.Equal(t, exitHolds, compare("record", "sim:nvshmem@3.4.5", "--collectives", "all_reduce", "--counts", "64", "--ranks", "2", "-o", file).code)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	name := fifo(t)
	go func() { _ = os.WriteFile(name, text, 0o600) }()
	got := compare("replay", name)
	require.Equal(t, exitHolds, got.code, got.stderr)

	go func() { _ = os.WriteFile(name, text, 0o600) }()
	got = compare("replay", name, "--against", "sim:nvshmem@auto")
	require.Equal(t, exitCannotCompare, got.code)
	require.Contains(t, got.stderr, "a pipe is read once")
	requireRefused(t, compare("run", "--left", "file:"+name, "--right", "sim:nvshmem@3.4.5"), "neither a file nor a directory")
	requireRefused(t, compare("run", "--count", "8", "-o", name), "nobody reads it")
}
