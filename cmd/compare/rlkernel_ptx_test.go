package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/hw"
	hwrl "example.com/tandem/hw/rlkernel"
	"example.com/tandem/sim"
	"example.com/tandem/sim/ptx"
	"example.com/tandem/sim/rlkernel"
)

// rlRoom is enough staging for the calls of these tests.
const rlRoom = "max_size_bytes=1048576"

func rlVirtual(t testing.TB, devices int, edit func([]byte) []byte) *hw.Backend {
	d := ptx.Open(ptx.Options{Devices: devices, Seed: 7, Edit: edit})
	t.Cleanup(func() { _ = d.Close() })
	return hw.New("ptx", d)
}

// offsets is one offset for every rank, or another for each.
func ranksApart(ranks int, base, step int64) api.Offsets {
	out := make(api.Offsets, ranks)
	for r := range out {
		out[r] = base + step*int64(r)
	}
	return out
}

// smallCases have every operation, path, loop and type, on few bytes.
func smallCases(version string, ranks int) []rlCase {
	var out []rlCase
	add := func(params string, call api.Call) {
		call.Ranks = ranks
		out = append(out, rlCase{version, params, call})
	}
	both := []string{"?" + rlRoom, "?path=multi&" + rlRoom}
	for i, n := range []int64{0, 1, 15, 16, 17, 48} {
		for k, params := range both {
			add(params, api.Call{Collective: api.AllGather, DType: api.U8, Count: n, SrcOffset: api.Offsets{int64(i)}, DstOffset: api.Offsets{int64(k * i)}})
			add(params, api.Call{Collective: api.AllGather, DType: api.I32, Count: n, DstOffset: ranksApart(ranks, 4, 1), InPlace: api.OutOfPlace})
			for _, d := range []api.DType{api.BF16, api.F16, api.F32} {
				add(params, api.Call{Collective: api.AllReduce, DType: d, Op: api.Sum, Count: n, SrcOffset: ranksApart(ranks, 1, 1), DstOffset: ranksApart(ranks, 0, 2)})
				add(params, api.Call{Collective: api.ReduceScatter, DType: d, Op: api.Sum, Count: n, SrcOffset: api.Offsets{2}, DstOffset: ranksApart(ranks, 3, 1)})
			}
		}
	}
	add(both[0], api.Call{Collective: api.AllReduce, DType: api.BF16, Op: api.Sum, Count: 33, InPlace: api.InPlaceOwn})
	add(both[1], api.Call{Collective: api.AllReduce, DType: api.F16, Op: api.Sum, Count: 33, InPlace: api.InPlaceOwn, SrcOffset: api.Offsets{1}, DstOffset: api.Offsets{1}})
	add(both[0], api.Call{Collective: api.AllGather, DType: api.U8, Count: 33, InPlace: api.InPlaceOwn})
	add(both[1], api.Call{Collective: api.ReduceScatter, DType: api.F32, Op: api.Sum, Count: 9, InPlace: api.InPlaceOwn})
	add(both[0], api.Call{Collective: api.ReduceScatter, DType: api.BF16, Op: api.Sum, Count: 9, InPlace: api.InPlaceStart})
	lanes := []api.LaneShape{{Count: 5}, {}, {DType: api.F32, Count: 7}, {DType: api.F16, Count: 16}}
	for _, params := range both {
		add(params, api.Call{Collective: api.AllGatherMany, DType: api.U8, Many: lanes, SrcOffset: api.Offsets{1}})
		add(params, api.Call{Collective: api.ReduceScatterMany, DType: api.BF16, Op: api.Sum, Many: lanes, SrcOffset: ranksApart(ranks, 0, 1)})
	}
	extension := "?entry=extension&" + rlRoom
	for _, n := range []int64{0, 3, 40} {
		add(extension, api.Call{Collective: api.AllReduce, DType: api.BF16, Op: api.Sum, Count: n, SrcOffset: api.Offsets{1}, DstOffset: api.Offsets{3}})
		add(extension, api.Call{Collective: api.ReduceScatter, DType: api.F16, Op: api.Sum, Count: n})
	}
	// The store of pairs at an odd element: refused where the library faults.
	add(both[0], api.Call{Collective: api.AllReduce, DType: api.BF16, Op: api.Sum, Count: 6, DstOffset: api.Offsets{1}})
	add(both[0], api.Call{Collective: api.AllReduce, DType: api.BF16, Op: api.Sum, Count: 1, DstOffset: api.Offsets{1}})
	if version == hwrl.After {
		for _, n := range []int64{16, 17, 32} {
			add("?copy=peerwise&"+rlRoom, api.Call{Collective: api.AllGather, DType: api.U8, Count: n})
		}
	}
	return out
}

// edgeCases are at the thresholds, so they take a while; a few.
func edgeCases(version string) []rlCase {
	limit := int64(256 << 10)
	if version == hwrl.After {
		limit = 64 << 10
	}
	p := "?" + rlRoom
	cases := []rlCase{
		{version, p, api.Call{Collective: api.AllGather, DType: api.U8, Ranks: 2, Count: limit / 2, DstOffset: api.Offsets{0, 3}}},
		{version, p, api.Call{Collective: api.AllGather, DType: api.U8, Ranks: 2, Count: limit/2 + 1}},
	}
	if version == hwrl.After {
		return append(cases,
			rlCase{version, p, api.Call{Collective: api.AllReduce, DType: api.BF16, Op: api.Sum, Ranks: 2, Count: 128<<10 + 1}},
			rlCase{version, p, api.Call{Collective: api.ReduceScatter, DType: api.F32, Op: api.Sum, Ranks: 2, Count: 32<<10 + 1}},
		)
	}
	return cases
}

// sampled is how many cases one of is run: all under TANDEM_EXHAUSTIVE, few in
// short tests.
func sampled(usual, short int) int {
	switch {
	case os.Getenv("TANDEM_EXHAUSTIVE") != "":
		return 1
	case testing.Short():
		return short
	}
	return usual
}

// TestPTXRLKernel: on the virtual GPU, which refuses every race, the kernels give
// the simulator's bits in all bytes of the destinations and in no other, with a
// GPU for each rank, for two, and one for all.
func TestPTXRLKernel(t *testing.T) {
	withoutRaceDetector(t)
	every := sampled(13, 60)
	for _, devices := range []int{8, 1} {
		d := newRLDuel(t, "ptx", rlVirtual(t, devices, nil))
		var cases []rlCase
		for _, version := range hwrl.Versions() {
			for _, ranks := range []int{1, 2, 4, 8} {
				for i, c := range smallCases(version, ranks) {
					if (i+ranks+devices/2)%every == 0 {
						cases = append(cases, c)
					}
				}
			}
			if edges := edgeCases(version); devices == 8 && every == 1 {
				cases = append(cases, edges...)
			} else if devices == 8 && version == hwrl.After && !testing.Short() {
				cases = append(cases, edges[0], edges[1])
			}
		}
		d.run(t.Context(), t, cases, 1)
		t.Logf("%d devices: %d calls agree, %d are refused where the library faults", devices, d.agree, d.faults)
		require.Positive(t, d.agree)
	}
}

// TestPTXRLKernelRefuses what the simulator refuses, for the same reason.
func TestPTXRLKernelRefuses(t *testing.T) {
	b := rlVirtual(t, 2, nil)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	model := sim.New(rlkernel.Family{})
	teams := map[string]api.Team{}
	ctx := t.Context()
	sum := api.Call{Collective: api.AllReduce, DType: api.BF16, Op: api.Sum, Ranks: 2, Count: 4}
	with := func(change func(*api.Call)) api.Call {
		c := sum
		change(&c)
		return c
	}
	many := with(func(c *api.Call) {
		c.Collective, c.Op, c.Many, c.Count = api.AllGatherMany, api.NoOp, []api.LaneShape{{Count: 3}, {Count: 3}}, 0
	})
	for _, c := range []struct {
		params string
		call   api.Call
	}{
		{"", with(func(c *api.Call) { c.Ranks = 3 })},
		{"", with(func(c *api.Call) { c.Ranks = 5 })},
		{"", with(func(c *api.Call) { c.Ranks = 16 })},
		{"", with(func(c *api.Call) { c.Collective, c.Op = api.Broadcast, api.NoOp })},
		{"", with(func(c *api.Call) { c.Collective, c.Op = api.AllToAll, api.NoOp })},
		{"", with(func(c *api.Call) { c.Scope = api.Block })},
		{"", with(func(c *api.Call) { c.Mode = "node" })},
		{"", with(func(c *api.Call) { c.Op = api.Max })},
		{"", with(func(c *api.Call) { c.DType = api.F64 })},
		{"", with(func(c *api.Call) { c.DType = api.I32 })},
		{"", with(func(c *api.Call) { c.Collective, c.DType = api.ReduceScatter, api.E4M3 })},
		{"?outs=on", many},
		{"", func() api.Call { c := many; c.DstOffset = api.Offsets{1}; return c }()},
		{"", func() api.Call { c := many; c.InPlace = api.InPlaceOwn; return c }()},
		{"?max_size_bytes=7", sum},
		{"?max_size_bytes=16", many},
		{"?entry=extension", with(func(c *api.Call) { c.Collective, c.Op = api.AllGather, api.NoOp })},
		{"?entry=extension", with(func(c *api.Call) {
			c.Collective, c.Many, c.Count = api.ReduceScatterMany, []api.LaneShape{{Count: 3}}, 0
		})},
	} {
		var reasons []string
		for _, side := range []struct {
			name, params string
			b            api.Backend
		}{{"sim", c.params, model}, {"ptx", cmp.Or(c.params, "?"+rlRoom), b}} {
			spec, err := api.ParseSpec(side.name + ":rlkernel@8ccb03c" + side.params)
			require.NoError(t, err)
			reasons = append(reasons, rlReason(ctx, t, teams, side.b, spec, c.call))
		}
		require.Equal(t, reasons[0], reasons[1], "%s", c.call)
	}
	for _, team := range teams {
		require.NoError(t, team.Close(ctx))
	}
	for _, bad := range []string{"rlkernel", "rlkernel@main", "rlkernel@8ccb03c?gpus=3", "rlkernel@8ccb03c?nonsense=1", "rlkernel@43f150f?copy=peerwise", "rlkernel@8ccb03c?path=push", "rlkernel@8ccb03c?max_size_bytes=0"} {
		spec, err := api.ParseSpec("ptx:" + bad)
		require.NoError(t, err)
		_, err = b.Open(ctx, spec, api.TeamConfig{Ranks: 2})
		require.ErrorIs(t, err, api.ErrInvalid, bad)
	}
	spec := api.Spec{Backend: "ptx", Implementation: "rlkernel", Version: "8ccb03c"}
	_, err := b.Open(ctx, spec, api.TeamConfig{Ranks: 2, Arrive: time.Millisecond})
	require.ErrorIs(t, err, api.ErrInvalid)
}

// rlReason is why a call is refused, by the team or by its opening.
func rlReason(ctx context.Context, t testing.TB, teams map[string]api.Team, b api.Backend, spec api.Spec, call api.Call) string {
	t.Helper()
	key := fmt.Sprint(spec, call.Ranks)
	var err error
	if teams[key] == nil {
		var team api.Team
		if team, err = b.Open(ctx, spec, api.TeamConfig{Ranks: call.Ranks}); err == nil {
			teams[key] = team
		}
	}
	if err == nil {
		mem := make([]api.Memory, call.Ranks)
		for r := range mem {
			mem[r] = rlMemory(&call, r, nil)
		}
		_, err = api.Run(ctx, teams[key], call, mem)
	}
	var refused *api.Refused
	require.ErrorAs(t, err, &refused, "%s: %s", spec, call)
	require.NotEmpty(t, refused.Hint)
	return refused.Reason
}

// TestPTXRLKernelMutants: kernels that are wrong are caught, by a wrong byte or
// as a race.
func TestPTXRLKernelMutants(t *testing.T) {
	withoutRaceDetector(t)
	gather := api.Call{Collective: api.AllGather, DType: api.U8, Ranks: 4, Count: 33}
	lines := api.Call{Collective: api.AllGather, DType: api.U8, Ranks: 4, Count: 32}
	sum := api.Call{Collective: api.AllReduce, DType: api.BF16, Op: api.Sum, Ranks: 4, Count: 41}
	for _, m := range []struct {
		name, kernel, old, to string
		cases                 []rlCase
	}{
		{"the fence before a publication", "rl_signal", "fence.acq_rel.sys;\n", "\n", []rlCase{{"8ccb03c", "path=multi", gather}, {"8ccb03c", "path=multi", sum}}},
		{"the fence of one block", "rl_fused_reduce", "fence.acq_rel.sys;\n", "\n", []rlCase{{"8ccb03c", "", sum}}},
		{"the scope of a counter", "rl_fused_gather", "st.relaxed.sys.global.b64", "st.relaxed.gpu.global.b64", []rlCase{{"8ccb03c", "", lines}}},
		{"a sum in f16", "rl_fused_reduce", "add.rn.bf16x2", "add.rn.f16x2", []rlCase{{"8ccb03c", "", sum}}},
		{"no wait at all", "rl_signal", "setp.ge.u64", "setp.le.u64", []rlCase{{"8ccb03c", "path=multi", sum}}},
	} {
		edit := func(text []byte) []byte {
			s := string(text)
			at := strings.Index(s, ".entry "+m.kernel+"(")
			if at < 0 {
				return text
			}
			end := at + strings.Index(s[at:], "\n}\n")
			require.Contains(t, s[at:end], m.old, m.name)
			return []byte(s[:at] + strings.ReplaceAll(s[at:end], m.old, m.to) + s[end:])
		}
		caught := ""
		for _, c := range m.cases {
			c.params = "?" + strings.TrimPrefix(c.params+"&"+rlRoom, "&")
			d := &rlDuel{backend: rlVirtual(t, 4, edit), name: "ptx", teams: map[string]api.Team{}}
			for seed := range uint64(4) {
				if err := d.judge(t.Context(), c, newRLModels().run(t.Context(), c, "", seed)); err != nil && caught == "" {
					caught = err.Error()
				}
			}
		}
		require.NotEmpty(t, caught, m.name)
		if strings.HasPrefix(m.name, "the ") {
			require.Contains(t, caught, "race: ", m.name)
		}
		t.Logf("%s: ...%s", m.name, caught[max(0, len(caught)-160):])
	}
}

// TestPTXRLKernelGraphs: recorded calls, replayed on new data, with calls between.
func TestPTXRLKernelGraphs(t *testing.T) {
	ctx := t.Context()
	b := rlVirtual(t, 2, nil)
	for _, version := range hwrl.Versions() {
		spec, err := api.ParseSpec("ptx:rlkernel@" + version + "?" + rlRoom)
		require.NoError(t, err)
		team, err := b.Open(ctx, spec, api.TeamConfig{Ranks: 4})
		require.NoError(t, err)
		models := newRLModels()
		var calls []api.Call
		var mem [][]api.Memory
		for i, c := range []rlCase{
			{"", "", api.Call{Collective: api.AllReduce, DType: api.BF16, Op: api.Sum, Ranks: 4, Count: 37}},
			{"", "", api.Call{Collective: api.AllGather, DType: api.U8, Ranks: 4, Count: 19, SrcOffset: api.Offsets{1}}},
			{"", "", api.Call{Collective: api.ReduceScatter, DType: api.F32, Op: api.Sum, Ranks: 4, Count: 5}},
			{"", "", api.Call{Collective: api.AllGatherMany, DType: api.U8, Ranks: 4, Many: []api.LaneShape{{Count: 3}, {Count: 17}}}},
		} {
			calls = append(calls, c.call)
			c.version = version
			mem = append(mem, models.run(ctx, c, "", uint64(i)).before)
		}
		g, err := team.(api.Capturer).Capture(ctx, calls, mem)
		require.NoError(t, err)
		d := &rlDuel{backend: b, name: "ptx", teams: map[string]api.Team{fmt.Sprint(version, "", 4): team}}
		for round := range uint64(3) {
			var want []rlModel
			for k, call := range calls {
				m := models.run(ctx, rlCase{version, "", call}, "", 100*round+uint64(k))
				require.NoError(t, m.err)
				for r, lanes := range m.before {
					for l := range lanes {
						copy(mem[k][r][l].Src.Bytes, lanes[l].Src.Bytes)
						copy(mem[k][r][l].Dst.Bytes, lanes[l].Dst.Bytes)
					}
				}
				want = append(want, m)
			}
			require.NoError(t, g.Replay(ctx))
			for k := range calls {
				require.Equal(t, want[k].after, mem[k], "%s", calls[k])
			}
			c := rlCase{version, "", calls[round%4]}
			require.NoError(t, d.judge(ctx, c, models.run(ctx, c, "", round)))
		}
		require.NoError(t, team.Close(ctx))
		require.True(t, errors.Is(g.Replay(ctx), api.ErrAborted))
		require.NoError(t, g.Close())
	}
	require.NoError(t, b.Close())
}
