package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
	"example.com/tandem/conformance/inputs"
	"example.com/tandem/conformance/vectors"
)

// segmented is NVSHMEM's choice on four PEs without multicast, in two lines:
// recursive exchange up to 4681 elements, segments above.
func segmented(call *api.Call, rank int) (num.Scheme, []int) {
	s := num.Scheme{MinMax: num.Ternary}
	if call.Count > 4681 {
		return s, ownFirst(rank, call.Ranks)
	}
	s.Order = num.Balanced
	return s, []int{rank, rank ^ 1, rank ^ 2, rank ^ 3}
}

// TestReplayRecordings checks against what NVSHMEM 3.4.5 returned on H200 GPUs:
// the generator, the hashes and the arithmetic, all at once.
func TestReplayRecordings(t *testing.T) {
	for _, c := range []struct {
		file   string
		side   Side
		passed int
	}{
		{"definition.jsonl.gz", Definition(), 228},
		{"two-ranks.jsonl.gz", (&fake{}).side(), 122},
		{"four-ranks.jsonl.gz", (&fake{pick: segmented}).side(), 125},
	} {
		rows, err := vectors.Open(filepath.Join("testdata", c.file))
		require.NoError(t, err)
		rep, err := Replay(context.Background(), rows, c.side)
		require.NoError(t, err)
		require.NoError(t, rows.Close())
		require.Empty(t, rep.Failures)
		require.Empty(t, rep.Refusals)
		require.Equal(t, c.passed, rep.Passed, c.file)
	}
}

// recording is rows written by one side and read back.
func recording(t *testing.T, header vectors.Header, rows ...*vectors.Row) *vectors.Reader {
	t.Helper()
	var b bytes.Buffer
	w, err := vectors.NewWriter(&b, header)
	require.NoError(t, err)
	for _, row := range rows {
		require.NoError(t, w.Write(row))
	}
	require.NoError(t, w.Close())
	r, err := vectors.NewReader(&b)
	require.NoError(t, err)
	return r
}

func record(t *testing.T, side Side, in inputs.Input, call api.Call) *vectors.Row {
	t.Helper()
	r := &Runner{Input: in}
	row, err := r.Record(context.Background(), side, call)
	require.NoError(t, err)
	require.NoError(t, r.Close(context.Background()))
	return row
}

func replayOne(t *testing.T, side Side, row *vectors.Row) *ReplayReport {
	t.Helper()
	rep, err := Replay(context.Background(), recording(t, vectors.Header{}, row), side)
	require.NoError(t, err)
	require.Equal(t, 1, rep.Passed+rep.Failed+rep.Refused)
	return rep
}

func TestRecordAndReplay(t *testing.T) {
	own := &fake{pick: segmented}
	holes := &fake{skip: func(_ *api.Call, _, _ int, i int64) bool { return i%5 == 0 }}
	fault := &fake{fault: &api.Fault{Kind: api.FaultMisaligned, Rank: 1, CTA: 2, Detail: "d"}}
	many := api.Call{Collective: api.ReduceScatterMany, DType: api.F16, Op: api.Sum, Ranks: 4, Many: []api.LaneShape{{Count: 5000}, {DType: api.I32, Count: 3}}}
	inPlace := call(api.ReduceScatter, api.F32, api.Sum, 4, 3000)
	inPlace.InPlace, inPlace.SrcOffset, inPlace.DstOffset = api.InPlaceStart, api.Offsets{3, 0, 1, 2}, api.Offsets{3, 0, 1, 2}
	for _, c := range []struct {
		side Side
		call api.Call
	}{
		{own.side(), allReduce(api.BF16, 4, 9000)},
		{own.side(), allReduce(api.BF16, 4, 64)},
		{own.side(), allReduce(api.BF16, 4, 0)},
		{own.side(), inPlace},
		{holes.side(), allReduce(api.F64, 3, 600)},
		{holes.side(), allReduce(api.F64, 3, 20)},
		{fault.side(), allReduce(api.F64, 3, 20)},
		{(&fake{}).side(), many},
		{(&fake{}).side(), call(api.AllToAll, api.U8, api.NoOp, 5, 2000)},
	} {
		row := record(t, c.side, inputs.Input{}, c.call)
		require.Equal(t, c.call, row.Call)
		rep := replayOne(t, c.side, row)
		require.Equal(t, 1, rep.Passed, "%v %v", rep.Failures, rep.Refusals)
	}
}

func TestRecordWritesWhatTheFormatAsks(t *testing.T) {
	long := record(t, (&fake{}).side(), inputs.Input{}, allReduce(api.BF16, 2, 5000))
	require.Nil(t, long.Output)
	require.Len(t, long.Blocks[0], 3)
	require.Equal(t, int64(0), *long.Unwritten[1])
	require.Equal(t, inputs.Input{Kind: inputs.Normal, Seed: 1}, long.Input)
	short := record(t, (&fake{}).side(), inputs.Input{}, allReduce(api.BF16, 2, 128))
	require.True(t, short.HasOutput())
	require.Nil(t, short.Blocks)
	weak := &fake{impl: api.Implementation{Name: "plain", Contract: api.Faithful}}
	require.True(t, record(t, weak.side(), inputs.Input{}, allReduce(api.BF16, 2, 5000)).HasOutput(), "faithful calls are kept whole")
	require.False(t, record(t, weak.side(), inputs.Input{}, call(api.AllReduce, api.BF16, api.Max, 2, 5000)).HasOutput(), "but not their exact ones")
	blind := record(t, (&fake{blind: true}).side(), inputs.Input{}, allReduce(api.BF16, 2, 8))
	require.Equal(t, int64(0), *blind.Unwritten[0], "two runs tell")
	r := &Runner{Input: inputs.Input{Kind: inputs.Files, Dir: writeDumps(t, 2, 8)}}
	_, err := r.Record(context.Background(), (&fake{}).side(), allReduce(api.U16, 2, 4))
	require.ErrorContains(t, err, "cannot name files")
}

// TestReplayNamesTheCause replays recordings of one side on another that is
// broken in one way, with whole outputs and with hashes of blocks only.
func TestReplayNamesTheCause(t *testing.T) {
	plain := (&fake{}).side()
	own := (&fake{order: ownFirst}).side()
	late := func(f func(v uint64) uint64) Side { // wrong from element 3000 on, on rank 1
		return (&fake{value: func(_ *execution, rank, _ int, i int64, _ []uint64, v uint64) uint64 {
			if rank == 1 && i >= 3000 {
				return f(v)
			}
			return v
		}}).side()
	}
	index := func(i int64) *int64 { return &i }
	for _, c := range []struct {
		name           string
		recorded, side Side
		input          inputs.Input
		call           api.Call
		ranks          []int
		blocks         []int64
		first          *int64
		cause          api.Cause
		why            string
	}{
		{name: "order, by block", recorded: own, side: plain, call: allReduce(api.BF16, 4, 5000),
			ranks: []int{0, 1, 2, 3}, blocks: []int64{0, 1, 2}, first: index(0), cause: api.CauseOrder, why: "each rank's own input first"},
		{name: "order, by element", recorded: own, side: plain, call: allReduce(api.BF16, 4, 100),
			ranks: []int{0, 1, 2, 3}, blocks: []int64{0}, cause: api.CauseOrder, why: "each rank's own input first"},
		{name: "rounding, by block", recorded: (&fake{scheme: num.Scheme{Step: num.TowardZero}}).side(), side: plain, call: allReduce(api.F16, 2, 3000),
			ranks: []int{0, 1}, blocks: []int64{0, 1}, first: index(0), cause: api.CauseRounding, why: "toward zero"},
		{name: "accumulator, by block", recorded: (&fake{scheme: num.Scheme{Acc: num.AccF32}}).side(), side: plain, call: call(api.ReduceScatter, api.BF16, api.Sum, 8, 3000),
			ranks: []int{0, 1, 2, 3, 4, 5, 6, 7}, blocks: []int64{0, 1}, first: index(0), cause: api.CauseAccumulator, why: "too wide to tell"},
		{name: "a late block", recorded: plain, side: late(func(v uint64) uint64 { return v ^ 0x40000000 }), call: allReduce(api.F32, 2, 4000),
			ranks: []int{1}, blocks: []int64{2, 3}, first: index(2048), cause: api.CauseUnknown, why: "the side's own is not known"},
		{name: "unwritten", recorded: plain, side: (&fake{skip: func(_ *api.Call, _, _ int, i int64) bool { return i == 4998 }}).side(), call: allReduce(api.BF16, 2, 4999),
			ranks: []int{0, 1}, blocks: []int64{2}, first: index(4998), cause: api.OddTail, why: "half of the narrowest"},
		{name: "the same holes, another order", recorded: (&fake{order: reversed, skip: func(_ *api.Call, _, _ int, i int64) bool { return i == 5 }}).side(), side: (&fake{skip: func(_ *api.Call, _, _ int, i int64) bool { return i == 5 }}).side(), call: call(api.ReduceScatter, api.BF16, api.Sum, 3, 2000),
			ranks: []int{0, 1, 2}, blocks: []int64{0}, first: index(0), cause: api.CauseOrder, why: "left: from the last rank down"},
		{name: "NaN in max, by block", recorded: (&fake{scheme: num.Scheme{MinMax: num.Ternary}}).side(), side: plain, input: inputs.Input{Kind: inputs.Bits, Seed: 2}, call: call(api.AllReduce, api.BF16, api.Max, 2, 3000),
			ranks: []int{0, 1}, blocks: []int64{0, 1}, first: index(0), cause: api.CauseNaNRule, why: "the second operand is taken"},
		{name: "guard", recorded: plain, side: (&fake{after: func(x *execution) { x.mem[1][0].Dst.Bytes[0] = 0 }}).side(), call: allReduce(api.F32, 2, 3000),
			ranks: []int{1}, blocks: []int64{}, cause: api.CauseGuard, why: "1 guard bytes were hit, the recording has 0"},
		{name: "guard of a short one", recorded: plain, side: (&fake{after: func(x *execution) { x.mem[1][0].Dst.Bytes[0] = 0 }}).side(), call: allReduce(api.F32, 2, 3),
			ranks: []int{1}, blocks: []int64{}, cause: api.CauseGuard, why: "1 guard bytes were hit, the recording has 0"},
		{name: "a fault of the side", recorded: plain, side: (&fake{fault: &api.Fault{Kind: api.FaultHang, Detail: "x"}}).side(), call: allReduce(api.F32, 2, 3),
			ranks: []int{0, 1}, blocks: []int64{}, cause: api.CauseFault, why: "the recording has results"},
		{name: "a fault of the recording", recorded: (&fake{fault: &api.Fault{Kind: api.FaultHang, Detail: "x"}}).side(), side: plain, call: allReduce(api.F32, 2, 3),
			ranks: []int{0, 1}, blocks: []int64{}, cause: api.CauseFault, why: "the side has results"},
		{name: "another fault", recorded: (&fake{fault: &api.Fault{Kind: api.FaultHang, Detail: "x"}}).side(), side: (&fake{fault: &api.Fault{Kind: api.FaultAssert, Detail: "y"}}).side(), call: allReduce(api.F32, 2, 3),
			ranks: []int{0, 1}, blocks: []int64{}, cause: api.CauseFault, why: "the recording ends in fault: hang"},
	} {
		t.Run(c.name, func(t *testing.T) {
			rep := replayOne(t, c.side, record(t, c.recorded, c.input, c.call))
			require.Len(t, rep.Failures, 1, "%v", rep.Refusals)
			f := rep.Failures[0]
			require.Equal(t, 2, f.Line)
			require.Equal(t, c.ranks, f.Ranks)
			require.Equal(t, c.blocks, f.Blocks)
			require.Equal(t, c.cause, f.Cause, f.Why)
			require.Contains(t, f.Why, c.why)
			if c.first != nil {
				require.Equal(t, c.first, f.FirstIndex)
			}
		})
	}
}

// TestReplayWithHashesOnly is version 1: neither outputs nor blocks.
func TestReplayWithHashesOnly(t *testing.T) {
	row := record(t, (&fake{order: ownFirst}).side(), inputs.Input{}, allReduce(api.BF16, 4, 5000))
	row.Blocks = nil
	f := replayOne(t, (&fake{}).side(), row).Failures[0]
	require.Equal(t, []int{0, 1, 2, 3}, f.Ranks)
	require.Empty(t, f.Blocks)
	require.Nil(t, f.FirstIndex)
	require.Equal(t, api.CauseOrder, f.Cause)
}

func TestReplayRefuses(t *testing.T) {
	weak := &fake{impl: api.Implementation{Name: "plain", Contract: api.Faithful}}
	row := record(t, (&fake{}).side(), inputs.Input{}, allReduce(api.BF16, 2, 5000))
	rep := replayOne(t, weak.side(), row)
	require.Equal(t, 1, rep.Refused)
	require.Contains(t, rep.Refusals[0].Reason, "no exact contract, and the row does not hold the whole output")
	require.Zero(t, rep.Passed, "equal hashes are not enough")

	rep, err := (&Runner{Exact: true}).Replay(context.Background(), recording(t, vectors.Header{}, row), weak.side())
	require.NoError(t, err)
	require.Equal(t, 1, rep.Passed, "held to equal bits they are")

	rep, err = Replay(context.Background(), recording(t, vectors.Header{NVLS: true}, row), (&fake{}).side())
	require.NoError(t, err)
	require.Equal(t, 1, rep.Refused, "a recording of a multicast library promises no more")

	rep, err = (&Runner{MaxMemory: 10_000}).Replay(context.Background(), recording(t, vectors.Header{}, row), (&fake{}).side())
	require.NoError(t, err)
	require.Contains(t, rep.Refusals[0].Reason, "the buffers of this call need")

	rep = replayOne(t, (&fake{refuse: &api.Refused{Spec: "x", What: "y", Reason: "z"}}).side(), row)
	require.Equal(t, "x refuses y: z", rep.Refusals[0].Reason)
}

// TestReplayFaithful accepts either neighbour, and nothing else, where the whole
// output is recorded.
func TestReplayFaithful(t *testing.T) {
	weak := func(r num.Rounding) Side {
		return (&fake{scheme: num.Scheme{Acc: num.AccExact, Last: r}, impl: api.Implementation{Name: "plain", Contract: api.Faithful}}).side()
	}
	row := record(t, weak(num.TowardZero), inputs.Input{}, allReduce(api.BF16, 4, 5000))
	require.Equal(t, 1, replayOne(t, weak(num.AwayFromZero), row).Passed)
	stepwise := (&fake{order: ownFirst, impl: api.Implementation{Name: "plain", Contract: api.Faithful}}).side()
	f := replayOne(t, stepwise, row).Failures[0]
	require.Equal(t, api.CauseAccumulator, f.Cause, f.Why)
}

func TestReplayGoesOnAfterABadLine(t *testing.T) {
	const text = `{"format":"vectors","version":1,"library":"L","profile":"p","nvls":false,"hardware":"","environment":{}}
{"collective":"broadcast"}
{"collective":"broadcast","scope":"block","dtype":"u8","ranks":1,"count":0,"src_offset":0,"dst_offset":0,"in_place":false,"input":{"gen":"bits","seed":7},"out_fnv1a64":["cbf29ce484222325"]}
`
	rows, err := vectors.NewReader(strings.NewReader(text))
	require.NoError(t, err)
	rep, err := Replay(context.Background(), rows, Definition())
	require.NoError(t, err)
	require.Equal(t, 1, rep.Passed)
	require.Equal(t, 2, rep.Unreadable[0].Line)
	var b bytes.Buffer
	require.NoError(t, rep.WriteText(&b, TextOptions{}))
	require.Equal(t, "line 2 unreadable: scope \"\": unknown (known are [on_stream block warp thread])\n1 passed, 0 failed, 0 refused\n", b.String())
}

func TestReplayJSON(t *testing.T) {
	row := record(t, (&fake{order: ownFirst}).side(), inputs.Input{}, allReduce(api.BF16, 3, 5000))
	rep := replayOne(t, (&fake{}).side(), row)
	rep.Failures[0].Why = ""
	b, err := json.Marshal(rep)
	require.NoError(t, err)
	require.Equal(t, `{"schema":"tandem.replay/1","passed":0,"failed":1,"refused":0,"failures":[{"line":2,"call":{"collective":"all_reduce","scope":"on_stream","dtype":"bf16","op":"sum","ranks":3,"count":5000,"src_offset":0,"dst_offset":0,"in_place":false,"root":0,"team":"world","input":{"gen":"normal","seed":1}},"ranks":[0,2],"blocks":[0,1,2],"first_index":0,"cause":"order"}]}`, string(b))
}

func TestReplayText(t *testing.T) {
	row := record(t, (&fake{order: ownFirst}).side(), inputs.Input{}, allReduce(api.BF16, 3, 5000))
	rep := replayOne(t, (&fake{}).side(), row)
	var b bytes.Buffer
	require.NoError(t, rep.WriteText(&b, TextOptions{}))
	require.Equal(t, `line 2: all_reduce sum of bf16, 3 ranks x 5000 elements, on_stream (--input normal --seed 1)
  differs on ranks 0, 2, blocks 0, 1, 2, first in element 0: order
  left: each rank's own input first, then that of the ranks below it, so that ranks differ, rounded to nearest even to bf16 at each step; right: in rank order, rounded to nearest even to bf16 at each step (left is the recording)
0 passed, 1 failed, 0 refused
`, b.String())
}

func TestReplayTextIsBounded(t *testing.T) {
	rep := ReplayReport{Failures: make([]ReplayFailure, 30), Refusals: make([]ReplayRefusal, 25), Failed: 30, Refused: 25}
	for i := range rep.Failures {
		rep.Failures[i] = ReplayFailure{Line: i + 2, Call: CallReport{Call: allReduce(api.BF16, 40, 3)}, Ranks: make([]int, 40), Blocks: []int64{7}, Where: "CTA 1, segment", Cause: api.CauseOrder}
	}
	var b bytes.Buffer
	require.NoError(t, rep.WriteText(&b, TextOptions{}))
	text := b.String()
	require.Contains(t, text, "and 10 more failures: the JSON form lists them\n")
	require.Contains(t, text, "and 5 more lines refused: the JSON form lists them\n")
	require.Contains(t, text, "differs on ranks 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 and 28 more, block 7, CTA 1, segment: order\n")
	require.True(t, strings.HasSuffix(text, "\n0 passed, 30 failed, 25 refused\n"))
}

func TestReplayStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	row := record(t, (&fake{}).side(), inputs.Input{}, allReduce(api.BF16, 2, 8))
	_, err := Replay(ctx, recording(t, vectors.Header{}, row), (&fake{}).side())
	require.ErrorIs(t, err, context.Canceled)
}
