//go:build gpu

package main

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
	"example.com/tandem/api/gpu/gputest"
	"example.com/tandem/hw"
	"example.com/tandem/hw/cuda"
	"example.com/tandem/hw/host"
	hwrl "example.com/tandem/hw/rlkernel"
)

// gatherSizes are the bytes a rank gives: around every width, threshold and
// grid of both versions.
func gatherSizes(ranks int64) []int64 {
	sizes := []int64{1, 15, 16, 17, 4095, 4096, 8191, 8192, 8193, 32767, 32768, 32769, 32<<10 + 3, 96 << 10, 1<<20 + 5}
	for _, limit := range []int64{64 << 10 / ranks, 256 << 10 / ranks} {
		sizes = append(sizes, limit-1, limit, limit+1)
	}
	sizes = append(sizes, 64<<10/ranks+16)
	slices.Sort(sizes)
	return slices.Compact(sizes)
}

// byteOffsets are those of sources and destinations, in bytes of a gather and in
// elements of a reduction.
var byteOffsets = []int64{0, 1, 2, 3, 5, 7, 8}

// rlGathers are all sizes, offsets and worlds.
func rlGathers(version string) (out []rlCase) {
	for _, ranks := range []int{2, 4, 8} {
		for _, n := range gatherSizes(int64(ranks)) {
			for _, src := range byteOffsets {
				for _, dst := range byteOffsets {
					out = append(out, rlCase{version, "", api.Call{Collective: api.AllGather, DType: api.U8, Ranks: ranks, Count: n, SrcOffset: api.Offsets{src}, DstOffset: api.Offsets{dst}}})
				}
			}
		}
	}
	return out
}

// rlReductions are counts around the thresholds of both reductions, for every
// type, with offsets that differ between ranks, and in place.
func rlReductions(version string) (out []rlCase) {
	for _, ranks := range []int{1, 2, 4, 8} {
		for _, d := range []api.DType{api.BF16, api.F16, api.F32} {
			for _, c := range []api.Collective{api.AllReduce, api.ReduceScatter} {
				edge := int64(256<<10) / int64(d.Size())
				if c == api.ReduceScatter {
					edge /= int64(ranks)
				}
				for i, n := range []int64{0, 1, 2, 15, 16, 17, 255, 257, 4097, edge - 1, edge, edge + 1, 2*edge + 3} {
					call := api.Call{Collective: c, DType: d, Op: api.Sum, Ranks: ranks, Count: n}
					for k, off := range byteOffsets {
						call.SrcOffset, call.DstOffset = api.Offsets{off}, ranksApart(ranks, byteOffsets[(i+3*k)%len(byteOffsets)], 2)
						out = append(out, rlCase{version, "", call})
					}
					call.InPlace, call.DstOffset = api.InPlaceOwn, call.SrcOffset
					out = append(out, rlCase{version, "", call})
				}
			}
		}
	}
	return out
}

// rlOthers are the many forms, forced paths, the extension, the first version of
// the copy, and ranks spread otherwise.
func rlOthers(version string) (out []rlCase) {
	for _, ranks := range []int{1, 2, 4, 8} {
		for i, lanes := range [][]api.LaneShape{
			{{Count: 1}}, {{Count: 5}, {}, {DType: api.F32, Count: 7}}, {{Count: 4096}, {DType: api.F16, Count: 16 << 10}, {Count: 33}}, {{Count: 64<<10 + 1}, {Count: 3}, {DType: api.F32, Count: 32<<10 + 1}},
		} {
			for _, src := range byteOffsets {
				out = append(out, rlCase{version, "", api.Call{Collective: api.AllGatherMany, DType: api.U8, Ranks: ranks, Many: lanes, SrcOffset: api.Offsets{src}}})
				out = append(out, rlCase{version, "", api.Call{Collective: api.ReduceScatterMany, DType: api.BF16, Op: api.Sum, Ranks: ranks, Many: lanes, SrcOffset: ranksApart(ranks, src+int64(i), 1)}})
			}
		}
		for _, c := range smallCases(version, ranks) {
			c.params = strings.TrimSuffix(strings.TrimSuffix(strings.Replace(c.params, rlRoom, "", 1), "&"), "?")
			out = append(out, c)
		}
	}
	return out
}

// TestGPURLKernel: on the device the kernels give the simulator's bits in every
// byte of the destinations and in no other.
func TestGPURLKernel(t *testing.T) {
	d := newRLDuel(t, "hw", hw.New("hw", gputest.Open(t, func() (gpu.Driver, error) { return cuda.Open(cuda.Options{}) })))
	for _, part := range []struct {
		name string
		list func(string) []rlCase
	}{{"gathers", rlGathers}, {"reductions", rlReductions}, {"others", rlOthers}} {
		begun, before := time.Now(), *d
		for _, version := range hwrl.Versions() {
			cases := part.list(version)
			if testing.Short() {
				var some []rlCase
				for i := 0; i < len(cases); i += 13 {
					some = append(some, cases[i])
				}
				cases = some
			}
			d.run(t.Context(), t, cases, max(1, min(8, runtime.NumCPU()-2)))
		}
		t.Logf("%s: %d calls agree, %d are refused where the library faults, %d where it refuses, in %v", part.name, d.agree-before.agree, d.faults-before.faults, d.refused-before.refused, time.Since(begun).Round(time.Millisecond))
	}
	require.Positive(t, d.agree)
	require.Positive(t, d.faults)
}

// TestGPURLKernelFault: the misaligned store is a fault of the right rank in a
// child process, and this one goes on.
func TestGPURLKernelFault(t *testing.T) {
	if os.Getenv("COMPUTE_SANITIZER") != "" {
		t.Skip("a sanitizer ends the child at the store that is to fault")
	}
	backend := newHW()
	t.Cleanup(func() { require.NoError(t, backend.Close()) })
	gputest.Open(t, func() (gpu.Driver, error) { return cuda.Open(cuda.Options{NoLocks: true}) })
	run := func(params string, call api.Call) error {
		spec, err := api.ParseSpec("hw:rlkernel@8ccb03c?" + rlRoom + params)
		require.NoError(t, err)
		team, err := backend.Open(t.Context(), spec, api.TeamConfig{Ranks: call.Ranks, Arrive: 2 * time.Second, Progress: time.Second})
		require.NoError(t, err)
		defer func() { _ = team.Close(t.Context()) }()
		mem := make([]api.Memory, call.Ranks)
		for r := range mem {
			mem[r] = rlMemory(&call, r, nil)
		}
		_, err = api.Run(t.Context(), team, call, mem)
		return err
	}
	good := misaligned
	good.DstOffset = nil
	require.ErrorIs(t, run("", misaligned), api.ErrRefused)
	var fault *api.Fault
	require.ErrorAs(t, run("&allow_fault=1", misaligned), &fault)
	require.Equal(t, api.FaultMisaligned, fault.Kind)
	require.Equal(t, 1, fault.Rank)
	require.NoError(t, run("&allow_fault=1", good))
	require.NoError(t, run("", good), "the context of this process is as good as before")
}

// TestGPURLKernelDeadlines stops or delays a rank at every step of every path.
func TestGPURLKernelDeadlines(t *testing.T) {
	b := hw.New("hw", gputest.Open(t, func() (gpu.Driver, error) { return cuda.Open(cuda.Options{}) }))
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	stopRanks(t, b, 20*time.Millisecond, sampled(1, 4))
}

// TestGPURLKernelShape shows the pull request's shape: below its threshold the
// time of a gather grew with the bytes, and does not any more. Eight ranks on few
// GPUs are shown, but not held to it: the grids of all share a GPU then.
func TestGPURLKernelShape(t *testing.T) {
	d := gputest.Open(t, func() (gpu.Driver, error) { return cuda.Open(cuda.Options{}) })
	b := hw.New("hw", d)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	gatherTimes(t, b, len(d.Devices()), 8)
	before, after := gatherTimes(t, b, len(d.Devices()), 2)
	require.Greater(t, before[2]/before[1], 2.5, "four times the bytes in one block")
	require.Greater(t, before[3]/before[2], 2.5, "and four times as many")
	require.Greater(t, before[3], 2*before[4], "the cliff behind the threshold")
	require.Greater(t, before[3], 3*after[3])
	require.Less(t, slices.Max(after[:4]), 6*slices.Min(after[:4]))
}

// gatherTimes are the medians of eager calls of both versions, in microseconds, at
// the sizes of the pull request's table.
func gatherTimes(t *testing.T, b *hw.Backend, gpus, ranks int) (before, after []float64) {
	us := map[string][]float64{}
	sizes := []int64{1 << 10, 8 << 10, 32 << 10, 128 << 10, 1 << 20, 4 << 20}
	for _, version := range hwrl.Versions() {
		spec := api.Spec{Backend: "hw", Implementation: hwrl.Name, Version: version}
		team, err := b.Open(t.Context(), spec, api.TeamConfig{Ranks: ranks, Arrive: 5 * time.Second, Progress: 5 * time.Second})
		require.NoError(t, err)
		for _, n := range sizes {
			timed, err := team.(*host.Team).Time(t.Context(), api.Timing{Call: api.Call{Collective: api.AllGather, DType: api.BF16, Ranks: ranks, Count: n / 2}, Calls: 1})
			require.NoError(t, err)
			require.NoError(t, timed.Prepare(t.Context()))
			var all []time.Duration
			for range 25 {
				s, err := timed.Sample(t.Context())
				require.NoError(t, err)
				all = append(all, slices.Max(s))
			}
			require.NoError(t, timed.Close())
			slices.Sort(all)
			us[version] = append(us[version], float64(all[len(all)/2].Nanoseconds())/1000)
		}
		require.NoError(t, team.Close(t.Context()))
	}
	before, after = us[hwrl.Before], us[hwrl.After]
	text := fmt.Sprintf("%d GPUs, %d ranks, all_gather of bf16, median us of an eager call:\nbytes a rank   before    after\n", gpus, ranks)
	for i, n := range sizes {
		text += fmt.Sprintf("%12d %8.1f %8.1f\n", n, before[i], after[i])
	}
	t.Log(text)
	return before, after
}
