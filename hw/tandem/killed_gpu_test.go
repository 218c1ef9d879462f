//go:build gpu && unix

package tandem

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
	"example.com/tandem/hw/cuda"
	"example.com/tandem/hw/host"
)

// TestKilledRun kills a process in the middle of a call: no process is left, the
// GPU has its memory back, and the next run works.
func TestKilledRun(t *testing.T) {
	const child = "TANDEM_TEST_KILLED"
	if os.Getenv(child) != "" {
		hang(t)
		return
	}
	m := machine(t)
	team, c := open(t, m, "hw:tandem", 2, 2*time.Second, time.Second)
	ctx := team.Engine().(*Engine).on.GPUs[0].Context
	before, total, err := ctx.MemInfo()
	require.NoError(t, err)
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(exe, "-test.run=^TestKilledRun$", "-test.v")
	cmd.Env = append(append(os.Environ(), gpu.MulticastOffEnv()...), child+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	defer func() { _ = cmd.Process.Kill() }()
	running := make(chan bool, 1)
	go func() {
		for s := bufio.NewScanner(out); s.Scan(); {
			if s.Text() == "a call is running" {
				running <- true
			}
		}
	}()
	select {
	case <-running:
	case <-time.After(2 * time.Minute):
		require.Fail(t, "the child never ran")
	}
	time.Sleep(200 * time.Millisecond) // its kernel is on the GPU now
	during, _, err := ctx.MemInfo()
	require.NoError(t, err)
	require.Less(t, during, before, "the child holds memory")
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	require.ErrorIs(t, syscall.Kill(-cmd.Process.Pid, 0), syscall.ESRCH, "no process is left")
	var free uint64
	back := func() bool {
		free, _, err = ctx.MemInfo()
		return err == nil && free+64<<20 >= before
	}
	start := time.Now()
	require.Eventually(t, back, 30*time.Second, 10*time.Millisecond, "%d of %d bytes were free before, now %d", before, total, free)
	took := time.Since(start)
	for k := range 20 {
		require.NoError(t, try(context.Background(), team, c, randomCall(seeded(uint64(k)), 2, 8<<10), seeded(uint64(k))))
	}
	t.Logf("the child held %d MiB; %v after it was killed they are back", (before-during)>>20, took.Round(time.Millisecond))
}

// hang is the child: a call in which one rank sleeps while the other waits. The
// parent holds the locks.
func hang(t *testing.T) {
	d, err := cuda.Open(cuda.Options{NoLocks: true})
	require.NoError(t, err)
	_, spec := mustRead(t, "hw:tandem")
	team, err := Open(context.Background(), host.NewMachine(d), spec, api.TeamConfig{Ranks: 2, Arrive: time.Minute, Progress: time.Minute})
	require.NoError(t, err)
	team.Engine().(*Engine).Inject(&Fault{Rank: 1, Step: StepAgreed, Delay: 20 * time.Second})
	call := simple(api.AllReduce, 2, 3000)
	mem, _ := prepared(&call, seeded(1))
	fmt.Println("a call is running")
	_, err = api.Run(context.Background(), team, call, mem)
	require.NoError(t, errors.Join(err, errors.New("it was not killed")))
}
