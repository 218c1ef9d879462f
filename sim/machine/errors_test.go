package machine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/tandem/api"
	"example.com/tandem/api/num"
)

// one runs steps of one rank with two lanes' worth of nothing special.
func one(s ...Step) error {
	p := script{needs: Needs{Scratch: 16, Box: 16, Line: 16, Words: 2, Temps: 2, Barriers: 1}, steps: [][][]Step{{s}}}
	_, err := newTest(1).Run(p, memories(1, 4), Options{})
	return err
}

func TestBadSteps(t *testing.T) {
	src, dst := User(0, Src, 0, 0), User(0, Dst, 0, 0)
	for name, s := range map[string]Step{
		"beyond the end":      cp(dst, src, 17),
		"before the start":    cp(User(0, Dst, 0, -1), src, 4),
		"no such rank":        cp(User(1, Dst, 0, 0), src, 4),
		"no such lane":        cp(User(0, Dst, 1, 0), src, 4),
		"scratch too small":   cp(At(0, Scratch, 8), src, 16),
		"a word as a range":   cp(At(0, Word, 0), src, 4),
		"multicast lines":     cp(Lines(All, 0, 0), src, 4),
		"negative length":     cp(dst, src, -4),
		"overflowing length":  cp(User(0, Dst, 0, 8), src, 1<<63-4),
		"no source":           {Kind: Copy, Dst: dst, Bytes: 4},
		"no source to reduce": {Kind: Reduce, Dst: dst, Bytes: 4, DType: num.U32},
		"half an element":     sum(dst, 6, src),
		"no dtype":            {Kind: Reduce, Dst: dst, Srcs: []Ref{src}, Bytes: 4},
		"a stamp on memory":   {Kind: Stamp, Dst: dst, Bytes: 4},
		"no such word":        {Kind: Store, Word: At(0, Word, 2)},
		"no such base":        {Kind: Store, Word: At(0, Word, 1), Base: At(0, Temp, 9)},
		"bytes as a word":     {Kind: Wait, Word: At(0, Box, 0)},
		"no such barrier":     {Kind: Barrier, Value: 1, Count: 1},
		"a barrier of nobody": {Kind: Barrier},
		"unknown kind":        {Kind: 99},
		"nowhere to go":       {Kind: Test, Word: At(0, Word, 0), Value: 5},
		"a jump to itself":    {Kind: Goto},
		"a jump outside":      {Kind: Goto, Else: 7},
		"a jump back":         {Kind: Goto, Else: -1},
		"no such abort word":  {Kind: Wait, Word: At(0, Word, 0), Value: 1, Aborts: [2]Ref{At(0, Word, 2)}},
	} {
		t.Run(name, func(t *testing.T) {
			err := one(s)
			var bad *BadStep
			require.ErrorAs(t, err, &bad)
			require.NotEmpty(t, bad.Reason)
		})
	}
}

func TestNothingToDo(t *testing.T) {
	require.NoError(t, one())
	require.NoError(t, one(cp(User(0, Dst, 0, 16), User(0, Src, 0, 16), 0)))
	require.NoError(t, one(Step{}))
}

func TestAStepThatOverlapsItselfRaces(t *testing.T) {
	mem := memories(1, 4)
	mem[0][0].Dst = mem[0][0].Src
	for _, c := range []struct {
		dst, src int64
		ok       bool
	}{{0, 0, true}, {0, 8, true}, {0, 4, false}, {4, 0, false}} {
		p := script{steps: [][][]Step{{{cp(User(0, Dst, 0, c.dst), User(0, Src, 0, c.src), 8)}}}}
		_, err := newTest(1).Run(p, mem, Options{})
		if c.ok {
			require.NoError(t, err)
			continue
		}
		var race *Race
		require.ErrorAs(t, err, &race)
		require.Equal(t, [2]int64{4, 8}, [2]int64{race.Start, race.End})
	}
}

// One byte in common is an overlap, none is not.
func TestOverlapOfOneByte(t *testing.T) {
	for _, c := range []struct {
		dst, src int64
		ok       bool
	}{{0, 7, false}, {7, 0, false}, {0, 8, true}, {8, 0, true}} {
		mem := memories(1, 4)
		mem[0][0].Dst = mem[0][0].Src
		p := script{steps: [][][]Step{{{cp(User(0, Dst, 0, c.dst), User(0, Src, 0, c.src), 8)}}}}
		_, err := newTest(1).Run(p, mem, Options{})
		if c.ok {
			require.NoError(t, err)
		} else {
			var race *Race
			require.ErrorAs(t, err, &race)
			require.Equal(t, int64(1), race.End-race.Start)
		}
	}
}

func TestMisaligned(t *testing.T) {
	mem := memories(1, 4)
	p := script{steps: [][][]Step{{{{Kind: Copy, Dst: User(0, Dst, 0, 0), Srcs: []Ref{User(0, Src, 0, 4)}, Bytes: 8, Width: 8}}}}}
	_, err := newTest(1).Run(p, mem, Options{})
	var f *api.Fault
	require.ErrorAs(t, err, &f)
	require.Equal(t, api.FaultMisaligned, f.Kind)
	mem[0][0].Src.Addr += 4 // alignment is judged on the address
	_, err = newTest(1).Run(p, mem, Options{})
	require.NoError(t, err)
}

// A store may reach the guards, no further: that is how a model overruns.
func TestGuards(t *testing.T) {
	mem := memories(1, 4)
	d := &mem[0][0].Dst
	*d = api.Image{Bytes: make([]byte, 16+2*8), Addr: d.Addr, Guard: 8}
	over := func(off int64) error {
		_, err := newTest(1).Run(script{steps: [][][]Step{{{cp(User(0, Dst, 0, off), User(0, Src, 0, 0), 16)}}}}, mem, Options{})
		return err
	}
	require.NoError(t, over(-8))
	require.NoError(t, over(8))
	require.ErrorAs(t, over(-9), new(*BadStep))
	require.ErrorAs(t, over(9), new(*BadStep))
}

func TestUnknownSums(t *testing.T) {
	s := sum(User(0, Dst, 0, 0), 16, User(0, Src, 0, 0), User(0, Src, 0, 0))
	s.SumBelow, s.Unless = 6, "not known"
	err := one(s) // 0+0, 1+1, 2+2, 3+3
	var unknown *Unknown
	require.ErrorAs(t, err, &unknown)
	require.EqualValues(t, 3, unknown.Element)
	require.Contains(t, err.Error(), "not known")
	s.SumBelow = 7
	require.NoError(t, one(s))
}

// Deleting any synchronising step of a sound program makes it race or hang.
func TestEveryStepMatters(t *testing.T) {
	p := neighbour(3, Release, System)
	for r := range 3 {
		for _, i := range []int{1, 2} {
			_, err := newTest(3).Run(Without(p, r, 0, i), memories(3, 2), Options{})
			require.Error(t, err, "rank %d, step %d", r, i)
		}
	}
}

func TestMemoryOfOtherRanks(t *testing.T) {
	_, err := newTest(2).Run(neighbour(2, Release, System), memories(3, 2), Options{})
	require.ErrorIs(t, err, api.ErrInvalid)
}
