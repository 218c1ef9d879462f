//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestKilledRun kills compare in the middle of calls on the virtual GPU: no
// process and no file is left, and the next run works. The test of package
// hw/tandem with this name does the same to a GPU.
func TestKilledRun(t *testing.T) {
	withoutRaceDetector(t)
	temp := t.TempDir()
	run := func(args ...string) *exec.Cmd {
		cmd := exec.Command("compare", args...) // this test binary, see TestMain
		cmd.Dir = t.TempDir()
		cmd.Env = append(os.Environ(), "TMPDIR="+temp)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		return cmd
	}
	long := run("sweep", "--left", "ptx:tandem", "--right", "sim:tandem", "--collectives", "all_reduce", "--ranks", "2", "--counts", "100000", "--seeds", "8")
	require.NoError(t, long.Start())
	time.Sleep(700 * time.Millisecond) // it is somewhere in it
	require.NoError(t, long.Process.Kill())
	require.ErrorContains(t, long.Wait(), "killed")
	require.ErrorIs(t, syscall.Kill(-long.Process.Pid, 0), syscall.ESRCH, "no process is left")
	left, err := os.ReadDir(temp)
	require.NoError(t, err)
	require.Empty(t, left, "no file is left")

	next := run("run", "--left", "ptx:tandem", "--right", "sim:tandem", "--collective", "all_reduce", "--ranks", "2", "--count", "100")
	var out bytes.Buffer
	next.Stdout, next.Stderr = &out, &out
	require.NoError(t, next.Run(), "%s", &out)
	require.Contains(t, out.String(), "AGREE")
}
