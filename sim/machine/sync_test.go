package machine

import (
	"fmt"
	"math/bits"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
)

// hop is a store of rank 0's source into rank 1's scratch, and rank 1's load of
// it, with given steps in between.
func hop(store, load []Step) script {
	s0 := append([]Step{cp(At(1, Scratch, 0), User(0, Src, 0, 0), 8)}, store...)
	s1 := append(append([]Step{}, load...), cp(User(1, Dst, 0, 0), At(1, Scratch, 0), 8))
	return script{needs: Needs{Scratch: 8, Temps: 2, Barriers: 1}, steps: [][][]Step{{s0}, {s1}}}
}

// Which pairs of store and load order what lies around them.
func TestOrders(t *testing.T) {
	w := At(1, Temp, 0)
	store := func(o Order, s Scope) Step {
		return Step{Kind: Store, Word: w, Value: 1, Order: o, Scope: s, Peer: Nobody}
	}
	wait := func(o Order, s Scope) Step { return Step{Kind: Wait, Word: w, Value: 1, Order: o, Scope: s, Peer: 0} }
	fence := func(o Order, s Scope) Step { return Step{Kind: Fence, Order: o, Scope: s, Peer: Nobody} }
	record := Step{Kind: Record, Word: w, Peer: Nobody}
	await := Step{Kind: Await, Word: w, Value: 1, Peer: 0}
	add := func(o Order) Step { return Step{Kind: Add, Word: w, Value: 1, Order: o, Peer: Nobody} }
	for _, c := range []struct {
		name        string
		store, load []Step
		ordered     bool
	}{
		{"nothing", nil, nil, false},
		{"release, acquire", []Step{store(Release, System)}, []Step{wait(Acquire, System)}, true},
		{"relaxed, acquire", []Step{store(Relaxed, System)}, []Step{wait(Acquire, System)}, false},
		{"release, relaxed", []Step{store(Release, System)}, []Step{wait(Relaxed, System)}, false},
		{"release.gpu, acquire", []Step{store(Release, GPU)}, []Step{wait(Acquire, System)}, false},
		{"release, acquire.gpu", []Step{store(Release, System)}, []Step{wait(Acquire, GPU)}, false},
		{"release.cta, acquire.cta", []Step{store(Release, CTA)}, []Step{wait(Acquire, CTA)}, false},
		{"fence and relaxed, acquire", []Step{fence(Release, System), store(Relaxed, System)}, []Step{wait(Acquire, System)}, true},
		{"fence.gpu and relaxed, acquire", []Step{fence(Release, GPU), store(Relaxed, System)}, []Step{wait(Acquire, System)}, false},
		{"relaxed and then fence", []Step{store(Relaxed, System), fence(Release, System)}, []Step{wait(Acquire, System)}, false},
		{"fences on both sides", []Step{fence(AcqRel, System), store(Relaxed, System)}, []Step{wait(Relaxed, System), fence(AcqRel, System)}, true},
		{"acquire fence too early", []Step{store(Release, System)}, []Step{fence(Acquire, System), wait(Relaxed, System)}, false},
		{"add.release", []Step{add(Release)}, []Step{wait(Acquire, System)}, true},
		{"add.relaxed", []Step{add(Relaxed)}, []Step{wait(Acquire, System)}, false},
		{"event", []Step{record}, []Step{await}, true},
		{"barrier", []Step{barrierOf(2)}, []Step{barrierOf(2)}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			bothSchedulers(t, func(t *testing.T, opt Options) {
				mem := memories(2, 2)
				_, err := newTest(2).Run(hop(c.store, c.load), mem, opt)
				if c.ordered {
					require.NoError(t, err)
					require.Equal(t, []uint32{0, 1}, u32s(mem[1][0].Dst))
					return
				}
				var race *Race
				require.ErrorAs(t, err, &race)
				require.Equal(t, []any{1, Scratch, int64(0), int64(8)}, []any{race.Rank, race.Space, race.Start, race.End})
			})
		})
	}
}

// A chain of atomics passes on the releases before it; a store in between ends
// the chain.
func TestReleaseSequence(t *testing.T) {
	w := At(2, Temp, 0)
	build := func(middle Step) script {
		p := script{needs: Needs{Scratch: 8, Temps: 1}}
		p.steps = [][][]Step{
			{{cp(At(2, Scratch, 0), User(0, Src, 0, 0), 8), {Kind: Store, Word: w, Value: 1, Order: Release, Peer: Nobody}}},
			{{{Kind: Wait, Word: w, Value: 1, Peer: 0}, middle}},
			{{{Kind: Wait, Word: w, Value: 2, Order: Acquire, Peer: 1}, cp(User(2, Dst, 0, 0), At(2, Scratch, 0), 8)}},
		}
		return p
	}
	_, err := newTest(3).Run(build(Step{Kind: Add, Word: w, Value: 1, Peer: Nobody}), memories(3, 2), Options{})
	require.NoError(t, err)
	_, err = newTest(3).Run(build(Step{Kind: Swap, Word: w, Expect: 1, Value: 2, Else: 2, Peer: Nobody}), memories(3, 2), Options{})
	require.NoError(t, err)
	_, err = newTest(3).Run(build(Step{Kind: Store, Word: w, Value: 2, Peer: Nobody}), memories(3, 2), Options{})
	require.ErrorAs(t, err, new(*Race))
}

// Bytes stored by one proxy are seen by the other only with a proxy fence
// between, on either side.
func TestAliasFence(t *testing.T) {
	alias := Step{Kind: Fence, Order: Relaxed, Alias: true, Peer: Nobody}
	store := Step{Kind: Store, Word: At(1, Temp, 0), Value: 1, Order: Release, Peer: Nobody}
	wait := Step{Kind: Wait, Word: At(1, Temp, 0), Value: 1, Order: Acquire, Peer: 0}
	for _, c := range []struct {
		name          string
		before, after []Step
		ok            bool
	}{
		{"none", nil, nil, false},
		{"writer", []Step{alias}, nil, true},
		{"reader", nil, []Step{alias}, true},
		{"both", []Step{alias}, []Step{alias}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			first := append([]Step{cp(User(All, Dst, 0, 0), User(0, Src, 0, 0), 8)}, c.before...)
			second := append([]Step{wait}, c.after...)
			p := script{needs: Needs{Temps: 1, Scratch: 8}, steps: [][][]Step{
				{append(first, store)},
				{append(second, cp(At(1, Scratch, 0), User(1, Dst, 0, 0), 8))},
			}}
			_, err := newTest(2).Run(p, memories(2, 2), Options{})
			if c.ok {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, "multicast store by rank 0")
			}
		})
	}
}

func TestCompare(t *testing.T) {
	for _, c := range []struct {
		cmp         Compare
		mask        uint64
		word, value uint64
		want        bool
	}{
		{Equal, 0, 5, 5, true},
		{Equal, 0xFF, 0x105, 5, true},
		{Equal, 0, 0x105, 5, false},
		{NotEqual, 0, 5, 5, false},
		{AtLeast, 0, 5, 6, false},
		{AtLeast, 0, 1 << 63, 6, true},
		{Reached, 0, 5, 6, false},
		{Reached, 0, 6, 6, true},
		{Reached, 0, 1, ^uint64(0), true}, // the counter has wrapped
		{Reached, 0xFFFFFFFF, 1, 0xFFFFFFFF, true},
		{Reached, 0xFFFFFFFF, 0xFFFFFFFF, 1, false},
		{Reached, 0xFFFFFFFF, 0x80000000, 0, false}, // half way round
		{NonZero, 0, 0, 7, false},
		{NonZero, 2, 3, 0, true},
		{ZeroValue, 4, 3, 9, true},
	} {
		require.Equal(t, c.want, compare(c.cmp, c.mask, c.word, c.value), "%+v", c)
	}
}

// After a barrier everybody reads what everybody wrote before it. barriers are
// built of signals; a counter a round keeps the words apart.
func throughBarrier(ranks int, barrier func(rank int) []Step) script {
	return each(Needs{Box: int64(4 * ranks), Temps: 64}, ranks, func(r int) []Step {
		s := []Step{cp(At(r, Box, 0), User(r, Src, 0, 0), 4)}
		s = append(s, barrier(r)...)
		var srcs []Ref
		for p := range ranks {
			srcs = append(srcs, At(p, Box, 0))
		}
		return append(s, sum(User(r, Dst, 0, 0), 4, srcs...))
	})
}

func signal(to, slot int) Step {
	return Step{Kind: Store, Word: At(to, Temp, int64(slot)), Value: 1, Order: Release, Peer: Nobody}
}

func await(rank, slot, from int) Step {
	return Step{Kind: Wait, Word: At(rank, Temp, int64(slot)), Value: 1, Order: Acquire, Peer: from}
}

// dissemination signals the rank 2^k ahead in round k.
func dissemination(ranks int) func(int) []Step {
	return func(r int) []Step {
		var s []Step
		for k := range bits.Len(uint(ranks - 1)) {
			s = append(s, signal((r+1<<k)%ranks, k), await(r, k, ((r-1<<k)%ranks+ranks)%ranks))
		}
		return s
	}
}

// butterfly meets the rank that differs in bit k, if there is one: on ranks that
// are no power of two some never meet.
func butterfly(ranks int) func(int) []Step {
	return func(r int) []Step {
		var s []Step
		for k := range bits.Len(uint(ranks - 1)) {
			if p := r ^ 1<<k; p < ranks {
				s = append(s, signal(p, k), await(r, k, p))
			}
		}
		return s
	}
}

func TestBarriersOfSignals(t *testing.T) {
	for _, ranks := range []int{2, 3, 4, 5, 6, 7, 8} {
		t.Run(fmt.Sprint(ranks), func(t *testing.T) {
			bothSchedulers(t, func(t *testing.T, opt Options) {
				for _, late := range []int{0, ranks - 1} { // rank-skewed entry
					opt.Inject = []Injection{{Rank: late, Harm: Delay, For: 1000}}
					mem := memories(ranks, 1)
					_, err := newTest(ranks).Run(throughBarrier(ranks, dissemination(ranks)), mem, opt)
					require.NoError(t, err)
					for r := range ranks {
						require.Equal(t, uint32(1000*ranks*(ranks-1)/2), u32s(mem[r][0].Dst)[0])
					}
					_, err = newTest(ranks).Run(throughBarrier(ranks, butterfly(ranks)), memories(ranks, 1), opt)
					if ranks&(ranks-1) == 0 {
						require.NoError(t, err)
					} else {
						require.ErrorAs(t, err, new(*Race), "edges are missing")
					}
				}
			})
		})
	}
}

// Nobody leaves the machine's own barrier before all have come, whatever the
// number of ranks and who is late.
func TestBarrierIsABarrier(t *testing.T) {
	for _, ranks := range []int{1, 3, 5, 6, 7, 8} {
		p := throughBarrier(ranks, func(int) []Step { return []Step{barrierOf(ranks), barrierOf(ranks)} })
		p.needs.Barriers = 1
		bothSchedulers(t, func(t *testing.T, opt Options) {
			opt.Inject = []Injection{{Rank: ranks / 2, Step: 1, Harm: Delay, For: 5}}
			_, err := newTest(ranks).Run(p, memories(ranks, 1), opt)
			require.NoError(t, err)
		})
	}
}

func TestBarrierHangNamesTheAbsent(t *testing.T) {
	p := throughBarrier(4, func(r int) []Step {
		if r == 2 {
			return nil
		}
		return []Step{barrierOf(4)}
	})
	p.needs.Barriers = 1
	p.steps[2][0] = p.steps[2][0][:1] // or it would race with what it reads
	bothSchedulers(t, func(t *testing.T, opt Options) {
		_, err := newTest(4).Run(p, memories(4, 1), opt)
		var f *api.Fault
		require.ErrorAs(t, err, &f)
		require.Equal(t, api.FaultHang, f.Kind)
		require.Equal(t, "rank 0, CTA 0 waits at step 1 (barrier 0 of 4) for rank 2; rank 2, CTA 0 has ended", f.Detail)
	})
}

func TestBoxesAndWordsPersist(t *testing.T) {
	w := At(0, Word, 3)
	p := each(Needs{Box: 4, Words: 4}, 1, func(int) []Step {
		return []Step{
			{Kind: Add, Word: w, Value: 1, Peer: Nobody},
			cp(User(0, Dst, 0, 0), At(0, Box, 0), 4),
			cp(At(0, Box, 0), User(0, Src, 0, 0), 4),
		}
	})
	m := newTest(1)
	for i := range uint32(3) {
		mem := memories(1, 1)
		mem[0][0].Src.Bytes[0] = byte(i + 1)
		_, err := m.Run(p, mem, Options{})
		require.NoError(t, err)
		require.Equal(t, i, u32s(mem[0][0].Dst)[0], "what the run before left")
		require.EqualValues(t, i+1, m.Word(w))
	}
}
