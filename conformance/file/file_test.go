package file_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/conformance"
	"example.com/tandem/conformance/file"
	"example.com/tandem/conformance/inputs"
	"example.com/tandem/conformance/vectors"
)

func gather(d api.DType, count int64) api.Call {
	return api.Call{Collective: api.AllGather, DType: d, Ranks: 2, Count: count, SrcOffset: api.Offsets{0}, DstOffset: api.Offsets{0}}
}

// record writes a file of calls that the definition executes.
func record(t *testing.T, h vectors.Header, change func(*vectors.Row), seeds []uint64, calls ...api.Call) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "v.jsonl.gz")
	w, err := vectors.Create(path, h)
	require.NoError(t, err)
	for i, c := range calls {
		r := conformance.Runner{Input: inputs.Input{Kind: inputs.Bits, Seed: seeds[i]}}
		row, err := r.Record(context.Background(), conformance.Definition(), c)
		require.NoError(t, err)
		if change != nil {
			change(row)
		}
		require.NoError(t, w.Write(row))
	}
	require.NoError(t, w.Close())
	return path
}

func side(b *file.Backend, path string) conformance.Side {
	return conformance.Side{Backend: b, Spec: api.Spec{Backend: "file", Path: path}}
}

func run(seed uint64, l, r conformance.Side, c api.Call) (*conformance.Report, error) {
	runner := conformance.Runner{Input: inputs.Input{Kind: inputs.Bits, Seed: seed}}
	return runner.Run(context.Background(), l, r, c)
}

// TestARecordingAnswersTheCallsItHolds: which row it is, the inputs tell.
func TestARecordingAnswersTheCallsItHolds(t *testing.T) {
	c := gather(api.U16, 20)
	many := api.Call{Collective: api.ReduceScatterMany, DType: api.I32, Op: api.Sum, Ranks: 2, Many: []api.LaneShape{{Count: 5}, {DType: api.U8, Count: 3}}, SrcOffset: api.Offsets{0}, DstOffset: api.Offsets{0}}
	path := record(t, vectors.Header{}, nil, []uint64{7, 8, 9}, c, c, many)
	b := file.New()
	for _, seed := range []uint64{7, 8} {
		rep, err := run(seed, side(b, path), conformance.Definition(), c)
		require.NoError(t, err)
		require.True(t, rep.Holds())
		require.Equal(t, int64(0), *rep.Left.Ranks[1].Unwritten)
		require.Equal(t, map[string]api.Evidence{"recording": api.Recorded}, rep.Left.Evidence)
	}
	rep, err := run(9, side(b, path), conformance.Definition(), many)
	require.NoError(t, err)
	require.True(t, rep.Holds(), "%v", rep.Causes)

	_, err = run(6, side(b, path), conformance.Definition(), c)
	require.ErrorIs(t, err, api.ErrRefused)
	require.ErrorContains(t, err, "does not hold this call with these inputs")
	_, err = run(7, side(b, path), conformance.Definition(), gather(api.U16, 21))
	require.ErrorIs(t, err, api.ErrRefused)
}

func TestARecordingAgainstAnother(t *testing.T) {
	c := gather(api.U16, 20)
	one, two := record(t, vectors.Header{}, nil, []uint64{7}, c), record(t, vectors.Header{}, nil, []uint64{7}, c)
	b := file.New()
	rep, err := run(7, side(b, one), side(b, two), c)
	require.NoError(t, err)
	require.True(t, rep.Holds())
	flip := func(r *vectors.Row) {
		r.Output[1][10] ^= 1
		r.Hash[1] = uint64(vectors.NewHash().Add(r.Output[1]))
	}
	rep, err = run(7, side(b, one), side(b, record(t, vectors.Header{}, flip, []uint64{7}, c)), c)
	require.NoError(t, err)
	require.Equal(t, int64(1), rep.Differing.Elements)
	require.Equal(t, int64(5), rep.First.Index)
}

// TestHoles: what the recording says no store reached is not written here
// either.
func TestHoles(t *testing.T) {
	two := int64(2)
	c := gather(api.U16, 20)
	path := record(t, vectors.Header{}, func(r *vectors.Row) {
		r.Poison = 0xcd
		copy(r.Output[0][6:], []byte{0xcd, 0xcd, 0xcd, 0xcd})
		r.Hash[0] = uint64(vectors.NewHash().Add(r.Output[0]))
		r.Unwritten[0] = &two
	}, []uint64{7}, c)
	rep, err := run(7, side(file.New(), path), conformance.Definition(), c)
	require.NoError(t, err)
	require.Equal(t, int64(2), *rep.Left.Ranks[0].Unwritten)
	require.Equal(t, int64(2), rep.Differing.Elements)
	require.Nil(t, rep.First.Left)
	require.Equal(t, "ffffffff", (*rep.Left.Ranks[0].OutHex)[12:20], "the poison is the runner's own")
}

// TestUnknownCoverage: a row that does not say what was written says nothing
// about it here.
func TestUnknownCoverage(t *testing.T) {
	c := gather(api.U16, 20)
	path := record(t, vectors.Header{}, func(r *vectors.Row) { r.Unwritten = nil }, []uint64{7}, c)
	rep, err := run(7, side(file.New(), path), conformance.Definition(), c)
	require.NoError(t, err)
	require.Nil(t, rep.Left.Ranks[0].Unwritten)
	require.True(t, rep.Holds())
}

func TestFaultsAndPromises(t *testing.T) {
	c := api.Call{Collective: api.AllReduce, DType: api.BF16, Op: api.Sum, Ranks: 2, Count: 20, SrcOffset: api.Offsets{0}, DstOffset: api.Offsets{0}}
	fault := func(r *vectors.Row) {
		*r = vectors.Row{Call: r.Call, Input: r.Input, Fault: &api.Fault{Kind: api.FaultAssert, Rank: 1, Detail: "d"}}
	}
	rep, err := run(7, side(file.New(), record(t, vectors.Header{}, fault, []uint64{7}, c)), conformance.Definition(), c)
	require.NoError(t, err)
	require.Equal(t, api.FaultAssert, rep.Left.Ranks[1].Fault.Kind)
	rep, err = run(7, side(file.New(), record(t, vectors.Header{NVLS: true}, nil, []uint64{7}, c)), conformance.Definition(), c)
	require.NoError(t, err)
	require.Equal(t, api.Faithful, rep.Contract, "a multicast library promises no more")
}

func TestRefusals(t *testing.T) {
	b := file.New()
	long := gather(api.U16, 5000)
	path := record(t, vectors.Header{}, nil, []uint64{7}, long)
	_, err := run(7, side(b, path), conformance.Definition(), long)
	require.ErrorIs(t, err, api.ErrRefused)
	require.ErrorContains(t, err, "holds only hashes")
	_, err = run(7, side(b, filepath.Join(t.TempDir(), "none")), conformance.Definition(), long)
	require.ErrorIs(t, err, api.ErrInvalid)
	_, err = run(7, side(b, ""), conformance.Definition(), long)
	require.ErrorIs(t, err, api.ErrInvalid)
	broken := filepath.Join(t.TempDir(), "v.jsonl")
	require.NoError(t, os.WriteFile(broken, []byte(`{"format":"vectors","version":2,"library":"","profile":"","nvls":false,"hardware":"","environment":{}}`+"\n{}\n"), 0o600))
	_, err = run(7, side(b, broken), conformance.Definition(), long)
	require.ErrorIs(t, err, api.ErrInvalid)
	require.ErrorContains(t, err, "line 2")
}

func TestDumps(t *testing.T) {
	dir := t.TempDir()
	c := gather(api.U8, 2)
	in := []byte{1, 2, 3, 4}
	for _, name := range []string{"rank0.bin", "rank1.bin"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), in, 0o600))
	}
	runner := conformance.Runner{Input: inputs.Input{Kind: inputs.Values, Values: []uint64{1, 3}}}
	rep, err := runner.Run(context.Background(), side(file.New(), dir), conformance.Definition(), c)
	require.NoError(t, err)
	require.Equal(t, int64(4), rep.Differing.Elements, "1 2 3 4 against 1 1 3 3, on two ranks")
	require.Equal(t, "01020304", *rep.Left.Ranks[1].OutHex)
	require.Nil(t, rep.Left.Ranks[0].Unwritten)
	require.Equal(t, map[string]api.Evidence{"dump": api.Assumed}, rep.Left.Evidence)
	_, err = runner.Run(context.Background(), side(file.New(), dir), conformance.Definition(), gather(api.U8, 3))
	require.ErrorIs(t, err, api.ErrInvalid)
	require.ErrorContains(t, err, "holds 4 bytes, the call needs 6")
}

// TestReplayAgainstARecording compares hashes where that is all there is.
func TestReplayAgainstARecording(t *testing.T) {
	long, short, other := gather(api.U16, 5000), gather(api.U16, 5), gather(api.U16, 6)
	seeds := []uint64{1, 2, 3}
	path := record(t, vectors.Header{}, nil, seeds, long, short, other)
	flip := func(r *vectors.Row) {
		switch {
		case r.Call.Count == 5000:
			r.Hash[1] ^= 1
			r.Blocks[1][2] ^= 1
		case r.Call.Count == 5:
			r.Output[0][3] ^= 1
			r.Hash[0] = uint64(vectors.NewHash().Add(r.Output[0]))
		}
	}
	changed := record(t, vectors.Header{}, flip, seeds[:2], long, short)
	replay := func(rows string, against string) *conformance.ReplayReport {
		r, err := vectors.Open(rows)
		require.NoError(t, err)
		defer r.Close()
		rep, err := conformance.Replay(context.Background(), r, side(file.New(), against))
		require.NoError(t, err)
		return rep
	}
	require.Equal(t, 3, replay(path, path).Passed)
	rep := replay(path, changed)
	require.Equal(t, 2, rep.Failed)
	require.Equal(t, 1, rep.Refused)
	require.Equal(t, []int{1}, rep.Failures[0].Ranks)
	require.Equal(t, []int64{2}, rep.Failures[0].Blocks)
	require.Equal(t, int64(4096), *rep.Failures[0].FirstIndex)
	require.Equal(t, []int{0}, rep.Failures[1].Ranks)
	require.Equal(t, int64(1), *rep.Failures[1].FirstIndex)
	rep = replay(path, t.TempDir())
	require.Equal(t, 3, rep.Refused)
}

func TestRecordingsThatCannotBeCompared(t *testing.T) {
	c := gather(api.U16, 5000)
	sum := api.Call{Collective: api.AllReduce, DType: api.BF16, Op: api.Sum, Ranks: 2, Count: 5000, SrcOffset: api.Offsets{0}, DstOffset: api.Offsets{0}}
	one := int64(1)
	replay := func(h vectors.Header, c api.Call, change func(*vectors.Row), check func(*conformance.ReplayReport)) {
		r, err := vectors.Open(record(t, h, nil, []uint64{1}, c))
		require.NoError(t, err)
		defer r.Close()
		rep, err := conformance.Replay(context.Background(), r, side(file.New(), record(t, h, change, []uint64{1}, c)))
		require.NoError(t, err)
		check(rep)
	}
	replay(vectors.Header{}, c, func(r *vectors.Row) { r.Poison, r.Unwritten[1] = 0x5a, &one }, func(rep *conformance.ReplayReport) {
		require.Equal(t, 1, rep.Refused)
		require.Contains(t, rep.Refusals[0].Reason, "different poisons, 0xff and 0x5a")
	})
	replay(vectors.Header{}, c, func(r *vectors.Row) { r.Poison = 0x5a }, func(rep *conformance.ReplayReport) {
		require.Equal(t, 1, rep.Passed, "where all is written the poison does not matter")
	})
	replay(vectors.Header{NVLS: true}, sum, nil, func(rep *conformance.ReplayReport) {
		require.Equal(t, 1, rep.Refused)
		require.Contains(t, rep.Refusals[0].Reason, "no exact contract")
	})
	fault := func(r *vectors.Row) {
		*r = vectors.Row{Call: r.Call, Input: r.Input, Fault: &api.Fault{Kind: api.FaultAssert, Detail: "d"}}
	}
	replay(vectors.Header{}, c, fault, func(rep *conformance.ReplayReport) {
		require.Equal(t, api.CauseFault, rep.Failures[0].Cause)
	})
	small := gather(api.U16, 5)
	replay(vectors.Header{NVLS: true}, small, func(r *vectors.Row) { r.Unwritten = nil }, func(rep *conformance.ReplayReport) {
		require.Equal(t, 1, rep.Passed)
	})
}
