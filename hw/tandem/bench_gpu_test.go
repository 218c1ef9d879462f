//go:build gpu

package tandem

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
	"example.com/tandem/hw/host"
)

// stand is device buffers of all ranks, for timing calls on whatever lies there.
type stand struct {
	testing.TB
	machine  *host.Machine
	team     *host.Team
	engine   *Engine
	src, dst []gpu.Ptr
}

// newStand gives every rank two buffers of so many bytes each.
func newStand(t testing.TB, m *host.Machine, spec string, ranks int, bytes uint64) *stand {
	team, _ := open(t, m, spec, ranks, 5*time.Second, 2*time.Second)
	s := &stand{TB: t, machine: m, team: team, engine: team.Engine().(*Engine)}
	for r := range ranks {
		g := s.engine.on.GPU(r)
		for _, list := range []*[]gpu.Ptr{&s.src, &s.dst} {
			p, err := g.Context.Alloc(bytes)
			require.NoError(t, err)
			require.NoError(t, s.stream(s.engine.on.Place[r]).Set8(p, 0, bytes))
			*list = append(*list, p)
			t.Cleanup(func() { require.NoError(t, m.Free(g, p)) })
		}
	}
	s.settle()
	return s
}

func (s *stand) stream(i int) gpu.Stream { return s.team.Streams()[i].(gpu.Stream) }

func (s *stand) settle() {
	require.NoError(s, gpu.Wait(context.Background(), s.machine.Driver.Clock(), time.Minute, s.team.Streams()...))
}

// place lays the lanes of a call out one after the other, each at a multiple of
// 256 bytes and the call's offset.
func (s *stand) place(call *api.Call) []host.Buffers {
	out := make([]host.Buffers, call.Ranks)
	for r := range out {
		src, dst := s.src[r], s.dst[r]
		for i := range call.Lanes() {
			size := int64(call.Lane(i).DType.Size())
			out[r] = append(out[r], host.Pair{Src: src.Add(uint64(call.SrcOffset.At(r) * size)), Dst: dst.Add(uint64(call.DstOffset.At(r) * size))})
			src = src.Add(uint64(call.SrcElems(i)*size+511) &^ 255)
			dst = dst.Add(uint64(call.DstElems(i)*size+511) &^ 255)
		}
	}
	return out
}

// capture makes, for every GPU, a graph of an untimed first call and n more.
func (s *stand) capture(call api.Call, n int) []gpu.GraphExec {
	bound, err := s.engine.Bind(&call, s.place(&call), make([]gpu.Ptr, len(s.engine.on.GPUs)))
	require.NoError(s, err)
	var out []gpu.GraphExec
	for i := range s.engine.on.GPUs {
		st := s.stream(i)
		require.NoError(s, st.BeginCapture())
		for range n {
			for _, step := range bound {
				require.NoError(s, st.Launch(step[i]))
			}
		}
		g, err := st.EndCapture()
		require.NoError(s, err)
		x, err := g.Instantiate()
		require.NoError(s, err)
		require.NoError(s, g.Destroy())
		require.NoError(s, x.Upload(st))
		out = append(out, x)
	}
	s.settle()
	return out
}

// time is the device's time of a call in microseconds: graphs of nodes calls,
// replays times one after the other, on the slowest GPU; the best of five.
func (s *stand) time(call api.Call, nodes, replays int) float64 {
	graphs := s.capture(call, nodes)
	defer func() {
		s.settle()
		for _, x := range graphs {
			require.NoError(s, x.Destroy())
		}
	}()
	launch := func() {
		for i, x := range graphs {
			require.NoError(s, x.Launch(s.stream(i)))
		}
	}
	var best []float64
	for k := range 6 {
		var events [2][]gpu.Event
		mark := func(k int) {
			for i, g := range s.engine.on.GPUs {
				e, err := g.Context.NewEvent(gpu.EventOptions{Timing: true})
				require.NoError(s, err)
				require.NoError(s, s.stream(i).Record(e))
				events[k] = append(events[k], e)
			}
		}
		launch() // untimed: all GPUs begin the rest together
		mark(0)
		for range replays {
			launch()
		}
		mark(1)
		s.settle()
		worst := time.Duration(0)
		for i := range s.engine.on.GPUs {
			took, err := events[1][i].Since(events[0][i])
			require.NoError(s, err)
			worst = max(worst, took)
		}
		for _, e := range slices.Concat(events[0], events[1]) {
			require.NoError(s, e.Destroy())
		}
		if k > 0 {
			best = append(best, float64(worst.Nanoseconds())/1000/float64(nodes*replays))
		}
	}
	require.Nil(s, s.engine.Verdicts(&call))
	return slices.Min(best)
}

// sized is a call of which every rank gives so many bytes.
func sized(k api.Collective, ranks int, d api.DType, bytes int64) api.Call {
	call := simple(k, ranks, bytes/int64(d.Size()))
	call.DType = d
	if k == api.ReduceScatter || k == api.AllToAll {
		call.Count /= int64(ranks)
	}
	return call
}

// BenchmarkGraph is the time of a call in a graph of twenty, replayed back to
// back; bytes are what a rank gives. One iteration is one measurement.
func BenchmarkGraph(b *testing.B) {
	s := newStand(b, machine(b), "hw:tandem", 2, 130<<20)
	for _, k := range []api.Collective{api.AllGather, api.AllReduce, api.ReduceScatter} {
		for bytes := int64(1 << 10); bytes <= 64<<20; bytes *= 4 {
			s.report(b, fmt.Sprintf("%s/%d", k.Name(), bytes), sized(k, 2, api.BF16, bytes))
		}
	}
}

// BenchmarkShapes is what else must not be slower: misaligned calls, other types
// and operations, and many lanes, each beside a call of the same bytes.
func BenchmarkShapes(b *testing.B) {
	s := newStand(b, machine(b), "hw:tandem", 2, 130<<20)
	for _, k := range []api.Collective{api.AllGather, api.AllReduce, api.ReduceScatter} {
		for _, bytes := range []int64{4 << 10, 64 << 10, 1 << 20, 16 << 20} {
			for name, offsets := range map[string][2]api.Offsets{"aligned": {}, "one_off": {{1}, {0}}, "apart": {{1, 2}, {5, 0}}} {
				call := sized(k, 2, api.BF16, bytes)
				call.SrcOffset, call.DstOffset = offsets[0], offsets[1]
				s.report(b, fmt.Sprintf("%s/%d/%s", k.Name(), bytes, name), call)
			}
		}
	}
	for _, bytes := range []int64{1 << 10, 64 << 10, 16 << 20} {
		for _, d := range []api.DType{api.BF16, api.F16, api.F32, api.I32} {
			s.report(b, fmt.Sprintf("sum_%s/%d", d, bytes), sized(api.AllReduce, 2, d, bytes))
		}
		call := sized(api.AllReduce, 2, api.BF16, bytes)
		call.Op = api.Max
		s.report(b, fmt.Sprintf("max_bf16/%d", bytes), call)
	}
	for _, bytes := range []int64{8 << 10, 128 << 10, 1 << 20, 16 << 20} {
		for _, k := range []api.Collective{api.AllGatherMany, api.ReduceScatterMany} {
			call := api.Call{Collective: k, DType: api.BF16, Ranks: 2}
			one := sized(api.AllGather, 2, api.BF16, bytes)
			if k.Reduces() {
				call.Op = api.Sum
				one = sized(api.ReduceScatter, 2, api.BF16, bytes)
			}
			for range 8 {
				call.Many = append(call.Many, api.LaneShape{DType: api.BF16, Count: one.Count / 8})
			}
			s.report(b, fmt.Sprintf("%s/%d/1", k.Name(), bytes), one)
			s.report(b, fmt.Sprintf("%s/%d/8", k.Name(), bytes), call)
		}
	}
}

// BenchmarkPaths is where paths and grids cross over.
func BenchmarkPaths(b *testing.B) {
	s := newStand(b, machine(b), "hw:tandem?box=4194304", 2, 130<<20)
	c := s.engine.config
	for _, k := range []api.Collective{api.AllGather, api.AllReduce, api.ReduceScatter} {
		for _, bytes := range []int64{16 << 10, 256 << 10, 512 << 10, 1 << 20, 2 << 20, 4 << 20, 16 << 20, 64 << 20} {
			for _, path := range []string{"push", "direct", "two_shot"} {
				for _, blocks := range []int{0, 32, 64, 128} {
					if path == "push" && bytes > 2<<20 || path == "two_shot" && k != api.AllReduce || bytes < 256<<10 && (path != "push" || blocks > 32) || blocks == 32 && bytes > 1<<20 {
						continue
					}
					c.path, c.blocks = path, blocks
					s.report(b, fmt.Sprintf("%s/%d/%s/%d", k.Name(), bytes, path, blocks), sized(k, 2, api.BF16, bytes))
				}
			}
		}
	}
}

func (s *stand) report(b *testing.B, name string, call api.Call) {
	b.Run(name, func(b *testing.B) {
		nodes, replays := 20, 20
		if !api.IsMany(call.Collective) && call.Count*int64(call.DType.Size()) > 1<<20 {
			nodes, replays = 8, 2
		}
		for b.Loop() {
			b.ReportMetric(s.time(call, nodes, replays), "us/call")
		}
		b.ReportMetric(0, "ns/op")
	})
}
