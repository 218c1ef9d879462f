package machine

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
)

const batchGrain, batchBytes = 8, 64

// drawBatch draws steps of one CTA on the memory of all ranks, so that the order
// of the program is the only one; ranges are few, so that results are copied often.
func drawBatch(t *rapid.T, ranks int, spaces []Space) []Step {
	place := func(name string, all bool) Ref {
		space := rapid.SampledFrom(spaces).Draw(t, name+" space")
		least := 0
		if all {
			least = All
		}
		rank := rapid.IntRange(least, ranks-1).Draw(t, name+" rank")
		return At(rank, space, batchGrain*rapid.Int64Range(0, batchBytes/batchGrain-1).Draw(t, name+" place"))
	}
	var steps []Step
	for range rapid.IntRange(1, 24).Draw(t, "steps") {
		n := batchGrain * rapid.SampledFrom([]int64{1, 1, 1, 2, 3}).Draw(t, "length")
		s := cp(place("dst", true), place("src", false), n)
		if from := len(steps); from > 0 && rapid.Bool().Draw(t, "of result") {
			last := &steps[rapid.IntRange(max(0, from-4), from-1).Draw(t, "whose")]
			s.Srcs[0], s.Bytes = last.Dst, last.Bytes
		}
		if rapid.IntRange(0, 2).Draw(t, "reduce") == 0 {
			s = sum(s.Dst, s.Bytes, s.Srcs...)
			for range rapid.IntRange(0, 3).Draw(t, "more") {
				s.Srcs = append(s.Srcs, place("more", true))
			}
			if rapid.Bool().Draw(t, "in place") {
				s.Srcs = append(s.Srcs, s.Dst)
			}
		}
		if last := max(s.Dst.Off, s.Srcs[0].Off); last+s.Bytes <= batchBytes {
			steps = append(steps, s)
		}
	}
	var fenced []Step // so that accesses by one address follow those by the other
	for _, s := range steps {
		fenced = append(fenced, s, Step{Kind: Fence, Order: AcqRel, Alias: true, Peer: Nobody})
	}
	return fenced
}

// batchMemories are memories in which source and destination may be one.
func batchMemories(ranks int, inPlace bool) []api.Memory {
	all := make([]api.Memory, ranks)
	for r := range all {
		all[r] = api.MemoryOf(make([]byte, batchBytes), make([]byte, batchBytes))
		if inPlace {
			all[r][0].Dst = all[r][0].Src
		}
		for i := range batchBytes {
			all[r][0].Src.Bytes[i] = byte(31*r + i)
			if !inPlace {
				all[r][0].Dst.Bytes[i] = byte(101*r + 7*i)
			}
		}
	}
	return all
}

// Batches leave the same bytes everywhere as the steps in the order of the
// schedule, whatever depends on what.
func TestBatchesAgainstTheOrder(t *testing.T) {
	batched, copies, multicast := 0, 0, 0
	check(t, 20, func(t *rapid.T) {
		const ranks = 3
		inPlace := rapid.Bool().Draw(t, "one buffer")
		p := each(Needs{Scratch: batchBytes, Box: batchBytes}, ranks, func(int) []Step { return nil })
		p.steps[0][0] = drawBatch(t, ranks, []Space{Src, Dst, Scratch, Box})
		var machines [2]*Machine
		var mems [2][]api.Memory
		var written [2][][]api.Interval
		for i := range machines {
			machines[i], mems[i] = newTest(ranks), batchMemories(ranks, inPlace)
			machines[i].inOrder = i == 1
			result, err := machines[i].Run(p, mems[i], Options{})
			var race *Race
			var bad *BadStep
			if errors.As(err, &race) || errors.As(err, &bad) {
				return // ranges of a step that overlap, or end beyond their memory
			}
			require.NoError(t, err)
			written[i] = result.Written
		}
		require.Equal(t, written[0], written[1])
		for r := range ranks {
			require.Equal(t, mems[1][r][0].Src.Bytes, mems[0][r][0].Src.Bytes, "source of %d", r)
			require.Equal(t, mems[1][r][0].Dst.Bytes, mems[0][r][0].Dst.Bytes, "destination of %d", r)
			require.Equal(t, machines[1].mem[r].scratch, machines[0].mem[r].scratch, "scratch of %d", r)
			require.Equal(t, machines[1].mem[r].box, machines[0].mem[r].box, "box of %d", r)
		}
		m := machines[0]
		batched += len(m.trace) - len(m.batches)
		for i, mv := range m.trace {
			if int(mv.root) != i {
				copies++
			}
			if mv.dst.Rank == All {
				multicast++
			}
		}
	})
	require.Positive(t, batched)
	require.Positive(t, copies)
	require.Positive(t, multicast)
}

// A result is copied over what its root loads while it is still loaded, and over
// what an earlier move of the batch loads: both must come to see what was there.
func TestBatchesOverwriteSources(t *testing.T) {
	const n = 3 << 17 // more than what is copied at a time
	image := func(addr uint64, seed int) api.Image {
		b := make([]byte, 2*n)
		for i := range b {
			b[i] = byte(i*i>>3 + i + seed)
		}
		return api.Image{Bytes: b, Addr: addr}
	}
	for name, steps := range map[string][]Step{
		"shifted": {
			sum(User(1, Dst, 0, 0), n, User(0, Src, 0, 0), User(1, Src, 0, 0)),
			cp(User(0, Src, 0, 64), User(1, Dst, 0, 0), n),
		},
		"loaded before": {
			cp(User(1, Dst, 0, n), User(1, Src, 0, 0), n),
			sum(User(0, Dst, 0, 0), n, User(0, Src, 0, 64), User(1, Src, 0, 0)),
			cp(User(1, Src, 0, 0), User(0, Dst, 0, 0), n),
		},
		"in place": {
			sum(User(0, Dst, 0, 0), n, User(0, Src, 0, 0), User(1, Src, 0, 0)),
			cp(User(1, Src, 0, 0), User(0, Dst, 0, 0), n),
			cp(User(1, Dst, 0, 0), User(1, Src, 0, 0), n),
		},
	} {
		t.Run(name, func(t *testing.T) {
			var mems [2][]api.Memory
			for i := range mems {
				for r := range 2 {
					mems[i] = append(mems[i], api.Memory{{Src: image(api.SrcBase, r), Dst: image(api.DstBase, 7*r)}})
				}
				p := each(Needs{}, 2, func(int) []Step { return nil })
				p.steps[0][0] = steps
				m := newTest(2)
				m.inOrder = i == 1
				_, err := m.Run(p, mems[i], Options{})
				require.NoError(t, err)
			}
			for r := range 2 {
				require.True(t, bytes.Equal(mems[1][r][0].Src.Bytes, mems[0][r][0].Src.Bytes), "source of %d", r)
				require.True(t, bytes.Equal(mems[1][r][0].Dst.Bytes, mems[0][r][0].Dst.Bytes), "destination of %d", r)
			}
		})
	}
}

// A two-shot all-reduce is one job: shares reduced by their ranks and read by all
// the others lie next to each other.
func TestBatchOfTwoShots(t *testing.T) {
	const ranks, share = 4, 16
	for _, inPlace := range []bool{false, true} {
		p := each(Needs{Barriers: 1}, ranks, func(rank int) []Step {
			var srcs []Ref
			for r := range ranks {
				srcs = append(srcs, User(r, Src, 0, share*int64(rank)))
			}
			steps := []Step{sum(User(rank, Dst, 0, share*int64(rank)), share, srcs...), barrierOf(ranks)}
			for i := 1; i < ranks; i++ {
				from := (rank + i) % ranks
				steps = append(steps, cp(User(rank, Dst, 0, share*int64(from)), User(from, Dst, 0, share*int64(from)), share))
			}
			return steps
		})
		m, mem := newTest(ranks), batchMemories(ranks, inPlace)
		want := make([]byte, batchBytes)
		for i := 0; i < len(want); i += 4 {
			var in []uint64
			for r := range ranks {
				in = append(in, num.Load(num.U32, mem[r][0].Src.Bytes[i:]))
			}
			num.Store(num.U32, want[i:], num.Eval(num.U32, num.Scheme{Op: num.Sum}, in))
		}
		result, err := m.Run(p, mem, Options{})
		require.NoError(t, err)
		for r := range ranks {
			require.True(t, bytes.Equal(want, mem[r][0].Dst.Bytes), "rank %d", r)
			require.Equal(t, []api.Interval{{End: batchBytes}}, result.Written[r])
		}
		require.Len(t, m.batches, 1)
		require.Len(t, m.jobs.list, ranks)
		b := &m.jobs.list[m.jobs.order[0]]
		require.Equal(t, int64(batchBytes), b.bytes, "joined")
		require.Len(t, b.dsts, ranks)
	}
}

// Lines have no history: the moves of them do not share a batch.
func TestBatchesOfLines(t *testing.T) {
	line := Lines(1, 0, 0)
	p := each(Needs{Line: 16, Scratch: 32}, 2, func(rank int) []Step {
		if rank == 0 {
			s := cp(line, User(0, Src, 0, 0), 8)
			s.Value = 1
			return []Step{s}
		}
		s := cp(At(1, Scratch, 0), line, 8)
		s.Value = 1
		return []Step{s, cp(User(1, Dst, 0, 0), At(1, Scratch, 0), 8)}
	})
	m, mem := newTest(2), batchMemories(2, false)
	_, err := m.Run(p, mem, Options{})
	require.NoError(t, err)
	require.Equal(t, mem[0][0].Src.Bytes[:8], mem[1][0].Dst.Bytes[:8])
	require.Equal(t, []int{0, 1}, m.batches)
}
