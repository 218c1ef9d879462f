package nvshmem_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/sim/machine"
)

// Calls whose outcome depends on chance are refused with the race's name, and
// the steps themselves race under every schedule: none is the lucky one.
func TestRacesAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		version, reason string
		call            api.Call
	}{
		"10.18 LL8 in several CTAs": {"3.4.5?max_ctas=64", "64 CTAs", api.Call{
			Collective: api.AllGather, DType: api.BF16, Ranks: 8, Count: 65536}},
		"10.14 LL in several CTAs":                  {"3.4.5?max_ctas=128&reduce_algo=5", "TEAM_NODE", allReduce(api.F32, api.Sum, 2, 65536)},
		"NVLS reduce-scatter in place at the start": {"3.4.5", "block 0", block(inPlace(scatter(api.F32, api.Sum, 4, 64), api.InPlaceStart))},
	} {
		t.Run(name, func(t *testing.T) {
			mem := normal(&c.call, 1)
			before := append([]byte(nil), mem[1][0].Dst.Bytes...)
			_, err := run(t, c.version, c.call, mem)
			var refused *api.Refused
			require.ErrorAs(t, err, &refused)
			require.Contains(t, refused.Reason, "race")
			require.Contains(t, refused.Reason, c.reason)
			require.Equal(t, before, mem[1][0].Dst.Bytes, "nothing was touched")
			plan := planOf(t, c.version, c.call)
			for seed := range uint64(8) {
				_, err := execute(t, c.version, plan, mem, machine.Options{Seeded: seed > 0, Seed: seed})
				var race *machine.Race
				require.ErrorAs(t, err, &race)
				require.NotEqual(t, [2]int{race.First.Rank, race.First.CTA}, [2]int{race.Second.Rank, race.Second.CTA})
			}
		})
	}
}

// B55: one-shot in place, which the library avoids by two-shot: a peer's store
// lands where another rank has yet to load. The plan is forced; every schedule
// shows the race, and names the rank that is too early.
func TestOneShotInPlaceRaces(t *testing.T) {
	call := allReduce(api.BF16, api.Sum, 2, 1024)
	require.Equal(t, "two_shot", planOf(t, "3.4.5", inPlace(call, api.InPlaceOwn)).Kernels[0].CTAs[0].Algorithm)
	plan := planOf(t, "3.4.5", call)
	require.Equal(t, "one_shot", plan.Kernels[0].CTAs[0].Algorithm)
	forced := inPlace(call, api.InPlaceOwn)
	plan.Call = forced
	for seed := range uint64(20) {
		_, err := execute(t, "3.4.5", plan, normal(&forced, 1), machine.Options{Seeded: seed > 0, Seed: seed})
		var race *machine.Race
		require.ErrorAs(t, err, &race)
		require.Equal(t, [2]int64{0, 2048}, [2]int64{race.Start, race.End})
		require.NotEqual(t, race.First.Store, race.Second.Store)
		require.True(t, race.First.Multicast != race.Second.Multicast)
	}
}

// No step that synchronises is superfluous: without any one of them the call
// races or hangs.
func TestEverySynchronisationMatters(t *testing.T) {
	cases := map[string]struct {
		version string
		call    api.Call
	}{
		"segment":    {"3.4.5?nvls=off", block(allReduce(api.BF16, api.Sum, 3, 20000))},
		"recexch":    {"3.4.5?nvls=off", block(allReduce(api.BF16, api.Sum, 6, 100))},
		"radix":      {"3.4.5?nvls=off&reduce_recexch_kval=3", block(allReduce(api.BF16, api.Sum, 8, 100))},
		"linear":     {"3.4.5?nvls=off", block(scatter(api.BF16, api.Sum, 3, 100))},
		"put_signal": {"3.4.5", block(api.Call{Collective: api.Broadcast, DType: api.BF16, Ranks: 3, Count: 5, Root: 1})},
		"two_shot":   {"3.4.5", block(allReduce(api.BF16, api.Sum, 2, 4096))},
		"copy":       {"3.4.5?nvls=off", block(gather(api.U8, 3, 10, 0))},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			plan := planOf(t, c.version, c.call)
			p := program(t, c.version, plan)
			mem := memory(&c.call, values(&c.call, 1, false))
			dropped := 0
			for r := range c.call.Ranks {
				for i := range p.Len(r, 0) {
					var s machine.Step
					p.Step(&s, r, 0, i)
					switch s.Kind {
					case machine.Barrier, machine.Store, machine.Wait:
					default:
						continue
					}
					_, err := machine.New(machine.Config{Ranks: c.call.Ranks}).Run(machine.Without(p, r, 0, i), mem, machine.Options{})
					// The last wait of a broadcast or exchange guards only what
					// comes after the call.
					if s.Kind == machine.Wait && i == p.Len(r, 0)-1 {
						require.Error(t, afterwards(p, r, i, mem), "rank %d, step %d", r, i)
						dropped++
						continue
					}
					require.Error(t, err, "rank %d, step %d", r, i)
					dropped++
				}
			}
			require.Positive(t, dropped)
		})
	}
}

// afterwards runs a program in which a rank reads its own destination in place
// of its last wait, as its caller would.
func afterwards(p machine.Program, rank, index int, mem []api.Memory) error {
	look := machine.Step{
		Kind: machine.Copy, Dst: machine.User(rank, machine.Src, 0, 0), Srcs: []machine.Ref{machine.User(rank, machine.Dst, 0, 0)},
		Bytes: 2, Peer: machine.Nobody,
	}
	_, err := machine.New(machine.Config{Ranks: len(mem)}).Run(machine.Edit{Program: p, Rank: rank, Index: index, With: look}, mem, machine.Options{})
	return err
}

func TestHangNamesWhoNeverCame(t *testing.T) {
	call := block(allReduce(api.BF16, api.Sum, 5, 20000))
	plan := planOf(t, "3.4.5?nvls=off", call)
	for _, rank := range []int{0, 3} {
		for seed := range uint64(3) {
			opt := machine.Options{Seeded: seed > 0, Seed: seed, Inject: []machine.Injection{{Rank: rank, Step: 4, Harm: machine.Stop}}}
			_, err := execute(t, "3.4.5?nvls=off", plan, normal(&call, 1), opt)
			var fault *api.Fault
			require.ErrorAs(t, err, &fault)
			require.Equal(t, api.FaultHang, fault.Kind)
			require.Contains(t, fault.Detail, fmt.Sprintf("for rank %d; rank %d, CTA 0 stopped at step 4", rank, rank))
		}
	}
}

// A delayed rank costs time, never bits.
func TestDelayDoesNotMatter(t *testing.T) {
	call := block(allReduce(api.BF16, api.Sum, 4, 3000))
	plan := planOf(t, "3.4.5?nvls=off", call)
	want := normal(&call, 1)
	_, err := execute(t, "3.4.5?nvls=off", plan, want, machine.Options{})
	require.NoError(t, err)
	for step := range 8 {
		mem := normal(&call, 1)
		_, err := execute(t, "3.4.5?nvls=off", plan, mem, machine.Options{
			Seeded: true, Seed: uint64(step), Inject: []machine.Injection{{Rank: 2, Step: step, Harm: machine.Delay, For: 1e6}},
		})
		require.NoError(t, err)
		for r := range mem {
			require.Equal(t, want[r][0].Dst.Bytes, mem[r][0].Dst.Bytes)
		}
	}
}
