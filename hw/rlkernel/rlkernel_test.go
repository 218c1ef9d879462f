package rlkernel

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/api/gpu"
	"example.com/tandem/hw/host"
	"example.com/tandem/hw/hwtest"
	"example.com/tandem/hw/kernels"
)

// TestLayout holds layout.go to the kernels' header.
func TestLayout(t *testing.T) {
	text, err := kernels.Sources.ReadFile("src/rlkernel_layout.h")
	require.NoError(t, err)
	values := map[string]int{}
	for _, m := range regexp.MustCompile(`\b([A-Z]\w+) = (\d+)\b`).FindAllStringSubmatch(string(text), -1) {
		values[m[1]], err = strconv.Atoi(m[2])
		require.NoError(t, err)
	}
	number := func(r host.Reason) int { return slices.Index(reasons, r) }
	require.Equal(t, stopped, number(host.Stopped))
	for name, want := range map[string]int{
		"RankLimit": maxRanks, "FrameStage": frameStage, "FrameDone": frameDone, "FramePayload": framePayload,
		"ControlGeneration": controlGeneration, "ControlAbort": controlAbort, "ControlOwner": controlOwner, "ControlClaim": controlClaim, "ControlBytes": controlBytes,
		"ReportStop": reportStop, "ReportReason": reportReason, "ReportStep": reportStep, "ReportPeer": reportPeer, "ReportSequence": reportSequence, "ReportBytes": reportBytes,
		"Fine": number(host.Fine), "Deadline": number(host.Deadline), "Aborted": number(host.Aborted), "Claimed": number(host.Claimed), "Stopped": stopped, "Killed": number(host.Killed),
		"StepEntry": int(StepEntry), "StepReserve": int(StepReserve), "StepPublish": int(StepPublish), "StepWait": int(StepWait), "StepOwned": int(StepOwned), "StepCompute": int(StepCompute), "StepRetire": int(StepRetire),
		"DoReserve": doReserve, "DoPublish": doPublish, "DoWait": doWait, "DoOwned": doOwned, "DoRetire": doRetire,
		"FlagFirst": flagFirst, "FlagVectors": flagVectors, "FlagPeerwise": flagPeerwise, "FlagPairs": flagPairs,
		"TypeBF16": int(types[api.BF16]), "TypeF16": int(types[api.F16]), "TypeF32": int(types[api.F32]),
	} {
		got, ok := values[name]
		require.True(t, ok, "%s is in the header", name)
		require.Equal(t, want, got, name)
		delete(values, name)
	}
	require.Empty(t, values, "and nothing else is")
}

// TestArguments: the fields of struct Args, in order, are those that encode
// writes.
func TestArguments(t *testing.T) {
	text, err := kernels.Sources.ReadFile("src/rlkernel_layout.h")
	require.NoError(t, err)
	_, body, _ := strings.Cut(string(text), "struct Args {")
	body, _, _ = strings.Cut(body, "};")
	var a arguments
	fields := map[string]any{
		"page": &a.page, "frame": &a.frame, "report": &a.report, "src": &a.src, "dst": &a.dst, "generation": &a.generation, "arrive": &a.arrive, "progress": &a.progress,
		"faultCycles": &a.faultCycles, "ranks": &a.ranks, "bytes": &a.bytes, "count": &a.count, "skip": &a.skip, "each": &a.each, "world": &a.world, "blocks": &a.blocks,
		"type": &a.dtype, "flags": &a.flags, "what": &a.what, "faultRank": &a.faultRank, "faultStep": &a.faultStep,
	}
	at := 0
	for _, line := range regexp.MustCompile(`(u32|u64) ([^;]+);`).FindAllStringSubmatch(body, -1) {
		size := map[string]int{"u32": 4, "u64": 8}[line[1]]
		for _, name := range strings.Split(line[2], ",") {
			name, list, _ := strings.Cut(strings.TrimSpace(name), "[")
			n := 1
			if list != "" {
				require.Equal(t, "RankLimit]", list)
				n = maxRanks
			}
			switch f := fields[name].(type) {
			case *perRank:
				f[maxRanks-1] = 0x5a
			case *uint64:
				*f = 0x5a
			case *uint32:
				*f = 0x5a
			default:
				t.Fatalf("no field %s", name)
			}
			want := make([]byte, argumentBytes)
			want[at+(n-1)*size] = 0x5a
			require.Equal(t, want, a.encode(), name)
			a = arguments{}
			at += n * size
			delete(fields, name)
		}
	}
	require.Equal(t, argumentBytes, at)
	require.Empty(t, fields)
}

func must(t testing.TB, text string) *config {
	spec, err := api.ParseSpec("hw:" + text)
	require.NoError(t, err)
	c, err := read(spec)
	require.NoError(t, err)
	return c
}

var what = map[uint32]string{doReserve: "reserve", doPublish: "publish", doWait: "wait", doOwned: "wait_owner", doRetire: "retire"}

func trace(ls []launch) string {
	var b strings.Builder
	for _, l := range ls {
		name := strings.TrimPrefix(l.kernel, "rl_")
		switch {
		case l.kernel == kernelSignal:
			name = what[l.what]
		case l.kernel == kernelCopy:
			name += [...]string{"?", " in", " out of " + strconv.Itoa(l.peer), " to rank " + strconv.Itoa(l.peer), " own"}[l.move]
		case l.tree:
			name += " into the payload"
		case l.pairs:
			name += " by pairs"
		}
		fmt.Fprintf(&b, "  %s%s, lane %d at %d: %d", [...]string{"", "rank 0: ", "others: "}[l.party], name, l.lane, l.at, l.blocks)
		if l.waits() {
			b.WriteString(", waits")
		}
		b.WriteString("\n")
	}
	return b.String()
}

// TestSchedules is the path selection of both versions, at the thresholds: what
// is launched, with how many blocks a rank.
func TestSchedules(t *testing.T) {
	var b strings.Builder
	sum := func(c api.Collective, d api.DType, ranks int, n int64) api.Call {
		return api.Call{Collective: c, DType: d, Op: api.Sum, Ranks: ranks, Count: n}
	}
	gather := func(ranks int, n int64) api.Call {
		return api.Call{Collective: api.AllGather, DType: api.U8, Ranks: ranks, Count: n}
	}
	lanes := []api.LaneShape{{Count: 5}, {}, {DType: api.F32, Count: 100000}}
	for _, c := range []struct {
		spec string
		call api.Call
	}{
		{"rlkernel@8ccb03c", sum(api.AllReduce, api.BF16, 8, 128<<10)},
		{"rlkernel@8ccb03c", sum(api.AllReduce, api.BF16, 8, 128<<10+1)},
		{"rlkernel@43f150f", sum(api.AllReduce, api.F32, 1, 64<<10)},
		{"rlkernel@43f150f", sum(api.AllReduce, api.F32, 1, 64<<10+1)},
		{"rlkernel@8ccb03c", sum(api.AllReduce, api.F16, 2, 1<<20+1)},
		{"rlkernel@43f150f", gather(8, 32<<10)},
		{"rlkernel@43f150f", gather(8, 32<<10+1)},
		{"rlkernel@8ccb03c", gather(8, 8<<10)},
		{"rlkernel@8ccb03c", gather(8, 8<<10+1)},
		{"rlkernel@8ccb03c", gather(2, 256<<10)},
		{"rlkernel@8ccb03c", gather(2, 256<<10+1)},
		{"rlkernel@8ccb03c", gather(2, 1<<20)},
		{"rlkernel@8ccb03c", gather(4, 0)},
		{"rlkernel@8ccb03c", sum(api.ReduceScatter, api.BF16, 2, 64<<10)},
		{"rlkernel@8ccb03c", sum(api.ReduceScatter, api.BF16, 2, 64<<10+1)},
		{"rlkernel@8ccb03c", api.Call{Collective: api.AllGatherMany, DType: api.U8, Ranks: 2, Many: lanes}},
		{"rlkernel@43f150f", api.Call{Collective: api.ReduceScatterMany, DType: api.BF16, Op: api.Sum, Ranks: 2, Many: lanes}},
		{"rlkernel@8ccb03c?path=multi", sum(api.AllReduce, api.BF16, 2, 10)},
		{"rlkernel@8ccb03c?path=single", sum(api.AllReduce, api.BF16, 2, 1<<20)},
		{"rlkernel@8ccb03c?path=multi", sum(api.ReduceScatter, api.BF16, 2, 10)},
		{"rlkernel@8ccb03c?path=single", sum(api.ReduceScatter, api.F16, 2, 1<<20)},
		{"rlkernel@8ccb03c?path=multi", gather(2, 10)},
		{"rlkernel@8ccb03c?entry=extension", sum(api.AllReduce, api.BF16, 4, 10)},
		{"rlkernel@8ccb03c?entry=extension", sum(api.AllReduce, api.F32, 2, 1<<20)},
		{"rlkernel@8ccb03c?entry=extension", sum(api.AllReduce, api.F32, 2, 1<<20+1)},
	} {
		k := must(t, c.spec)
		require.NoError(t, k.admit(&c.call))
		fmt.Fprintf(&b, "%s %s\n%s", c.spec, c.call, trace(k.schedule(&c.call)))
	}
	const golden = "testdata/schedules.txt"
	if os.Getenv("UPDATE") != "" {
		require.NoError(t, os.WriteFile(golden, []byte(b.String()), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), b.String(), "if this is right, run the test with UPDATE=1 and read the difference")
}

func TestThresholds(t *testing.T) {
	call := api.Call{Collective: api.AllGather, DType: api.BF16, Ranks: 8}
	require.Equal(t, []int64{16 << 10, 128 << 10, 64 << 10}, Describe(Before).Thresholds(call))
	require.Equal(t, []int64{4 << 10, 128 << 10, 64 << 10}, Describe(After).Thresholds(call))
	call.Collective = api.AllReduce
	require.Equal(t, []int64{128 << 10, 1 << 20}, Describe(After).Thresholds(call))
	call.Collective = api.ReduceScatter
	require.Equal(t, []int64{16 << 10, 1 << 20}, Describe(Before).Thresholds(call))
	call.Collective = api.AllGatherMany
	require.Nil(t, Describe(After).Thresholds(call))
	require.Nil(t, Describe(After).Thresholds(api.Call{}))
}

// TestReports: the words that errors are made of, and who is further.
func TestReports(t *testing.T) {
	require.Equal(t, host.Report{}.Reason, report(0, StepEntry, 0, 0).Reason)
	r := report(1, StepWait, 3, 41)
	require.Equal(t, host.Report{Reason: host.Deadline, Peer: 3, Call: 42, At: StepWait.String(), Block: -1, Far: r.Far}, r)
	require.Equal(t, host.Aborted, report(77, StepWait, 0, 0).Reason, "no number of the kernels'")
	last := uint64(0)
	for call := range uint64(3) {
		for _, s := range Steps() {
			require.NotEmpty(t, s.String())
			next := report(2, s, 0, call).Far
			require.True(t, next > last || next == 0, "%v of call %d", s, call)
			last = next
		}
	}
	errs := host.Verdicts([]host.Report{r, {}, {}, report(2, StepReserve, 0, 42)}, &api.Call{})
	require.ErrorContains(t, errs[1], "the deadline passed at the wait for the payloads of call 42 (rank 3 is to blame)")
}

// standIn is a driver whose kernels only note what they were given.
func standIn(n int) (*hwtest.Driver, *[]string) {
	d := hwtest.New(n)
	d.Params = []gpu.Param{{Offset: 0, Size: argumentBytes}}
	var seen []string
	d.Kernels = map[string]hwtest.Kernel{}
	for _, name := range kernelNames {
		d.Kernels[name] = func(_ *hwtest.Driver, device int, l gpu.Launch) {
			a := l.Args.Bytes()
			seen = append(seen, fmt.Sprintf("gpu %d %s grid %d block %d cooperative %v ranks %v first %v", device, name, l.Grid.X, l.Block.X, l.Cooperative, l.Ranks,
				binary.LittleEndian.Uint32(a[400:])&flagFirst != 0))
		}
	}
	return d, &seen
}

func openOn(d *hwtest.Driver, text string, ranks int) (*host.Machine, *host.Team, error) {
	spec, err := api.ParseSpec("hw:" + text)
	if err != nil {
		return nil, nil, err
	}
	m := host.NewMachine(d)
	team, err := Open(context.Background(), m, spec, api.TeamConfig{Ranks: ranks})
	return m, team, err
}

func memory(call *api.Call, rank int) api.Memory {
	var mem api.Memory
	for i := range call.Lanes() {
		src, dst := call.Addrs(i, rank)
		mem = append(mem, api.Lane{Src: api.Image{Bytes: make([]byte, inputBytes(call, i)), Addr: src}, Dst: api.Image{Bytes: make([]byte, outputBytes(call, i)), Addr: dst}})
	}
	return mem
}

func run(team api.Team, call api.Call) error {
	mem := make([]api.Memory, call.Ranks)
	for r := range mem {
		mem[r] = memory(&call, r)
	}
	_, err := api.Run(context.Background(), team, call, mem)
	return err
}

// TestLaunches: ranks that share a GPU share its launches, those that wait are
// cooperative, and only the first of a call claims the team.
func TestLaunches(t *testing.T) {
	d, seen := standIn(2)
	m, team, err := openOn(d, "rlkernel@8ccb03c?max_size_bytes=4096&path=multi", 4)
	require.NoError(t, err)
	*seen = nil
	call := api.Call{Collective: api.AllReduce, DType: api.BF16, Op: api.Sum, Ranks: 4, Count: 600}
	require.NoError(t, run(team, call))
	require.Equal(t, []string{
		"gpu 0 rl_signal grid 2 block 1 cooperative true ranks [0 1] first true", "gpu 1 rl_signal grid 2 block 1 cooperative true ranks [2 3] first true",
		"gpu 0 rl_copy grid 2 block 256 cooperative false ranks [0 1] first false", "gpu 1 rl_copy grid 2 block 256 cooperative false ranks [2 3] first false",
		"gpu 0 rl_signal grid 2 block 1 cooperative false ranks [0 1] first false", "gpu 1 rl_signal grid 2 block 1 cooperative false ranks [2 3] first false",
		"gpu 0 rl_signal grid 2 block 1 cooperative true ranks [0 1] first false", "gpu 1 rl_signal grid 2 block 1 cooperative true ranks [2 3] first false",
		"gpu 0 rl_reduce grid 6 block 256 cooperative false ranks [0 1] first false", "gpu 1 rl_reduce grid 6 block 256 cooperative false ranks [2 3] first false",
		"gpu 0 rl_signal grid 2 block 1 cooperative false ranks [0 1] first false", "gpu 1 rl_signal grid 2 block 1 cooperative false ranks [2 3] first false",
	}, *seen)
	*seen = nil
	call.DstOffset = api.Offsets{0, 0, 1, 0}
	require.NoError(t, run(team, call), "a grid stores elements one by one")
	require.NoError(t, team.Close(context.Background()))
	require.NoError(t, m.Close())

	m, team, err = openOn(d, "rlkernel@8ccb03c?max_size_bytes=4096&placement=cyclic", 4)
	require.NoError(t, err)
	*seen = nil
	err = run(team, call)
	var refused *api.Refused
	require.ErrorAs(t, err, &refused)
	require.Contains(t, refused.What, "rank 2")
	require.Empty(t, *seen, "refused before anything was launched")
	call.Count, call.DstOffset = 1, api.Offsets{1}
	require.NoError(t, run(team, call), "there is no pair")
	require.Equal(t, []string{"gpu 0 rl_fused_reduce grid 2 block 256 cooperative true ranks [0 2] first true", "gpu 1 rl_fused_reduce grid 2 block 256 cooperative true ranks [1 3] first true"}, *seen)
	require.NoError(t, team.Close(context.Background()))
	require.NoError(t, m.Close())
	require.True(t, d.Counts().None(), "%v", d.Counts())
}

// TestExplain: a misaligned address that the driver does not lay at any rank's
// door is the rank's whose store was let through.
func TestExplain(t *testing.T) {
	d, _ := standIn(1)
	m, team, err := openOn(d, "rlkernel@8ccb03c?max_size_bytes=4096&allow_fault=1", 2)
	require.NoError(t, err)
	e := team.Engine().(*Engine)
	lost := &gpu.Error{Call: "cuStreamQuery", Code: gpu.MisalignedAddress}
	require.Equal(t, error(lost), e.Explain(lost), "no call let it through")
	call := api.Call{Collective: api.AllReduce, DType: api.BF16, Op: api.Sum, Ranks: 2, Count: 2, DstOffset: api.Offsets{0, 3}}
	require.NoError(t, run(team, call), "the stand-in minds no alignment")
	var fault *api.Fault
	require.ErrorAs(t, e.Explain(lost), &fault)
	require.Equal(t, 1, fault.Rank)
	require.Equal(t, api.FaultMisaligned, fault.Kind)
	other := &gpu.Error{Call: "cuStreamQuery", Code: gpu.IllegalAddress}
	require.Equal(t, error(other), e.Explain(other))
	call.DstOffset = nil
	require.NoError(t, run(team, call))
	require.Equal(t, error(lost), e.Explain(lost), "the last call was in order")
	require.NoError(t, team.Close(context.Background()))
	require.NoError(t, m.Close())
}

// TestDriverFailures: whatever call of the driver fails, opening says so and
// leaves nothing behind.
func TestDriverFailures(t *testing.T) {
	for n := 1; ; n++ {
		d, _ := standIn(2)
		d.FailAt(n)
		m, team, err := openOn(d, "rlkernel@43f150f?max_size_bytes=4096", 4)
		if err == nil {
			require.Less(t, d.Calls(), n)
			d.FailAt(0)
			require.NoError(t, team.Close(context.Background()))
			require.NoError(t, m.Close())
			require.Greater(t, n, 30)
			return
		}
		require.ErrorContains(t, err, "injected", "call %d", n)
		require.NoError(t, m.Close(), "call %d", n)
		require.True(t, d.Counts().None(), "call %d: %v", n, d.Counts())
	}
}

func TestRefusedTeams(t *testing.T) {
	d, _ := standIn(1)
	for _, ranks := range []int{0, 3, 5, 6, 7, 16} {
		_, _, err := openOn(d, "rlkernel@8ccb03c", ranks)
		require.ErrorIs(t, err, api.ErrRefused)
	}
	for _, bad := range []string{"rlkernel", "rlkernel@1", "rlkernel@8ccb03c?gpus=9", "rlkernel@8ccb03c?gpus=4", "rlkernel@8ccb03c?allow_fault=yes", "rlkernel@8ccb03c?deadline_scale=0", "rlkernel@8ccb03c?placement=x"} {
		_, _, err := openOn(d, bad, 2)
		require.ErrorIs(t, err, api.ErrInvalid, bad)
	}
	d.Capacity = 1 << 20
	_, _, err := openOn(d, "rlkernel@8ccb03c", 2)
	require.ErrorIs(t, err, gpu.ErrOutOfMemory)
	require.ErrorContains(t, err, "max_size_bytes=67108864")
	spec := api.Spec{Backend: "hw", Implementation: Name, Version: After}
	_, err = Open(context.Background(), host.NewMachine(d), spec, api.TeamConfig{Ranks: 2, Progress: time.Millisecond})
	require.ErrorIs(t, err, api.ErrInvalid)
	var lines bytes.Buffer
	for _, v := range Versions() {
		for _, p := range Params(v) {
			fmt.Fprintln(&lines, p.Name)
		}
	}
	require.Equal(t, 1, strings.Count(lines.String(), "copy\n"), "before the request there is one copy only")
}
