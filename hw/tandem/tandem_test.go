package tandem

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
	"example.com/tandem/hw/host"
	"example.com/tandem/hw/hwtest"
)

func openOn(d *hwtest.Driver, text string, ranks int) (*host.Machine, *host.Team, *config, error) {
	spec, err := api.ParseSpec(text)
	if err != nil {
		return nil, nil, nil, err
	}
	m := host.NewMachine(d)
	c, err := read(spec)
	if err != nil {
		return m, nil, nil, err
	}
	team, err := Open(context.Background(), m, spec, api.TeamConfig{Ranks: ranks})
	return m, team, c, err
}

func closeAll(t *testing.T, d *hwtest.Driver, m *host.Machine, team *host.Team) {
	if team != nil {
		require.NoError(t, team.Close(context.Background()))
	}
	require.NoError(t, m.Close())
	require.True(t, d.Counts().None(), "%v", d.Counts())
	require.NoError(t, d.Close())
}

// TestHostCode runs calls over the stand-in: images, guards, offsets, places,
// lanes and tables.
func TestHostCode(t *testing.T) {
	n := 150
	if testing.Short() {
		n = 15
	}
	for _, c := range []struct {
		text  string
		gpus  int
		ranks int
	}{{"hw:tandem", 1, 1}, {"hw:tandem", 1, 8}, {"hw:tandem?placement=cyclic", 3, 8}, {"hw:tandem?gpus=2&nan=propagate&avg=premul", 4, 5}, {"hw:tandem?path=direct&stage=73728", 1, 72}} {
		_, d := newEmulatorOn(c.gpus)
		m, team, cfg, err := openOn(d, c.text, c.ranks)
		require.NoError(t, err)
		for k := range n {
			if c.ranks == 72 && k > n/10 {
				break
			}
			rng := seeded(uint64(k))
			require.NoError(t, try(context.Background(), team, cfg, randomCall(rng, c.ranks, 500), rng))
		}
		closeAll(t, d, m, team)
	}
}

// TestCapture: replays see what the images hold then, eager calls between.
func TestCapture(t *testing.T) {
	for _, gpus := range []int{1, 2} {
		_, d := newEmulatorOn(gpus)
		m, team, cfg, err := openOn(d, "hw:tandem", 4)
		require.NoError(t, err)
		rng := seeded(5)
		var list []api.Call
		var mem [][]api.Memory
		for range 5 {
			call := randomCall(rng, 4, 200)
			list = append(list, call)
			var one []api.Memory
			for r := range 4 {
				one = append(one, newImages(&call, r, rng, 0xff))
			}
			mem = append(mem, one)
		}
		g, err := team.Capture(context.Background(), list, mem)
		require.NoError(t, err)
		for range 3 {
			var before [][]api.Memory
			for i := range list {
				for r := range 4 {
					for l := range mem[i][r] {
						fill(list[i].Lane(l).DType, mem[i][r][l].Src.Payload(), rng)
					}
				}
				before = append(before, clone(mem[i]))
			}
			require.NoError(t, g.Replay(context.Background()))
			for i := range list {
				require.NoError(t, judge(cfg, &list[i], before[i], mem[i]))
			}
			require.NoError(t, try(context.Background(), team, cfg, simpleCall(4), rng))
		}
		require.NoError(t, team.Close(context.Background()))
		require.ErrorIs(t, g.Replay(context.Background()), api.ErrAborted)
		require.NoError(t, g.Close())
		closeAll(t, d, m, team)
	}
}

// TestTwoTeams: teams that work side by side do not see each other, and one that
// was poisoned leaves the other alone.
func TestTwoTeams(t *testing.T) {
	_, d := newEmulatorOn(2)
	spec := api.Spec{Backend: "hw", Implementation: Name, Params: map[string]string{"stage": "73728"}}
	m := host.NewMachine(d)
	var group errgroup.Group
	for i := range 2 {
		group.Go(func() error {
			for range 3 {
				c, err := read(spec)
				if err != nil {
					return err
				}
				team, err := Open(context.Background(), m, spec, api.TeamConfig{Ranks: 2 + i})
				if err != nil {
					return err
				}
				for k := range 20 {
					rng := seeded(uint64(k))
					if err := try(context.Background(), team, c, randomCall(rng, 2+i, 100), rng); err != nil {
						return err
					}
				}
				if i == 0 {
					p, err := team.Members()[0].Start(simpleCall(2), api.Memory{newImages(ptr(simpleCall(2)), 0, seeded(1), 1)[0]})
					if err != nil {
						return err
					}
					if _, err := p.Wait(context.Background()); !errors.Is(err, api.ErrAborted) {
						return fmt.Errorf("a rank that never came: %w", err)
					}
				}
				if err := team.Close(context.Background()); err != nil {
					return err
				}
			}
			return nil
		})
	}
	require.NoError(t, group.Wait())
	closeAll(t, d, m, nil)
}

func ptr(c api.Call) *api.Call { return &c }

func simpleCall(ranks int) api.Call {
	return api.Call{Collective: api.AllReduce, DType: api.BF16, Op: api.Sum, Ranks: ranks, Count: 33}
}

// TestEveryDriverFailure makes each call of the driver fail in turn: an error or
// the right result comes out, and nothing is left.
func TestEveryDriverFailure(t *testing.T) {
	for _, gpus := range []int{1, 2} {
		failures := 0
		for n := 1; ; n++ {
			_, d := newEmulatorOn(gpus)
			d.FailAt(n)
			m, team, cfg, err := openOn(d, "hw:tandem?stage=73728", 3)
			if err == nil {
				err = try(context.Background(), team, cfg, simpleCall(3), seeded(1))
			}
			if err == nil {
				call := simpleCall(3)
				mem := []api.Memory{newImages(&call, 0, seeded(1), 1), newImages(&call, 1, seeded(2), 1), newImages(&call, 2, seeded(3), 1)}
				var g api.Captured
				if g, err = team.Capture(context.Background(), []api.Call{call}, [][]api.Memory{mem}); err == nil {
					err = errors.Join(g.Replay(context.Background()), g.Close())
				}
			}
			if team != nil {
				err = errors.Join(err, team.Close(context.Background()))
			}
			err = errors.Join(err, m.Close())
			done := d.Calls() < n
			require.Equal(t, !done, err != nil, "call %d: %v", n, err)
			require.True(t, d.Counts().None(), "after call %d failed: %v: %v", n, d.Counts(), err)
			if done {
				break
			}
			failures++
		}
		require.Greater(t, failures, 30)
		t.Logf("%d GPUs: %d calls failed, one at a time", gpus, failures)
	}
}

// TestBadSurroundings: machines and specs that cannot serve a team.
func TestBadSurroundings(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		ranks int
		gpus  int
		spoil func(*hwtest.Driver)
		want  error
		says  string
	}{
		"too many GPUs":   {"hw:tandem?gpus=3", 4, 2, nil, api.ErrUnavailable, "there are 2"},
		"too old":         {"hw:tandem", 2, 1, func(d *hwtest.Driver) { d.Info = func(_ int, i *gpu.Info) { i.Major = 8 } }, api.ErrUnavailable, "capability 8.0"},
		"not cooperative": {"hw:tandem", 2, 1, func(d *hwtest.Driver) { d.Info = func(_ int, i *gpu.Info) { i.CooperativeLaunch = false } }, api.ErrUnavailable, "cooperative"},
		"no peer access":  {"hw:tandem", 2, 2, func(d *hwtest.Driver) { d.Peers = func(a, b int) bool { return a == b } }, api.ErrUnavailable, "cannot reach the memory of GPU 1"},
		"out of memory":   {"hw:tandem", 2, 1, func(d *hwtest.Driver) { d.Capacity = 1 << 20 }, gpu.ErrOutOfMemory, ""},
		"too many ranks":  {"hw:tandem", 73, 1, nil, api.ErrRefused, "1 to 72"},
		"no ranks":        {"hw:tandem", 0, 1, nil, api.ErrRefused, "1 to 72"},
		"few SMs":         {"hw:tandem", 72, 1, func(d *hwtest.Driver) { d.Info = func(_ int, i *gpu.Info) { i.SMs = 16 } }, api.ErrRefused, "more GPUs"},
		"a version":       {"hw:tandem@2", 2, 1, nil, api.ErrInvalid, "no versions"},
		"a parameter":     {"hw:tandem?speed=fast", 2, 1, nil, api.ErrInvalid, "speed"},
		"a value":         {"hw:tandem?path=sideways", 2, 1, nil, api.ErrInvalid, "two_shot"},
		"GPUs over ranks": {"hw:tandem?gpus=3", 2, 4, nil, api.ErrInvalid, "more than the 2 ranks"},
		"stage too small": {"hw:tandem?stage=16", 2, 1, nil, api.ErrInvalid, "stage"},
	} {
		_, d := newEmulatorOn(c.gpus)
		if c.spoil != nil {
			c.spoil(d)
		}
		m, team, _, err := openOn(d, c.text, c.ranks)
		require.ErrorIs(t, err, c.want, name)
		require.ErrorContains(t, err, c.says, name)
		closeAll(t, d, m, team)
	}
}

// TestBadPointers are refused before the launch.
func TestBadPointers(t *testing.T) {
	_, d := newEmulatorOn(2)
	m, team, _, err := openOn(d, "hw:tandem?stage=73728", 2)
	require.NoError(t, err)
	e := team.Engine().(*Engine)
	var buf [2]gpu.Ptr
	for i := range buf {
		buf[i], err = e.on.GPUs[i].Context.Alloc(256)
		require.NoError(t, err)
	}
	freed, err := e.on.GPUs[0].Context.Alloc(256)
	require.NoError(t, err)
	require.NoError(t, e.on.GPUs[0].Context.Free(freed))
	call := simpleCall(2)
	before := len(d.Log())
	for name, src := range map[string]gpu.Ptr{"misaligned": buf[0] + 1, "too near the end": buf[0] + 256 - 64, "foreign": buf[1], "freed": freed, "nowhere": 8} {
		_, err := e.Bind(&call, []host.Buffers{{{Src: src, Dst: buf[0] + 128}}, {{Src: buf[1], Dst: buf[1] + 128}}}, make([]gpu.Ptr, 2))
		require.ErrorIs(t, err, api.ErrInvalid, name)
	}
	_, err = e.Bind(&call, []host.Buffers{{{Src: buf[0], Dst: buf[0] + 128}}, {{Src: buf[1], Dst: buf[1] + 128}}}, make([]gpu.Ptr, 2))
	require.NoError(t, err)
	require.Len(t, d.Log(), before, "nothing was launched")
	for i := range buf {
		require.NoError(t, e.on.GPUs[i].Context.Free(buf[i]))
	}
	closeAll(t, d, m, team)
}

// TestRendezvous: ranks that make different calls, come twice, or never.
func TestRendezvous(t *testing.T) {
	ctx := context.Background()
	setup := func() (*hwtest.Driver, *host.Machine, *host.Team, []api.Memory) {
		_, d := newEmulator()
		m, team, _, err := openOn(d, "hw:tandem?stage=73728", 2)
		require.NoError(t, err)
		call := simpleCall(2)
		return d, m, team, []api.Memory{newImages(&call, 0, seeded(1), 1), newImages(&call, 1, seeded(2), 1)}
	}
	t.Run("mismatch", func(t *testing.T) {
		d, m, team, mem := setup()
		p, err := team.Members()[0].Start(simpleCall(2), mem[0])
		require.NoError(t, err)
		other := simpleCall(2)
		other.Op = api.Max
		_, err = team.Members()[1].Start(other, mem[1])
		require.ErrorIs(t, err, api.ErrMismatch)
		require.ErrorContains(t, err, "--op max")
		require.ErrorContains(t, err, "--op sum")
		_, err = p.Wait(ctx)
		require.ErrorIs(t, err, api.ErrMismatch)
		_, err = team.Members()[0].Start(simpleCall(2), mem[0])
		require.ErrorIs(t, err, api.ErrAborted, "the team is poisoned")
		closeAll(t, d, m, team)
	})
	t.Run("missing", func(t *testing.T) {
		d, m, team, mem := setup()
		p, err := team.Members()[0].Start(simpleCall(2), mem[0])
		require.NoError(t, err)
		_, err = team.Members()[0].Start(simpleCall(2), mem[0])
		require.ErrorIs(t, err, api.ErrRefused)
		_, err = p.Wait(ctx)
		var a *api.Aborted
		require.ErrorAs(t, err, &a)
		require.Equal(t, 1, a.Cause)
		closeAll(t, d, m, team)
	})
	t.Run("withdrawn", func(t *testing.T) {
		d, m, team, mem := setup()
		p, err := team.Members()[0].Start(simpleCall(2), mem[0])
		require.NoError(t, err)
		gone, cancel := context.WithCancel(ctx)
		cancel()
		_, err = p.Wait(gone)
		require.ErrorIs(t, err, context.Canceled)
		_, err = api.Run(ctx, team, simpleCall(2), mem)
		require.NoError(t, err, "nothing had begun")
		closeAll(t, d, m, team)
	})
	t.Run("closed", func(t *testing.T) {
		d, m, team, mem := setup()
		p, err := team.Members()[0].Start(simpleCall(2), mem[0])
		require.NoError(t, err)
		require.NoError(t, team.Close(ctx))
		require.NoError(t, team.Close(ctx))
		_, err = p.Wait(ctx)
		require.ErrorIs(t, err, api.ErrAborted)
		_, err = team.Members()[1].Start(simpleCall(2), mem[1])
		require.ErrorIs(t, err, api.ErrAborted)
		closeAll(t, d, m, team)
	})
	t.Run("refused", func(t *testing.T) {
		d, m, team, mem := setup()
		for name, spoil := range map[string]func(*api.Call){
			"ranks":  func(c *api.Call) { c.Ranks = 3 },
			"scope":  func(c *api.Call) { c.Scope = api.Block },
			"mode":   func(c *api.Call) { c.Mode = "fast" },
			"f32":    func(c *api.Call) { c.Mode, c.DType, c.Count = modeF32, api.F64, 0 },
			"memory": func(c *api.Call) { c.Count++ },
		} {
			call := simpleCall(2)
			spoil(&call)
			_, err := team.Members()[0].Start(call, mem[0])
			require.True(t, errors.Is(err, api.ErrInvalid) || errors.Is(err, api.ErrRefused), "%s: %v", name, err)
		}
		_, err := api.Run(ctx, team, simpleCall(2), mem)
		require.NoError(t, err)
		closeAll(t, d, m, team)
	})
}

// TestWhere: a rank is further than another once it waits behind the headers, and
// at a later barrier; the steps before are alike.
func TestWhere(t *testing.T) {
	far := func(s Step, barrier uint32) uint64 {
		at, far := where(uint32(s), barrier)
		require.Equal(t, s.String(), at)
		return far
	}
	for _, s := range []Step{StepEntry, StepHeader, StepAgreed, StepPushed} {
		require.Zero(t, far(s, 5))
	}
	require.Less(t, far(StepHeader, 0), far(StepData, 0))
	require.Less(t, far(StepData, 9), far(StepBarrier, 0))
	require.Less(t, far(StepBarrier, 1), far(StepBarrier, 2))
}

func TestDeadlineBounds(t *testing.T) {
	_, d := newEmulator()
	m := host.NewMachine(d)
	_, err := Open(context.Background(), m, api.Spec{Backend: "hw", Implementation: Name}, api.TeamConfig{Ranks: 2, Arrive: time.Millisecond})
	require.ErrorIs(t, err, api.ErrInvalid)
	require.NoError(t, m.Close())
	require.NotEmpty(t, fmt.Sprint(Steps()))
}
