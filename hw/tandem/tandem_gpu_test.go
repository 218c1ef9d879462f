//go:build gpu

package tandem

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
	"example.com/tandem/api/gpu/gputest"
	"example.com/tandem/hw/cuda"
	"example.com/tandem/hw/host"
)

func openCUDA() (gpu.Driver, error) { return cuda.Open(cuda.Options{}) }

// machine is the GPUs here, or a skip with the reason.
func machine(t testing.TB) *host.Machine {
	d := gputest.Open(t, openCUDA)
	m := host.NewMachine(d)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	return m
}

func open(t testing.TB, m *host.Machine, text string, ranks int, arrive, progress time.Duration) (*host.Team, *config) {
	c, spec := mustRead(t, text)
	if v, err := strconv.Atoi(os.Getenv("TANDEM_DEADLINE_SCALE")); err == nil {
		arrive, progress = arrive*time.Duration(v), progress*time.Duration(v) // under a sanitizer
	}
	team, err := Open(context.Background(), m, spec, api.TeamConfig{Ranks: ranks, Arrive: arrive, Progress: progress})
	require.NoErrorf(t, err, "%s over %d ranks", text, ranks)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		require.NoError(t, team.Close(ctx))
	})
	return team, c
}

func worlds(t testing.TB) []int {
	if testing.Short() {
		return []int{1, 2, 3, 8}
	}
	return []int{1, 2, 3, 4, 5, 8}
}

func calls(t testing.TB, n int) int {
	if v, err := strconv.Atoi(os.Getenv("TANDEM_CALLS")); err == nil {
		return v
	}
	if testing.Short() {
		return n / 10
	}
	return n
}

var specs = []string{
	"hw:tandem", "hw:tandem?path=direct", "hw:tandem?path=two_shot", "hw:tandem?buffers=staged&stage=73728&path=staged",
	"hw:tandem?mode=f32&avg=premul&nan=propagate", "hw:tandem?avg=premul&path=direct", "hw:tandem?nan=propagate&ctas=3", "hw:tandem?gpus=1",
}

// TestFirst is the smallest thing that can go wrong.
func TestFirst(t *testing.T) {
	m := machine(t)
	for _, ranks := range []int{1, 2, 8} {
		start := time.Now()
		team, c := open(t, m, "hw:tandem", ranks, 2*time.Second, time.Second)
		e := team.Engine().(*Engine)
		t.Logf("%d ranks: opened in %v, %d blocks a rank", ranks, time.Since(start), e.most)
		for _, k := range []api.Collective{api.AllGather, api.AllReduce, api.ReduceScatter, api.Broadcast, api.AllToAll} {
			call := api.Call{Collective: k, DType: api.BF16, Ranks: ranks, Count: 1000}
			if k.Reduces() {
				call.Op = api.Sum
			}
			require.NoError(t, try(context.Background(), team, c, call, seeded(1)))
		}
	}
}

// TestRandomCalls holds the kernels to num.Eval.
func TestRandomCalls(t *testing.T) {
	m := machine(t)
	for _, ranks := range worlds(t) {
		for i, text := range specs {
			t.Run(fmt.Sprintf("%d ranks/%s", ranks, text), func(t *testing.T) {
				team, c := open(t, m, text, ranks, 2*time.Second, time.Second)
				j := newJury(t)
				n := calls(t, 300)
				for k := range n {
					call := randomCall(seeded(uint64(k*1000+i*100+ranks)), ranks, 24<<10)
					if c.mode == modeF32 && c.admit(&call) != nil {
						call.Mode = modeNode
						if !call.Collective.Reduces() {
							call.Mode = ""
						}
					}
					mem, before := prepared(&call, seeded(uint64(k)))
					_, err := api.Run(context.Background(), team, call, mem)
					require.NoErrorf(t, err, "%s", call)
					j.judge(*c, call, before, mem, fmt.Sprint("call ", k))
				}
				j.verdict()
				t.Logf("%d calls right", n)
			})
		}
	}
}

// TestLargeCalls goes past every box, with the elements judged on all cores.
func TestLargeCalls(t *testing.T) {
	m := machine(t)
	for _, ranks := range []int{2, 4, 8} {
		team, c := open(t, m, "hw:tandem", ranks, 5*time.Second, 2*time.Second)
		var jobs []func() error
		for k := range calls(t, 20) {
			rng := seeded(uint64(k + 77))
			call := randomCall(rng, ranks, 600<<10)
			var mem []api.Memory
			for r := range ranks {
				mem = append(mem, newImages(&call, r, rng, 0xff))
			}
			before := clone(mem)
			_, err := api.Run(context.Background(), team, call, mem)
			require.NoErrorf(t, err, "%s", call)
			jobs = append(jobs, func() error {
				if err := judge(c, &call, before, mem); err != nil {
					return fmt.Errorf("%s: %w", call, err)
				}
				return nil
			})
		}
		parallel(t, jobs)
	}
}

func parallel(t *testing.T, jobs []func() error) {
	var wg sync.WaitGroup
	gate := make(chan struct{}, runtime.NumCPU())
	errs := make([]error, len(jobs))
	for i, job := range jobs {
		wg.Add(1)
		gate <- struct{}{}
		go func() {
			defer wg.Done()
			errs[i] = job()
			<-gate
		}()
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
}
