package rlkernel

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/hw/host"
	"example.com/tandem/hw/hwtest"
)

func planned(t *testing.T, m *host.Machine, text string, call api.Call) (*api.Plan, error) {
	s, err := api.ParseSpec(text)
	require.NoError(t, err)
	return Plan(m, s, call)
}

// TestPlansCover: every element of every destination has its place, on each path.
func TestPlansCover(t *testing.T) {
	d, _ := standIn(2)
	m := host.NewMachine(d)
	calls := 0
	for _, params := range []string{"", "&path=single", "&path=multi", "&entry=extension", "&placement=cyclic"} {
		for _, version := range Versions() {
			text := "hw:rlkernel@" + version + "?allow_fault=1" + params
			for _, ranks := range worlds {
				for _, collective := range operations() {
					for _, n := range []int64{0, 1, 1000, 40000, 3 << 20} {
						call := api.Call{Collective: collective, DType: api.BF16, Ranks: ranks, Count: n}
						if collective.Reduces() {
							call.Op = api.Sum
						}
						if api.IsMany(collective) {
							call.Count, call.Many = 0, []api.LaneShape{{Count: n}, {Count: 0}, {DType: api.F32, Count: n / 2}}
						}
						p, err := planned(t, m, text, call)
						if err != nil {
							require.ErrorIs(t, err, api.ErrRefused)
							continue
						}
						calls++
						require.NoError(t, hwtest.Covers(p), "%s %v", text, &call)
						s, err := api.ParseSpec(text)
						require.NoError(t, err)
						c, err := read(s)
						require.NoError(t, err)
						var launched []string
						for _, l := range c.schedule(&call) {
							if ranks > 1 || l.party != followers {
								launched = append(launched, l.kernel)
							}
						}
						var said []string
						for _, k := range p.Kernels {
							said = append(said, k.Name)
							require.Contains(t, p.Algorithms, k.CTAs[0].Algorithm)
							require.Contains(t, Describe(version).Evidence, k.CTAs[0].Algorithm)
						}
						require.Equal(t, launched, said)
					}
				}
			}
		}
	}
	require.Greater(t, calls, 500)
	require.NoError(t, m.Close())
	require.True(t, d.Counts().None(), "%v", d.Counts())
}

// TestPlanFigures are plans literally, without a GPU.
func TestPlanFigures(t *testing.T) {
	call := func(c api.Collective, n int64) api.Call {
		out := api.Call{Collective: c, DType: api.BF16, Ranks: 4, Count: n}
		if c.Reduces() {
			out.Op = api.Sum
		}
		return out
	}
	for _, c := range []struct {
		text                    string
		call                    api.Call
		alg                     string
		launches, rounds, bytes int64
		why                     string
	}{
		{"hw:rlkernel@8ccb03c", call(api.AllReduce, 1<<17), algSingle, 1, 2, 3 << 18, "one block does all of the call"},
		{"hw:rlkernel@8ccb03c", call(api.AllReduce, 1<<17+1), algMulti, 6, 2, 3<<18 + 6, "513 blocks reduce all payloads"},
		{"hw:rlkernel@43f150f", call(api.AllGather, 1<<15), algSingle, 1, 2, 3 << 16, "262144 of output"},
		{"hw:rlkernel@8ccb03c", call(api.AllGather, 1<<15), algStage, 4, 2, 3 << 16, "1024 blocks read all payloads"},
		{"hw:rlkernel@8ccb03c", call(api.ReduceScatter, 1000), algSingle, 2, 2, 6000, "one block stages 8000 bytes"},
		{"hw:rlkernel@8ccb03c?entry=extension", call(api.AllReduce, 1000), algOwner, 8, 2, 6000, "copy the payload of rank 0 into that of rank 3"},
	} {
		p, err := planned(t, nil, c.text, c.call)
		require.NoError(t, err)
		require.Contains(t, p.Algorithms, c.alg, "%s %v", c.text, &c.call)
		require.Equal(t, api.Cost{Launches: c.launches, Rounds: c.rounds, Bytes: c.bytes}, p.Cost, "%s %v", c.text, &c.call)
		require.True(t, slices.ContainsFunc(p.Kernels, func(k api.Kernel) bool { return strings.Contains(k.CTAs[0].Why, c.why) }), "%s %v: %v", c.text, &c.call, p.Kernels)
	}
}

// TestPlanFaults: pairs at an odd place are refused, or a fault, as when run.
func TestPlanFaults(t *testing.T) {
	call := api.Call{Collective: api.AllReduce, DType: api.BF16, Op: api.Sum, Ranks: 2, Count: 8, DstOffset: api.Offsets{0, 1}}
	_, err := planned(t, nil, "hw:rlkernel@8ccb03c", call)
	require.ErrorIs(t, err, api.ErrRefused)
	require.ErrorContains(t, err, "on rank 1")
	p, err := planned(t, nil, "hw:rlkernel@8ccb03c?allow_fault=1", call)
	require.NoError(t, err)
	require.Equal(t, api.FaultMisaligned, p.Fault.Kind)
	require.Equal(t, 1, p.Fault.Rank)
	call.Ranks, call.DstOffset = 3, nil
	_, err = planned(t, nil, "hw:rlkernel@8ccb03c", call)
	require.ErrorIs(t, err, api.ErrRefused)
	call.Count = -1
	_, err = planned(t, nil, "hw:rlkernel@8ccb03c", call)
	require.ErrorIs(t, err, api.ErrInvalid)
}
