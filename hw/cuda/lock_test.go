//go:build unix

package cuda

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api/gpu"
)

var lockID = gpu.UUID{1, 2, 3}

func TestLock(t *testing.T) {
	dir := t.TempDir()
	ctx := context.Background()
	first, err := lockGPU(ctx, dir, lockID)
	require.NoError(t, err)
	other, err := lockGPU(ctx, dir, gpu.UUID{4})
	require.NoError(t, err, "another GPU is another lock")
	require.NoError(t, other.Close())

	short, cancel := context.WithTimeout(ctx, 30*time.Millisecond)
	defer cancel()
	_, err = lockGPU(short, dir, lockID)
	require.ErrorIs(t, err, gpu.ErrDeadline)
	require.ErrorContains(t, err, fmt.Sprintf("GPU-01020300-0000-0000-0000-000000000000 is held by process %d", os.Getpid()))

	got := make(chan error, 1)
	go func() {
		f, err := lockGPU(ctx, dir, lockID)
		if err == nil {
			err = f.Close()
		}
		got <- err
	}()
	time.Sleep(2 * lockPause)
	require.Empty(t, got)
	require.NoError(t, first.Close())
	require.NoError(t, <-got)

	_, err = lockGPU(ctx, filepath.Join(dir, "missing"), lockID)
	require.ErrorIs(t, err, gpu.ErrDriver)
	// Another user's file may be readable only; root reads and writes all.
	require.NoError(t, os.Chmod(filepath.Join(dir, "tandem-"+lockID.String()+".lock"), 0o444))
	f, err := lockGPU(ctx, dir, lockID)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// TestLockProcesses: the lock holds between processes, and ends with its
// holder, however that ends.
func TestLockProcesses(t *testing.T) {
	const child = "TANDEM_TEST_LOCK_DIR"
	if dir := os.Getenv(child); dir != "" {
		_, err := lockGPU(context.Background(), dir, lockID)
		fmt.Println("locked", err)
		time.Sleep(time.Minute)
		return
	}
	dir := t.TempDir()
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(exe, "-test.run=^TestLockProcesses$")
	cmd.Env = append(os.Environ(), child+"="+dir)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line := make([]byte, 12)
	_, err = out.Read(line)
	require.NoError(t, err)
	require.Equal(t, "locked <nil>", string(line))
	short, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err = lockGPU(short, dir, lockID)
	require.ErrorContains(t, err, fmt.Sprintf("is held by process %d", cmd.Process.Pid))
	require.NoError(t, cmd.Process.Kill())
	f, err := lockGPU(context.Background(), dir, lockID)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.Error(t, cmd.Wait())
}
