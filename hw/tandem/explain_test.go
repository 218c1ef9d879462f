package tandem

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
	"example.com/tandem/hw/host"
	"example.com/tandem/hw/hwtest"
)

func planned(t require.TestingT, m *host.Machine, text string, call api.Call) *api.Plan {
	s, err := api.ParseSpec(text)
	require.NoError(t, err)
	p, err := Plan(m, s, call)
	require.NoError(t, err, "%s %v", text, &call)
	return p
}

// TestPlansCover: every element of every destination has its place in a plan, and
// what is planned is what is launched.
func TestPlansCover(t *testing.T) {
	_, d := newEmulatorOn(3)
	m := host.NewMachine(d)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SampledFrom([]string{"hw:tandem", "hw:tandem?path=push", "hw:tandem?path=direct", "hw:tandem?path=two_shot", "hw:tandem?path=staged&stage=73728",
			"hw:tandem?ctas=3", "hw:tandem?ctas=128&box=512", "hw:tandem?table=NVIDIA H200&gpus=1"}).Draw(t, "spec")
		ranks := rapid.SampledFrom([]int{1, 2, 3, 5, 8, 9}).Draw(t, "ranks")
		call := randomCall(seeded(rapid.Uint64().Draw(t, "seed")), ranks, rapid.SampledFrom([]int64{40, 3000, 200000}).Draw(t, "most"))
		p := planned(t, m, text, call)
		require.NoError(t, hwtest.Covers(p), "%s %v", text, &call)
		s, err := api.ParseSpec(text)
		require.NoError(t, err)
		c, err := read(s)
		require.NoError(t, err)
		e := &Engine{config: c, machine: m}
		require.NoError(t, e.ready(ranks))
		now := c.plan(&call, e.most)
		require.Equal(t, kernelNames[now.kernel], p.Kernels[0].Name)
		require.Contains(t, p.Algorithms, pathNames[now.path])
		for _, k := range p.Kernels {
			for _, cta := range k.CTAs {
				require.Less(t, cta.CTA, now.blocks)
			}
		}
	})
	require.NoError(t, m.Close())
}

// TestPlanFigures are plans literally: path, kernel, blocks that do something,
// barriers, and bytes of a rank's links.
func TestPlanFigures(t *testing.T) {
	ar := func(ranks int, count int64) api.Call {
		return api.Call{Collective: api.AllReduce, DType: api.F32, Op: api.Sum, Ranks: ranks, Count: count}
	}
	own := ar(2, 1<<20)
	own.InPlace = api.InPlaceOwn
	apart := ar(4, 1<<20)
	apart.DstOffset = api.Offsets{0, 1, 2, 3}
	for _, c := range []struct {
		text   string
		call   api.Call
		path   string
		kernel string
		blocks int
		rounds int64
		bytes  int64
		why    string
	}{
		{"hw:tandem?table=any", ar(2, 64), "push", "tandem_push2", 1, 1, 16 + 2*256, "256 bytes of a block, at most the 1048576 of a box"},
		{"hw:tandem?table=any", ar(2, 4097), "push", "tandem_push2", 5, 1, 16 + 32*1025, ""},
		{"hw:tandem?table=any", ar(2, 200000), "push", "tandem_push2", 1, 1, 16 + 32*50000, "dealt to the threads of all 128 blocks"},
		{"hw:tandem?table=any", ar(8, 4), "push", "tandem_push", 1, 1, 7 * (16 + 32), ""},
		{"hw:tandem?table=any", ar(2, 1<<18+4), "direct", "tandem_pull2", 33, 2, 16 + 1<<20 + 16, "more than the 1048576 of a box"},
		{"hw:tandem?table=NVIDIA H200", ar(2, 1<<21), "two_shot", "tandem_pull2", 128, 2, 16 + 1<<23, "at least the 8388608 of two shots"},
		{"hw:tandem?table=any", own, "two_shot", "tandem_pull2", 128, 2, 16 + 1<<22, "in place"},
		{"hw:tandem?table=any&path=two_shot", apart, "two_shot", "tandem_pull", 128, 3, 3*16 + 2*3<<20, "path=two_shot"},
		{"hw:tandem?table=any&path=staged&ctas=1", ar(2, 3<<20), "staged", "tandem_reduce", 1, 5, 16 + 12<<20, "copies in team memory"},
		{"hw:tandem?table=any&buffers=staged&stage=147456&ctas=2", api.Call{Collective: api.ReduceScatter, DType: api.F32, Op: api.Sum, Ranks: 2, Count: 1 << 20}, "staged", "tandem_reduce", 2, 59, 16 + 4<<20, "copies in team memory"},
		{"hw:tandem?table=any", api.Call{Collective: api.AllGather, DType: api.U8, Ranks: 4, Count: 1 << 20}, "direct", "tandem_spread", 64, 2, 3*16 + 3<<20, ""},
		{"hw:tandem?table=any", api.Call{Collective: api.Broadcast, DType: api.U8, Ranks: 4, Root: 3, Count: 1 << 20}, "two_shot", "tandem_copy", 64, 3, 3*16 + 3<<19, ""},
		{"hw:tandem?table=any", ar(1, 1<<20), "direct", "tandem_copy", 64, 0, 0, "a team of one copies"},
		{"hw:tandem?table=any", ar(3, 0), "push", "tandem_push", 1, 1, 2 * 16, "nothing to move"},
	} {
		p := planned(t, nil, c.text, c.call)
		k := p.Kernels[0]
		require.Equal(t, c.kernel, k.Name, "%s %v", c.text, &c.call)
		require.Equal(t, c.path, k.CTAs[0].Algorithm, "%s %v", c.text, &c.call)
		require.Len(t, k.CTAs, c.blocks, "%s %v", c.text, &c.call)
		require.Equal(t, c.rounds, p.Cost.Rounds, "%s %v", c.text, &c.call)
		require.Equal(t, c.bytes, p.Cost.Bytes, "%s %v", c.text, &c.call)
		require.Contains(t, k.CTAs[0].Why, c.why)
		require.EqualValues(t, 1, p.Cost.Launches)
		require.Equal(t, api.Exact, p.Contract())
	}
	notes := strings.Join(planned(t, nil, "hw:tandem?table=NVIDIA H200", ar(2, 1)).Notes, "\n")
	for _, says := range []string{"NVIDIA H200 over NVLink 18", "none is here", "balanced tree"} {
		require.Contains(t, notes, says)
	}
}

// TestPlanRefusals: what has no plan, and what is to be said then.
func TestPlanRefusals(t *testing.T) {
	_, d := newEmulatorOn(1)
	d.Info = func(_ int, i *gpu.Info) { i.SMs = 16 }
	m := host.NewMachine(d)
	for _, c := range []struct {
		m    *host.Machine
		text string
		call api.Call
		want error
		says string
	}{
		{nil, "hw:tandem", simpleCall(2), api.ErrUnavailable, `"NVIDIA H200"`},
		{nil, "hw:tandem?table=GeForce 256", simpleCall(2), api.ErrInvalid, "auto|any|NVIDIA H200"},
		{nil, "hw:tandem?table=any", simpleCall(73), api.ErrRefused, "1 to 72"},
		{nil, "hw:tandem?table=any&mode=f32", api.Call{Collective: api.AllReduce, DType: api.I32, Op: api.Sum, Ranks: 2, Count: 1}, api.ErrRefused, "mode node"},
		{nil, "hw:tandem?table=any", api.Call{Collective: api.AllReduce, DType: api.I32, Op: api.Sum, Ranks: 2, Count: -1}, api.ErrInvalid, "count"},
		{m, "hw:tandem", simpleCall(72), api.ErrRefused, "more GPUs"},
		{m, "hw:tandem?gpus=2", simpleCall(2), api.ErrUnavailable, "there are 1"},
	} {
		s, err := api.ParseSpec(c.text)
		require.NoError(t, err)
		_, err = Plan(c.m, s, c.call)
		require.ErrorIs(t, err, c.want, c.text)
		require.ErrorContains(t, err, c.says)
	}
	require.Contains(t, strings.Join(planned(t, m, "hw:tandem", simpleCall(5)).Notes, "\n"), "with a cooperative launch each: 1; ranks of a GPU: 5")
	require.NoError(t, m.Close())
	require.True(t, d.Counts().None(), "a plan leaves nothing behind")
}
