package sim_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/sim"
	"example.com/tandem/sim/machine"
	"example.com/tandem/sim/nvshmem"
)

func backend() *sim.Backend { return sim.New(nvshmem.Family{}) }

func specOf(t testing.TB, text string) api.Spec {
	t.Helper()
	spec, err := api.ParseSpec(text)
	require.NoError(t, err)
	return spec
}

func openTeam(t testing.TB, spec string, cfg api.TeamConfig) *sim.Team {
	t.Helper()
	team, err := backend().Open(t.Context(), specOf(t, spec), cfg)
	require.NoError(t, err)
	return team.(*sim.Team)
}

func sumCall(ranks int, count int64) api.Call {
	return api.Call{Collective: api.AllReduce, DType: api.I32, Op: api.Sum, Ranks: ranks, Count: count}
}

// inputs gives rank r the values r+1.
func inputs(call *api.Call) []api.Memory {
	mem := make([]api.Memory, call.Ranks)
	for r := range mem {
		mem[r] = standardMemory(call, r)
		for i, p := 0, mem[r][0].Src.Payload(); i < len(p); i += 4 {
			p[i] = byte(r + 1)
		}
		poison(mem[r][0].Dst)
	}
	return mem
}

func TestOpenRefuses(t *testing.T) {
	for _, c := range []struct {
		spec string
		cfg  api.TeamConfig
		says []string
	}{
		{"hw:nvshmem@3.4.5", api.TeamConfig{Ranks: 2}, []string{`backend "hw"`}},
		{"sim:mpi@1", api.TeamConfig{Ranks: 2}, []string{`implementation "mpi"`, "[nvshmem]"}},
		{"sim:nvshmem@9", api.TeamConfig{Ranks: 2}, []string{`version "9"`, "3.4.5", "pr131"}},
		{"sim:nvshmem", api.TeamConfig{Ranks: 2}, []string{`version ""`}},
		{"sim:nvshmem@3.4.5?colour=red", api.TeamConfig{Ranks: 2}, []string{`"colour"`, "max_ctas"}},
		{"sim:nvshmem@3.4.5?nvls=maybe", api.TeamConfig{Ranks: 2}, []string{`nvls "maybe"`, "on|off"}},
		{"sim:nvshmem@3.4.5", api.TeamConfig{}, []string{`ranks "0"`, "1 to 1024"}},
		{"sim:nvshmem@3.4.5", api.TeamConfig{Ranks: 1025}, []string{`ranks "1025"`}},
		{"sim:nvshmem@3.4.5", api.TeamConfig{Ranks: 2, Arrive: -1}, []string{"arrive"}},
		{"sim:nvshmem@3.4.5", api.TeamConfig{Ranks: 2, Progress: -1}, []string{"progress"}},
	} {
		t.Run(c.spec, func(t *testing.T) {
			_, err := backend().Open(t.Context(), specOf(t, c.spec), c.cfg)
			require.ErrorIs(t, err, api.ErrInvalid)
			for _, s := range c.says {
				require.ErrorContains(t, err, s)
			}
			if c.cfg.Ranks == 2 && c.cfg.Arrive == 0 && c.cfg.Progress == 0 {
				_, err = backend().Plan(specOf(t, c.spec), sumCall(2, 8))
				require.ErrorIs(t, err, api.ErrInvalid)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := backend().Open(ctx, specOf(t, "sim:nvshmem@3.4.5"), api.TeamConfig{Ranks: 2})
	require.ErrorIs(t, err, context.Canceled)
	require.Panics(t, func() { sim.New(nvshmem.Family{}, nvshmem.Family{}) })
}

func TestPlanValidatesTheCall(t *testing.T) {
	_, err := backend().Plan(specOf(t, "sim:nvshmem@3.4.5"), api.Call{})
	require.ErrorIs(t, err, api.ErrInvalid)
	p, err := backend().Plan(specOf(t, "sim:nvshmem@3.4.5"), sumCall(2, 1<<40))
	require.NoError(t, err, "a plan takes no memory")
	require.NotEmpty(t, p.Kernels)
}

func TestStartRefuses(t *testing.T) {
	call := sumCall(2, 16)
	good := inputs(&call)
	for name, c := range map[string]struct {
		call func(*api.Call)
		mem  func(api.Memory) api.Memory
		says string
	}{
		"no such call":      {call: func(c *api.Call) { c.Op = api.NoOp }, says: "op"},
		"other ranks":       {call: func(c *api.Call) { c.Ranks = 3 }, says: "the team has 2"},
		"other team":        {call: func(c *api.Call) { c.Team = api.SubTeam }, says: "opened as world"},
		"no lanes":          {mem: func(api.Memory) api.Memory { return nil }, says: "lanes"},
		"short source":      {mem: func(m api.Memory) api.Memory { m[0].Src.Bytes = m[0].Src.Bytes[4:]; return m }, says: "source"},
		"misaligned":        {mem: func(m api.Memory) api.Memory { m[0].Dst.Addr++; return m }, says: "element size"},
		"overlap":           {mem: func(m api.Memory) api.Memory { m[0].Dst.Addr = m[0].Src.Addr + 4; return m }, says: "overlap"},
		"one memory, apart": {mem: func(m api.Memory) api.Memory { m[0].Dst.Bytes = m[0].Src.Bytes; return m }, says: "apart by address"},
		"two memories, together": {
			call: func(c *api.Call) { c.InPlace = api.InPlaceOwn },
			mem:  func(m api.Memory) api.Memory { m[0].Dst.Addr = m[0].Src.Addr; return m },
			says: "not the same memory",
		},
	} {
		t.Run(name, func(t *testing.T) {
			team := openTeam(t, "sim:nvshmem@3.4.5", api.TeamConfig{Ranks: 2})
			bad, mem := call, append(api.Memory(nil), good[0]...)
			if c.call != nil {
				c.call(&bad)
			}
			if c.mem != nil {
				mem = c.mem(mem)
			}
			_, err := team.Members()[0].Start(bad, mem)
			require.ErrorIs(t, err, api.ErrInvalid)
			require.ErrorContains(t, err, c.says)
			_, err = api.Run(t.Context(), team, call, good)
			require.NoError(t, err, "nothing was started")
		})
	}
}

func TestBuffersOfTwoRanksMustBeApart(t *testing.T) {
	call := sumCall(3, 16)
	team := openTeam(t, "sim:nvshmem@3.4.5", api.TeamConfig{Ranks: 3})
	mem := inputs(&call)
	mem[2][0].Dst.Bytes = mem[1][0].Dst.Bytes
	_, err := api.Run(t.Context(), team, call, mem)
	require.ErrorContains(t, err, "shares bytes with the destination of rank")
	mem = inputs(&call)
	mem[2][0].Dst.Bytes = mem[0][0].Src.Bytes
	_, err = api.Run(t.Context(), team, call, mem)
	require.ErrorContains(t, err, "shares bytes with the source of rank 0")
	mem = inputs(&call)
	mem[2][0].Src.Bytes = mem[0][0].Src.Bytes
	_, err = api.Run(t.Context(), team, call, mem)
	require.NoError(t, err, "sources may share")
	require.EqualValues(t, 1+2+1, mem[0][0].Dst.Payload()[0])
}

func TestMismatch(t *testing.T) {
	team := openTeam(t, "sim:nvshmem@3.4.5", api.TeamConfig{Ranks: 2})
	call := sumCall(2, 16)
	for name, change := range map[string]func(*api.Call){
		"op":     func(c *api.Call) { c.Op = api.Max },
		"dtype":  func(c *api.Call) { c.DType = api.U32 },
		"scope":  func(c *api.Call) { c.Scope = api.Block },
		"offset": func(c *api.Call) { c.SrcOffset = api.Offsets{0, 4} },
		"count":  func(c *api.Call) { c.Count = 15 },
		"what":   func(c *api.Call) { c.Collective, c.Op = api.Broadcast, api.NoOp },
	} {
		other := call
		change(&other)
		first, second := inputs(&call), inputs(&other)
		a, err := team.Members()[0].Start(call, first[0])
		require.NoError(t, err, name)
		b, err := team.Members()[1].Start(other, second[1])
		require.NoError(t, err, name)
		for _, p := range []api.Pending{a, b} {
			_, err := p.Wait(t.Context())
			var m *api.Mismatch
			require.ErrorAs(t, err, &m, name)
			require.Equal(t, []any{0, 1, call.String(), other.String()}, []any{m.Rank, m.Other, m.Call, m.OtherCall})
			require.NotEqual(t, m.CallHash, m.OtherHash)
		}
		require.EqualValues(t, 0xFF, first[0][0].Dst.Payload()[0], "nothing was touched")
	}
	// One offset for all and the same one for each are one call.
	same := call
	same.SrcOffset, same.DstOffset = api.Offsets{0, 0}, api.Offsets{0}
	mem := inputs(&call)
	a, err := team.Members()[0].Start(call, mem[0])
	require.NoError(t, err)
	_, err = team.Members()[1].Start(same, mem[1])
	require.NoError(t, err)
	_, err = a.Wait(t.Context())
	require.NoError(t, err)
}

func TestCancelBeforeAllHaveCome(t *testing.T) {
	team := openTeam(t, "sim:nvshmem@3.4.5", api.TeamConfig{Ranks: 3})
	call := sumCall(3, 16)
	mem := inputs(&call)
	members := team.Members()
	first, err := members[0].Start(call, mem[0])
	require.NoError(t, err)
	third, err := members[2].Start(call, mem[2])
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, p := range []api.Pending{first, third} {
		_, err = p.Wait(ctx)
		var aborted *api.Aborted
		require.ErrorAs(t, err, &aborted)
		require.Equal(t, 1, aborted.Cause)
		require.ErrorContains(t, err, "rank 1 is to blame")
	}
	_, err = api.Run(t.Context(), team, call, mem)
	require.NoError(t, err, "the team goes on")
	require.EqualValues(t, 6, mem[1][0].Dst.Payload()[0])
}

func TestClose(t *testing.T) {
	team := openTeam(t, "sim:nvshmem@3.4.5", api.TeamConfig{Ranks: 2})
	call := sumCall(2, 16)
	mem := inputs(&call)
	p, err := team.Members()[0].Start(call, mem[0])
	require.NoError(t, err)
	require.NoError(t, team.Close(t.Context()))
	require.NoError(t, team.Close(t.Context()), "again")
	_, err = p.Wait(t.Context())
	require.ErrorIs(t, err, api.ErrAborted)
	_, err = team.Members()[1].Start(call, mem[1])
	require.ErrorIs(t, err, api.ErrAborted)
	require.ErrorContains(t, err, "closed")
}

// Ranks in goroutines of their own, many calls one after another, of changing
// sizes and collectives: every one ends right.
func TestRanksInGoroutines(t *testing.T) {
	const ranks, calls = 4, 60
	team := openTeam(t, "sim:nvshmem@3.4.5?nvls=off", api.TeamConfig{Ranks: ranks})
	var wg sync.WaitGroup
	errs := make(chan error, ranks*calls)
	for _, m := range team.Members() {
		wg.Go(func() {
			for k := range calls {
				call := sumCall(ranks, int64(1+k*k*5%3000))
				mem := inputs(&call)[m.Rank()]
				p, err := m.Start(call, mem)
				if err == nil {
					_, err = p.Wait(context.Background())
				}
				if err == nil && mem[0].Dst.Payload()[0] != 10 {
					err = fmt.Errorf("call %d gave rank %d %d", k, m.Rank(), mem[0].Dst.Payload()[0])
				}
				errs <- err
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
}

// A rank may start calls ahead of the others; each meets its own round.
func TestCallsAhead(t *testing.T) {
	team := openTeam(t, "sim:nvshmem@3.4.5", api.TeamConfig{Ranks: 2})
	members := team.Members()
	var pending [2][3]api.Pending
	var mem [3][]api.Memory
	for r := range 2 {
		for k := range 3 {
			call := sumCall(2, int64(10*(k+1)))
			if r == 0 {
				mem[k] = inputs(&call)
			}
			var err error
			pending[r][k], err = members[r].Start(call, mem[k][r])
			require.NoError(t, err)
		}
	}
	for k := range 3 {
		for r := range 2 {
			out, err := pending[r][k].Wait(t.Context())
			require.NoError(t, err)
			require.Equal(t, []api.Interval{{Start: 0, End: int64(40 * (k + 1))}}, out.Written)
			require.EqualValues(t, 3, mem[k][r][0].Dst.Payload()[0])
		}
	}
}

func TestScheduleIsOfTheCallsThatFollow(t *testing.T) {
	team := openTeam(t, "sim:nvshmem@3.4.5", api.TeamConfig{Ranks: 2})
	call := sumCall(2, 16)
	team.Schedule(machine.Options{Seeded: true, Seed: 3, Inject: []machine.Injection{{Rank: 1, Harm: machine.Stop}}})
	_, err := api.Run(t.Context(), team, call, inputs(&call))
	var fault *api.Fault
	require.ErrorAs(t, err, &fault)
	require.Equal(t, api.FaultHang, fault.Kind)
	team.Schedule(machine.Options{})
	_, err = api.Run(t.Context(), team, call, inputs(&call))
	require.NoError(t, err)
}

func TestEmptyCallsAndOneRank(t *testing.T) {
	for _, ranks := range []int{1, 2, 5} {
		for _, coll := range []api.Collective{api.AllReduce, api.ReduceScatter, api.AllGather, api.Broadcast, api.AllToAll} {
			for _, count := range []int64{0, 1, 3} {
				call := api.Call{Collective: coll, DType: api.I32, Ranks: ranks, Count: count}
				if coll.Reduces() {
					call.Op = api.Sum
				}
				team := openTeam(t, "sim:nvshmem@3.4.5?nvls=off", api.TeamConfig{Ranks: ranks})
				mem := inputs(&call)
				out, err := api.Run(t.Context(), team, call, mem)
				require.NoError(t, err, "%v", call)
				for r := range out {
					want := []api.Interval{}
					if n := call.DstElems(0); n > 0 {
						want = []api.Interval{{Start: 0, End: 4 * n}}
					}
					require.Equal(t, want, out[r].Written, "%v", call)
				}
			}
		}
	}
}

// Alignment is that of the addresses a caller brings: not of the call's offsets,
// and not of the Go memory.
func TestAlignmentIsTheAddresses(t *testing.T) {
	call := api.Call{Collective: api.AllReduce, DType: api.BF16, Op: api.Sum, Ranks: 2, Count: 1024}
	for _, c := range []struct {
		shift   uint64
		written int64
	}{{0, 2048}, {2, 0}, {4, 2048}, {64, 2048}} {
		mem := make([]api.Memory, 2)
		for r := range mem {
			mem[r] = standardMemory(&call, r)
			mem[r][0].Src.Addr += c.shift
			mem[r][0].Dst.Addr += c.shift
		}
		out, err := api.Run(t.Context(), openTeam(t, "sim:nvshmem@2dca770", api.TeamConfig{Ranks: 2}), call, mem)
		require.NoError(t, err)
		var n int64
		for _, w := range out[1].Written {
			n += w.End - w.Start
		}
		require.Equal(t, c.written, n, "shifted by %d bytes", c.shift)
	}
}
