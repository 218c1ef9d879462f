package machine

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
	"github.com/stretchr/testify/require"
)

// script is a program written out: steps by rank and CTA.
type script struct {
	needs Needs
	steps [][][]Step
}

func (p script) CTAs() int        { return len(p.steps[0]) }
func (p script) Needs() Needs     { return p.needs }
func (p script) Len(r, c int) int { return len(p.steps[r][c]) }
func (p script) Step(dst *Step, r, c, i int) {
	s := p.steps[r][c][i]
	srcs := append(dst.Srcs[:0], s.Srcs...)
	*dst = s
	dst.Srcs = srcs
}

// each makes a script of one CTA a rank.
func each(n Needs, ranks int, f func(rank int) []Step) script {
	p := script{needs: n}
	for r := range ranks {
		p.steps = append(p.steps, [][]Step{f(r)})
	}
	return p
}

func newTest(ranks int) *Machine { return New(Config{Ranks: ranks}) }

// memories gives every rank n u32 inputs, rank*1000 + index, and a poisoned
// destination.
func memories(ranks, n int) []api.Memory {
	all := make([]api.Memory, ranks)
	for r := range all {
		src, dst := make([]uint32, n), make([]uint32, n)
		for i := range src {
			src[i], dst[i] = uint32(1000*r+i), 0xFFFFFFFF
		}
		all[r] = api.MemoryOf(src, dst)
	}
	return all
}

func u32s(m api.Image) []uint32 {
	out := make([]uint32, m.Len()/4)
	for i := range out {
		out[i] = binary.LittleEndian.Uint32(m.Payload()[4*i:])
	}
	return out
}

func sum(dst Ref, bytes int64, srcs ...Ref) Step {
	return Step{Kind: Reduce, Dst: dst, Srcs: srcs, Bytes: bytes, DType: num.U32, Scheme: num.Scheme{Op: num.Sum}, Peer: Nobody}
}

func cp(dst, src Ref, bytes int64) Step {
	return Step{Kind: Copy, Dst: dst, Srcs: []Ref{src}, Bytes: bytes, Peer: Nobody}
}

func barrierOf(n int) Step { return Step{Kind: Barrier, Count: n, Peer: Nobody} }

// bothSchedulers runs a test under the fast scheduler and under many seeds.
func bothSchedulers(t *testing.T, f func(t *testing.T, opt Options)) {
	t.Run("fast", func(t *testing.T) { f(t, Options{}) })
	for seed := range uint64(20) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { f(t, Options{Seeded: true, Seed: seed}) })
	}
}

// pull is an all-reduce that reads every peer: barrier, reduce, barrier.
func pull(ranks, n int, entry, exit bool) script {
	return each(Needs{Barriers: 1}, ranks, func(r int) []Step {
		var s []Step
		if entry {
			s = append(s, barrierOf(ranks))
		}
		var srcs []Ref
		for p := range ranks {
			srcs = append(srcs, User(p, Src, 0, 0))
		}
		s = append(s, sum(User(r, Dst, 0, 0), int64(4*n), srcs...))
		if exit {
			s = append(s, barrierOf(ranks))
		}
		return s
	})
}

func TestPull(t *testing.T) {
	bothSchedulers(t, func(t *testing.T, opt Options) {
		mem := memories(3, 5)
		res, err := newTest(3).Run(pull(3, 5, true, true), mem, opt)
		require.NoError(t, err)
		for r := range 3 {
			require.Equal(t, []uint32{3000, 3003, 3006, 3009, 3012}, u32s(mem[r][0].Dst))
			require.Equal(t, []api.Interval{{Start: 0, End: 20}}, res.Written[r])
		}
	})
}

func TestInPlacePullRaces(t *testing.T) {
	bothSchedulers(t, func(t *testing.T, opt Options) {
		mem := memories(2, 4)
		before := append([]byte(nil), mem[0][0].Src.Bytes...)
		for r := range mem {
			mem[r][0].Dst = mem[r][0].Src
		}
		_, err := newTest(2).Run(pull(2, 4, true, true), mem, opt)
		var race *Race
		require.ErrorAs(t, err, &race)
		require.Contains(t, err.Error(), "lane 0")
		require.NotEqual(t, race.First.Rank, race.Second.Rank)
		require.True(t, race.First.Store || race.Second.Store)
		require.Equal(t, before, mem[0][0].Src.Bytes, "a race is refused before data moves")
	})
}

// Every rank pushes into its neighbour's scratch and signals it.
func neighbour(ranks int, order Order, scope Scope) script {
	return each(Needs{Scratch: 8, Temps: 1}, ranks, func(r int) []Step {
		next, prev := (r+1)%ranks, (r+ranks-1)%ranks
		return []Step{
			cp(At(next, Scratch, 0), User(r, Src, 0, 0), 8),
			{Kind: Store, Word: At(next, Temp, 0), Value: 7, Order: order, Scope: scope, Peer: Nobody},
			{Kind: Wait, Word: At(r, Temp, 0), Value: 7, Order: order | Acquire, Scope: scope, Peer: prev},
			sum(User(r, Dst, 0, 0), 8, At(r, Scratch, 0), User(r, Src, 0, 0)),
		}
	})
}

func TestSignal(t *testing.T) {
	bothSchedulers(t, func(t *testing.T, opt Options) {
		mem := memories(3, 2)
		_, err := newTest(3).Run(neighbour(3, Release, System), mem, opt)
		require.NoError(t, err)
		require.Equal(t, []uint32{2000, 2002}, u32s(mem[0][0].Dst))
	})
}

func TestRelaxedSignalRaces(t *testing.T) {
	bothSchedulers(t, func(t *testing.T, opt Options) {
		_, err := newTest(3).Run(neighbour(3, Relaxed, System), memories(3, 2), opt)
		var race *Race
		require.ErrorAs(t, err, &race)
		require.Equal(t, Scratch, race.Space)
	})
}

func TestScopeTooNarrowRaces(t *testing.T) {
	p := neighbour(2, Release, GPU)
	_, err := newTest(2).Run(p, memories(2, 2), Options{})
	var race *Race
	require.ErrorAs(t, err, &race)
	one := New(Config{Ranks: 2, GPUs: []int{0, 0}})
	_, err = one.Run(p, memories(2, 2), Options{})
	require.NoError(t, err, "both ranks on one GPU")
}

func TestHangNamesTheChain(t *testing.T) {
	bothSchedulers(t, func(t *testing.T, opt Options) {
		p := Without(neighbour(3, Release, System), 1, 0, 1) // rank 1 never signals rank 2
		_, err := newTest(3).Run(p, memories(3, 2), opt)
		var f *api.Fault
		require.ErrorAs(t, err, &f)
		require.Equal(t, api.FaultHang, f.Kind)
		require.Equal(t, 2, f.Rank)
		require.Contains(t, f.Detail, "for rank 1; rank 1, CTA 0 has ended")
	})
}

func TestUnwrittenScratchIsPoison(t *testing.T) {
	p := each(Needs{Scratch: 8}, 1, func(int) []Step {
		return []Step{cp(At(0, Scratch, 0), User(0, Src, 0, 0), 4), cp(User(0, Dst, 0, 0), At(0, Scratch, 0), 8)}
	})
	m := newTest(1)
	for range 2 { // scratch is undefined again in the second run
		mem := memories(1, 2)
		_, err := m.Run(p, mem, Options{})
		require.NoError(t, err)
		require.Equal(t, []uint32{0, 0xCDCDCDCD}, u32s(mem[0][0].Dst))
	}
}

func TestDeadline(t *testing.T) {
	p := each(Needs{Temps: 2}, 2, func(r int) []Step {
		return []Step{
			{Kind: Store, Word: At(1-r, Temp, 0), Value: 1, Peer: Nobody},
			{Kind: Wait, Word: At(r, Temp, 0), Value: 1, Peer: 1 - r, Deadline: Arrive, Aborts: [2]Ref{At(r, Temp, 1)}, Else: 3},
			{Kind: Exit, Peer: Nobody},
			{Kind: Exit, Value: 9, Peer: Nobody},
		}
	})
	for _, c := range []struct {
		name string
		in   []Injection
		ends []uint64
		now  time.Duration
	}{
		{"well", nil, []uint64{0, 0}, 0},
		{"stopped", []Injection{{Rank: 1, Step: 0, Harm: Stop}}, []uint64{9, StatusStopped}, 60 * time.Second},
		{"late", []Injection{{Rank: 1, Step: 0, Harm: Delay, For: time.Second}}, []uint64{0, 0}, time.Second},
		{"too late", []Injection{{Rank: 1, Step: 0, Harm: Delay, For: 2 * time.Minute}}, []uint64{9, 0}, 2 * time.Minute},
		{"failed", []Injection{{Rank: 0, Step: 0, Harm: Fail}}, []uint64{StatusFailed, 9}, 60 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			bothSchedulers(t, func(t *testing.T, opt Options) {
				opt.Inject = c.in
				res, err := newTest(2).Run(p, memories(2, 1), opt)
				require.NoError(t, err)
				require.Equal(t, c.ends, []uint64{res.Ends[0][0].Status, res.Ends[1][0].Status})
				require.Equal(t, c.now, res.Now)
			})
		})
	}
}

func TestLines(t *testing.T) {
	bothSchedulers(t, func(t *testing.T, opt Options) {
		m := newTest(2)
		for epoch := range uint64(3) {
			p := each(Needs{Line: 16}, 2, func(r int) []Step {
				put := cp(Lines(1-r, r, int64(8*r)), User(r, Src, 0, 0), 8)
				put.Value = epoch + 1
				get := sum(User(r, Dst, 0, 0), 8, User(r, Src, 0, 0), Lines(r, 1-r, int64(8*(1-r))))
				get.Value = epoch + 1
				return []Step{put, get}
			})
			mem := memories(2, 2)
			mem[0][0].Src.Bytes[0] = byte(epoch)
			_, err := m.Run(p, mem, opt)
			require.NoError(t, err)
			require.Equal(t, []uint32{1000 + uint32(epoch), 1002}, u32s(mem[1][0].Dst))
		}
	})
}

func TestLinesHangNamesTheSender(t *testing.T) {
	p := each(Needs{Line: 16}, 2, func(r int) []Step {
		get := cp(User(r, Dst, 0, 0), Lines(r, 1-r, 0), 4)
		get.Value = 5
		return []Step{get}
	})
	_, err := newTest(2).Run(p, memories(2, 2), Options{})
	require.ErrorContains(t, err, "for rank 1; rank 1, CTA 0 waits at step 0")
	require.ErrorContains(t, err, "a cycle")
}

func TestSeedIsOneExecution(t *testing.T) {
	trace := func(seed uint64) string {
		res, err := newTest(3).Run(neighbour(3, Release, System), memories(3, 2), Options{Seeded: true, Seed: seed, Trace: true})
		require.NoError(t, err)
		return res.Trace
	}
	require.Equal(t, trace(1), trace(1))
	require.NotEqual(t, trace(1), trace(2))
	require.Contains(t, trace(1), "store r1.temp[0] = 7 release.sys")
}

// A wait for lines takes no data and knows its peer; a step made to fail goes to
// Fails where it has one, so that Else may mean something else; a base counts
// shifted; and the host reads and sets words between runs.
func TestWaitForLinesFailsShiftAndWords(t *testing.T) {
	word := At(0, Word, 0)
	p := script{needs: Needs{Line: 16, Words: 2, Temps: 1}, steps: [][][]Step{{{
		{Kind: Wait, Srcs: []Ref{Lines(0, 1, 0)}, Bytes: 16, Base: word, Shift: 4, Value: 1, Deadline: Progress, Peer: 1, Else: 3},
		{Kind: Test, Word: At(0, Temp, 0), Cmp: ZeroValue, Else: 3, Fails: 4, Peer: Nobody},
		{Kind: Exit, Value: 10, Peer: Nobody},
		{Kind: Exit, Value: 11, Peer: Nobody},
		{Kind: Store, Word: At(0, Temp, 0), Value: 7, Peer: Nobody},
		{Kind: Exit, Value: 12, Peer: Nobody},
	}}, {{
		{Kind: Copy, Dst: Lines(0, 1, 0), Srcs: []Ref{User(1, Src, 0, 0)}, Bytes: 16, Value: 81, Peer: Nobody},
	}}}}
	for _, c := range []struct {
		name   string
		base   uint64
		inject []Injection
		want   uint64
	}{
		{"arrives", 5, nil, 10},
		{"another flag", 6, nil, 11},
		{"never sent", 5, []Injection{{Rank: 1, Harm: Stop}}, 11},
		{"fails", 5, []Injection{{Rank: 0, Step: 1, Harm: Fail}}, 12},
	} {
		bothSchedulers(t, func(t *testing.T, opt Options) {
			m := newTest(2)
			m.SetWord(word, c.base)
			opt.Inject = c.inject
			res, err := m.Run(p, memories(2, 4), opt)
			require.NoError(t, err, c.name)
			require.Equal(t, c.want, res.Ends[0][0].Status, c.name)
			require.Equal(t, c.base, m.Word(word), "words persist")
			require.Equal(t, c.want == 12, m.Word(At(0, Temp, 0)) == 7, c.name)
		})
	}
	require.Zero(t, newTest(1).Word(At(0, Word, 99)), "nobody asked for it yet")

	bad := script{needs: Needs{Box: 16}, steps: [][][]Step{{{{Kind: Wait, Srcs: []Ref{At(0, Box, 0)}, Bytes: 8, Peer: Nobody}}}}}
	_, err := newTest(1).Run(bad, memories(1, 1), Options{})
	require.ErrorContains(t, err, "no flags")
}

func TestTraceOfLineWaits(t *testing.T) {
	p := each(Needs{Line: 8, Words: 1}, 1, func(int) []Step {
		return []Step{
			{Kind: Stamp, Dst: Lines(0, 0, 0), Bytes: 8, Base: At(0, Word, 0), Shift: 3, Value: 2, Peer: Nobody},
			{Kind: Wait, Srcs: []Ref{Lines(0, 0, 0)}, Bytes: 8, Value: 2, Peer: 0, Note: "own"},
		}
	})
	res, err := newTest(1).Run(p, memories(1, 1), Options{Trace: true})
	require.NoError(t, err)
	require.Equal(t, "0s r0.c0 #0 stamp r0.line0[0] of 8 flag r0.word[0]<<3+2\n0s r0.c0 #1 wait [r0.line0[0]] of 8 flag 2 (own)\n", res.Trace)
}

// Two CTAs that write one line without an order between them leave it to chance
// whose flag and data it ends with.
func TestLinesOfTwoWritersRace(t *testing.T) {
	p := each(Needs{Line: 8}, 2, func(r int) []Step {
		put := cp(Lines(0, r, 0), User(r, Src, 0, 0), 8)
		put.Value = 1
		return []Step{put}
	})
	bothSchedulers(t, func(t *testing.T, opt Options) {
		_, err := newTest(2).Run(p, memories(2, 2), opt)
		var race *Race
		require.ErrorAs(t, err, &race)
		require.Equal(t, Line, race.Space)
		require.Equal(t, []int64{0, 8}, []int64{race.Start, race.End})
	})
}

// One step writes several words, or waits until all of them compare true.
func TestMoreWords(t *testing.T) {
	w := func(r int, off int64) Ref { return At(r, Word, off) }
	p := func(second uint64) script {
		return script{needs: Needs{Words: 3}, steps: [][][]Step{{{
			{Kind: Wait, Word: w(0, 0), More: []Ref{w(0, 1), w(0, 2)}, Value: 5, Order: Acquire, Deadline: Arrive, Else: 3, Peer: 1},
			{Kind: Copy, Dst: User(0, Dst, 0, 0), Srcs: []Ref{User(1, Dst, 0, 0)}, Bytes: 4, Peer: Nobody},
			{Kind: Exit, Value: 10, Peer: Nobody},
			{Kind: Test, Word: w(0, 0), More: []Ref{w(0, 2)}, Value: 5, Else: 5, Peer: Nobody},
			{Kind: Exit, Value: 11, Peer: Nobody},
			{Kind: Exit, Value: 12, Peer: Nobody},
		}}, {{
			{Kind: Copy, Dst: User(1, Dst, 0, 0), Srcs: []Ref{User(1, Src, 0, 0)}, Bytes: 4, Peer: Nobody},
			{Kind: Store, Word: w(0, 0), More: []Ref{w(0, 2)}, Value: 5, Order: Release, Peer: Nobody},
			{Kind: Store, Word: w(0, 1), Value: second, Order: Release, Peer: Nobody},
		}}}}
	}
	bothSchedulers(t, func(t *testing.T, opt Options) {
		res, err := newTest(2).Run(p(5), memories(2, 1), opt)
		require.NoError(t, err, "the load is ordered by either store")
		require.EqualValues(t, 10, res.Ends[0][0].Status)
		res, err = newTest(2).Run(p(4), memories(2, 1), opt)
		require.NoError(t, err)
		require.EqualValues(t, 11, res.Ends[0][0].Status, "one of three is not there, two are")
	})
	bad := script{needs: Needs{Words: 1}, steps: [][][]Step{{{{Kind: Add, Word: w(0, 0), More: []Ref{w(0, 0)}, Peer: Nobody}}}}}
	_, err := newTest(1).Run(bad, memories(1, 1), Options{})
	require.ErrorContains(t, err, "takes one word")
	bad.steps[0][0][0] = Step{Kind: Store, Word: w(0, 0), More: []Ref{w(0, 7)}, Peer: Nobody}
	_, err = newTest(1).Run(bad, memories(1, 1), Options{})
	require.ErrorContains(t, err, "is no word")
}

// meeting is a pull of many ranks between flag barriers, each flag a word a peer:
// relaxed is a rank that signals without an order.
func meeting(ranks, n, relaxed int) script {
	return each(Needs{Words: 2 * ranks}, ranks, func(r int) []Step {
		barrier := func(phase int64) []Step {
			signal := Step{Kind: Store, Word: At(0, Word, phase*int64(ranks)+int64(r)), Value: 1, Order: Release, Peer: Nobody}
			wait := Step{Kind: Wait, Word: At(r, Word, phase*int64(ranks)), Value: 1, Order: Acquire, Peer: Nobody}
			for p := 1; p < ranks; p++ {
				signal.More = append(signal.More, At(p, Word, phase*int64(ranks)+int64(r)))
				wait.More = append(wait.More, At(r, Word, phase*int64(ranks)+int64(p)))
			}
			if r == relaxed {
				signal.Order = Relaxed
			}
			return []Step{signal, wait}
		}
		src := User(r, Src, 0, 0)
		steps := append([]Step{cp(src, src, int64(4*n))}, barrier(0)...)
		var srcs []Ref
		for p := range ranks {
			srcs = append(srcs, User(p, Src, 0, 0))
		}
		steps = append(append(steps, sum(User(r, Dst, 0, 0), int64(4*n), srcs...)), barrier(1)...)
		return append(steps, cp(src, src, int64(4*n)))
	})
}

func TestManyRanksMeetByFlags(t *testing.T) {
	for _, ranks := range []int{3, 9, 10, 40} {
		bothSchedulers(t, func(t *testing.T, opt Options) {
			_, err := newTest(ranks).Run(meeting(ranks, 2, -1), memories(ranks, 2), opt)
			require.NoError(t, err)
			_, err = newTest(ranks).Run(meeting(ranks, 2, ranks/2), memories(ranks, 2), opt)
			var race *Race
			require.ErrorAs(t, err, &race)
			require.True(t, race.First.Rank == ranks/2 || race.Second.Rank == ranks/2)
		})
	}
}
